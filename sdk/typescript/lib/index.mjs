// The same module for `import`.
import sdk from './index.cjs';

export const {
  connect, quote, Sandbox, Context, ExecResult, Process, Shell, AirlockError, AuthError, ContextExistsError, ContextNotFoundError,
  ExecError, ExecNotFoundError, Files, NoSuchFileError, PreconditionFailedError, RateLimitError,
  ShellBusyError, ShellNotFoundError, StreamInterruptedError, Terminal, UnreachableError,
  WaitTimeoutError,
} = sdk;
