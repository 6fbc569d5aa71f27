"""What passes between contexts and what does not: environment, descriptors, processes, HOME. Each
"is not seen" stands beside the same probe where it is seen."""

import json
import os
import signal
import subprocess

from harness import (AIRLOCK, CANARY, Case, eventually, is_running, main, members,
                     namespace, pid_of)

SHOW = ('import json, os; print(json.dumps({k: os.environ.get(k) for k in os.environ["SHOW"].split(",")}))')


class Environment(Case):
    """An agent with a certain environment starts a child that shows its own."""

    SECRETS = {
        'PLATFORM_KEY': CANARY, 'ANTHROPIC_API_KEY': CANARY, 'GITHUB_TOKEN': CANARY, 'GH_PAT': CANARY,
        'AWS_SECRET_ACCESS_KEY': CANARY, 'AWS_ACCESS_KEY_ID': CANARY, 'DB_PASSWORD': CANARY,
        'MY_CREDENTIALS': CANARY, 'SESSION_COOKIE': CANARY, 'SENTRY_DSN': CANARY, 'NPM_AUTH': CANARY,
        'SSH_AUTH_SOCK': '/tmp/agent.' + CANARY, 'KUBECONFIG': '/x/' + CANARY, 'DOCKER_HOST': 'tcp://x',
        'DATABASE': f'postgres://me:{CANARY}@db/x', 'INNOCENT': f'prefix {CANARY} suffix',
        'DBUS_SESSION_BUS_ADDRESS': 'unix:path=/x', 'NETRC': '/x', 'PGPASSFILE': '/x',
    }
    HARMLESS = {'PLAIN': 'x=y z', 'EMPTY': '', 'EDITOR': 'vi', 'KEYBOARD': 'us', 'LC_ALL': 'C', 'TZ': 'UTC',
                'UNICODE': 'ä\n"\'$', 'NO_COLOR': '1'}

    def seen(self, is_routed, script, names, options=(), env=None):
        """What the program $SHOW_IT of the agent's bash script sees of `names`."""
        show = self.write('show.py', SHOW)
        script = f'SHOW_IT="/usr/bin/python3 {show}"; {script}; exit 0'
        env = {'SHOW': ','.join(names), **(env or {})}
        agent = ['bash', '-c', script]
        ended = (self.routed(*agent, options=options, env=env) if is_routed
                 else self.run_program(agent, env=env))
        self.assertEqual((ended.status, ended.err), (0, ''))
        return json.loads(ended.out)

    def test_secrets_stay(self):
        env = {**self.SECRETS, **self.HARMLESS}
        bare = self.seen(False, '$SHOW_IT', env, env=env)
        self.assertEqual(bare, env, 'control: the bare child sees all')
        routed = self.seen(True, '$SHOW_IT', env, env=env)
        self.assertEqual({name: routed[name] for name in self.SECRETS}, dict.fromkeys(self.SECRETS))
        self.assertEqual({name: routed[name] for name in self.HARMLESS}, self.HARMLESS)

    def test_what_the_agent_sets_for_its_child(self):
        script = 'TZ=EST5 CLAUDECODE=1 LATE_TOKEN=abcdefgh COPY=$PLATFORM_KEY PATH=/venv/bin:$PATH $SHOW_IT'
        names = ['TZ', 'CLAUDECODE', 'PATH', 'LATE_TOKEN', 'COPY']
        bare = self.seen(False, script, names, env={'TZ': 'UTC'})
        self.assertEqual(bare, {'TZ': 'EST5', 'CLAUDECODE': '1', 'PATH': '/venv/bin:' + self.env['PATH'],
                                'LATE_TOKEN': 'abcdefgh', 'COPY': CANARY}, 'control')
        routed = self.seen(True, script, names, env={'TZ': 'UTC'})
        self.assertEqual(routed, {**bare, 'LATE_TOKEN': None, 'COPY': None})

    def test_removals_arrive(self):
        for is_routed in (False, True):
            seen = self.seen(is_routed, 'unset GONE; export EMPTIED=; $SHOW_IT', ['GONE', 'EMPTIED', 'STAYS'],
                             env={'GONE': '1', 'EMPTIED': '1', 'STAYS': '1'})
            self.assertEqual(seen, {'GONE': None, 'EMPTIED': '', 'STAYS': '1'}, is_routed)

    def test_pinned_names_win(self):
        script = 'export ROUTE_MARK=agent MY_TOKEN=agent; $SHOW_IT'
        names = ['ROUTE_MARK', 'MY_TOKEN']
        self.assertEqual(self.seen(False, script, names), {'ROUTE_MARK': 'agent', 'MY_TOKEN': 'agent'})
        # What the user context is given on purpose may look like a secret.
        routed = self.seen(True, script, names, options=['--user-env', 'MY_TOKEN=of-the-user'])
        self.assertEqual(routed, {'ROUTE_MARK': 'user', 'MY_TOKEN': 'of-the-user'})

    def test_env_i_and_loader_variables(self):
        script = ('env -i A=1 LD_PRELOAD= sh -c "env | sort"; env | grep -c -e LD_PRELOAD -e ^AIRLOCK;'
                  ' grep -c airlock /proc/self/maps; exit 0')
        ended = self.routed('bash', '-c', script)
        self.assertEqual(ended.out, f'A=1\nLD_PRELOAD=\nPWD={self.work}\n0\n0\n')
        # With env as the agent the routed program is the sh it becomes.
        ended = self.routed('env', '-i', 'A=1', 'sh', '-c', 'env | sort; readlink /proc/self/ns/pid')
        self.assertEqual(ended.out.splitlines()[:3], ['A=1', f'PWD={self.work}', 'ROUTE_MARK=user'])
        self.assertNotEqual(ended.out.splitlines()[3], f'pid:[{namespace()}]')

    def test_no_name_comes_twice(self):
        # A program that reads the first of two takes the other one than one that reads the last.
        script = ('import collections; names = [e.split(b"=")[0] for e in open("/proc/self/environ", "rb").read().split(b"\\0")];'
                  'print([n for n, c in collections.Counter(names).items() if c > 1])')
        file = self.write('env', 'DOUBLE=1\nTZ=UTC\n')
        ended = self.airlock('run', '--env-file', file, '--user-env', 'DOUBLE=2', '--', 'bash', '-c',
                             f"TZ=EST5 /usr/bin/python3 -c '{script}'; exit 0", env={'TZ': 'JST-9'})
        self.assertEqual(ended.out, '[]\n', ended.err)

    def test_values_are_never_logged(self):
        self.up(env={'PLATFORM_KEY': CANARY})
        token = 'token-' + CANARY
        agent = f'OTHER_TOKEN={token} sh -c "true {token}"; exit 0'
        self.assertEqual(self.airlock('run', '--', 'bash', '-c', agent).status, 0)
        self.exec_in('user', 'true', token, options=['-e', f'MY_TOKEN={token}'])
        self.exec_in('user', 'false-' + 'name', token)
        self.assertEqual(self.airlock('ctx', 'create', 'c', '-e', f'A={token}').status, 0)
        inspected = self.airlock('ctx', 'inspect', 'c').out
        routes = self.airlock('-o', 'json', 'routes').out
        with open(self.runtime + '/airlock.log') as file:
            log = file.read()
        # Control: the name of what was held back is there, so it was this run that was logged.
        blocked = [record['blockedEnv'] for record in map(json.loads, routes.splitlines()) if record['from']]
        self.assertIn('OTHER_TOKEN', str(blocked))
        self.assertIn('PLATFORM_KEY', str(blocked))
        self.assertIn('serving', log)
        for text in (routes, log, inspected):
            self.assertNotIn(CANARY, text)

    def test_values_are_not_in_the_route_log_file(self):
        log = self.work + '/log'
        self.routed('bash', '-c', f'A_TOKEN={CANARY}x sh -c "true {CANARY}"; exit 0', options=['--route-log', log])
        with open(log) as file:
            text = file.read()
        self.assertIn('A_TOKEN', text)
        self.assertNotIn(CANARY, text)

    def test_platform_environment_is_out_of_reach(self):
        """The user context looks for the canary wherever a process might leave it."""
        pattern = self.write('pattern', CANARY)
        # The pattern is in a file: on a command line it would be found itself.
        search = self.write('search.sh', f'''
            for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/task/*/environ; do
              cat $file 2>/dev/null | tr '\\0' '\\n'
            done | grep -c -f {pattern}; env | grep -c -f {pattern}; ls /proc | grep -c '^[0-9]' ''')
        # Control: the agent itself, by its builtins, finds it in its own environ.
        agent = (f'while IFS= read -rd "" entry; do [[ $entry == *{CANARY}* ]] && echo found; done </proc/$$/environ;'
                 f'sh {search}; exit 0')
        ended = self.routed('bash', '-c', agent)
        found, in_proc, in_env, visible = ended.out.split()
        self.assertEqual((found, in_proc, in_env), ('found', '0', '0'))
        self.assertGreater(int(visible), 1, 'control: it sees processes')
        bare = self.run_program(['sh', search])
        self.assertNotEqual(bare.out.split()[0], '0', 'control: the same search finds it without airlock')


