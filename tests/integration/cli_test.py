"""The airlock command: a shared daemon, its contexts, exec, ps, kill, routes, and what is printed."""

import json
import os
import re
import shutil
import signal

from harness import (AIRLOCK, BIN, CANARY, Case, LOST, REFUSED, TIMED_OUT, USAGE,
                     command_line, eventually, is_running, main, members, open_files, pid_of,
                     runs_program)


def signals_are_blocked(pid):
    with open(f'/proc/{pid}/status') as file:
        return int(re.search(r'SigBlk:\t(\w+)', file.read()).group(1), 16) != 0


class Daemon(Case):
    def test_up_and_down(self):
        pid = self.up()
        self.assertTrue(runs_program(pid, BIN + '/airlock-routerd'))
        mode = os.stat(self.runtime + '/control.sock').st_mode & 0o777
        self.assertEqual(mode, 0o660, 'mode of control.sock')
        self.assertEqual([c['name'] for c in self.ask('ctx', 'ls')], ['platform', 'user'])
        inits = [self.ask('ctx', 'inspect', name)['initPid'] for name in ('platform', 'user')]
        self.assertTrue(all(os.path.exists(f'/proc/{init}') for init in inits), 'control: inits run')
        job = self.start([AIRLOCK, 'exec', 'user', '--', 'sleep', '1000'])
        eventually(lambda: self.ask('ps', 'user'), 'the job runs')
        down = self.airlock('down')
        self.assertEqual((down.status, down.out, down.err), (0, '', ''))
        for each in (pid, *inits):
            eventually(lambda each=each: not is_running(each), 'the daemon and its inits have ended')
        self.assertEqual(self.finish(job).status, LOST)
        self.assertFalse(os.path.exists(self.runtime + '/control.sock'))
        again = self.airlock('ctx', 'ls')
        self.expect_error(again, 1, 'no daemon serves ' + self.runtime, 'airlock up')

    def test_down_leaves_only_the_log(self):
        self.up()
        self.assertEqual(self.airlock('down').status, 0)
        left = [os.path.relpath(os.path.join(folder, name), self.runtime)
                for folder, _, names in os.walk(self.runtime) for name in names]
        self.assertEqual(left, ['airlock.log'])

    def test_up_again_after_down_and_after_a_crash(self):
        pid = self.up()
        self.assertEqual(self.airlock('down').status, 0)
        pid = self.up()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_running(pid), 'the daemon is dead')
        self.up()
        self.assertEqual(self.exec_in('user', 'true').status, 0)

    def test_sigterm_is_down(self):
        pid = self.up()
        inits = [c['initPid'] for c in self.ask('ctx', 'ls')]
        os.kill(pid, signal.SIGTERM)
        for each in (pid, *inits):
            eventually(lambda each=each: not is_running(each), 'the daemon and its inits have ended')

    def test_foreground(self):
        config = self.write('c.yaml', f'contexts: {{platform: {{cwd: {self.work}}}, user: {{cwd: {self.work}}}}}\n')
        daemon = self.start([AIRLOCK, 'up', '--foreground', '--config', config])
        self.assertIn('serving', self.line_of(daemon, daemon.stderr).decode())
        self.assertEqual(self.ask('info')['pid'], daemon.pid)
        self.assertEqual(self.airlock('down').status, 0)
        self.assertEqual(self.finish(daemon).status, 0)

    def test_two_daemons_side_by_side(self):
        self.up()
        other = self.dir + '/rt2'
        config = self.dir + '/airlock.yaml'
        self.assertEqual(self.airlock('--runtime-dir', other, 'up', '--config', config).status, 0)
        self.addCleanup(self.airlock, '--runtime-dir', other, 'down')
        spaces = [c['pidNamespace'] for c in self.ask('ctx', 'ls')]
        others = [c['pidNamespace'] for c in self.ask('--runtime-dir', other, 'ctx', 'ls')]
        self.assertFalse(set(spaces) & set(others))
        self.assertEqual(self.airlock('--runtime-dir', other, 'down').status, 0)
        self.assertEqual(self.exec_in('user', 'true').status, 0, 'the first one still serves')


