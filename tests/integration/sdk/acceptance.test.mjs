// The five tests of the mission, by the SDK. Started by sdk_test.py, which has made a daemon with a
// Jupyter and the API, and the folder $WORK.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test as nodeTest } from 'node:test';
import { connect } from 'airlock-sdk';

const test = (name, body) => nodeTest(name, { timeout: 60_000 }, body);
const { WORK } = process.env;
const sandbox = await connect();

test('programs of user neither see nor end jupyter and the API', async () => {
  const user = await sandbox.getContext('user');
  const seen = (await user.exec('ps aux')).assertOk().stdout;
  assert.match(seen, /ps aux/, 'control: it sees itself');
  assert.doesNotMatch(seen, /jupyter|airlock-api/);
  assert.equal((await user.exec(['sh', '-c', 'sleep 1000 & until pkill -x sleep; do :; done'])).exitCode, 0, 'control: it can kill');
  assert.equal((await user.exec(['pkill', '-9', 'jupyter'])).exitCode, 1);
  assert.equal((await user.exec(['pkill', '-9', '-f', 'airlock-api'])).exitCode, 1);
  assert.equal((await sandbox.health()).status, 'ok');
  const jupyter = await fetch('http://127.0.0.1:8888/api').then((answer) => answer.json());
  assert.ok(jupyter.version);
});

test('nobody takes the ports', async () => {
  const options = { timeout: 20_000 };
  for (const [command, other] of [['python3 -m http.server', 8080], ['nc -l', 8888]]) {
    const { stderr, exitCode } = await sandbox.exec(`${command} ${other}`, options);
    assert.match(stderr, /Address already in use/);
    assert.notEqual(exitCode, 0);
  }
  const free = await sandbox.exec('timeout -s INT 1 python3 -m http.server 8081', options);
  assert.doesNotMatch(free.stderr, /Address already in use/, 'control: another port is free');
});

test('contexts have their own credentials', async () => {
  const aws = await sandbox.createContext({ name: 'aws', cwd: WORK, env: { AWS_ACCESS_KEY_ID: 'AKIA-aws' } });
  const azure = await sandbox.createContext({ name: 'azure', cwd: WORK, env: { AZURE_CLIENT_ID: 'azure-id' } });
  const show = 'echo "$AWS_ACCESS_KEY_ID,$AZURE_CLIENT_ID"';
  assert.equal((await aws.exec(show)).stdout, 'AKIA-aws,\n');
  assert.equal((await azure.exec(show)).stdout, ',azure-id\n');
  await aws.destroy();
  await azure.destroy();
});

test('a persistent context keeps cwd and environment', async () => {
  const context = await sandbox.createContext({ name: 'keeps', cwd: WORK, persistent: true });
  for (const round of [1, 2]) {
    await context.exec('cd /tmp');
    assert.equal((await context.exec('pwd')).stdout, '/tmp\n', `round ${round}`);
    assert.equal((await context.exec('pwd')).stdout, '/tmp\n');
    await context.exec(`export MY_VAR=hello${round}`);
    assert.equal((await context.exec('echo $MY_VAR')).stdout, `hello${round}\n`);
    assert.equal((await context.exec('echo $MY_VAR')).stdout, `hello${round}\n`);
  }
  assert.equal((await context.exec(['sh', '-c', 'echo "[$MY_VAR]"'])).stdout, '[]\n', 'control: not in other programs');
  await context.destroy();
});

test('children of an agent in platform run in user', async () => {
  // As the mission has it: platform first, and its children's context later.
  const platform = await sandbox.createContext({
    name: 'agents', cwd: WORK, env: { PLATFORM_KEY: 'of-the-platform' }, childContext: 'children', persistent: false,
  });
  const early = await platform.exec(['python3', '-c', 'import subprocess; print(subprocess.run(["true"]).returncode)']);
  assert.match(early.stdout, /126/, 'there is no such context yet: nothing runs unrouted');
  const user = await sandbox.createContext({ name: 'children', cwd: WORK, env: { USER_KEY: 'of-the-user' } });
  writeFileSync(`${WORK}/agent.py`, `
import os, subprocess
print("agent", os.environ.get("PLATFORM_KEY"), os.environ.get("USER_KEY"), flush=True)
show = 'echo "child $PLATFORM_KEY,$USER_KEY"'
for run in (lambda: os.system(show), lambda: subprocess.run(["sh", "-c", show]), lambda: subprocess.run(show, shell=True),
            lambda: os.spawnvp(os.P_WAIT, "sh", ["sh", "-c", show])):
    run()
`);
  const ran = (await platform.exec(['python3', `${WORK}/agent.py`])).assertOk();
  assert.equal(ran.stdout, 'agent of-the-platform None\n' + 'child ,of-the-user\n'.repeat(4));
  await platform.destroy();
  await user.destroy();
});
