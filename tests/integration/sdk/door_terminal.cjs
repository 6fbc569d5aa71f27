'use strict';
// A terminal by a context's own door: SDK DOOR use|lose. Prints what it has seen.

const [, , sdk, door, mode] = process.argv;
const { connect } = require(sdk);
const { shows } = require('./shows.cjs');

async function use(context) {
  const terminal = await context.terminal({ command: ['sh'], cols: 90, rows: 20, env: { MARK: 'it' } });
  const first = shows(terminal, 'is-it');
  terminal.write('stty size; echo is-$MARK\n');
  const size = (await first).includes('20 90');
  const second = shows(terminal, '10 70');
  terminal.resize(70, 10);
  // As one long line: more than a frame of the client's.
  terminal.write(`: ${'x'.repeat(3000)}\n`.repeat(30) + 'stty size\n');
  await second;
  const third = shows(terminal, 'end-2');
  terminal.write('seq 20000; echo end-$((1+1))\n');
  const lines = (await third).split('\r\n').filter((line) => /^([#$] )*\d+$/.test(line)).length;
  const busy = await context.attachTerminal(terminal.id).catch((error) => error.code);
  const left = new Promise((resolve) => terminal.onState(resolve));
  const other = await context.attachTerminal(terminal.id, { takeover: true });
  other.write('exit 4\n');
  console.log(JSON.stringify({ size, lines, busy, left: await left, exitCode: (await other.exited).exitCode }));
}

async function lose(context) {
  const script = 'i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.02; done';
  const terminal = await context.terminal({ command: ['sh', '-c', script] });
  let text = '', losses = 0, enough = Infinity;
  terminal.onState((state) => (losses += state === 'reconnecting' ? 1 : 0));
  console.log('attached');
  await new Promise((resolve) => terminal.onData((bytes) => {
    text += new TextDecoder().decode(bytes);
    const count = text.split('\r\n').length;
    if (losses > 0) enough = Math.min(enough, count + 20);
    if (count > enough) resolve();
  }));
  await terminal.kill();
  terminal.close();
  const lines = text.split('\r\n').slice(0, -1);
  console.log(JSON.stringify({ losses, wrong: lines.filter((line, i) => line !== `line-${i + 1}`) }));
}

connect({ url: 'unix:' + door }).then((sandbox) => sandbox.getContext('user')).then(mode === 'use' ? use : lose);