class Contexts(Case):
    def test_create_list_inspect_set_remove(self):
        self.up()
        made = self.airlock('ctx', 'create', 'one', '-e', 'A=1', '-e', 'B=x=y z', '-w', '/usr')
        self.assertEqual((made.status, made.out, made.err), (0, '', ''))
        self.assertIn('one', [c['name'] for c in self.ask('ctx', 'ls')])
        self.assertRegex(self.airlock('ctx', 'ls').out, r'(?m)^one +namespaces|^one +userns')
        one = self.ask('ctx', 'inspect', 'one')
        self.assertEqual((one['cwd'], sorted(one['envNames'])), ('/usr', ['A', 'B']))
        self.assertEqual(self.exec_in('one', 'sh', '-c', 'echo "$A|$B|$PWD"').out, '1|x=y z|/usr\n')
        self.assertEqual(self.airlock('ctx', 'set', 'one', '-e', 'A=2', '-e', 'C=3', '--unset', 'B', '-w', '/etc').status, 0)
        self.assertEqual(self.exec_in('one', 'sh', '-c', 'echo "$A|$B|$C|$PWD"').out, '2||3|/etc\n')
        self.assertEqual(self.namespace_of('one'), one['pidNamespace'], 'set keeps the context')
        gone = self.airlock('ctx', 'rm', 'one')
        self.assertEqual((gone.status, gone.out, gone.err), (0, '', ''))
        self.assertNotIn('one', [c['name'] for c in self.ask('ctx', 'ls')])
        self.assertEqual(members(one['pidNamespace']), [])
        self.expect_error(self.exec_in('one', 'true'), REFUSED, "'one'")
        self.assertEqual(self.airlock('ctx', 'create', 'one').status, 0, 'the name is free again')
        self.assertEqual(self.exec_in('one', 'sh', '-c', 'echo "[$A]"').out, '[]\n')

    def test_names(self):
        self.up()
        for good in ('a', 'a' * 32, 'a-b_9'):
            self.assertEqual(self.airlock('ctx', 'create', good).status, 0, good)
        for bad in ('', 'A', '9a', 'a' * 33, 'a b', 'a/b', '..', 'ä', 'a\nb', 'control'):
            with self.subTest(name=bad):
                refused = self.airlock('ctx', 'create', bad)
                self.assertIn(refused.status, (1, USAGE))
                self.expect_error(refused, refused.status, 'context name')
        self.expect_error(self.airlock('ctx', 'create', 'a'), 1, "context 'a'", 'File exists')

    def test_unknown_context(self):
        self.up()
        for command in (('ctx', 'inspect'), ('ctx', 'rm'), ('ctx', 'set'), ('ps',)):
            self.expect_error(self.airlock(*command, 'nobody'), 1, "'nobody'", 'airlock ctx ls')
        self.expect_error(self.airlock('kill', 'nobody', 'all'), 1, "'nobody'")
        self.expect_error(self.exec_in('nobody', 'true'), REFUSED, "'nobody'", 'airlock ctx ls')

    def test_predefined_context_is_claimed_once(self):
        self.up()
        self.assertEqual(self.airlock('ctx', 'create', 'user', '-e', 'MINE=1').status, 0)
        self.assertEqual(self.exec_in('user', 'printenv', 'MINE').out, '1\n')
        self.expect_error(self.airlock('ctx', 'create', 'user'), 1, 'File exists')

    def test_folder_of_a_context_is_made_for_its_user(self):
        new = self.work + '/new'
        self.up(f'contexts: {{platform: {{cwd: {self.work}}}, user: {{cwd: {new}, user: "65534"}}}}\n')
        ended = self.exec_in('user', 'sh', '-c', 'id -u; pwd')
        self.assertEqual((ended.status, ended.out, ended.err), (0, f'65534\n{new}\n', ''))

    def test_create_and_remove_leave_nothing_in_the_daemon(self):
        pid = self.up()
        self.assertEqual(self.airlock('ctx', 'create', 'c0', '--child-context', 'user').status, 0)
        self.assertEqual(self.airlock('ctx', 'rm', 'c0').status, 0)
        before = open_files(pid)
        for i in range(20):
            self.assertEqual(self.airlock('ctx', 'create', f'c{i}', '--child-context', 'user').status, 0)
            self.assertEqual(self.exec_in(f'c{i}', 'true').status, 0)
            self.assertEqual(self.airlock('ctx', 'rm', f'c{i}').status, 0)
        eventually(lambda: open_files(pid) <= before, 'descriptors of the daemon')
        self.assertEqual(sorted(os.listdir(self.runtime + '/view')), ['platform', 'user'])


