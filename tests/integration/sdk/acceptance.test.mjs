// The five tests of the mission, by the SDK, with the defaults of contexts. Started by sdk_test.py, which has made
// a daemon with a Jupyter and the API, and the folder $WORK.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test as nodeTest } from 'node:test';
import { connect } from 'airlock-sdk';

const test = (name, body) => nodeTest(name, { timeout: 60_000 }, body);
const { WORK } = process.env;
const sandbox = await connect();
// The platform first: its children's context comes later.
const platform = await sandbox.createContext({ name: 'platform', env: { PLATFORM_KEY: 'of-the-platform' }, childContext: 'user' });
const user = await sandbox.createContext({ name: 'user', env: { USER_KEY: 'of-the-user' } });

// An agent: four ways to start a child.
writeFileSync(`${WORK}/agent.py`, `
import os, subprocess
print("agent", os.environ.get("PLATFORM_KEY"), os.environ.get("USER_KEY"), flush=True)
show = 'echo "child $PLATFORM_KEY,$USER_KEY"'
for run in (lambda: os.system(show), lambda: subprocess.run(["sh", "-c", show]), lambda: subprocess.run(show, shell=True),
            lambda: os.spawnvp(os.P_WAIT, "sh", ["sh", "-c", show])):
    run()
`);

test('contexts have the defaults', async () => {
  const described = (await sandbox.listContexts()).find((each) => each.name === 'user');
  assert.deepEqual([described.persistent, described.isolation, described.cwd], [true, 'secure', '/workspace']);
  assert.equal(await user.pwd(), '/workspace');
  assert.equal((await user.exec('pwd')).stdout, '/workspace\n');
});

test('1: programs of user neither see nor end jupyter and the API', async () => {
  const seen = (await user.exec('ps aux')).assertOk().stdout;
  assert.match(seen, /ps aux/, 'control: it sees itself');
  assert.doesNotMatch(seen, /jupyter|airlock-api/);
  assert.equal((await user.exec(['sh', '-c', 'sleep 1000 & until pkill -x sleep; do :; done'])).exitCode, 0, 'control: it can kill');
  for (const command of ['pkill jupyter', 'pkill -9 jupyter', 'pkill airlock-api', 'pkill -9 -f airlock-api']) {
    const { exitCode, stderr } = await user.exec(command);
    assert.deepEqual([exitCode, stderr], [1, ''], `${command}: nobody is there`);
  }
  assert.equal((await sandbox.health()).status, 'ok');
  const jupyter = await fetch('http://127.0.0.1:8888/api').then((answer) => answer.json());
  assert.ok(jupyter.version);
});

test('2: nobody takes the ports', async () => {
  const options = { timeout: 20_000 };
  for (const command of ['python3 -m http.server 8080', 'nc -l 8888']) {
    const { stderr, exitCode } = await sandbox.exec(command, options);
    assert.match(stderr, /Address already in use/);
    assert.notEqual(exitCode, 0);
  }
  const free = await sandbox.exec('timeout -s INT 1 python3 -m http.server 8081', options);
  assert.doesNotMatch(free.stderr, /Address already in use/, 'control: another port is free');
});

test('3: contexts have their own credentials', async () => {
  const aws = await sandbox.createContext({ name: 'aws', env: { AWS_ACCESS_KEY_ID: 'AKIA-aws' } });
  const azure = await sandbox.createContext({ name: 'azure', env: { AZURE_CLIENT_ID: 'azure-id' } });
  const show = async (context, name) => (await context.exec(`echo $${name}`)).stdout;
  assert.equal(await show(aws, 'AWS_ACCESS_KEY_ID'), 'AKIA-aws\n');
  assert.equal(await show(aws, 'AZURE_CLIENT_ID'), '\n');
  assert.equal(await show(azure, 'AZURE_CLIENT_ID'), 'azure-id\n');
  assert.equal(await show(azure, 'AWS_ACCESS_KEY_ID'), '\n');
  await aws.destroy();
  await azure.destroy();
});

test('4: a persistent context keeps cwd and environment', async () => {
  const context = await sandbox.createContext({ name: 'keeps', persistent: true });
  for (const round of [1, 2]) {
    await context.exec('cd /tmp');
    assert.equal((await context.exec('pwd')).stdout, '/tmp\n', `round ${round}`);
    assert.equal((await context.exec('pwd')).stdout, '/tmp\n');
    await context.exec('export MY_VAR=hello');
    assert.equal((await context.exec('echo $MY_VAR')).stdout, 'hello\n');
    assert.equal((await context.exec('echo $MY_VAR')).stdout, 'hello\n');
  }
  assert.equal((await context.exec(['sh', '-c', 'pwd; echo "[$MY_VAR]"'])).stdout, '/workspace\n[]\n', 'control: not in other programs');
  await context.destroy();
});

test('5: children of an agent in platform run in user', async () => {
  const ran = (await platform.exec(['python3', `${WORK}/agent.py`])).assertOk();
  assert.equal(ran.stdout, 'agent of-the-platform None\n' + 'child ,of-the-user\n'.repeat(4));
});

test('5, control: without a child context they run beside it; with one that is not there they do not run', async () => {
  const alone = await sandbox.createContext({ name: 'alone', env: { PLATFORM_KEY: 'of-the-platform' } });
  const beside = (await alone.exec(['python3', `${WORK}/agent.py`])).assertOk();
  assert.equal(beside.stdout, 'agent of-the-platform None\n' + 'child of-the-platform,\n'.repeat(4));
  const early = await sandbox.createContext({ name: 'early', childContext: 'late' });
  const show = ['python3', '-c', 'import subprocess; print(subprocess.run(["true"]).returncode)'];
  assert.equal((await early.exec(show)).stdout, '126\n');
  const late = await sandbox.createContext({ name: 'late' });
  assert.equal((await early.exec(show)).stdout, '0\n');
  for (const each of [alone, early, late]) await each.destroy();
});
