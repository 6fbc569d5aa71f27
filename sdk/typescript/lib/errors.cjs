'use strict';

/** What the API refused to do. `code` is stable (docs/API.md). */
class AirlockError extends Error {
  constructor(message, fields = {}) {
    super(message);
    this.name = new.target.name;
    this.code = fields.code ?? 'internal';
    this.status = fields.status ?? 0;
    this.requestId = fields.requestId;
    this.retryable = fields.retryable ?? false;
    this.errors = fields.errors ?? [];
  }
}

class AuthError extends AirlockError {}
class ContextExistsError extends AirlockError {}
class ContextNotFoundError extends AirlockError {}
class ExecNotFoundError extends AirlockError {}
class NoSuchFileError extends AirlockError {}
/** The file is in another state than was asked for (`ifMatch`, `ifNoneMatch`). */
class PreconditionFailedError extends AirlockError {}
class ShellBusyError extends AirlockError {}
class ShellNotFoundError extends AirlockError {}
class RateLimitError extends AirlockError {}

/** Nobody answered. The request may have arrived. */
class UnreachableError extends AirlockError {
  constructor(message, cause) {
    super(message, { code: 'unreachable', retryable: true });
    this.cause = cause;
  }
}

/** What was waited for has not come in time. */
class WaitTimeoutError extends AirlockError {
  constructor(message) {
    super(message, { code: 'wait-timeout', retryable: true });
  }
}

/** A stream ended without telling how the program did: go on from `cursor`. */
class StreamInterruptedError extends AirlockError {
  constructor(execId, cursor, cause) {
    super('the stream was cut off before the end of the program', { code: 'stream-interrupted', retryable: true });
    this.execId = execId;
    this.cursor = cursor;
    this.cause = cause;
  }
}

/** Thrown by ExecResult.assertOk() only. */
class ExecError extends AirlockError {
  constructor(result) {
    const how = result.signal ?? (result.timedOut ? 'time limit' : `exit code ${result.exitCode}`);
    super(`the program failed: ${how}`, { code: 'exec-failed' });
    this.result = result;
  }
}

const CLASSES = {
  'unauthorized': AuthError,
  'forbidden-scope': AuthError,
  'forbidden-place': AuthError,
  'forbidden-host': AuthError,
  'context-exists': ContextExistsError,
  'context-not-found': ContextNotFoundError,
  'exec-not-found': ExecNotFoundError,
  'file-not-found': NoSuchFileError,
  'precondition-failed': PreconditionFailedError,
  'shell-busy': ShellBusyError,
  'shell-not-found': ShellNotFoundError,
  'too-many-requests': RateLimitError,
};

/** The error for a problem+json document. */
function errorOf(problem) {
  const Kind = CLASSES[problem.code] ?? AirlockError;
  const where = (problem.errors ?? []).map((each) => `${each.pointer || '(body)'}: ${each.detail}`).join('; ');
  return new Kind([problem.title ?? 'the request failed', where || problem.detail].filter(Boolean).join(': '), problem);
}

module.exports = {
  AirlockError, AuthError, ContextExistsError, ContextNotFoundError, ExecError, ExecNotFoundError, NoSuchFileError,
  PreconditionFailedError, RateLimitError, ShellBusyError, ShellNotFoundError, StreamInterruptedError,
  UnreachableError, WaitTimeoutError, errorOf,
};