class Exec(Case):
    def setUp(self):
        super().setUp()
        self.up()

    def test_documented_order_of_arguments(self):
        # docs: exec CTX [-e K=V] [-w DIR] [-i] [--timeout D] -- CMD…
        ended = self.airlock('exec', 'user', '-e', 'A=1', '-w', '/usr', '-i', '--timeout', '30s', '--',
                             'sh', '-c', 'echo $A $PWD $0; cat', '-e', stdin=b'in')
        self.assertEqual((ended.status, ended.out, ended.err), (0, '1 /usr -e\nin', ''))
        ended = self.airlock('exec', 'user', '--', 'echo', '--', '-x')
        self.assertEqual((ended.status, ended.out, ended.err), (0, '-- -x\n', ''))
        ended = self.airlock('exec', 'user', 'echo', 'plain')
        self.assertEqual((ended.status, ended.out, ended.err), (0, 'plain\n', ''))

    def test_arguments_arrive_as_they_are(self):
        words = ['', ' ', 'a b', "it's", '"', '$HOME', '*', '\n', '-n', '--', '--help', 'ä', '\\']
        words = [word.encode() for word in words] + [b'\xff\xfe', b'x' * 100000]
        ended = self.exec_in('user', '/usr/bin/python3', '-c',
                             'import os, sys; print([os.fsencode(word) for word in sys.argv[1:]])', *words)
        self.assertEqual(ended.out, f'{words}\n')

    def test_environment_and_folder(self):
        ended = self.exec_in('user', 'sh', '-c', 'echo "$A|$B|$PWD"',
                             options=['-e', 'A=x=1 2', '-e', 'B=', '-w', '/usr/lib'])
        self.assertEqual(ended.out, 'x=1 2||/usr/lib\n')
        seen = self.exec_in('user', 'env').out
        self.assertIn(f'HOME={self.home}\n', seen, 'control: base names are there')
        for name in ('PLATFORM_KEY', 'AIRLOCK', 'LD_PRELOAD', CANARY):
            self.assertNotIn(name, seen)

    def test_standard_input(self):
        self.assertEqual(self.exec_in('user', 'cat', stdin=b'data', options=['-i']).out, 'data')
        self.assertEqual(self.exec_in('user', 'cat', stdin=b'data').out, '', 'only with -i')
        big = os.urandom(1 << 20).hex().encode()
        self.assertEqual(self.exec_in('user', 'cat', stdin=big, options=['-i']).out, big.decode())

    def test_streams_stay_apart(self):
        ended = self.exec_in('user', 'sh', '-c', 'echo out; echo err >&2; exit 3')
        self.assertEqual((ended.status, ended.out, ended.err), (3, 'out\n', 'err\n'))
        ended = self.exec_in('user', 'true')
        self.assertEqual((ended.status, ended.out, ended.err), (0, '', ''))

    def test_exit_codes_and_signals(self):
        for code in (0, 1, 2, 77, 124, 125, 126, 127, 128, 137, 255):
            ended = self.exec_in('user', 'sh', '-c', f'exit {code}')
            self.assertEqual((ended.status, ended.err), (code, ''))
        for name in ('HUP', 'INT', 'QUIT', 'ABRT', 'KILL', 'SEGV', 'TERM', 'USR1', 'PIPE'):
            ended = self.exec_in('user', 'sh', '-c', f'ulimit -c 0; kill -{name} $$')
            self.assertEqual((ended.status, ended.err), (-signal.Signals['SIG' + name], ''), name)

    TRAP = 'trap "echo got; exit 9" %d; echo ready; while :; do sleep 0.02; done'

    def test_signals_are_forwarded(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            client = self.start([AIRLOCK, 'exec', 'user', '--', 'sh', '-c', self.TRAP % number])
            self.assertEqual(self.line_of(client), b'ready\n')
            eventually(lambda: signals_are_blocked(client.pid), 'the client forwards')
            client.send_signal(number)
            ended = self.finish(client)
            self.assertEqual((ended.status, ended.out), (9, 'got\n'), number)

    def test_a_signal_right_after_the_first_output(self):
        # Whoever has seen output knows that the program runs; a signal must be its from then on. Many
        # rounds, since the window is short.
        ends = []
        for _ in range(40):
            client = self.start([AIRLOCK, 'exec', 'user', '--', 'sh', '-c', self.TRAP % signal.SIGTERM])
            self.assertEqual(self.line_of(client), b'ready\n')
            client.terminate()
            ends.append(self.finish(client).status)
        self.assertEqual(ends, [9] * 40, 'exec')
        agent = f'''
import subprocess
def once():
    child = subprocess.Popen(['sh', '-c', {self.TRAP % signal.SIGTERM!r}], stdout=subprocess.PIPE)
    child.stdout.readline()
    child.terminate()
    return child.wait()
print([once() for _ in range(40)])
'''
        self.assertEqual(self.run_program(['/usr/bin/python3', '-c', agent]).out, f'{[9] * 40}\n', 'control')
        self.assertEqual(self.airlock('run', '--', '/usr/bin/python3', '-c', agent).out, f'{[9] * 40}\n', 'routed')

    def test_client_killed(self):
        client = self.start([AIRLOCK, 'exec', 'user', '--', 'sh', '-c', 'echo ready; exec sleep 1000'])
        self.line_of(client)
        self.assertEqual(len(self.ask('ps', 'user')), 1, 'control: it runs')
        client.kill()
        eventually(lambda: self.ask('ps', 'user') == [], 'the job ends with its client')

    def test_timeout(self):
        space = self.namespace_of('user')
        idle = set(members(space))
        for script in ('echo $$; exec sleep 1000', 'trap "" TERM; echo $$; while :; do sleep 1000; done'):
            client = self.start([AIRLOCK, 'exec', 'user', '--timeout', '400ms', '--', 'sh', '-c', script])
            inner = int(self.line_of(client))
            victim = pid_of(inner, space)
            self.assertIsNotNone(victim, 'control: it runs')
            ended = self.finish(client)
            self.expect_error(ended, TIMED_OUT, 'timed out')
            self.assertFalse(is_running(victim), 'the program is dead when the client says so')
            eventually(lambda: set(members(space)) == idle, 'and so is its process group')
        ended = self.exec_in('user', 'sh', '-c', 'exit 5', options=['--timeout', '1m'])
        self.assertEqual((ended.status, ended.err), (5, ''), 'in time')
        for bad in ('x', '', '5y', '-1', '0', '99999999999999999999'):
            ended = self.exec_in('user', 'true', options=['--timeout=' + bad])
            self.expect_error(ended, USAGE, '--timeout')

    def test_not_started(self):
        self.write('plain', 'text')
        self.write('bad_interpreter', '#!/nonexistent/interpreter\n', 0o755)
        self.write('no_format', 'true\n', 0o755)
        os.mkfifo(self.work + '/fifo', 0o755)
        for program, code in (('/nonexistent', 127), ('nonexistent-name', 127), ('/etc/passwd', 126),
                              ('/', 126), (self.work + '/plain', 126), (self.work + '/fifo', 126),
                              (self.work + '/bad_interpreter', 127)):
            self.expect_error(self.exec_in('user', program), code, program)
        self.assertEqual(self.exec_in('user', self.work + '/no_format').status, 0, 'as execvp')
        missing = self.exec_in('user', 'true', options=['-w', '/nonexistent'])
        self.expect_error(missing, 126, 'working directory /nonexistent')
        self.expect_error(self.exec_in('user', 'true', options=['-w', '/etc/passwd']), 126, 'working directory')
        self.assertEqual(self.ask('ps', 'user'), [])


class Jobs(Case):
    def test_ps_and_kill(self):
        self.up()
        jobs = {}
        for name, marker in (('user', '1001'), ('platform', '1002'), ('user', '1003')):
            jobs[marker] = self.start([AIRLOCK, 'exec', name, '--', 'sleep', marker])
        of_user = lambda: self.ask('ps', 'user')
        listed = eventually(lambda: len(of_user()) == 2 and of_user(), 'two jobs in user')
        eventually(lambda: self.ask('ps', 'platform'), 'and one in platform')
        self.assertTrue(all(j['context'] == 'user' and j['program'] == 'sleep' and j['pid'] > 1 and
                            j['runningMs'] >= 0 for j in listed))
        with self.subTest('ps of all contexts'):
            self.assertEqual(sorted(j['context'] for j in self.ask('ps')), ['platform', 'user', 'user'])
        table = self.airlock('ps', 'user').out.splitlines()
        self.assertEqual(len(table), 3)
        self.assertRegex(table[0], r'^CONTEXT +JOB +PID +RUNNING +PROGRAM$')
        # One of the two, by number.
        one = listed[0]
        killed = self.airlock('kill', '-s', 'USR1', 'user', str(one['job']))
        self.assertEqual((killed.status, killed.out, killed.err), (0, '', ''))
        ended = eventually(lambda: [m for m, p in jobs.items() if p.poll() is not None], 'it ends')
        self.assertEqual(jobs[ended[0]].wait(), -signal.SIGUSR1)
        self.assertEqual(len(self.ask('ps', 'user')), 1, 'the other one runs')
        self.expect_error(self.airlock('kill', 'user', str(one['job'])), 1, f"job {one['job']} in context 'user'", 'airlock ps user')
        self.assertEqual(len(self.ask('ps', 'user')), 1, 'the other one still runs')
        self.assertEqual(self.airlock('kill', '-s', '9', 'user', 'all').status, 0)
        eventually(lambda: self.ask('ps', 'user') == [], 'all of user')
        self.assertEqual(len(self.ask('ps', 'platform')), 1, 'and nothing else')
        self.assertEqual(self.airlock('kill', 'platform', 'all').status, 0)
        self.assertEqual(self.finish(jobs['1002']).status, -signal.SIGTERM, 'TERM is the default')

    def test_shell(self):
        self.up()
        in_shell = lambda text, *options: self.airlock('exec', 'user', *options, '-c', text)
        self.assertEqual(in_shell('cd /tmp; export A=1; f() { echo fn $A; }').status, 0)
        self.assertEqual(in_shell('pwd; f').out, '/tmp\nfn 1\n', 'what a command sets stays')
        self.assertEqual(in_shell('echo ${A-none}', '--shell', 'other').out, 'none\n', 'each shell has its own')
        self.assertEqual(in_shell('exit 3').status, 3)
        self.assertEqual(in_shell('kill -9 $$').status, -signal.SIGKILL)
        self.assertEqual(in_shell('f').out, 'fn 1\n', 'and is there after the shell was ended')
        self.assertEqual(in_shell('echo $B $PWD', '-e', 'B=b c', '-w', '/usr').out, 'b c /usr\n')
        self.assertEqual(in_shell('echo ${B-none} $PWD').out, 'none /tmp\n', 'not for the next one')
        self.assertEqual(self.airlock('exec', 'user', '-i', '-c', 'cat', stdin=b'typed').out, 'typed')
        late = in_shell('sleep 1000', '--timeout', '100ms')
        self.assertEqual(late.status, 124)
        self.assertTrue(late.err.endswith("airlock: shell 'default' timed out\n"), late.err)
        self.expect_error(in_shell('true', '-w', '/nonexistent'), 126, '/nonexistent')
        self.expect_error(in_shell('true', '-t'), 2, '-t and -c')
        self.expect_error(self.airlock('exec', 'user', '-c', 'true', '--', 'x'), 2, '-c')
        self.assertNotIn('exit 3', self.airlock('routes').out, 'what is typed is in no log')
        with self.subTest('a shell that is killed from inside is replaced'):
            self.expect_error(in_shell('kill -9 $PPID; while :; do :; done'), 125, "lost shell 'default'")
            self.assertEqual(eventually(lambda: in_shell('echo ${A-fresh}').out, 'a fresh one'), 'fresh\n')

    def test_kill_reaches_the_group(self):
        self.up()
        job = self.start([AIRLOCK, 'exec', 'user', '--', 'sh', '-c', 'sleep 1000 & sleep 1000 & echo ready; wait'])
        self.line_of(job)
        space = self.namespace_of('user')
        sleeps = [pid for pid in members(space) if 'sleep 1000' in command_line(pid)]
        self.assertGreaterEqual(len(sleeps), 2)
        number = self.ask('ps', 'user')[0]['job']
        self.assertEqual(self.airlock('kill', '-s', 'KILL', 'user', str(number)).status, 0)
        eventually(lambda: not any(is_running(pid) for pid in sleeps), 'the whole group ends')

    def test_bad_kill(self):
        self.up()
        for arguments in (('-s', 'NOPE', 'user', 'all'), ('user', 'x'), ('user', '0'), ('user', '-1'),
                          ('-s', '0', 'user', 'all'), ('user', '1x')):
            self.expect_error(self.airlock('kill', *arguments), USAGE)
        self.expect_error(self.airlock('kill', '-s', '99', 'user', 'all'), 1, 'signal')


class Routes(Case):
    AGENT = ['bash', '-c', 'true; /bin/true; exit 0']

    def test_routes(self):
        self.up()
        self.assertEqual(self.airlock('run', '--', *self.AGENT).status, 0)
        records = [json.loads(line) for line in self.airlock('-o', 'json', 'routes').out.splitlines()]
        routed = [r for r in records if r['from'] == 'platform']
        self.assertEqual(len(routed), 1, records)
        self.assertEqual({k: routed[0][k] for k in ('to', 'program', 'outcome', 'rule', 'uid')},
                         {'to': 'user', 'program': '/bin/true', 'outcome': 'run_in',
                          'rule': 'child_context', 'uid': 0})
        self.assertGreater(routed[0]['latencyUs'], 0)
        self.assertRegex(self.airlock('routes').out,
                         r'(?m)^platform -> user  run_in  /bin/true  pid \d+  rule child_context  \d+ us$')

    def test_follow(self):
        self.up()
        for as_json in (True, False):
            follower = self.start([AIRLOCK, *(['-o', 'json'] if as_json else []), 'routes', '-f'])
            # What was before comes first: a known record, so that it is known to follow.
            self.assertEqual(self.exec_in('user', 'true').status, 0)
            program = f'/bin/follow-me-{as_json}'
            self.assertEqual(self.exec_in('user', program).status, 127)
            for line in iter(lambda: self.line_of(follower), b''):
                if as_json:
                    json.loads(line)
                if program.encode() in line:
                    break
            else:
                self.fail('the event did not come')
            self.assertIsNone(follower.poll(), 'it goes on')
            self.end(follower)

    def test_follow_ends_with_the_daemon(self):
        self.up()
        follower = self.start([AIRLOCK, 'routes', '-f'])
        self.exec_in('user', 'true')
        self.line_of(follower)
        self.airlock('down')
        ended = self.finish(follower)
        self.assertEqual((ended.status, ended.err), (1, 'airlock: the daemon ended\n'))

    def test_explain(self):
        self.up(f'''contexts:
  platform:
    cwd: {self.work}
    child_context: user
    routes:
      - {{ program: /usr/bin/id, action: here }}
      - {{ program: /usr/bin/who, action: refuse }}
      - {{ program: /usr/bin/tac, action: route, to: other }}
  user: {{ cwd: {self.work} }}
  other: {{ cwd: {self.work} }}
''')
        for program, outcome, to, rule in (('/usr/bin/id', 'run_here', '', 'routes[0]'),
                                           ('/usr/bin/who', 'refuse', '', 'routes[1]'),
                                           ('/usr/bin/tac', 'run_in', 'other', 'routes[2]'),
                                           ('tac', 'run_in', 'other', 'routes[2]'),
                                           ('ls', 'run_in', 'user', 'child_context')):
            told = self.ask('route', 'explain', program, '--some', '-x')
            self.assertEqual([told[k] for k in ('outcome', 'to', 'rule')], [outcome, to, rule], program)
        for program, text in (('/usr/bin/id', "stays in 'platform'"), ('/usr/bin/who', 'is refused'),
                              ('ls', "runs in 'user'")):
            self.assertIn(text, self.airlock('route', 'explain', program).out)
        refused = self.airlock('run', '--', 'bash', '-c', '/usr/bin/who; exit $?')
        self.expect_error(refused, REFUSED, '/usr/bin/who')
        self.expect_error(self.airlock('route', 'explain', '--in', 'nobody', 'ls'), 1, "'nobody'")
        self.assertEqual(self.ask('route', 'explain', '--in', 'user', 'ls')['outcome'], 'refuse')

    def test_rules_decide_where_it_runs(self):
        where = shutil.copy('/usr/bin/readlink', self.work + '/where-here')
        other = shutil.copy('/usr/bin/readlink', self.work + '/where-other')
        third = shutil.copy('/usr/bin/readlink', self.work + '/where-user')
        self.up(f'''contexts:
  platform:
    cwd: {self.work}
    child_context: user
    routes:
      - {{ program: {where}, action: here }}
      - {{ program: {other}, action: route, to: other }}
  user: {{ cwd: {self.work} }}
  other: {{ cwd: {self.work} }}
''')
        ran = self.airlock('run', '--', 'bash', '-c', ' && '.join(
            f'{program} /proc/self/ns/pid' for program in (where, other, third)))
        spaces = [self.namespace_of(name) for name in ('platform', 'other', 'user')]
        self.assertEqual(ran.out.split(), [f'pid:[{space}]' for space in spaces], ran.err)


class Output(Case):
    def test_version(self):
        version = self.airlock('version')
        self.assertEqual((version.status, version.err), (0, ''))
        self.assertRegex(version.out, r'^\d+\.\d+\.\d+\S*\n$')

    def test_json_everywhere(self):
        self.up()
        file = self.dir + '/airlock.yaml'
        for command in (['version'], ['info'], ['doctor'], ['ps'], ['ctx', 'ls'], ['ctx', 'create', 'j'],
                        ['ctx', 'inspect', 'j'], ['ctx', 'set', 'j', '-e', 'A=1'], ['ps', 'j'],
                        ['kill', 'j', 'all'], ['ctx', 'rm', 'j'], ['route', 'explain', 'ls'],
                        ['config', 'check', file]):
            with self.subTest(command=command):
                # Before and after the command's name.
                answer = self.airlock('-o', 'json', *command)
                self.assertEqual(answer.status, 0, answer.err)
                json.loads(answer.out or '{}')
        with self.subTest(command='routes'):
            self.exec_in('user', 'true')
            lines = self.airlock('-o', 'json', 'routes').out.splitlines()
            self.assertTrue(lines)
            for line in lines:
                json.loads(line)
        with self.subTest(command='option after the command'):
            json.loads(self.airlock('ctx', 'ls', '-o', 'json').out)

    def test_doctor(self):
        told = self.ask('doctor')
        works = {tier['tier']: tier['works'] for tier in told['tiers']}
        self.assertTrue(works['namespaces'] or works['userns'])
        self.assertEqual(told['uid'], os.getuid())
        text = self.airlock('doctor')
        self.assertEqual((text.status, text.err), (0, ''))
        self.assertIn('Contexts are isolated here.', text.out)
        integrity = told['rootfs']['integrity']
        self.assertTrue(integrity['run'].startswith('no:'), 'it shares them, and says so')
        self.assertEqual(integrity['up'].startswith('yes:'), works['namespaces'], 'the runtime folder is on a disk here')
        self.assertEqual(told['rootfs']['overlay']['works'], works['namespaces'], told['rootfs'])
        self.assertIn("'rootfs: overlay' " + ('works' if works['namespaces'] else 'does not work'), text.out)

    def test_integrity_is_told(self):
        self.up()
        made = {how: self.ask('ctx', 'create', how, '--rootfs', how, '--cwd', self.work)['integrity'][:3]
                for how in ('shared', 'overlay', 'auto')}
        self.assertEqual(made, {'shared': 'no:', 'overlay': 'yes', 'auto': 'yes'})
        self.assertEqual(self.ask('ctx', 'inspect', 'auto')['rootfs'], 'overlay')
        rows = {row.split()[0]: row.split()[2] for row in self.airlock('ctx', 'ls').out.splitlines()}
        self.assertEqual(rows, {'NAME': 'INTEGRITY', 'platform': 'no', 'user': 'yes', 'shared': 'no', 'overlay': 'yes', 'auto': 'yes'})

    def test_info(self):
        pid = self.up()
        told = self.ask('info')
        self.assertEqual((told['pid'], told['runtimeDir'], told['isolated'], told['embedded'], told['contexts']),
                         (pid, self.runtime, True, False, 2))
        self.assertIn(told['tier'], self.airlock('info').out)

    def test_help(self):
        for command in ([], ['run'], ['exec'], ['ctx'], ['ctx', 'create'], ['routes']):
            told = self.airlock(*command, '--help')
            self.assertEqual((told.status, told.err), (0, ''))
            self.assertIn('Usage', told.out)

    def test_agents_stdout_is_its_own(self):
        for options in ([], ['-o', 'json']):
            ended = self.airlock(*options, 'run', '--user-env', 'A=1', '--', 'bash', '-c', 'sh -c "echo \\$A"; exit 4')
            self.assertEqual((ended.status, ended.out, ended.err), (4, '1\n', ''))

    def test_control_characters_do_not_reach_the_terminal(self):
        self.up()
        self.exec_in('user', '/bin/\x1b[31m\nred')
        told = self.airlock('routes').out
        self.assertIn('red', told)
        self.assertNotIn('\x1b', told)
        self.assertEqual([outcome in line for outcome, line in zip(('run_in', 'failed'), told.splitlines())],
                         [True, True], told)
        self.assertEqual(len(told.splitlines()), 2)


class RunWithServedDaemon(Case):
    def test_run_uses_it(self):
        self.up()
        ended = self.airlock('run', '--', 'bash', '-c', 'readlink /proc/self/ns/pid; exit 3')
        self.assertEqual((ended.status, ended.out), (3, f'pid:[{self.namespace_of("user")}]\n'))

    def test_options_that_would_change_it(self):
        self.up()
        env_file = self.write('env', 'A=1\n')
        for option in (['--user-env', 'A=1'], ['--env-file', env_file], ['--share', '/x'], ['--hide', '/x'],
                       ['--tier', 'none']):
            self.expect_error(self.airlock('run', *option, '--', 'true'), USAGE, option[0])

    def test_run_in_and_route_to(self):
        self.up()
        for name in ('agents', 'workers'):
            child = ['--child-context', 'workers'] if name == 'agents' else []
            self.assertEqual(self.airlock('ctx', 'create', name, *child).status, 0)
        ended = self.airlock('run', '--in', 'agents', '--', 'bash', '-c', 'readlink /proc/self/ns/pid; exit 0')
        self.assertEqual(ended.out, f'pid:[{self.namespace_of("workers")}]\n', ended.err)
        ended = self.airlock('run', '--in', 'user', '--', 'true')
        self.expect_error(ended, REFUSED, "'user'", 'child_context')
        # Another target than the context has: either it is taken or it is refused, not ignored.
        ended = self.airlock('run', '--route-to', 'workers', '--', 'bash', '-c', 'readlink /proc/self/ns/pid; exit 0')
        self.assertNotEqual(ended.out, f'pid:[{self.namespace_of("user")}]\n', '--route-to is ignored')

    def test_run_in_unknown_context(self):
        self.up()
        self.expect_error(self.airlock('run', '--in', 'nobody', '--', 'true'), REFUSED, "'nobody'")


class RunEmbedded(Case):
    def test_env_file(self):
        file = self.write('env', '# comment\n\nA=1\nexport B=two words\nC=\n')
        ended = self.airlock('run', '--env-file', file, '--user-env', 'A=2', '--', 'bash', '-c',
                             'printenv A B C; echo "[$A]"')
        self.assertEqual(ended.out, '2\ntwo words\n\n[]\n', "pinned in user, not in the agent's env")
        bad = self.write('bad', 'A=1\nnonsense\n')
        self.expect_error(self.airlock('run', '--env-file', bad, '--', 'true'), USAGE, bad + ':2', 'NAME=value')
        self.expect_error(self.airlock('run', '--env-file', '/nonexistent', '--', 'true'), USAGE, '/nonexistent')

    def test_route_log_file(self):
        log = self.work + '/log'
        self.routed('bash', '-c', 'ls /nonexistent; true; exit 0', options=['--route-log', log])
        with open(log) as file:
            records = [json.loads(line) for line in file]
        self.assertEqual([r['to'] for r in records if r['from']], ['user'])

    def test_contexts_of_other_names(self):
        ended = self.airlock('run', '--in', 'agents', '--route-to', 'workers', '--route-log', self.work + '/log',
                             '--', 'bash', '-c', '/bin/true; exit 0')
        self.assertEqual((ended.status, ended.err), (0, ''))
        with open(self.work + '/log') as file:
            self.assertIn(('agents', 'workers'), [(r['from'], r['to']) for r in map(json.loads, file)])

    def test_keep(self):
        ended = self.routed('bash', '-c', 'sh -c "setsid sleep 1000 </dev/null >/dev/null 2>&1 &"; exit 3', options=['--keep'], patience=10)
        self.assertEqual((ended.status, ended.out), (3, ''))
        folder = re.search(r'AIRLOCK_RUNTIME_DIR=(\S+)', ended.err).group(1).rstrip(';')
        contexts = self.ask('--runtime-dir', folder, 'ctx', 'ls')
        self.assertEqual([c['name'] for c in contexts], ['platform', 'user'])
        space = contexts[1]['pidNamespace']
        self.assertTrue([pid for pid in members(space) if 'sleep 1000' in command_line(pid)], 'it is kept')
        self.assertEqual(self.airlock('--runtime-dir', folder, 'down').status, 0)
        eventually(lambda: members(space) == [], 'down ends it')

    def test_what_the_agent_left_ends_with_it(self):
        # The marker file proves that it ran: a program that never started would pass as well.
        agent = f'''sh -c "setsid sh -c 'touch {self.work}/ran; exec sleep 1000' </dev/null >/dev/null 2>&1 &"
            until [ -e {self.work}/ran ]; do sleep 0.01; done; exit 0'''
        self.assertEqual(self.routed('bash', '-c', agent).status, 0)
        self.assertTrue(os.path.exists(self.work + '/ran'))
        # expect_nothing_left does the rest.

    def test_status_and_signals(self):
        for code in (0, 1, 126, 255):
            self.assertEqual(self.routed('bash', '-c', f'exit {code}').status, code)
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
            ended = self.routed('bash', '-c', f'ulimit -c 0; kill -{int(number)} $$')
            self.assertEqual((ended.status, ended.err), (-number, ''))

    def test_signals_reach_the_agent(self):
        agent = self.start([AIRLOCK, 'run', '--', 'bash', '-c',
                            'trap "echo term; exit 5" TERM; echo ready; while :; do sleep 0.05; done'])
        self.assertEqual(self.line_of(agent), b'ready\n')
        agent.terminate()
        ended = self.finish(agent)
        self.assertEqual((ended.status, ended.out), (5, 'term\n'))


if __name__ == '__main__':
    main()
