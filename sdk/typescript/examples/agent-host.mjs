// An agent's host: node agent-host.mjs USER_ENV.json AGENT [ARG…] runs an agent in the context `agent-host`, with this
// process' environment, while everything the agent starts runs in the context `workspace` with the variables of
// USER_ENV.json only. Shows what the agent prints, and each routing decision on stderr.
import { readFileSync } from 'node:fs';
import { connect } from 'airlock-sdk';

const [envFile, ...agent] = process.argv.slice(2);
if (agent.length === 0) throw new Error('usage: agent-host.mjs USER_ENV.json AGENT [ARG…]');
const sandbox = await connect();
const cwd = process.cwd();
const secrets = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('AIRLOCK_')));
const workspace = await sandbox.createContext({ name: 'workspace', cwd, env: JSON.parse(readFileSync(envFile, 'utf8')) });
const host = await sandbox.createContext({ name: 'agent-host', cwd, env: secrets, childContext: 'workspace' });

const watching = new AbortController();
const watched = (async () => {
  for await (const each of sandbox.routeEvents({ from: host.name, signal: watching.signal })) {
    console.error(`airlock: ${each.program} → ${each.to} (${each.rule})`);
  }
})().catch((error) => { if (!watching.signal.aborted) throw error; });
try {
  for await (const event of host.execStream(agent)) {
    if (event.type === 'stdout') process.stdout.write(event.bytes);
    if (event.type === 'stderr') process.stderr.write(event.bytes);
    if (event.type === 'exit') process.exitCode = event.result.exitStatus ?? 1;
  }
} finally {
  watching.abort();
  await watched;
  await host.destroy();
  await workspace.destroy();
}
