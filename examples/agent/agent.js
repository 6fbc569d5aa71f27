#!/usr/bin/env node
// A small agent: runs a list of tasks by every way Node starts a program, and shows where each child ran.
//
// Every child tells on its standard output (a forked one: in its message) which PID namespace it is in and whether
// it has PLATFORM_KEY in its environment. The agent compares that with its own namespace. See README.md.
'use strict';

const { spawn, spawnSync, exec, execFile, execSync, fork } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');

const RUNTIMES = ['python', 'node'];

// What a shell prints about itself, and how the agent reads it. $$ stays right in a shell that was routed elsewhere.
const SHELL_REPORT =
  `printf '@child ns=%s key=%s mark=%s\\n' ` +
  `"$(readlink /proc/$$/ns/pid)" "\${PLATFORM_KEY+seen}" "\${ROUTE_MARK-}"\n`;
const REPORT_LINE = /^@child ns=(\S*) key=(\S*) mark=(.*)\n?/m;

/** What this process prints about itself, in the form of SHELL_REPORT. */
function report() {
  const key = 'PLATFORM_KEY' in process.env ? 'seen' : '';
  return `@child ns=${ownNamespace()} key=${key} mark=${process.env.ROUTE_MARK ?? ''}\n`;
}

function ownNamespace() {
  try {
    return fs.readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

class BadInput extends Error {}

// ---- the ways of starting a child: each takes (command, stdin) and gives { output, status } ----

function argv(command) {
  if (typeof command === 'string') return ['/bin/sh', '-c', SHELL_REPORT + command];
  return command[0] === '{agent}' ? [process.execPath, __filename, ...command.slice(1)] : command;
}

function script(command) {
  return SHELL_REPORT + (typeof command === 'string' ? command : argv(command).map(quoted).join(' '));
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Waits for a child and all it sent. The status is the exit code, the signal's name, or the error's code. */
function ended(child, output = () => '') {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ output: '', status: error.code }));
    child.once('close', (code, signal) => resolve({ output: output(), status: signal ?? code }));
  });
}

function feed(child, stdin) {
  child.stdin.on('error', () => {}); // a child may end without reading
  child.stdin.end(stdin);
}

function bySpawn(command, stdin, options = {}) {
  const [program, ...args] = argv(command);
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], ...options });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  feed(child, stdin);
  return ended(child, () => output);
}

/** For exec and execFile, which call back with an error that holds the exit code or the signal. */
function byCallback(start, stdin) {
  return new Promise((resolve) => {
    const child = start((error, output) => resolve({ output, status: error ? error.signal ?? error.code : 0 }));
    child.stderr.pipe(process.stderr);
    feed(child, stdin);
  });
}

function byExecFile(command, stdin) {
  const [program, ...args] = argv(command);
  return byCallback((done) => execFile(program, args, done), stdin);
}

function byExecSync(command, stdin) {
  try {
    const stdio = ['pipe', 'pipe', 'inherit'];
    return { output: execSync(script(command), { input: stdin, encoding: 'utf8', stdio }), status: 0 };
  } catch (error) {
    return { output: error.stdout ?? '', status: error.signal ?? error.status ?? error.code };
  }
}

