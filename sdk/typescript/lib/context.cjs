'use strict';

const path = require('node:path');
const { WaitTimeoutError } = require('./errors.cjs');
const { ExecResult, Process, untilExit } = require('./process.cjs');
const { Files } = require('./files.cjs');
const { Terminal } = require('./terminal.cjs');

/** `text` as one word of a POSIX shell. */
const quote = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;

/** The body of an exec request. `timeout` (ms) is short for `timeoutMs`. */
function bodyOf(command, { signal, timeout, idempotencyKey, ...options }) {
  const body = { ...options };
  if (timeout !== undefined) body.timeoutMs = timeout;
  return Array.isArray(command) ? { ...body, argv: command } : { ...body, command };
}

/** What to send beside the body. */
const sendingOf = ({ signal, idempotencyKey }) =>
  ({ signal, headers: idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey } });

/** An execution context. */
class Context {
  #http;
  #base;
  constructor(http, described) {
    this.#http = http;
    this.name = described.name;
    this.persistent = described.persistent;
    this.#base = `/api/v1/contexts/${encodeURIComponent(this.name)}`;
    this.files = new Files(http, this.#base);
  }

  /**
   * Runs a program and resolves with its ExecResult, whether it fails or not. A string is for the
   * context's shell, a list runs as it is; as a tag (exec`ls ${name}`) its values are quoted.
   */
  async exec(command, ...rest) {
    if (command?.raw !== undefined) return this.exec(String.raw({ raw: command }, ...rest.map(quote)));
    const options = rest[0] ?? {};
    const json = bodyOf(command, options);
    return new ExecResult(await this.#http.json('POST', `${this.#base}/exec`, { json, ...sendingOf(options) }));
  }

  /** Its events: start, stdout, stderr, notice, and at last exit. Leaving the loop ends the program. */
  async *execStream(command, options = {}) {
    const lines = this.#http.lines('POST', `${this.#base}/exec`,
      { json: bodyOf(command, options), ...sendingOf(options) });
    yield* untilExit(lines, {});
  }

  /** Starts a program that goes on by itself; a string in a new shell unless `shell` names one. */
  async spawn(command, options = {}) {
    const own = Array.isArray(command) ? {} : { shell: false };
    const json = bodyOf(command, { stdin: options.tty ? undefined : 'open', ...own, ...options, yieldMs: 0 });
    const started = await this.#http.json('POST', `${this.#base}/exec`, { json, ...sendingOf(options) });
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
  shell(name = 'default') {
    return new Shell(this, name, (method, verb, { signal } = {}) =>
      this.#http.json(method, `${this.#base}/shells/${encodeURIComponent(name)}${verb}`, { signal }));
  }

  /** The same, started ahead of its first command. */
  async startShell(name = 'default', { signal } = {}) {
    await this.#http.json('POST', `${this.#base}/shells`, { json: { name }, signal });
    return this.shell(name);
  }

  /** TCP ports that its programs listen on. */
  async ports({ signal } = {}) {
    return (await this.#http.json('GET', `${this.#base}/ports`, { signal })).items;
  }

  /** Resolves when one of its programs listens there; throws WaitTimeoutError after `timeout` ms. */
  async waitForPort(port, { timeout = 30000, signal } = {}) {
    const query = `timeoutMs=${Math.round(timeout)}`;
    const found = await this.#http.json('GET', `${this.#base}/ports/${Number(port)}:wait?${query}`, { signal });
    if (!found.isListening) throw new WaitTimeoutError(`nobody listens on port ${port} in context ${this.name}`);
    return found;
  }

  /** Its persistent shells, as they are now. */
  async shells({ signal } = {}) {
    return (await this.#http.json('GET', `${this.#base}/shells`, { signal })).items;
  }

  /** Programs of this context that run, or ended lately. */
  async processes() {
    const { items } = await this.#http.json('GET', `${this.#base}/execs`);
    return items.map((each) => new Process(this.#http, each.id, each.pid));
  }

  /** Where programs start from now on, in its shells, too. A relative folder counts from pwd(). */
  async cd(folder, { signal } = {}) {
    const cwd = path.posix.resolve(folder.startsWith('/') ? '/' : await this.pwd({ signal }), folder);
    await this.#http.json('PUT', `${this.#base}/cwd`, { json: { cwd }, signal });
  }

  /** Where the next command runs. */
  async pwd({ signal } = {}) {
    return (await this.#http.json('GET', `${this.#base}/cwd`, { signal })).cwd;
  }

  /** Null removes a variable. For programs that start from now on, and its shells' next commands. */
  async setEnv(env, { signal } = {}) {
    await this.#http.json('PATCH', `${this.#base}/env`, { json: env, signal });
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
  setChildContext(childContext, { signal } = {}) {
    return this.#http.json('PUT', `${this.#base}/route`, { json: { childContext }, signal });
  }

  /** How long it may live from now on, in ms: `ttlMs`, `idleTimeoutMs`; null is for ever. */
  setLifespan({ signal, ...lifespan }) {
    return this.#http.json('PATCH', this.#base, { json: lifespan, signal });
  }

  /** Where a program that is started here would run, and why. */
  explainRoute(argv) {
    return this.#http.json('POST', `${this.#base}/route:explain`, { json: { argv } });
  }

  async describe() {
    return this.#http.json('GET', this.#base);
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
  #order;
  constructor(context, name, order) {
    this.context = context;
    this.name = name;
    this.#order = order;
  }

  exec(command, ...rest) {
    if (command?.raw !== undefined) return this.exec(String.raw({ raw: command }, ...rest.map(quote)));
    return this.context.exec(command, { ...rest[0], shell: this.name });
  }

  execStream(command, options = {}) {
    return this.context.execStream(command, { ...options, shell: this.name });
  }

  /** Ctrl-C for the running command. */
  interrupt(options) {
    return this.#order('POST', ':interrupt', options);
  }

  /** Kills all that the shell has started; the next command gets a fresh one. */
  reset(options) {
    return this.#order('POST', ':reset', options);
  }

  /** What it is doing. */
  describe(options) {
    return this.#order('GET', '', options);
  }

  /** Ends it and all it has started. */
  end(options) {
    return this.#order('DELETE', '', options);
  }
}

module.exports = { Context, Shell, quote };
