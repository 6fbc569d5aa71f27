"""Things that go wrong while programs run: the daemon or a context dies, peers send nonsense or nothing,
several runs at once. Everything must fail closed, end, and say why."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

from harness import (AIRLOCK, Case, FIXTURES, LOST, REFUSED, command_line, descendants, eventually,
                     is_running, main, members, open_files, processes, runs_program)

sys.path.insert(0, FIXTURES)
import wire

# 20 children at once, all running before "ready" is printed. Then, when they have ended: what they ended
# with and said, and whether a further child runs.
TWENTY = '''
import json, os, subprocess, sys
folder = sys.argv[1]
children = [subprocess.Popen(['sh', '-c', f'echo x >{folder}/started{i}; exec sleep 1000'], stderr=subprocess.PIPE, text=True)
            for i in range(20)]
while len([n for n in os.listdir(folder) if n.startswith('started') and os.path.getsize(f'{folder}/{n}')]) < 20: pass
print('ready', flush=True)
ends = [(child.wait(), child.stderr.read()) for child in children]
after = subprocess.run(['touch', folder + '/unrouted'], stderr=subprocess.PIPE, text=True)
print(json.dumps([ends, after.returncode, after.stderr]), flush=True)
'''


def memory_of(pid):
    """Resident memory in KiB."""
    with open(f'/proc/{pid}/status') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmRSS'))


class DaemonDies(Case):
    def expect_lost_stubs(self, agent, further):
        ends, after, after_error = json.loads(self.line_of(agent))
        self.assertEqual([status for status, _ in ends], [LOST] * 20)
        for _, error in ends:
            self.assertRegex(error, r'^airlock: lost \S+: .*\n$')
        self.assertEqual(after, further)
        self.assertRegex(after_error, r'^airlock: .*\n$')
        self.assertFalse(os.path.exists(self.work + '/unrouted'), 'nothing ran unrouted')

    def start_agent(self, argv, **options):
        agent = self.start([*argv, '/usr/bin/python3', '-c', TWENTY, self.work], **options)
        self.assertEqual(self.line_of(agent), b'ready\n')
        return agent

    def expect_lost(self, agent):
        """What the agent printed does not matter: it may have seen its children lost before it ended itself."""
        self.expect_error(dataclasses.replace(agent, out=''), LOST, 'lost', '/usr/bin/python3')

    def test_embedded_daemon_killed(self):
        agent = self.start_agent([AIRLOCK, 'run', '--'])
        daemon = self.daemon_below(agent.pid)
        below = []
        # An agent is told that a child runs before that has exec'ed.
        def are_there():
            below[:] = descendants(agent.pid)
            return len([pid for pid in below if command_line(pid) == 'sleep 1000']) >= 20
        eventually(are_there, 'control: 20 programs run')
        os.kill(daemon, signal.SIGKILL)
        ended = self.finish(agent)
        self.expect_lost(ended)
        eventually(lambda: not any(is_running(pid) for pid in below), 'no stray process', 10)
        self.assertFalse(os.path.exists(self.work + '/unrouted'))

    def test_shared_daemon_killed(self):
        daemon = self.up()
        agent = self.start_agent([AIRLOCK, 'run', '--'])
        spaces = [self.namespace_of(name) for name in ('platform', 'user')]
        self.assertGreaterEqual(len(members(spaces[1])), 20, 'control')
        os.kill(daemon, signal.SIGKILL)
        self.expect_lost(self.finish(agent))
        eventually(lambda: not any(members(space) for space in spaces), 'no stray process', 10)
        self.assertFalse(os.path.exists(self.work + '/unrouted'))

    def test_stubs_that_outlive_the_daemon(self):
        # An agent outside of all namespaces: it and its stubs survive, and tell.
        daemon = self.up()
        made = self.airlock('ctx', 'create', 'open', '--isolation', 'none', '--child-context', 'user')
        self.assertEqual(made.status, 0, made.err)
        agent = self.start_agent([], env={'LD_PRELOAD': self.runtime + '/view/open/libairlock-preload.so'})
        space = self.namespace_of('user')
        eventually(lambda: len([pid for pid in members(space) if command_line(pid) == 'sleep 1000']) == 20, 'control')
        os.kill(daemon, signal.SIGKILL)
        self.expect_lost_stubs(agent, REFUSED)
        self.assertEqual(self.finish(agent).status, 0)
        eventually(lambda: members(space) == [], 'no stray process', 10)

    def test_target_destroyed(self):
        daemon = self.up()
        agent = self.start_agent([AIRLOCK, 'run', '--'])
        self.assertEqual(self.ask('ctx', 'rm', 'user')['survivors'], 0)
        self.expect_lost_stubs(agent, REFUSED)
        self.assertEqual(self.finish(agent).status, 0, 'the agent itself goes on')
        self.assertTrue(is_running(daemon))
        # The name can be used again, and then children run again.
        self.assertEqual(self.airlock('ctx', 'create', 'user', '-w', self.work).status, 0)
        self.assertEqual(self.airlock('run', '--', 'bash', '-c', 'true; exit 3').status, 3)

    def test_init_of_target_killed(self):
        self.up()
        agent = self.start_agent([AIRLOCK, 'run', '--'])
        os.kill(self.ask('ctx', 'inspect', 'user')['initPid'], signal.SIGKILL)
        self.expect_lost_stubs(agent, REFUSED)
        self.assertEqual(self.finish(agent).status, 0)
        self.assertNotIn('user', [context['name'] for context in self.ask('ctx', 'ls')])

    def test_own_context_destroyed(self):
        self.up()
        agent = self.start_agent([AIRLOCK, 'run', '--'])
        space = self.namespace_of('user')
        self.assertEqual(self.ask('ctx', 'rm', 'platform')['survivors'], 0)
        self.expect_error(self.finish(agent), LOST, 'lost')
        eventually(lambda: not [pid for pid in members(space) if command_line(pid) == 'sleep 1000'],
                   'its children in user end with their stubs', 10)

    def test_stub_killed(self):
        self.up()
        agent = self.start([AIRLOCK, 'run', '--', 'bash', '-c',
                            'sh -c "sleep 1000 & echo started; wait" & read -t 60 _ <> <(:); wait $!; echo $?'])
        self.line_of(agent)
        space, user = self.namespace_of('platform'), self.namespace_of('user')
        running = lambda: [pid for pid in members(user) if 'sleep 1000' in command_line(pid)]
        self.assertEqual(len(running()), 2, 'control: sh and sleep')
        stubs = [pid for pid in members(space) if runs_program(pid, self.runtime + '/view/platform/airlock-stub')]
        # One that runs for long has a witness beside it, a child of its own.
        stubs = [each.pid for each in processes().values() if each.pid in stubs and each.parent not in stubs]
        self.assertEqual(len(stubs), 1)
        os.kill(stubs[0], signal.SIGKILL)
        eventually(lambda: not running(), 'the process group is killed', 10)


class RunDies(Case):
    AGENT = ['bash', '-c', 'sh -c "setsid sleep 1000 & sleep 1000 & echo ready; wait" & wait']

    def test_sigkill_of_airlock_run(self):
        run = self.start([AIRLOCK, 'run', '--', *self.AGENT])
        self.line_of(run)
        below = descendants(run.pid)
        self.assertGreaterEqual(len([pid for pid in below if 'sleep 1000' in command_line(pid)]), 2, 'control')
        os.kill(run.pid, signal.SIGKILL)
        self.assertEqual(run.wait(), -signal.SIGKILL)
        eventually(lambda: not any(is_running(pid) for pid in below), 'everything ends', 10)
        eventually(lambda: os.listdir(self.parent) == [], 'and its folder goes', 10)

    def test_sigkill_with_a_shared_daemon(self):
        self.up()
        run = self.start([AIRLOCK, 'run', '--', *self.AGENT])
        self.line_of(run)
        spaces = [self.namespace_of(name) for name in ('platform', 'user')]
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        left = lambda: [command_line(pid) for space in spaces for pid in members(space)
                        if 'setsid' not in command_line(pid) and 'airlock-init' not in command_line(pid)]
        # What has left the process group stays, as after any kill; the contexts are others' too.
        eventually(lambda: len(left()) <= 1, f'agent and child end: {left()}', 10)
        self.assertEqual(self.exec_in('user', 'true').status, 0)

    def test_agent_ends_and_leaves_much(self):
        ended = self.routed('bash', '-c', f'''for i in $(seq 10); do
            sh -c "trap '' TERM HUP; setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo x > {self.work}/$i"; done; exit 9''')
        self.assertEqual((ended.status, len(os.listdir(self.work))), (9, 10))


class TwoRuns(Case):
    SCRIPT = ('sh -c "readlink /proc/self/ns/pid; sleep 4242 & until ps -e -o args | grep -q ^sleep.4242; do :; done; ps -e -o args | grep -c ^sleep.4242; echo; read line";'
              'sh -c "echo alive"; exit 6')

    def test_they_do_not_meet(self):
        runs = [self.start([AIRLOCK, 'run', '--', 'bash', '-c', self.SCRIPT], stdin=subprocess.PIPE) for _ in range(2)]
        told = [[self.line_of(run).decode().strip() for _ in range(3)] for run in runs]
        self.assertNotEqual(told[0][0], told[1][0], 'each has its own user context')
        self.assertEqual([lines[1] for lines in told], ['1', '1'], 'each sees only its own child')
        self.assertEqual(len(os.listdir(self.parent)), 2, 'each has its own folder')
        # The end of one does not touch the other.
        os.kill(runs[0].pid, signal.SIGKILL)
        runs[0].wait()
        eventually(lambda: len(os.listdir(self.parent)) == 1, 'the first is gone')
        ended = self.finish(runs[1], b'\n')
        self.assertEqual((ended.status, ended.out, ended.err), (6, 'alive\n', ''))

    def test_many_at_once(self):
        runs = [self.start([AIRLOCK, 'run', '--user-env', f'N={i}', '--', 'bash', '-c', 'sh -c "echo \\$N"; exit 0'])
                for i in range(10)]
        for i, run in enumerate(runs):
            ended = self.finish(run)
            self.assertEqual((ended.status, ended.out, ended.err), (0, f'{i}\n', ''))


class Frames(Case):
    # docs/PROTOCOL.md §2: what each kind of broken frame is answered with. 6 = NotStarted, 31 = ControlReply.
    EXPECTED = {
        'good': '[2, 5]', 'nothing': '[]', 'half': '[]', 'half at the end': '[]', 'noise': '[]',
        'other version': '[]', 'version 0': '[]', 'too long': '[]', 'longest': '[6]', 'longest, half': '[]',
        'length 0': '[6]', 'cut payload': '[6]', 'trailing byte': '[6]', 'counts that lie': '[6]',
        'no program': '[6]', 'NUL in path': '[6]', 'long path': '[6]', 'long argument': '[6]',
        'fds announced, none sent': '[]', 'too many announced': '[]', 'fds sent, none announced': '[]',
        'more fds than numbers': '[6]', 'one number twice': '[6]', 'number beyond all': '[6]',
        'fds, then gone': '[]', 'bad request': 'error',
    }

    def check(self, kind, ended):
        self.assertEqual((ended.status, ended.err), (0, ''))
        lines = ended.out.splitlines()
        self.assertGreater(len(lines), 100)
        for line in lines:
            # "length 0 [6]": a name and what came back.
            name, _, got = line.rpartition(' [') if line.endswith(']') else line.rpartition(' ')
            got = '[' + got if line.endswith(']') else got
            if name == 'mutated':
                self.assertLessEqual(set(json.loads(got)), {2, 6})
            elif name.startswith('type '):
                self.assertEqual(got, '[31]' if kind == 'control' else '[]', line)
            elif name == 'good' and kind == 'control':
                self.assertEqual(got, '[31]')
            else:
                self.assertEqual(got, self.EXPECTED[name], line)

    def expect_unimpressed(self, daemon, files, memory):
        eventually(lambda: open_files(daemon) <= files, 'no descriptor is left in the daemon', 20)
        self.assertLess(memory_of(daemon) - memory, 40 << 10, 'KiB the daemon has grown by')
        self.assertEqual(self.airlock('run', '--', 'bash', '-c', 'true; exit 3').status, 3)
        with open(self.runtime + '/airlock.log') as file:
            self.assertNotIn(' error: ', file.read())

    def settled(self, daemon):
        """Descriptors and memory of a daemon that has worked before."""
        self.airlock('run', '--', 'bash', '-c', 'true; exit 3')
        return open_files(daemon), memory_of(daemon)

    def test_control_socket(self):
        daemon = self.up()
        files, memory = self.settled(daemon)
        self.check('control', self.run_program(
            ['/usr/bin/python3', FIXTURES + '/bad_frames.py', 'control', self.runtime + '/control.sock']))
        self.expect_unimpressed(daemon, files, memory)
        self.assertEqual([c['name'] for c in self.ask('ctx', 'ls')], ['platform', 'user'])

    def test_router_socket(self):
        daemon = self.up()
        files, memory = self.settled(daemon)
        self.check('router', self.airlock(
            'run', '--', '/usr/bin/python3', FIXTURES + '/bad_frames.py', 'router', self.runtime + '/router.sock'))
        self.expect_unimpressed(daemon, files, memory)

    def test_router_socket_from_elsewhere(self):
        # From outside, and from the other context, where it is not even there.
        self.up()
        request = wire.frame(wire.EXEC_REQUEST, wire.exec_request([b'/usr/bin/touch', self.work.encode() + b'/ran']))
        connection = wire.connect(self.runtime + '/view/platform/router.sock')
        connection.sendall(request)
        answer = wire.answers(connection)
        connection.close()
        self.assertEqual([kind for kind, _ in answer], [wire.NOT_STARTED])
        self.assertIn(b"does not come from context 'platform'", answer[0][1])
        self.assertFalse(os.path.exists(self.work + '/ran'))
        seen = self.exec_in('user', 'ls', self.runtime + '/router.sock')
        self.assertIn('No such file', seen.err)
        code = f'''import sys; sys.path.insert(0, {FIXTURES!r}); import wire
c = wire.connect({self.runtime + '/router.sock'!r}); c.sendall(bytes.fromhex({request.hex()!r})); print([k for k, _ in wire.answers(c)])'''
        control = self.airlock('run', '--', '/usr/bin/python3', '-c', code)
        self.assertEqual(control.out, '[2, 5]\n', 'control: from inside the same request runs')
        self.assertTrue(os.path.exists(self.work + '/ran'), 'control')

    def test_policy_of_a_stub_is_ignored(self):
        # What only the control socket may ask: the context, the credentials.
        self.up()
        request = wire.frame(wire.EXEC_REQUEST, wire.exec_request([b'/usr/bin/touch', self.work.encode() + b'/ran'], context=b'platform'))
        code = f'''import sys; sys.path.insert(0, {FIXTURES!r}); import wire
c = wire.connect({self.runtime + '/router.sock'!r}); c.sendall(bytes.fromhex({request.hex()!r})); print([k for k, _ in wire.answers(c)])'''
        self.airlock('run', '--', '/usr/bin/python3', '-c', code)
        last = json.loads(self.airlock('-o', 'json', 'routes').out.splitlines()[-1])
        self.assertEqual((last['program'], last['to']), ('/usr/bin/touch', 'user'))

    def test_control_socket_of_others(self):
        self.up()
        ended = self.run_program(['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--', AIRLOCK, 'info'])
        self.expect_error(ended, 1, 'Permission denied')
        self.assertEqual(self.airlock('info').status, 0, 'control')
        # Also where the file would let them.
        os.chmod(self.runtime + '/control.sock', 0o666)
        ended = self.run_program(['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--', AIRLOCK, 'info'])
        self.expect_error(ended, 1, 'root and the group airlock')
        ended = self.exec_in('user', AIRLOCK, 'info')
        self.expect_error(ended, 1, 'no daemon serves')


class Silence(Case):
    """200 connections that send nothing, and some that send slowly, on both sockets: others are served
    meanwhile, and after the deadline of 10 s (docs/PROTOCOL.md) they are closed."""

    HOLD = '''
import select, sys, time
sys.path.insert(0, sys.argv[1])
import wire
request = wire.frame(wire.EXEC_REQUEST, wire.exec_request([b'/usr/bin/touch', sys.argv[3].encode()]))
held = [wire.connect(sys.argv[2]) for _ in range(200)]
slow = [wire.connect(sys.argv[2]) for _ in range(5)]
print('ready', flush=True)
start, sent = time.monotonic(), 0
poller = select.poll()
for each in held + slow: poller.register(each, select.POLLIN | select.POLLRDHUP)
open_ones = len(held + slow)
while open_ones and time.monotonic() - start < 60:
    for fd, event in poller.poll(100):
        poller.unregister(fd); open_ones -= 1
    for each in slow:
        # One byte at a time, never the last one.
        if sent < len(request) - 1:
            try: each.send(request[sent:sent + 1])
            except OSError: pass
    sent += 1
print(open_ones, flush=True)
'''

    def test_silent_and_slow_peers(self):
        daemon = self.up()
        self.airlock('run', '--', 'bash', '-c', 'true; exit 3')
        files = open_files(daemon)
        holders = [self.start([*prefix, '/usr/bin/python3', '-c', self.HOLD, FIXTURES, self.runtime + '/' + name, self.work + '/ran'])
                   for prefix, name in (([], 'control.sock'), ([AIRLOCK, 'run', '--'], 'router.sock'))]
        for holder in holders:
            self.assertEqual(self.line_of(holder), b'ready\n')
        eventually(lambda: open_files(daemon) >= files + 400, 'control: they are held')
        for i in range(10):
            served = self.airlock('run', '--', 'bash', '-c', f'sh -c "exit {i}"; exit $?')
            self.assertEqual((served.status, served.err), (i, ''))
            self.assertEqual(self.exec_in('user', 'echo', 'served').out, 'served\n')
        self.assertTrue(all(holder.poll() is None for holder in holders), 'control: that was meanwhile')
        for holder in holders:
            self.assertEqual(self.finish(holder).out, '0\n', 'all were closed')
        eventually(lambda: open_files(daemon) <= files, 'the daemon holds none')
        self.assertFalse(os.path.exists(self.work + '/ran'))

    def test_reader_that_does_not_read(self):
        # routes -f by somebody who never reads must not stop the daemon, nor make it grow for ever.
        daemon = self.up()
        lazy = wire.connect(self.runtime + '/control.sock')
        lazy.sendall(wire.control('routes', follow=True))
        for _ in range(3):
            self.assertEqual(self.airlock('run', '--', 'bash', '-c', 'for i in $(seq 200); do /bin/true; done; exit 0').status, 0)
        lazy.close()
        self.assertEqual(self.ask('info')['pid'], daemon)


if __name__ == '__main__':
    main()
