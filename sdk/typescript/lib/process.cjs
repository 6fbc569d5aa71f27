'use strict';

const { AirlockError, ExecError, StreamInterruptedError, errorOf } = require('./errors.cjs');

/** How a program ended. A failing one is a result, not an exception. */
class ExecResult {
  constructor(fields) {
    Object.assign(this, fields);
  }

  /** This result, if the program ended with 0; else throws ExecError. */
  assertOk() {
    if (!this.success) throw new ExecError(this);
    return this;
  }
}

/** Bytes of an output event or of one stream of a result. */
const bytesOf = (event) =>
  event.base64 !== undefined ? fromBase64(event.base64) : new TextEncoder().encode(event.text);

const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/**
 * Events of a stream until its `exit`, which is the last. Throws StreamInterruptedError if the stream
 * ends without, and the API's error if it tells one.
 */
async function* untilExit(lines, state) {
  try {
    for await (const event of lines) {
      if (event.cursor) state.cursor = event.cursor;
      if (event.type === 'start') Object.assign(state, { id: event.id, pid: event.pid });
      if (event.type === 'ping') continue;
      if (event.type === 'error') throw errorOf(event);
      if (event.type === 'stdout' || event.type === 'stderr') event.bytes = bytesOf(event);
      yield event.type === 'exit' ? { ...event, result: new ExecResult(event) } : event;
      if (event.type === 'exit') return;
    }
  } catch (error) {
    if (error instanceof AirlockError || error.name === 'AbortError') throw error;
    throw new StreamInterruptedError(state.id, state.cursor, error);
  }
  throw new StreamInterruptedError(state.id, state.cursor);
}

/** What a program reads. */
class Input {
  #process;
  constructor(process) {
    this.#process = process;
  }

  /** Resolves when the program's pipe has taken all of it. */
  write(data) {
    return this.#process.send('POST', '/stdin', { body: data });
  }

  close() {
    return this.#process.send('POST', '/stdin?close=true', { body: new Uint8Array() });
  }
}

/** A program that runs, or has run: found again by its id. */
class Process {
  #http;
  constructor(http, id, pid) {
    this.#http = http;
    this.id = id;
    this.pid = pid;
    this.stdin = new Input(this);
  }

  send(method, path, options) {
    return this.#http.json(method, `/api/v1/execs/${encodeURIComponent(this.id)}${path}`, options);
  }

  /** What is known about it now. */
  async status(options) {
    return new ExecResult(await this.send('GET', '', options));
  }

  /** Its result when it has ended; output comes from logs() or output(). */
  async wait({ signal } = {}) {
    for (;;) {
      const now = await this.send('GET', '?waitMs=30000', { signal });
      if (now.status !== 'running' && now.status !== 'queued') return new ExecResult(now);
    }
  }

  /** Its output so far, as far as it is kept, and its status. */
  async output(options) {
    return new ExecResult(await this.send('GET', '/output', options));
  }

  /** Its events from a cursor on, to its end. */
  async *logs({ since, signal } = {}) {
    const path = `/api/v1/execs/${encodeURIComponent(this.id)}/output${since ? `?since=${since}` : ''}`;
    const state = { id: this.id, cursor: since };
    yield* untilExit(this.#http.lines('GET', path, { signal }), state);
  }

  /** Sends a signal to its process group, or to another scope: 'leader', 'exec', 'context'. */
  kill(name = 'SIGTERM', { scope = 'group', escalate } = {}) {
    return this.send('POST', '/signal', { json: { signal: name, scope, escalate } });
  }

  /** Of its terminal. */
  resize(cols, rows) {
    return this.send('POST', '/resize', { json: { cols, rows } });
  }
}

module.exports = { ExecResult, Process, untilExit };
