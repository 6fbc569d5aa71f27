export interface ConnectOptions {
  /** Default: AIRLOCK_URL, or http://127.0.0.1:8080. unix:/run/airlock/api.sock in a context (Node): needs no token. */
  url?: string;
  /** Default: AIRLOCK_TOKEN. */
  token?: string;
  signal?: AbortSignal;
}

/** Rejects with AuthError or UnreachableError if the API cannot be used. */
export function connect(options?: ConnectOptions): Promise<Sandbox>;

/** `text` as one word of a POSIX shell. */
export function quote(text: string): string;

/** How long a context may live, in ms; null is for ever. */
export interface Lifespan {
  /** After this was set. */
  ttlMs?: number | null;
  /** After the last program of it ended. */
  idleTimeoutMs?: number | null;
}

export interface ContextSpec extends Lifespan {
  name: string;
  env?: Record<string, string>;
  cwd?: string;
  /** Where the children of its programs run; may be a context that comes later. */
  childContext?: string | null;
  routeChild?: boolean | 'auto' | 'always' | 'never';
  enforce?: 'auto' | 'preload' | 'farm' | 'binfmt' | 'ptrace';
  isolation?: 'secure' | 'strict' | 'none';
  /** Whose are changes of /usr, /etc, …: the context's own (overlay), everybody's, or the daemon chooses. */
  rootfs?: 'auto' | 'shared' | 'overlay';
  user?: string;
  /** Bytes, counts, ms. */
  limits?: { pids?: number; memory?: number; cpuHundredths?: number; openFiles?: number; tmpfs?: number; execTimeMs?: number };
  share?: string[];
  hide?: string[];
  /** Command strings run in the context's shell, which keeps its state. Default true. */
  persistent?: boolean;
  /** Its programs reach the API by a socket of their own. Default: unless it has a childContext. */
  apiSocket?: boolean;
  ifExists?: 'error' | 'reuse';
  /** The same request with the same key is done once. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export interface ContextDescription {
  name: string;
  cwd: string;
  /** Empty: none. */
  childContext: string;
  routeChild: 'auto' | 'always' | 'never';
  enforce: string;
  isolation: 'secure' | 'strict' | 'none';
  rootfs: 'shared' | 'overlay';
  /** Never values. */
  envNames: string[];
  user: string;
  /** What isolates it in effect, and what that does not give. */
  tier: string;
  lacks: string[];
  integrity: string;
  persistent: boolean;
  limits: { name: string; limit: number; by: string; hits: number }[];
  ttlMs: number | null;
  ttlRemainingMs: number | null;
  idleTimeoutMs: number | null;
  idleRemainingMs: number | null;
  /** Where its programs reach the API, as they see it; null: nowhere. */
  apiSocket: string | null;
}

export interface ShellDescription {
  name: string;
  uid: number;
  /** Empty: not started yet. */
  engine: 'bash-builtin' | 'bash-loop' | 'sh' | '';
  pid: number;
  cwd: string;
  isBusy: boolean;
  /** Id of the exec whose command runs. */
  exec: string | null;
  runningMs: number;
  /** Commands in its queue. */
  waiting: number;
  background: { pid: number }[];
}

export interface Port {
  port: number;
  protocol: string;
  expose: string;
  name: string;
  held: boolean;
  queued: number;
  resets: number;
  service: string;
  state: string;
}

export interface ContextPort {
  port: number;
  /** 0.0.0.0 or :: is everywhere. */
  address: string;
  /** Of a program that has it open, as the context sees it. */
  pid: number;
  program: string;
}

export interface RouteEvent {
  type: 'route';
  from: string;
  to: string;
  program: string;
  outcome: string;
  rule: string;
  reason: string;
  [field: string]: unknown;
}

