// A code interpreter: node interpreter.mjs FILE.py runs the file in a context of its own, without the
// caller's environment, and shows what it prints as it comes.
import { readFileSync } from 'node:fs';
import { connect } from 'airlock-sdk';

const sandbox = await connect();
const context = await sandbox.createContext({ name: `interpreter-${process.pid}`, cwd: '/tmp', persistent: false });
try {
  const code = readFileSync(process.argv[2], 'utf8');
  for await (const event of context.execStream(['python3', '-'], { stdin: { text: code }, timeout: 60_000 })) {
    if (event.type === 'stdout') process.stdout.write(event.bytes);
    if (event.type === 'stderr') process.stderr.write(event.bytes);
    if (event.type === 'exit') process.exitCode = event.result.exitStatus ?? 1;
  }
} finally {
  await context.destroy();
}