class Descriptors(Case):
    AGENT = '''
import json, os, subprocess, sys, socket, select
def child(code, fds=(), **options):
    return subprocess.run([sys.executable, '-c', code], pass_fds=fds, stdout=subprocess.PIPE, **options).stdout.decode()
LIST = 'import os; fd = os.open("/proc/self/fd", os.O_RDONLY); names = sorted(int(n) for n in os.listdir(fd)); print([n for n in names if n != fd and os.path.exists(f"/proc/self/fd/{n}")])'
'''

    def both(self, script, **options):
        """Output of a Python agent, bare and routed, and the descriptors refused on the way."""
        agent = ['/usr/bin/python3', '-c', self.AGENT + script]
        log = self.work + '/log'
        bare = self.run_program(agent, **options)
        routed = self.routed(*agent, options=['--route-log', log], **options)
        self.assertEqual((bare.status, bare.err, routed.status, routed.err), (0, '', 0, ''))
        with open(log) as file:
            records = [json.loads(line) for line in file]
        return bare.out, routed.out, [fd for record in records for fd in record['refusedFds']]

    def test_numbers_are_kept(self):
        bare, routed, refused = self.both('''
readable, writable = os.pipe()
os.dup2(writable, 9)
os.dup2(os.open(__import__('tempfile').mkstemp()[1], os.O_RDWR), 77)
a, b = socket.socketpair()
os.dup2(b.fileno(), 200)
print(child('import os; os.write(9, b"by pipe"); os.write(77, b"by file"); os.write(200, b"by socket")', (9, 77, 200)))
print(os.read(readable, 100), os.pread(77, 100, 0), a.recv(100))
print(child(LIST, (9, 77, 200)))
''')
        self.assertIn("b'by pipe' b'by file' b'by socket'", bare)
        self.assertIn('[0, 1, 2, 9, 77, 200]', bare)
        self.assertEqual(routed, bare)
        self.assertEqual(refused, [])

    def test_closed_standard_descriptors(self):
        bare, routed, _ = self.both('''
print(child(LIST, stderr=subprocess.DEVNULL))
pid = os.fork()
if pid == 0:
    out = os.open('closed', os.O_CREAT | os.O_WRONLY)
    os.dup2(out, 50)
    for fd in (0, 1, 2): os.close(fd)
    os.execv(sys.executable, [sys.executable, '-c', 'import os; os.write(50, str([os.path.exists(f"/proc/self/fd/{n}") for n in range(3)]).encode())'])
os.waitpid(pid, 0)
print(open('closed').read())
''')
        self.assertIn('[False, False, False]', bare)
        self.assertEqual(routed, bare)

    def test_close_on_exec_is_kept(self):
        bare, routed, _ = self.both('''
fd = os.open('/etc/passwd', os.O_RDONLY)
os.dup2(fd, 30, inheritable=False); os.dup2(fd, 31)
print(child(LIST, close_fds=False))
''')
        self.assertEqual(bare, '[0, 1, 2, 31]\n\n')
        self.assertEqual(routed, bare)

    def test_refused_ones(self):
        bare, routed, refused = self.both('''
listener = socket.socket(socket.AF_UNIX); listener.bind('\\0x' + os.urandom(8).hex()); listener.listen()
given = [os.open('/etc', os.O_RDONLY), os.open('/etc', os.O_PATH), os.open('/proc/self/ns/pid', os.O_RDONLY),
         os.open('/proc/self/status', os.O_RDONLY), listener.fileno(), select.epoll().fileno(), os.pidfd_open(os.getpid()),
         os.open('/proc', os.O_RDONLY)]
epoll = select.epoll()
given[5] = epoll.fileno()
numbers = range(40, 48)
for fd, number in zip(given, numbers): os.dup2(fd, number)
good = os.open('/etc/passwd', os.O_PATH); os.dup2(good, 60)
print(child(LIST, (*numbers, 60)))
''')
        self.assertEqual(bare, '[0, 1, 2, 40, 41, 42, 43, 44, 45, 46, 47, 60]\n\n', 'control')
        self.assertEqual(routed, '[0, 1, 2, 60]\n\n')
        self.assertEqual(sorted(int(each.split(':')[0]) for each in refused), list(range(40, 48)))
        self.assertIn('40: a folder', refused)

    def test_refused_standard_ones_become_null(self):
        bare, routed, refused = self.both('''
folder = os.open('/etc', os.O_RDONLY)
print(subprocess.run(['readlink', '/proc/self/fd/0'], stdin=folder, stdout=subprocess.PIPE).stdout.decode())
''')
        self.assertEqual((bare, routed), ('/etc\n\n', '/dev/null\n\n'))
        self.assertEqual(refused, ['0: a folder'])

    def test_more_than_one_message_holds(self):
        # SCM_RIGHTS takes 253 at once.
        for count in (252, 253, 254, 300, 700):
            with self.subTest(count=count):
                bare, routed, refused = self.both(f'''
numbers = list(range(100, 100 + {count}))
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
for number in numbers:
    fd = os.open(f'file', os.O_CREAT | os.O_RDWR | os.O_TRUNC); os.dup2(fd, number); os.close(fd)
    os.unlink('file'); os.write(number, str(number).encode())
print(child('import os; print(sum(int(os.pread(n, 20, 0)) == n for n in range(100, {100 + count})))', numbers))
''')
                self.assertEqual(bare, f'{count}\n\n')
                self.assertEqual(routed, bare)
                self.assertEqual(refused, [])

    def test_pipe_ends_when_its_writers_do(self):
        # Nobody between agent and child may keep a copy: the reader would wait for ever.
        bare, routed, _ = self.both('''
readable, writable = os.pipe()
process = subprocess.Popen(['sh', '-c', 'echo in; exec >&- 9>&-; exec sleep 1000'], stdout=writable)
os.close(writable)
print(open(readable).read())
process.kill(); print(process.wait())
''')
        self.assertEqual((bare, routed), ('in\n\n-9\n',) * 2)


