// Clients that others have written: a Kubernetes exec client and the package ws.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { PassThrough, Readable, Writable } from 'node:stream';
import test from 'node:test';

const require = createRequire(import.meta.url);
const { AIRLOCK_TOKEN: token, PORT } = process.env;
const k8s = await import('@kubernetes/client-node');

const config = new k8s.KubeConfig();
config.loadFromOptions({
  clusters: [{ name: 'airlock', server: `http://127.0.0.1:${PORT}`, skipTLSVerify: true }],
  users: [{ name: 'me', token }],
  contexts: [{ name: 'it', cluster: 'airlock', user: 'me' }],
  currentContext: 'it',
});

const collector = () => {
  const parts = [];
  const stream = new Writable({ write: (chunk, _, done) => (parts.push(chunk), done()) });
  return { stream, bytes: () => Buffer.concat(parts) };
};

/** Runs `argv` as `kubectl exec` would: its output and its status. */
async function run(argv, { stdin = null, tty = false, pod = 'user' } = {}) {
  const out = collector();
  const err = collector();
  const exec = new k8s.Exec(config);
  const status = await new Promise((resolve, reject) => {
    exec.exec('default', pod, 'main', argv, out.stream, tty ? null : err.stream, stdin, tty, resolve).catch(reject);
  });
  return { out: out.bytes(), err: err.bytes(), status };
}

test('a Kubernetes client runs programs', async () => {
  const done = await run(['sh', '-c', 'echo out; echo err >&2']);
  assert.deepEqual([String(done.out), String(done.err), done.status.status], ['out\n', 'err\n', 'Success']);
  const failed = await run(['sh', '-c', 'exit 42']);
  assert.equal(failed.status.reason, 'NonZeroExitCode');
  assert.equal(failed.status.details.causes[0].message, '42');
});

test('its input ends by the close of v5, and every byte arrives', async () => {
  const blob = Buffer.alloc(3_000_000, 'abcdefghi\n\0\xff', 'latin1');
  const piped = await run(['cat'], { stdin: Readable.from([blob.subarray(0, 100_000), blob.subarray(100_000, 250_000),
    ...Array.from({ length: 55 }, (_, i) => blob.subarray(250_000 + i * 50_000, 300_000 + i * 50_000))]) });
  assert.equal(Buffer.compare(piped.out, blob), 0);
  assert.equal(piped.status.status, 'Success');
});

test('it gets a terminal', async () => {
  const stdin = new PassThrough();
  stdin.write('tty; exit 3\n');
  const { out, status } = await run(['sh'], { stdin, tty: true });
  assert.match(String(out), /\/dev\/pts\//);
  assert.equal(status.details.causes[0].message, '3');
});

test('it is refused what its token or the API refuses', async () => {
  await assert.rejects(run(['true'], { pod: 'nowhere' }));
});

test('the SDK with the package ws', async () => {
  delete globalThis.WebSocket;
  assert.equal(typeof require('ws'), 'function');
  const { connect } = require('airlock-sdk');
  const user = await (await connect()).getContext('user');
  const terminal = await user.terminal({ command: ['cat'] });
  const shown = new Promise((resolve) => terminal.onData((bytes) => resolve(new TextDecoder().decode(bytes))));
  terminal.write('through ws\n');
  assert.match(await shown, /through ws/);
  await terminal.kill();
  assert.equal((await terminal.exited).signal, 'SIGHUP');
});
