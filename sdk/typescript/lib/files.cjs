'use strict';

const { UnreachableError } = require('./errors.cjs');

const encoder = new TextEncoder();

/** Percent-encoded; also bytes that are no text. */
const encoded = (path) => typeof path === 'string' ? encodeURIComponent(path)
  : Array.from(path, (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');

/** A path in a JSON body. */
const told = (path) => typeof path === 'string' ? path : { base64: Buffer.from(path).toString('base64') };

function query(path, fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return `?path=${encoded(path)}${given.map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join('')}`;
}

function conditions({ ifMatch, ifNoneMatch }) {
  const headers = {};
  if (ifMatch !== undefined) headers['If-Match'] = ifMatch;
  if (ifNoneMatch !== undefined) headers['If-None-Match'] = ifNoneMatch;
  return headers;
}

function rangeOf({ offset = 0, length }) {
  if (offset === 0 && length === undefined) return {};
  return { Range: `bytes=${offset}-${length === undefined ? '' : offset + length - 1}` };
}

/** Parts as bytes, as they come. */
async function* bytesOf(parts) {
  for await (const part of parts) yield typeof part === 'string' ? encoder.encode(part) : part;
}

/** Files of a context, as its programs see them. */
class Files {
  #http;
  #base;
  constructor(http, base) {
    this.#http = http;
    this.#base = `${base}/files`;
  }

  #open(path, options) {
    const headers = { ...conditions(options), ...rangeOf(options) };
    return this.#http.send('GET', this.#base + query(path, {}),
      { accept: '*/*', headers, signal: options.signal });
  }

  async read(path, options = {}) {
    if (options.length === 0) return new Uint8Array();
    const response = await this.#open(path, options);
    try {
      return new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new UnreachableError(`the file was cut off: ${error.message}`, error);
    }
  }

  async readText(path, options) {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** For what is too large to hold. */
  async readStream(path, options = {}) {
    return (await this.#open(path, options)).body ?? new Blob([]).stream();
  }

  /** Whole or not at all. A stream or an iterable is sent as it comes. */
  write(path, contents, { mode, mkdirs, signal, ...options } = {}) {
    const isWhole = typeof contents === 'string' || ArrayBuffer.isView(contents);
    const sent = isWhole ? { body: contents } : { body: bytesOf(contents), duplex: 'half' };
    return this.#http.json('PUT', this.#base + query(path, { mode, mkdirs }), {
      ...sent, headers: { ...conditions(options), 'Content-Type': 'application/octet-stream' }, signal,
    });
  }

  list(path, { recursive, limit, signal } = {}) {
    return this.#http.json('GET', `${this.#base}:list${query(path, { recursive, limit })}`, { signal });
  }

  stat(path, { follow, signal } = {}) {
    return this.#http.json('GET', `${this.#base}:stat${query(path, { follow })}`, { signal });
  }

  async mkdir(path, { signal, ...options } = {}) {
    await this.#http.json('POST', `${this.#base}:mkdir`, { json: { ...options, path: told(path) }, signal });
  }

  async move(from, to, { signal, ...options } = {}) {
    await this.#http.json('POST', `${this.#base}:move`,
      { json: { ...options, from: told(from), to: told(to) }, signal });
  }

  async remove(path, { recursive, signal, ...options } = {}) {
    await this.#http.json('DELETE', this.#base + query(path, { recursive }), { headers: conditions(options), signal });
  }
}

module.exports = { Files };