function byFork(command) {
  const child = fork(__filename, ['--worker'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  let output = '';
  child.on('message', (message) => (output = String(message?.output ?? '')));
  child.send({ command: script(command) }, () => {}); // a child that is already gone shows in its status
  return ended(child, () => output);
}

/** Runs in the forked child: gets a command by message, runs it, answers, and ends as the command ended. */
function worker() {
  process.once('message', ({ command }) => {
    const done = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    process.send({ output: report() + (done.stdout ?? '') }, () => {
      if (done.signal) process.kill(process.pid, done.signal);
      process.exit(done.status ?? 1);
    });
  });
}

const WAYS = {
  spawn: bySpawn,
  exec: (command, stdin) => byCallback((done) => exec(script(command), done), stdin),
  execFile: byExecFile,
  fork: byFork,
  execSync: byExecSync,
  'spawn detached': (command, stdin) => bySpawn(command, stdin, { detached: true }),
};

// ---- the tasks ----

function loadTasks(file) {
  let tasks;
  try {
    tasks = JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    throw new BadInput(`cannot read tasks from ${file}: ${error.message}`);
  }
  if (!Array.isArray(tasks)) throw new BadInput(`${file}: expected a list of tasks`);
  tasks.forEach((task, index) => {
    const problem = problemOf(task);
    if (problem) throw new BadInput(`${file}: task ${index + 1}: ${problem}`);
  });
  if (!tasks.some((task) => task.ways.node?.length)) throw new BadInput(`${file}: no task has a way for node`);
  return tasks;
}

/** What is wrong with a task, or undefined. */
function problemOf(task) {
  if (!isObject(task)) return 'expected an object';
  const { name, command, ways, stdin = '', expect = 0, ...unknown } = task;
  if (Object.keys(unknown).length) return `unknown field "${Object.keys(unknown).sort()[0]}"`;
  if (typeof name !== 'string') return '"name" must be a string';
  if (!(typeof command === 'string' || isStrings(command)) || !command.length || String(command).includes('\0'))
    return '"command" must be a shell command (string) or a program and its arguments (list of strings)';
  if (typeof stdin !== 'string') return '"stdin" must be a string';
  if (!(typeof expect === 'string' ? Object.hasOwn(os.constants.signals, expect) : isExitStatus(expect)))
    return '"expect" must be an exit status (0 to 255) or a signal name such as "SIGTERM"';
  if (!isObject(ways) || !Object.keys(ways).every((key) => RUNTIMES.includes(key) && isStrings(ways[key])))
    return '"ways" must be an object of "python" and "node", each a list of strings';
  for (const way of ways.node ?? []) {
    if (!Object.hasOwn(WAYS, way)) return `unknown way "${way}" for node (known: ${Object.keys(WAYS).join(', ')})`;
    if ('stdin' in task && way === 'fork') return `way "${way}" cannot feed "stdin"`;
  }
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isStrings(value) {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isExitStatus(value) {
  return Number.isInteger(value) && value >= 0 && value <= 255;
}

async function runTask(task, way) {
  let result;
  try {
    result = await WAYS[way](task.command, task.stdin ?? '');
  } catch (error) {
    result = { output: '', status: error.code ?? 'error' };
  }
  return row(way, task.name, task.command, result.status, task.expect ?? 0, result.output);
}

// ---- the result ----

function row(way, name, command, status, expected, output) {
  const [, ns, key, mark] = REPORT_LINE.exec(output) ?? [];
  return {
    way,
    name,
    command: shown(command),
    ran_in: place(ns, mark),
    exit: status,
    expected_exit: expected,
    platform_key: ns ? key || 'not seen' : 'unknown',
    output: output.replaceAll(new RegExp(REPORT_LINE, 'gm'), ''),
  };
}

/** The context of a child that told this: the agent's own, the one the launcher marked "user", or another. */
function place(ns, mark) {
  if (!ns) return 'unknown';
  if (ns === ownNamespace()) return 'platform';
  return mark === 'user' ? 'user' : 'other';
}

function shown(command) {
  const name = (word) => (word === '{agent}' ? 'agent.js' : quoted(word));
  const text = typeof command === 'string' ? command : command.map(name).join(' ');
  return text.trim().split(/\s+/).join(' ');
}

function printTable(rows) {
  const lines = [['WAY', 'COMMAND', 'RAN IN', 'EXIT', 'PLATFORM_KEY']];
  for (const { way, command, ran_in, exit, expected_exit, platform_key } of rows) {
    const short = command.length <= 40 ? command : `${command.slice(0, 37)}...`;
    const status = exit === expected_exit ? `${exit ?? '-'}` : `${exit} (expected ${expected_exit})`;
    lines.push([way, short, ran_in, status, platform_key]);
  }
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  for (const line of lines) console.log(line.map((cell, i) => cell.padEnd(widths[i])).join('  ').trimEnd());
}

function summary(children) {
  const ranIn = (where) => children.filter((child) => child.ran_in === where).length;
  const saw = children.filter((child) => child.platform_key === 'seen').length;
  const where = ranIn('user')
    ? `${ranIn('user')} of ${children.length} children ran in the user context`
    : `${ranIn('other')} of ${children.length} children ran outside the agent's own context`;
  const silent = ranIn('unknown') ? `; ${ranIn('unknown')} did not report` : '';
  return `${where}; ${saw || 'none'} saw PLATFORM_KEY${silent}.`;
}

/** What contradicts --expect, or undefined. Without a key of the agent's own there would be nothing to hide. */
function brokenExpectation([agent, ...children], expect) {
  if (agent.platform_key !== 'seen')
    return 'PLATFORM_KEY is not set for the agent itself, so a child without it proves nothing';
  const [key, saw] = expect === 'platform' ? ['seen', 'did not see'] : ['not seen', 'saw'];
  const wrong = children.filter((child) => child.ran_in !== expect || child.platform_key !== key).length;
  if (wrong) return `${wrong} of ${children.length} children ran elsewhere, ${saw} PLATFORM_KEY or did not report`;
}

function readOptions() {
  try {
    const options = { json: { type: 'boolean' }, expect: { type: 'string' } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (positionals.length > 1) throw new Error(`unexpected argument "${positionals[1]}"`);
    if (!['user', 'platform', undefined].includes(values.expect)) throw new Error('--expect takes user or platform');
    return { ...values, file: positionals[0] ?? path.join(__dirname, 'tasks.json') };
  } catch (error) {
    throw new BadInput(error.message);
  }
}

async function main() {
  const options = readOptions();
  const tasks = loadTasks(options.file);
  const agent = row('agent process', 'the agent itself', ['{agent}'], null, null, report());
  const children = [];
  for (const task of tasks) for (const way of task.ways.node ?? []) children.push(await runTask(task, way));
  const rows = [agent, ...children];
  if (options.json) {
    console.log(JSON.stringify(rows, null, 2));
  } else {
    printTable(rows);
    console.log(`\n${summary(children)}`);
  }
  const problem = options.expect && brokenExpectation(rows, options.expect);
  if (problem) console.error(`agent.js: expected ${options.expect}: ${problem}`);
  return problem ? 3 : Number(children.some((child) => child.exit !== child.expected_exit));
}

if (process.argv[2] === '--report') process.stdout.write(report());
else if (process.argv[2] === '--worker') worker();
else
  main().then(
    (status) => (process.exitCode = status),
    (error) => {
      if (!(error instanceof BadInput)) throw error;
      console.error(`agent.js: ${error.message.replaceAll(/\s+/g, ' ')}`);
      process.exitCode = 2;
    },
  );