class Separation(Case):
    """Two contexts side by side."""

    def setUp(self):
        super().setUp()
        self.up()
        for name in ('a', 'b'):
            self.assertEqual(self.airlock('ctx', 'create', name, '-w', '/').status, 0)
        self.job = self.start([AIRLOCK, 'exec', 'a', '--', 'sh', '-c', 'echo $$; exec sleep 987654'])
        self.inner = int(self.line_of(self.job))
        self.victim = pid_of(self.inner, self.namespace_of('a'))

    def test_processes_are_not_seen(self):
        ps = ('ps', '-e', '-o', 'args')
        self.assertIn('sleep 987654', self.exec_in('a', *ps).out, 'control: a sees its own')
        for other in ('b', 'platform', 'user'):
            seen = self.exec_in(other, *ps).out
            self.assertNotIn('sleep 987654', seen)
            self.assertNotIn('airlock-routerd', seen)
            self.assertIn('ps -e', seen, 'control: ps works')
        outside = subprocess.run(ps, capture_output=True, text=True).stdout
        self.assertIn('sleep 987654', outside, 'control: outside it is seen')

    def test_processes_cannot_be_killed(self):
        # Every number there may be; the agent's, the daemon's and other contexts' among them.
        everything = 'trap "" TERM; for p in $(seq 2 32768); do kill -TERM $p; done 2>/dev/null; kill -9 -1 2>/dev/null; true'
        others = [self.ask('info')['pid'], *(c['initPid'] for c in self.ask('ctx', 'ls'))]
        self.exec_in('b', 'sh', '-c', everything)
        self.assertTrue(is_running(self.victim))
        self.assertTrue(all(is_running(pid) for pid in others))
        self.assertIsNone(self.job.poll())
        self.assertEqual(self.exec_in('b', 'echo', 'usable').out, 'usable\n', 'b can be used again')
        control = self.exec_in('a', 'sh', '-c', f'kill -KILL {self.inner}')
        self.assertEqual(control.status, 0)
        self.assertEqual(self.finish(self.job).status, -signal.SIGKILL, 'control: a can kill its own')

    def test_namespaces_differ(self):
        def inodes(context):
            out = self.exec_in(context, 'sh', '-c', 'for n in pid mnt ipc net; do readlink /proc/self/ns/$n; done').out
            return dict(zip(('pid', 'mnt', 'ipc', 'net'), out.split()))
        a, b, platform = inodes('a'), inodes('b'), inodes('platform')
        self.assertEqual(inodes('a'), a, 'control: the same context, the same namespaces')
        for kind in ('pid', 'mnt', 'ipc'):
            outside = os.readlink('/proc/self/ns/' + kind)
            self.assertEqual(len({a[kind], b[kind], platform[kind], outside}), 4, kind)
        self.assertEqual(a['net'], os.readlink('/proc/self/ns/net'), 'the network is shared')

    def test_init_is_out_of_reach(self):
        ended = self.exec_in('a', 'sh', '-c', 'kill -KILL 1; kill -STOP 1; kill -SEGV 1; cat /proc/1/environ /proc/1/maps; ls -l /proc/1/fd /proc/1/root; echo; echo still here')
        self.assertEqual(ended.out.strip().splitlines()[-1], 'still here')
        self.assertNotIn('socket', ended.out + ended.err)
        self.assertIn('Permission denied', ended.err)
        self.assertEqual(self.exec_in('a', 'true').status, 0)
        own = self.exec_in('a', 'sh', '-c', 'cat /proc/self/maps | head -n 1').out
        self.assertIn('cat', own, 'control: its own can be read')

    def test_old_root_and_daemon_paths_are_gone(self):
        listing = subprocess.run(['ls', '-R', self.runtime], capture_output=True, text=True).stdout
        self.assertIn('control.sock', listing, 'control: outside they are there')
        self.assertEqual(self.exec_in('a', 'ls', '-RA', self.runtime).out, f'{self.runtime}:\n')
        umount = self.exec_in('a', 'sh', '-c', 'umount /proc; umount -l /proc; ls /proc | grep -c ^[0-9]; mount -t proc proc /mnt')
        self.assertNotEqual(umount.out.strip(), '0', umount)
        self.assertNotEqual(umount.status, 0)

    def test_isolation_none(self):
        made = self.airlock('ctx', 'create', 'open', '--isolation', 'none', '-e', 'MINE=1', '-w', '/usr')
        self.assertEqual((made.status, made.out), (0, ''))
        seen = self.exec_in('open', 'sh', '-c', 'readlink /proc/self/ns/pid; echo "$MINE|$PLATFORM_KEY|$PWD"')
        self.assertEqual(seen.out, f'pid:[{namespace()}]\n1||/usr\n')
        self.assertEqual(self.ask('ctx', 'inspect', 'open')['tier'], 'none')
        self.assertIn('none', self.airlock('ctx', 'ls').out)
        # Its processes end with it all the same.
        double_fork = self.write('double.py', DOUBLE_FORK)
        self.assertEqual(self.exec_in('open', '/usr/bin/python3', double_fork, self.work + '/pid').status, 0)
        pid = int(eventually(lambda: os.path.exists(self.work + '/pid') and open(self.work + '/pid').read(), 'pid'))
        self.assertTrue(is_running(pid), 'control: it runs')
        gone = self.ask('ctx', 'rm', 'open')
        self.assertEqual(gone['survivors'], 0)
        eventually(lambda: not is_running(pid), 'the double-forked process has ended', 10)


