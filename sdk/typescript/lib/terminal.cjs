'use strict';

const { AirlockError, UnreachableError } = require('./errors.cjs');
const { ExecResult } = require('./process.cjs');
const { UnixWebSocket } = require('./unix-web-socket.cjs');

const STDIN = 0, STDOUT = 1, STATUS = 3, RESIZE = 4;
const TAKEN_OVER = 4001;
const LARGEST_INPUT = 64 * 1024;
const MOST_EARLY_BYTES = 1 << 20;
const FIRST_PAUSE = 100, LONGEST_PAUSE = 5000; // ms between attempts to attach again

/** The platform's WebSocket, or that of the package `ws`. */
function webSocketClass() {
  if (globalThis.WebSocket) return globalThis.WebSocket;
  try {
    return require('ws');
  } catch {
    throw new UnreachableError('no WebSocket here: use Node 22 or later, or install the package ws');
  }
}

function openWebSocket({ socketPath, url }, path, protocols) {
  if (socketPath) return new UnixWebSocket(socketPath, path, protocols);
  const Class = webSocketClass();
  const socket = new Class(url.replace(/^http/, 'ws') + path, protocols);
  socket.binaryType = 'arraybuffer';
  return socket;
}

const base64url = (text) =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

/**
 * A program on a terminal. It outlives connections: after a loss this attaches again, and goes on
 * with the byte after the last it has got.
 */
class Terminal {
  #http;
  #socket;
  #since = 0n;
  #listeners = { data: new Set(), state: new Set() };
  /** What came before anybody listened: the program may show something before open() has returned. */
  #early = { parts: [], size: 0 };
  #pause = FIRST_PAUSE;
  #timer;
  #size;
  #finish;
  #first;