export interface ExecOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Milliseconds; the same as timeoutMs. */
  timeout?: number;
  timeoutMs?: number;
  graceMs?: number;
  yieldMs?: number;
  /** The persistent shell that runs a string, or false for a new one. Default: `default` if the context is persistent. */
  shell?: string | false;
  onBusy?: 'queue' | 'fail';
  stdin?: { text: string } | { base64: string } | 'open';
  output?: { maxBytes?: number; encoding?: 'auto' | 'utf-8' | 'base64' };
  onDisconnect?: 'kill' | 'detach';
  slowReader?: 'block' | 'skip';
  /** The same request with the same key is done once; the program then goes on when this client leaves. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export type Status = 'queued' | 'running' | 'exited' | 'signaled' | 'timed_out' | 'failed' | 'lost';

/** How a program ended. A failing one is a result, not an exception. */
export class ExecResult {
  id: string;
  context: string;
  /** What was asked for, one of them; long ones are cut. */
  command: string | null;
  argv: string[] | null;
  /** The persistent shell that ran it. */
  shell: string | false;
  tty: boolean;
  status: Status;
  success: boolean;
  /** Null while it runs, or if a signal ended it. */
  exitCode: number | null;
  signal: string | null;
  /** As shells tell it: 128 + the signal's number. */
  exitStatus: number | null;
  timedOut: boolean;
  stdout: string;
  stderr: string;
  stdoutEncoding: 'utf-8' | 'base64';
  stderrEncoding: 'utf-8' | 'base64';
  stdoutBytes: number;
  stderrBytes: number;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
  durationMs: number;
  startedAt: string;
  endedAt: string | null;
  pid: number | null;
  /** Where to go on with logs(). */
  cursor: string;
  stdoutOmitted?: { offset: number; bytes: number };
  stderrOmitted?: { offset: number; bytes: number };
  /** In a shell: how long it waited for other commands. */
  queuedMs?: number;
  usage?: { userMs: number; systemMs: number; maxRssBytes: number };
  error?: { code: string; errno: string | null; message: string };
  /** Of a command in a persistent shell. */
  cwd?: string | null;
  envChanged?: string[];
  background?: { pid: number }[];
  shellEvent?: 'recovered' | 'lost' | null;
  noCheckpoint?: string;
  /** This result, if the program ended with 0; else throws ExecError. */
  assertOk(): this;
}

export type ExecEvent =
  | { type: 'start'; id: string; pid: number; cursor: string }
  | { type: 'stdout' | 'stderr'; text?: string; base64?: string; bytes: Uint8Array; cursor: string }
  | { type: 'notice'; reason: string; cursor?: string }
  | { type: 'exit'; result: ExecResult; cursor: string };

export class Sandbox {
  createContext(spec: ContextSpec): Promise<Context>;
  getContext(name: string, options?: { signal?: AbortSignal }): Promise<Context>;
  listContexts(options?: { signal?: AbortSignal }): Promise<ContextDescription[]>;
  /** Runs in the context `user`. */
  exec(command: string | string[], options?: ExecOptions): Promise<ExecResult>;
  exec(command: TemplateStringsArray, ...values: unknown[]): Promise<ExecResult>;
  getProcess(id: string): Promise<Process>;
  routeEvents(options?: { from?: string; to?: string; signal?: AbortSignal }): AsyncGenerator<RouteEvent>;
  ports(options?: { signal?: AbortSignal }): Promise<Port[]>;
  health(options?: { signal?: AbortSignal }): Promise<Record<string, unknown>>;
  info(options?: { signal?: AbortSignal }): Promise<Record<string, unknown>>;
}