DOUBLE_FORK = '''
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
        for fd in range(3): os.close(fd)
        with open(sys.argv[1] + '.new', 'w') as file: file.write(str(os.getpid()))
        os.rename(sys.argv[1] + '.new', sys.argv[1])
        time.sleep(1000)
    os._exit(0)
os.wait()
'''


class Destroy(Case):
    def test_kills_everything(self):
        self.up()
        self.assertEqual(self.airlock('ctx', 'create', 'c', '-w', '/').status, 0)
        space = self.namespace_of('c')
        idle = len(members(space))
        double_fork = self.write('double.py', DOUBLE_FORK)
        for i in range(5):
            self.assertEqual(self.exec_in('c', '/usr/bin/python3', double_fork, f'{self.work}/pid{i}').status, 0)
        running = [self.start([AIRLOCK, 'exec', 'c', '--', 'sh', '-c', 'trap "" TERM HUP INT; echo; while :; do sleep 1000; done'])
                   for _ in range(3)]
        for each in running:
            self.line_of(each)
        eventually(lambda: all(os.path.exists(f'{self.work}/pid{i}') for i in range(5)), 'five double-forked processes')
        self.assertGreaterEqual(len(members(space)), idle + 8, 'control: they all run')
        gone = self.ask('ctx', 'rm', 'c')
        self.assertEqual(gone['survivors'], 0)
        self.assertEqual(members(space), [], 'at once')
        for each in running:
            ended = self.finish(each)
            self.assertEqual(ended.status, 125)
            self.assertRegex(ended.err, r'^airlock: lost .*\n$')

    def test_orphans_of_an_exec_stay_until_then(self):
        self.up()
        double_fork = self.write('double.py', DOUBLE_FORK)
        self.assertEqual(self.exec_in('user', '/usr/bin/python3', double_fork, self.work + '/pid').status, 0)
        inner = int(eventually(lambda: os.path.exists(self.work + '/pid') and open(self.work + '/pid').read(), 'pid'))
        pid = pid_of(inner, self.namespace_of('user'))
        self.assertTrue(is_running(pid))
        self.assertEqual(self.airlock('down').status, 0)
        eventually(lambda: not is_running(pid), 'it ends with the daemon')

    def test_no_zombies(self):
        self.up()
        space = self.namespace_of('user')
        self.exec_in('user', 'bash', '-c', 'for i in $(seq 50); do (setsid true & ) ; done')

        def zombies():
            found = []
            for name in os.listdir('/proc'):
                if name.isdigit():
                    try:
                        with open(f'/proc/{name}/stat') as file:
                            is_zombie = file.read().rsplit(')', 1)[1].split()[0] == 'Z'
                    except OSError:
                        continue
                    if is_zombie and namespace(name) == space:
                        found.append(name)
            return found
        eventually(lambda: not zombies(), 'init reaps the orphans', 10)