  constructor(http, described) {
    this.#http = http;
    this.id = described.id;
    this.execId = described.exec.id;
    /** 'connecting', 'connected', 'reconnecting', 'taken-over', 'closed' or 'ended'. */
    this.state = 'connecting';
    /** What the API told about it last: who is attached, and its timers. */
    this.info = described;
    /** Resolves with the ExecResult when the program has ended. */
    this.exited = new Promise((resolve, reject) => (this.#finish = { resolve, reject }));
    this.exited.catch(() => {});
  }

  /** Resolves when it is attached for the first time. */
  open({ takeover = false } = {}) {
    return new Promise((resolve, reject) => {
      this.#first = { resolve, reject };
      this.#attach(takeover);
    });
  }

  /** `listener` gets what the program shows, as bytes. Returns what ends that. */
  onData(listener) {
    const stop = this.#listen('data', listener);
    const { parts } = this.#early ?? { parts: [] };
    this.#early = null;
    queueMicrotask(() => parts.forEach((bytes) => listener(bytes)));
    return stop;
  }

  onState(listener) {
    return this.#listen('state', listener);
  }

  /** Types; false if it is not connected, and nothing was sent. */
  write(data) {
    if (this.state !== 'connected') return false;
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data;
    for (let at = 0; at < bytes.length; at += LARGEST_INPUT) {
      this.#send(STDIN, bytes.subarray(at, at + LARGEST_INPUT));
    }
    return true;
  }

  resize(cols, rows) {
    this.#size = { cols, rows };
    if (this.state === 'connected') this.#sendSize();
  }

  /** Starts the program anew, with an empty screen. */
  async reset() {
    this.info = await this.#http.json('POST', `${this.#path}/reset`);
  }

  /** Leaves; the program goes on. */
  close() {
    this.#leave('closed');
    this.#finish.reject(new AirlockError('the terminal was left', { code: 'terminal-closed' }));
  }

  /** Hangs up: the program gets SIGHUP, and SIGKILL 5 s later. */
  kill() {
    return this.#http.json('DELETE', this.#path);
  }

  get #path() {
    return `/api/v1/terminals/${encodeURIComponent(this.id)}`;
  }

  #keep(bytes) {
    if (!this.#early) return;
    this.#early.parts.push(bytes);
    this.#early.size += bytes.length;
    if (this.#early.size > MOST_EARLY_BYTES) this.#early = null; // nobody is going to listen
  }

  #listen(kind, listener) {
    this.#listeners[kind].add(listener);
    return () => this.#listeners[kind].delete(listener);
  }

  #set(state) {
    this.state = state;
    for (const listener of this.#listeners.state) listener(state);
  }

  #attach(takeover) {
    const path = `${this.#path}/attach?since=o${this.#since}.e0${takeover ? '&takeover=1' : ''}`;
    const protocols = ['airlock.v1'];
    if (this.#http.token) protocols.push(`base64url.bearer.authorization.k8s.io.${base64url(this.#http.token)}`);
    const socket = openWebSocket(this.#http, path, protocols);
    this.#socket = socket;
    socket.onopen = () => this.#opened();
    socket.onmessage = ({ data }) => this.#take(new Uint8Array(data));
    socket.onerror = () => {}; // a close follows
    socket.onclose = ({ code }) => this.#lost(socket, code);
  }

  #opened() {
    this.#pause = FIRST_PAUSE;
    this.#set('connected');
    if (this.#size) this.#sendSize();
    this.#first?.resolve(this);
    this.#first = undefined;
  }

  #take(message) {
    const payload = message.subarray(1);
    if (message[0] === STDOUT) {
      const offset = new DataView(payload.buffer, payload.byteOffset).getBigUint64(0);
      const bytes = payload.subarray(8);
      this.#since = offset + BigInt(bytes.length);
      this.#keep(bytes);
      for (const listener of this.#listeners.data) listener(bytes);
    } else if (message[0] === STATUS) {
      this.#obey(JSON.parse(new TextDecoder().decode(payload)));
    }
  }

  #obey(status) {
    if (status.type === 'state') Object.assign(this.info, status);
    if (status.type === 'start') {
      if (status.id !== this.execId) this.#since = 0n; // it was reset
      this.execId = status.id;
    }
    if (status.type === 'exit') {
      this.#leave('ended');
      this.#finish.resolve(new ExecResult(status));
    }
  }

  #lost(socket, code) {
    if (socket !== this.#socket) return;
    if (code === TAKEN_OVER) return this.#leave('taken-over');
    if (this.#first) {
      this.#leave('closed');
      return void this.#refusal().then((error) => this.#first.reject(error));
    }
    this.#set('reconnecting');
    this.#timer = setTimeout(() => this.#tryAgain(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  /** The place of the lost connection may still be taken by it. */
  async #tryAgain() {
    try {
      this.info = await this.#http.json('GET', this.#path);
    } catch (error) {
      if (error.status >= 400 && error.status < 500 && !error.retryable) {
        this.#leave('closed');
        return this.#finish.reject(error);
      }
    }
    // Reset meanwhile: what follows is another program's.
    if (this.info.exec.id !== this.execId) this.#since = 0n;
    this.execId = this.info.exec.id;
    if (this.state === 'reconnecting') this.#attach(true);
  }

  /** Why the API refused: a WebSocket does not tell. */
  async #refusal() {
    try {
      const { hasWriter } = await this.#http.json('GET', this.#path);
      if (!hasWriter) return new UnreachableError('the terminal could not be attached');
      return new AirlockError('another client writes to the terminal: takeover takes its place', { code: 'terminal-busy' });
    } catch (error) {
      return error;
    }
  }

  #send(channel, payload) {
    const message = new Uint8Array(1 + payload.length);
    message[0] = channel;
    message.set(payload, 1);
    this.#socket.send(message);
  }

  #sendSize() {
    this.#send(RESIZE, new TextEncoder().encode(JSON.stringify(this.#size)));
  }

  #leave(state) {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
    this.#set(state);
  }
}

module.exports = { Terminal };
