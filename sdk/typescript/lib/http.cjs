'use strict';

const { UnreachableError, errorOf } = require('./errors.cjs');

/** What fetch does, over a UNIX socket. */
function fetchOver(socketPath, path, { method, headers, body, signal }) {
  const http = require('node:http');
  const { Readable, pipeline } = require('node:stream');
  const isWhole = body === undefined || typeof body === 'string' || ArrayBuffer.isView(body);
  const sent = isWhole && body !== undefined ? { ...headers, 'Content-Length': Buffer.byteLength(body) } : headers;
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path, method, headers: sent, signal, agent: false }, (answer) => {
      const hasBody = ![204, 304].includes(answer.statusCode);
      if (!hasBody) answer.resume();
      resolve(new Response(hasBody ? Readable.toWeb(answer) : null, { status: answer.statusCode, headers: answer.headers }));
    });
    request.on('error', reject);
    if (isWhole) request.end(body);
    else pipeline(Readable.from(body), request, (error) => error && reject(error));
  });
}

/** Requests with a token, and streams of JSON lines. `url` may be unix:/path/of/api.sock. */
class Http {
  constructor(url, token) {
    this.url = url.replace(/\/+$/, '');
    this.token = token;
    this.socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined;
  }

  async send(method, path, { json, body, duplex, accept = 'application/json', headers = {}, signal } = {}) {
    const sent = { Accept: accept, ...headers };
    if (this.token) sent.Authorization = `Bearer ${this.token}`;
    if (json !== undefined) sent['Content-Type'] = 'application/json';
    let response;
    try {
      const options = { method, headers: sent, body: json !== undefined ? JSON.stringify(json) : body, duplex, signal };
      response = await (this.socketPath ? fetchOver(this.socketPath, path, options) : fetch(this.url + path, options));
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new UnreachableError(`${method} ${path}: ${error.cause?.message ?? error.message}`, error);
    }
    if (!response.ok) throw errorOf(await problemOf(response));
    return response;
  }

  async json(method, path, options) {
    let response;
    try {
      response = await this.send(method, path, options);
      return response.status === 204 ? undefined : await response.json();
    } catch (error) {
      // The connection broke in the middle of an answer.
      if (error.code !== undefined || options?.signal?.aborted) throw error;
      throw new UnreachableError(`${method} ${path}: ${error.message}`, error);
    }
  }

  /** The objects of a stream, until it ends for whatever reason. Leaving the loop closes it. */
  async *lines(method, path, options) {
    const response = await this.send(method, path, { ...options, accept: 'application/x-ndjson' });
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = '';
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
        rest = lines.pop();
        for (const line of lines) if (line) yield JSON.parse(line);
      }
    } finally {
      await reader.cancel().catch(() => {});
    }
  }
}

async function problemOf(response) {
  const text = await response.text().catch(() => '');
  try {
    return JSON.parse(text);
  } catch {
    return { status: response.status, code: 'internal', title: `HTTP ${response.status}` };
  }
}

module.exports = { Http };
