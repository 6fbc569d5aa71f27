#!/usr/bin/env -S node --no-warnings=DEP0040
// An agent as Gemini CLI is one: a script that runs itself again as a child with more memory. Runs its
// argument in bash, and a worker script of its package beside itself.
import { fork, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);
const where = process.env.PLATFORM_KEY ? 'with' : 'without';
const inherit = { stdio: 'inherit' };
const ended = (child) => new Promise((done) => child.on('close', done));
const [command] = process.argv.slice(2);

if (process.env.FIXTURE_WORKER) {
  console.log(`agent: worker ${where} PLATFORM_KEY`);
} else if (!process.env.FIXTURE_NO_RELAUNCH) {
  console.log(`agent: first ${where} PLATFORM_KEY`);
  const env = { ...process.env, FIXTURE_NO_RELAUNCH: '1' };
  process.exitCode = await ended(spawn(process.execPath,
    ['--max-old-space-size=512', process.argv[1], command], { ...inherit, env }));
} else {
  console.log(`agent: again ${where} PLATFORM_KEY`);
  await ended(fork(self, [], { ...inherit, env: { ...process.env, FIXTURE_WORKER: '1' } }));
  process.exitCode = await ended(spawn('/bin/bash', ['-c', command], { ...inherit, detached: true }));
}
