// What else the SDK does, against a real daemon. Started by sdk_test.py.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { test as nodeTest } from 'node:test';
import * as sdk from 'airlock-sdk';
import { shows } from './shows.cjs';

const { connect, AuthError, ContextExistsError, ContextNotFoundError, ExecError, NoSuchFileError, PreconditionFailedError, ShellBusyError,
  ShellNotFoundError, StreamInterruptedError, UnreachableError } = sdk;
const test = (name, body) => nodeTest(name, { timeout: 15_000 }, body);
const { WORK } = process.env;
const sandbox = await connect();
const context = await sandbox.createContext({ name: 'surface', cwd: WORK, persistent: false });

const collect = async (events) => {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
};

test('require() gives the same as import', () => {
  const required = createRequire(import.meta.url)('airlock-sdk');
  assert.deepEqual(Object.keys(required).sort(), Object.keys(sdk).sort());
  assert.equal(required.connect, connect);
});

test('errors have classes and codes', async () => {
  await assert.rejects(connect({ token: 'wrong' }), (error) => error instanceof AuthError && error.code === 'unauthorized');
  await assert.rejects(connect({ url: 'http://127.0.0.1:9' }), UnreachableError);
  await assert.rejects(sandbox.createContext({ name: 'surface' }), ContextExistsError);
  assert.equal((await sandbox.createContext({ name: 'surface', ifExists: 'reuse' })).name, 'surface');
  await assert.rejects(sandbox.getContext('nobody'), ContextNotFoundError);
  await assert.rejects(context.exec(['true'], { colour: 1 }), (error) => error.errors[0].pointer === '/colour');
});

test('exec never throws for a failing command', async () => {
  const failed = await context.exec('echo out; echo err >&2; exit 3');
  assert.deepEqual([failed.stdout, failed.stderr, failed.exitCode, failed.success], ['out\n', 'err\n', 3, false]);
  assert.throws(() => failed.assertOk(), (error) => error instanceof ExecError && error.result === failed);
  assert.equal((await context.exec(['no-such-program'])).exitCode, 127);
  assert.equal((await context.exec('kill -9 $$')).signal, 'SIGKILL');
  assert.equal((await context.exec(['sleep', '100'], { timeout: 100, graceMs: 100 })).timedOut, true);
  const word = `a 'b' "c" $HOME \\ \n`;
  assert.equal((await context.exec`printf %s ${word}`).stdout, word);
});

test('streams end with exit, and are known to be cut off without', async () => {
  const events = await collect(context.execStream('echo out; exit 4'));
  assert.deepEqual(events.map((each) => each.type), ['start', 'stdout', 'exit']);
  assert.equal(events[2].result.exitCode, 4);
  const cut = createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
    response.write('{"type":"start","cursor":"o0.e0","id":"exec_1","pid":1}\n{"type":"stdout","cursor":"o1.e0","text":"x"}\n');
    setTimeout(() => response.destroy(), 50);
  });
  await new Promise((resolve) => cut.listen(0, '127.0.0.1', resolve));
  try {
    const fake = new sdk.Context(httpOf(cut), { name: 'x' });
    await assert.rejects(collect(fake.execStream('x')),
      (error) => error instanceof StreamInterruptedError && error.cursor === 'o1.e0' && error.execId === 'exec_1');
  } finally {
    cut.close();
    cut.closeAllConnections?.();
  }
});

/** The SDK's own HTTP, for another server. */
function httpOf(server) {
  const { Http } = createRequire(import.meta.url)(`${process.env.SDK}/lib/http.cjs`);
  return new Http(`http://127.0.0.1:${server.address().port}`, 'token');
}

test('a program is found again by its id', async () => {
  const cat = await context.spawn(['cat']);
  await cat.stdin.write('hello\n');
  const again = await sandbox.getProcess(cat.id);
  assert.equal(again.pid, cat.pid ?? again.pid);
  await again.stdin.close();
  assert.equal((await again.wait()).exitCode, 0);
  assert.equal((await again.output()).stdout, 'hello\n');
  const events = await collect(again.logs({ since: 'o3.e0' }));
  assert.equal(events.filter((each) => each.type === 'stdout').map((each) => each.text).join(''), 'lo\n');
  const sleeping = await context.spawn(['sleep', '1000']);
  await sleeping.kill('SIGTERM');
  assert.equal((await sleeping.wait()).signal, 'SIGTERM');
});

const skip = typeof WebSocket === 'undefined' && !process.env.HAS_WS ? 'needs WebSocket' : false;

