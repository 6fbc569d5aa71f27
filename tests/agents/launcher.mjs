#!/usr/bin/env node
// An agent as Codex's npm package is one: a script that becomes, or starts, the executable.
import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';

const program = new URL('./agent', `file://${realpathSync(process.argv[1])}`).pathname;
const words = process.argv.slice(2);
if (process.execve && !process.env.FIXTURE_SPAWN) process.execve(program, [program, ...words], process.env);
spawn(program, words, { stdio: 'inherit' }).on('close', (code) => { process.exitCode = code; });
