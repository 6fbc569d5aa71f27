'use strict';

const errors = require('./errors.cjs');
const { Context, Shell, quote } = require('./context.cjs');
const { Files } = require('./files.cjs');
const { ExecResult, Process } = require('./process.cjs');
const { Http } = require('./http.cjs');
const { Terminal } = require('./terminal.cjs');

/** A daemon. */
class Sandbox {
  #http;
  constructor(http) {
    this.#http = http;
  }

  /** `persistent` (default true): command strings run in the context's shell, which keeps its state. */
  async createContext({ ifExists = 'error', signal, idempotencyKey, ...spec }) {
    const headers = idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey };
    try {
      const made = await this.#http.json('POST', '/api/v1/contexts', { json: withoutNulls(spec), signal, headers });
      return new Context(this.#http, made);
    } catch (error) {
      if (!(error instanceof errors.ContextExistsError) || ifExists !== 'reuse') throw error;
      return this.getContext(spec.name, { signal });
    }
  }

  async getContext(name, { signal } = {}) {
    const found = await this.#http.json('GET', `/api/v1/contexts/${encodeURIComponent(name)}`, { signal });
    return new Context(this.#http, found);
  }

  async listContexts(options) {
    return (await this.#http.json('GET', '/api/v1/contexts', options)).items;
  }

  /** Runs in the context `user`. */
  exec(command, ...rest) {
    return new Context(this.#http, { name: 'user' }).exec(command, ...rest);
  }

  /** A program by its id, also one that somebody else has started. */
  async getProcess(id) {
    const { pid } = await new Process(this.#http, id).status();
    return new Process(this.#http, id, pid);
  }

  /** Every routing decision as it is made. Ends when the loop is left. */
  async *routeEvents({ from, to, signal } = {}) {
    for await (const event of this.#http.lines('GET', '/api/v1/routes/events', { signal })) {
      if (event.type === 'error') throw errors.errorOf(event);
      if (event.type === 'route' && (from ?? event.from) === event.from && (to ?? event.to) === event.to) yield event;
    }
  }

  /** Ports that the daemon holds for its services. */
  async ports(options) {
    return (await this.#http.json('GET', '/api/v1/ports', options)).items;
  }

  health(options) {
    return this.#http.json('GET', '/health', options);
  }

  info(options) {
    return this.#http.json('GET', '/api/v1/info', options);
  }
}

const withoutNulls = (object) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== undefined));

/**
 * Connects to the API at `url` (AIRLOCK_URL, http://127.0.0.1:8080) with `token` (AIRLOCK_TOKEN).
 * Rejects with AuthError or UnreachableError if it cannot be used.
 */
async function connect({ url, token, signal } = {}) {
  const env = globalThis.process?.env ?? {};
  const sandbox = new Sandbox(new Http(url ?? env.AIRLOCK_URL ?? 'http://127.0.0.1:8080', token ?? env.AIRLOCK_TOKEN));
  await sandbox.info({ signal });
  return sandbox;
}

module.exports = { connect, quote, Sandbox, Context, Files, Process, Shell, Terminal, ExecResult, ...errors };
delete module.exports.errorOf;