test('a terminal', { skip }, async () => {
  const terminal = await context.terminal({ cols: 90, rows: 20, command: ['sh'], env: { MARK: 'it' } });
  assert.equal(terminal.state, 'connected');
  const first = shows(terminal, 'is-it');
  terminal.write('stty size; tty; echo is-$MARK\n');
  assert.match(await first, /20 90[^]*\/dev\/pts\//);
  terminal.resize(70, 10);
  const second = shows(terminal, '10 70');
  terminal.write('sleep 0.2; stty size\n');
  await second;
  // Somebody else takes its place, and has what was shown.
  const lost = new Promise((resolve) => terminal.onState((state) => state === 'taken-over' && resolve()));
  await assert.rejects(context.attachTerminal(terminal.id), (error) => error.code === 'terminal-busy');
  const other = await context.attachTerminal(terminal.id, { takeover: true });
  const shown = shows(other, '10 70');
  await Promise.all([lost, shown]);
  assert.equal(terminal.write('x'), false);
  assert.deepEqual((await context.terminals()).map(({ id, state }) => [id, state]), [[terminal.id, 'attached']]);
  await other.reset();
  const again = shows(other, 'once-more');
  other.write('echo once-more; exit 5\n');
  await again;
  assert.equal((await other.exited).exitCode, 5);
  assert.equal(other.state, 'ended');
});

test('cwd and environment of a context', async () => {
  for (const persistent of [true, false]) {
    const own = await sandbox.createContext({ name: `state-${persistent}`, cwd: WORK, env: { A: '1' }, persistent });
    await own.setEnv({ B: "it's", A: null });
    const env = await own.getEnv();
    assert.deepEqual([env.A, env.B], [undefined, "it's"]);
    await own.cd('/usr');
    await own.cd('lib');
    assert.equal(await own.pwd(), '/usr/lib');
    assert.equal((await own.exec(['pwd'])).stdout, '/usr/lib\n');
    await own.destroy();
  }
});

test('shells', async () => {
  const own = await sandbox.createContext({ name: 'shells', cwd: WORK });
  assert.equal(own.persistent, true);
  const shell = own.shell('build');
  await shell.exec('A=1');
  assert.equal((await shell.exec`echo $A ${"it's"}`).stdout, "1 it's\n");
  assert.equal((await own.exec('echo "[$A]"')).stdout, '[]\n');
  assert.deepEqual((await own.shells()).map((each) => each.name), ['build', 'default']);
  const running = await own.spawn('read line', { shell: 'build' });
  await assert.rejects(shell.exec('true', { onBusy: 'fail' }), ShellBusyError);
  assert.equal((await shell.reset()).survivors, 0);
  assert.notEqual((await running.wait()).status, 'exited');
  assert.equal((await shell.exec('echo "[$A]"')).stdout, '[]\n');
  assert.deepEqual(await shell.interrupt(), { interrupted: false });
  await assert.rejects(own.shell('nobody').interrupt(), ShellNotFoundError);
  // What commands have changed meanwhile is set all the same.
  await own.exec('export B=3; cd /tmp');
  await own.setEnv({ B: null });
  await own.cd(WORK);
  assert.equal((await own.exec('echo "[$B]"; pwd')).stdout, `[]\n${WORK}\n`);
  await own.destroy();
});

test('files', async () => {
  const { files } = context;
  const made = await files.write('js/f', new Uint8Array([97, 0, 98, 255]), { mode: '0640', mkdirs: true });
  assert.deepEqual([made.size, made.mode], [4, '0640']);
  assert.deepEqual([...await files.read('js/f')], [97, 0, 98, 255]);
  assert.deepEqual([...await files.read('js/f', { offset: 1, length: 2 })], [0, 98]);
  assert.equal((await context.exec(['od', '-An', '-tx1', 'js/f'])).stdout, ' 61 00 62 ff\n');
  await assert.rejects(files.write('js/f', 'x', { ifNoneMatch: '*' }), PreconditionFailedError);
  await files.write('js/f', 'schön', { ifMatch: made.etag });
  assert.equal(await files.readText('js/f'), 'schön');
  const odd = Buffer.from('js/n\xff', 'latin1');
  await files.write(odd, (async function* parts() {
    for (let i = 0; i < 30; i++) yield new Uint8Array(100_000);
  })());
  let size = 0;
  for await (const part of await files.readStream(odd)) size += part.length;
  assert.equal(size, 3_000_000);
  assert.deepEqual((await files.list('js')).items.map((each) => each.nameBase64 ?? each.name), ['f', 'bv8=']);
  await files.mkdir('js/a/b', { parents: true });
  await files.move('js/f', 'js/a/b/f');
  assert.equal((await files.stat('js/a/b/f')).type, 'file');
  await assert.rejects(files.read('js/f'), (error) => error instanceof NoSuchFileError && error.status === 404);
  await assert.rejects(files.remove('js'), (error) => error.code === 'folder-not-empty');
  await files.remove('js', { recursive: true });
  await assert.rejects(files.stat('js'), NoSuchFileError);
});

test('lifespan and repetition', async () => {
  const spec = { name: 'brief', cwd: WORK, ttlMs: 60_000, idleTimeoutMs: 60_000, idempotencyKey: 'k' };
  const own = await sandbox.createContext(spec);
  assert.equal((await sandbox.createContext(spec)).name, 'brief');
  const [first, second] = [await own.exec('echo $RANDOM', { idempotencyKey: 'once' }),
    await own.exec('echo $RANDOM', { idempotencyKey: 'once' })];
  assert.deepEqual([first.id, first.stdout], [second.id, second.stdout]);
  const described = await own.setLifespan({ ttlMs: null });
  assert.deepEqual([described.ttlMs, described.idleTimeoutMs], [null, 60_000]);
  await own.destroy();
  assert.deepEqual((await sandbox.ports()).map((each) => each.port), [8080]);
});

test('an aborted exec ends its program', async () => {
  const abort = new AbortController();
  const pending = context.exec(['sleep', '4711'], { signal: abort.signal });
  const isThere = async () => (await context.exec(['pgrep', '-f', 'sleep 4711'])).success;
  while (!(await isThere()));
  abort.abort();
  await assert.rejects(pending, { name: 'AbortError' });
  while (await isThere());
});

test('routing decisions are told as they are made', async () => {
  const agents = await sandbox.createContext({ name: 'routing', cwd: WORK, childContext: 'surface' });
  const events = sandbox.routeEvents({ from: 'routing', to: 'surface' });
  const first = events.next();
  await agents.exec(['python3', '-c', 'import os; os.system("true")'], { shell: undefined });
  const { value } = await first;
  assert.equal(value.to, 'surface');
  await events.return();
  assert.equal((await agents.explainRoute(['/bin/ls'])).to, 'surface');
  await agents.destroy();
});

test('destroying a context ends what runs there', async () => {
  const { survivors } = await context.destroy();
  assert.equal(survivors, 0);
  await assert.rejects(context.exec(['true']), ContextNotFoundError);
});
