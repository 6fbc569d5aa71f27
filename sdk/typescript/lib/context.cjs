'use strict';

const path = require('node:path');
const { ExecResult, Process, untilExit } = require('./process.cjs');
const { Terminal } = require('./terminal.cjs');

/** `text` as one word of a POSIX shell. */
const quote = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;

/** The body of an exec request. `timeout` (ms) is short for `timeoutMs`. */
function bodyOf(command, { signal, timeout, ...options }, shell) {
  const body = { ...options };
  if (timeout !== undefined) body.timeoutMs = timeout;
  if (Array.isArray(command)) return { ...body, argv: command };
  if (body.shell === undefined && shell !== undefined) body.shell = shell;
  return { ...body, command };
}

/** An execution context. */
class Context {
  #http;
  #base;
  constructor(http, described, persistent) {
    this.#http = http;
    this.name = described.name;
    this.persistent = persistent;
    this.#base = `/api/v1/contexts/${encodeURIComponent(this.name)}`;
  }

  #body(command, options) {
    return bodyOf(command, options, this.persistent && !options.tty ? 'default' : undefined);
  }

  /**
   * Runs a program and resolves with its ExecResult, whether it fails or not. A string is for the
   * context's shell, a list runs as it is; as a tag (exec`ls ${name}`) its values are quoted.
   */
  async exec(command, ...rest) {
    if (command?.raw !== undefined) return this.exec(String.raw({ raw: command }, ...rest.map(quote)));
    const options = rest[0] ?? {};
    const json = this.#body(command, options);
    return new ExecResult(await this.#http.json('POST', `${this.#base}/exec`, { json, signal: options.signal }));
  }

  /** Its events: start, stdout, stderr, notice, and at last exit. Leaving the loop ends the program. */
  async *execStream(command, options = {}) {
    const lines = this.#http.lines('POST', `${this.#base}/exec`,
      { json: this.#body(command, options), signal: options.signal });
    yield* untilExit(lines, {});
  }

  /** Starts a program that goes on by itself. */
  async spawn(command, options = {}) {
    const json = bodyOf(command, { stdin: options.tty ? undefined : 'open', ...options, yieldMs: 0 });
    const started = await this.#http.json('POST', `${this.#base}/exec`, { json, signal: options.signal });
    return new Process(this.#http, started.id, started.pid);
  }

  /** A program on a terminal (default: a shell), attached. It lives on when this process ends: attachTerminal(id). */
  async terminal({ command, signal, ...options } = {}) {
    const program = Array.isArray(command) ? { argv: command } : command === undefined ? {} : { command };
    const made = await this.#http.json('POST', `${this.#base}/terminals`, { json: { ...options, ...program }, signal });
    return new Terminal(this.#http, made).open();
  }

  /** A terminal of this context again, with what it showed. `takeover` takes the place of who writes now. */
  async attachTerminal(id, { takeover = false, signal } = {}) {
    const found = await this.#http.json('GET', `/api/v1/terminals/${encodeURIComponent(id)}`, { signal });
    return new Terminal(this.#http, found).open({ takeover });
  }

  async terminals() {
    return (await this.#http.json('GET', `${this.#base}/terminals`)).items;
  }

  /** A persistent shell by name, made when it is first used. */
  shell(name) {
    return new Shell(this, name);
  }

  /** Programs of this context that run, or ended lately. */
  async processes() {
    const { items } = await this.#http.json('GET', `${this.#base}/execs`);
    return items.map((each) => new Process(this.#http, each.id, each.pid));
  }

  /** Where programs start from now on. A relative folder counts from pwd(). */
  async cd(folder) {
    const cwd = path.posix.resolve(folder.startsWith('/') ? '/' : await this.pwd(), folder);
    if (this.persistent) (await this.exec(`cd ${quote(cwd)}`)).assertOk();
    await this.#change({ cwd });
  }

  async pwd() {
    return (await this.exec('pwd')).assertOk().stdout.replace(/\n$/, '');
  }

  /** Null removes a variable. For programs that start from now on. */
  async setEnv(env) {
    await this.#change({ env });
    if (!this.persistent) return;
    const words = Object.entries(env).map(([name, value]) =>
      value === null ? `unset ${name}` : `export ${name}=${quote(value)}`);
    (await this.exec(words.join('; '))).assertOk();
  }

  /** What a program of this context sees. */
  async getEnv() {
    const { stdout } = (await this.exec('env -0', { output: { encoding: 'utf-8' } })).assertOk();
    return Object.fromEntries(stdout.split('\0').filter(Boolean).map((entry) => {
      const equals = entry.indexOf('=');
      return [entry.slice(0, equals), entry.slice(equals + 1)];
    }));
  }

  /** Where the children of this context's programs run from now on. */
  setChildContext(childContext) {
    return this.#change({ childContext });
  }

  /** Where a program that is started here would run, and why. */
  explainRoute(argv) {
    return this.#http.json('POST', `${this.#base}/route:explain`, { json: { argv } });
  }

  async describe() {
    return this.#http.json('GET', this.#base);
  }

  #change(changes) {
    return this.#http.json('PATCH', this.#base, { json: changes });
  }

  /** Ends all its programs. */
  destroy() {
    return this.#http.json('DELETE', this.#base);
  }
}

// `await using`, where there is such a thing.
Symbol.asyncDispose ??= Symbol.for('Symbol.asyncDispose');
Context.prototype[Symbol.asyncDispose] = async function dispose() {
  await this.destroy();
};

/** A persistent shell: what one command leaves (cwd, variables, functions), the next finds. */
class Shell {
  constructor(context, name) {
    this.context = context;
    this.name = name;
  }

  exec(command, options = {}) {
    return this.context.exec(command, { ...options, shell: this.name });
  }

  execStream(command, options = {}) {
    return this.context.execStream(command, { ...options, shell: this.name });
  }
}

module.exports = { Context, Shell, quote };