class Home(Case):
    def setUp(self):
        super().setUp()
        self.write(self.home + '/secret', CANARY)
        os.makedirs(self.home + '/.config/tool')
        self.write(self.home + '/.config/tool/token', CANARY)
        self.write(self.home + '/.gitconfig', '[user]\nname = shared\n')
        self.project = self.home + '/project'
        os.mkdir(self.project)
        self.write(self.project + '/file', 'in project\n')

    AGENT = ('cat ~/secret ~/.config/tool/token; cat file; git config user.name; echo from child > made;'
             'sh -c "echo x > ~/by-child"; exit 0')

    def test_platform_home_is_not_seen(self):
        bare = self.run_program(['bash', '-c', self.AGENT], cwd=self.project)
        self.assertEqual(bare.out, CANARY * 2 + 'in project\nshared\n', 'control')
        self.assertTrue(os.path.exists(self.home + '/by-child'), 'control')
        os.unlink(self.home + '/by-child')
        os.unlink(self.project + '/made')
        # The agent itself sees its HOME (builtins only), its children have another one there.
        agent = f'[[ $(<~/secret) == {CANARY} ]] && echo agent sees it; ' + self.AGENT
        routed = self.routed('bash', '-c', agent, cwd=self.project)
        self.assertEqual(routed.out, 'agent sees it\nin project\nshared\n')
        self.assertEqual(routed.err.count('No such file or directory'), 2, routed.err)
        self.assertEqual(open(self.project + '/made').read(), 'from child\n', 'cwd below HOME is shared')
        self.assertFalse(os.path.exists(self.home + '/by-child'), "the child's HOME is its own")

    def test_files_written_later_are_not_seen(self):
        agent = f'echo {CANARY} > ~/late; mkdir_by_agent() {{ :; }}; cat ~/late; ls -A ~; exit 0'
        routed = self.routed('bash', '-c', agent, cwd=self.project)
        self.assertEqual(open(self.home + '/late').read(), CANARY + '\n', 'control: the agent wrote it')
        self.assertNotIn(CANARY, routed.out)
        self.assertNotIn('late', routed.out)
        self.assertIn('project', routed.out, 'control: the listing works')

    def test_replacing_a_shared_file_does_not_open_home(self):
        agent = 'git config --global user.name changed; rm -rf ~/.config; mv ~/.gitconfig ~/.g2; cat ~/secret; ls -A ~; exit 0'
        routed = self.routed('bash', '-c', agent, cwd=self.project)
        self.assertNotIn(CANARY, routed.out)
        self.assertIn('.g2', routed.out, 'control')
        self.assertTrue(os.path.exists(self.home + '/.config/tool/token'), "the platform's is untouched")
        self.assertIn('shared', open(self.home + '/.gitconfig').read())

    def test_share_and_hide(self):
        os.mkdir(self.work + '/hidden')
        self.write(self.work + '/hidden/file', CANARY)
        self.write(self.home + '/secret', 'shared on purpose\n')
        agent = f'cat ~/secret; cat ~/.config/tool/token; cat {self.work}/hidden/file; exit 0'
        routed = self.routed('bash', '-c', agent, cwd=self.project,
                             options=['--share', self.home + '/secret', '--share', self.home + '/.config/tool'])
        self.assertEqual(routed.out, 'shared on purpose\n' + CANARY + CANARY, 'control: nothing is hidden')
        routed = self.routed('bash', '-c', agent, cwd=self.project, options=['--hide', self.work + '/hidden'])
        self.assertEqual(routed.out, '')
        self.assertEqual(open(self.work + '/hidden/file').read(), CANARY)

    def test_same_temporary_files(self):
        # Agents hand files to children by path.
        file = self.dir + '/handed'
        routed = self.routed('bash', '-c', f'echo handed over > {file}; cat {file}; rm {file}; exit 0')
        self.assertEqual(routed.out, 'handed over\n')
        self.assertFalse(os.path.exists(file))


if __name__ == '__main__':
    main()