export class Context {
  readonly name: string;
  readonly persistent: boolean;
  /** A string is for the context's shell, a list runs as it is; values of a tag are quoted. */
  exec(command: string | string[], options?: ExecOptions): Promise<ExecResult>;
  exec(command: TemplateStringsArray, ...values: unknown[]): Promise<ExecResult>;
  /** Ends with 'exit', or throws. Leaving the loop ends the program. */
  execStream(command: string | string[], options?: ExecOptions): AsyncGenerator<ExecEvent>;
  spawn(command: string | string[], options?: ExecOptions & { tty?: { cols: number; rows: number } }): Promise<Process>;
  /** Needs WebSocket: Node 22 or later, a browser, or the package `ws`. */
  terminal(options?: TerminalOptions): Promise<Terminal>;
  attachTerminal(id: string, options?: { takeover?: boolean; signal?: AbortSignal }): Promise<Terminal>;
  terminals(): Promise<TerminalInfo[]>;
  /** Default: `default`. */
  shell(name?: string): Shell;
  /** The same, started ahead of its first command. */
  startShell(name?: string, options?: { signal?: AbortSignal }): Promise<Shell>;
  shells(options?: { signal?: AbortSignal }): Promise<ShellDescription[]>;
  /** TCP ports that its programs listen on. */
  ports(options?: { signal?: AbortSignal }): Promise<ContextPort[]>;
  /** Resolves when one of its programs listens there; throws WaitTimeoutError after `timeout` ms (30000). */
  waitForPort(port: number, options?: { timeout?: number; signal?: AbortSignal }): Promise<ContextPort>;
  processes(): Promise<Process[]>;
  cd(folder: string, options?: { signal?: AbortSignal }): Promise<void>;
  pwd(options?: { signal?: AbortSignal }): Promise<string>;
  /** Null removes a variable. */
  setEnv(env: Record<string, string | null>, options?: { signal?: AbortSignal }): Promise<void>;
  /** What a program of this context sees. */
  getEnv(): Promise<Record<string, string>>;
  setChildContext(childContext: string, options?: { signal?: AbortSignal }): Promise<unknown>;
  setLifespan(lifespan: Lifespan & { signal?: AbortSignal }): Promise<ContextDescription>;
  explainRoute(argv: string[]): Promise<{ outcome: 'run_in' | 'run_here' | 'refuse'; to: string; rule: string; reason: string }>;
  describe(): Promise<ContextDescription>;
  readonly files: Files;
  destroy(): Promise<{ survivors: number }>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface FileEntry {
  /** The last part of the path; in a list, the path below the folder. Bytes that are not UTF-8 are replaced. */
  name: string;
  /** Its bytes, if they are not UTF-8. */
  nameBase64?: string;
  type: 'file' | 'folder' | 'symlink' | 'fifo' | 'socket' | 'device' | 'other';
  size: number;
  /** Permissions, four octal digits. */
  mode: string;
  uid: number;
  gid: number;
  /** Nanoseconds since 1970. */
  mtimeNs: string;
  /** Of files, for `ifMatch`. */
  etag?: string;
  /** What a symlink says. */
  target?: string;
  targetBase64?: string;
}

/** Bytes for a name that is not UTF-8. Relative ones begin at the context's working folder. */
export type FilePath = string | Uint8Array;

export interface FileReadOptions {
  /** Bytes; with `length` a part of the file. */
  offset?: number;
  length?: number;
  ifMatch?: string;
  signal?: AbortSignal;
}

export interface FileWriteOptions {
  /** Octal, "0644"; else that of the old file, or as programs make files. */
  mode?: string;
  /** Make the folders above it. */
  mkdirs?: boolean;
  ifMatch?: string;
  /** `*`: only if there is none. */
  ifNoneMatch?: string;
  signal?: AbortSignal;
}

export class Files {
  read(path: FilePath, options?: FileReadOptions): Promise<Uint8Array>;
  readText(path: FilePath, options?: FileReadOptions): Promise<string>;
  /** For what is too large to hold. It errors if it is cut off. */
  readStream(path: FilePath, options?: FileReadOptions): Promise<ReadableStream<Uint8Array>>;
  /** Whole or not at all. A stream or an iterable is sent as it comes. */
  write(path: FilePath, contents: string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>,
        options?: FileWriteOptions): Promise<FileEntry>;
  list(path: FilePath, options?: { recursive?: boolean; limit?: number; signal?: AbortSignal }):
    Promise<{ items: FileEntry[]; isTruncated: boolean }>;
  /** `follow`: what a symlink leads to. */
  stat(path: FilePath, options?: { follow?: boolean; signal?: AbortSignal }): Promise<FileEntry>;
  /** `parents`: and those above it; one that is there will do. */
  mkdir(path: FilePath, options?: { parents?: boolean; mode?: string; signal?: AbortSignal }): Promise<void>;
  move(from: FilePath, to: FilePath, options?: { overwrite?: boolean; parents?: boolean; signal?: AbortSignal }):
    Promise<void>;
  remove(path: FilePath, options?: { recursive?: boolean; ifMatch?: string; signal?: AbortSignal }): Promise<void>;
}

export class Shell {
  readonly context: Context;
  readonly name: string;
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
  exec(command: TemplateStringsArray, ...values: unknown[]): Promise<ExecResult>;
  execStream(command: string, options?: ExecOptions): AsyncGenerator<ExecEvent>;
  /** Ctrl-C for the running command. */
  interrupt(options?: { signal?: AbortSignal }): Promise<{ interrupted: boolean }>;
  /** Kills all that it has started; the next command gets a fresh shell. */
  reset(options?: { signal?: AbortSignal }): Promise<{ killed: number; survivors: number }>;
  describe(options?: { signal?: AbortSignal }): Promise<ShellDescription>;
  /** Ends it and all it has started. */
  end(options?: { signal?: AbortSignal }): Promise<{ killed: number; survivors: number }>;
}

export interface TerminalOptions {
  /** Default: a shell. */
  command?: string | string[];
  cols?: number;
  rows?: number;
  env?: Record<string, string>;
  cwd?: string;
  /** What is kept for those who attach later. */
  scrollbackBytes?: number;
  timeoutMs?: number;
  graceMs?: number;
  /** When nobody has been attached for so long it is hung up; 0: never. Default 30 minutes. */
  idleTimeoutMs?: number;
  signal?: AbortSignal;
}

export interface TerminalInfo {
  id: string;
  context: string;
  state: 'starting' | 'detached' | 'attached' | 'ended';
  attached: number;
  hasWriter: boolean;
  idleTimeoutMs: number;
  idleLeftMs: number | null;
  cols: number | null;
  rows: number | null;
  exec: Record<string, unknown>;
}

export type TerminalState = 'connecting' | 'connected' | 'reconnecting' | 'taken-over' | 'closed' | 'ended';

/** A program on a terminal. After a lost connection it attaches again where it was. */
export class Terminal {
  readonly id: string;
  readonly execId: string;
  readonly state: TerminalState;
  readonly info: TerminalInfo;
  readonly exited: Promise<ExecResult>;
  onData(listener: (bytes: Uint8Array) => void): () => void;
  onState(listener: (state: TerminalState) => void): () => void;
  /** False if it is not connected, and nothing was sent. */
  write(data: string | Uint8Array): boolean;
  resize(cols: number, rows: number): void;
  /** Starts the program anew. */
  reset(): Promise<void>;
  /** Leaves; the program goes on. */
  close(): void;
  /** SIGHUP, and SIGKILL 5 s later. */
  kill(): Promise<void>;
}

export class Process {
  readonly id: string;
  readonly pid: number | null;
  readonly stdin: { write(data: string | Uint8Array): Promise<unknown>; close(): Promise<unknown> };
  status(options?: { signal?: AbortSignal }): Promise<ExecResult>;
  wait(options?: { signal?: AbortSignal }): Promise<ExecResult>;
  output(options?: { signal?: AbortSignal }): Promise<ExecResult>;
  logs(options?: { since?: string; signal?: AbortSignal }): AsyncGenerator<ExecEvent>;
  /** The count comes of scope 'exec' or 'context', and of an escalation: a second signal for those that are left. */
  kill(signal?: string | number, options?: {
    scope?: 'leader' | 'group' | 'exec' | 'context';
    escalate?: { afterMs?: number; signal?: string | number };
  }): Promise<{ delivered: number; survivors: number } | undefined>;
  resize(cols: number, rows: number): Promise<void>;
}

/** Codes of the API's errors. */
export type ProblemCode =
  | 'invalid-request' | 'unauthorized' | 'forbidden-scope' | 'forbidden-place' | 'forbidden-host' | 'not-found'
  | 'context-not-found'
  | 'shell-not-found' | 'exec-not-found' | 'terminal-not-found' | 'method-not-allowed' | 'not-acceptable' | 'request-timeout'
  | 'context-exists' | 'shell-busy' | 'request-in-progress' | 'exec-ended' | 'stdin-closed' | 'no-terminal' | 'terminal-busy'
  | 'file-not-found' | 'file-forbidden' | 'file-exists' | 'is-a-folder' | 'not-a-folder' | 'not-a-file' | 'folder-not-empty'
  | 'file-busy' | 'precondition-failed' | 'range-not-satisfiable' | 'invalid-path' | 'other-file-system' | 'io-error'
  | 'files-timeout' | 'no-space'
  | 'exec-forgotten' | 'payload-too-large' | 'unsupported-media-type' | 'idempotency-key-reused' | 'cwd-not-found'
  | 'not-supported' | 'upgrade-required' | 'too-many-requests' | 'headers-too-large' | 'internal' | 'daemon-unavailable' | 'overloaded';

export class AirlockError extends Error {
  /** Stable: docs/API.md lists them. */
  code: ProblemCode | 'unreachable' | 'stream-interrupted' | 'exec-failed' | 'wait-timeout';
  status: number;
  requestId?: string;
  retryable: boolean;
  errors: { pointer: string; detail: string }[];
}
export class AuthError extends AirlockError {}
export class ContextExistsError extends AirlockError {}
export class ContextNotFoundError extends AirlockError {}
export class ExecNotFoundError extends AirlockError {}
export class NoSuchFileError extends AirlockError {}
/** The file is in another state than was asked for (`ifMatch`, `ifNoneMatch`). */
export class PreconditionFailedError extends AirlockError {}
export class ShellBusyError extends AirlockError {}
export class ShellNotFoundError extends AirlockError {}
/** 429: try again later. */
export class RateLimitError extends AirlockError {}
/** Nobody answered. */
export class UnreachableError extends AirlockError {}
/** What was waited for has not come in time. */
export class WaitTimeoutError extends AirlockError {}
/** A stream was cut off: go on with getProcess(execId).logs({since: cursor}). */
export class StreamInterruptedError extends AirlockError {
  execId?: string;
  cursor?: string;
}
/** Thrown by ExecResult.assertOk() only. */
export class ExecError extends AirlockError {
  result: ExecResult;
}
