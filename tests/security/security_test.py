"""The catalogue of attacks: each row is tried from a user context with uid 0, and once more where it must reach its
aim. One daemon per level; `tests/security/run` writes the table."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'integration')]

from harness import AIRLOCK, BIN, CANARY, PATIENCE, REFUSED, Case, descendants, eventually, is_running, main, members, namespace, open_files, pid_of, runs_program

PYTHON = '/usr/bin/python3'
ATTACK = HERE + '/attack.py'
KARC = CANARY[::-1]  # so that no attack finds its own argument
IS_FULL = bool(os.environ.get('AIRLOCK_FULL'))
RESULTS = os.environ.get('AIRLOCK_SECURITY_RESULTS')
TEN = 0x800404fb  # CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE SYS_CHROOT SETFCAP

VICTIM = f'''
import ctypes, os, socket, sys
token = {KARC!r}[::-1]
libc = ctypes.CDLL(None)
libc.syscall(ctypes.c_long({248 if os.uname().machine == 'x86_64' else 217}), b"user", sys.argv[2].encode(), token.encode(), ctypes.c_long(len(token)), ctypes.c_long(-4))
servers = []
for name in sys.argv[3:]:
    server = socket.socket(socket.AF_UNIX)
    server.bind("\\0" + name[1:] if name.startswith("@") else name)
    server.listen(10)
    servers.append(server)
print("ready", flush=True)
sys.stdin.read()
'''


class NotPromised(Exception):
    """The attempt succeeded, as the documents say, and the context says so too."""


class Level(Case):
    LEVEL = None
    USER = ''
    STRICT = False

    def setUp(self):
        if self.LEVEL is None:
            self.skipTest('a level is run by its subclass')
        super().setUp()
        self.results = {}
        self.key = 'airlock-test-' + os.urandom(6).hex()
        os.mkdir(self.home + '/.secrets')
        self.sockets = [self.home + '/.secrets/agent.sock', '@' + self.key]
        self.daemon = self.up(f'contexts:\n'
                              f'  platform: {{cwd: {self.work}, child_context: user, route_child: always}}\n'
                              f'  user: {{cwd: {self.work}{self.USER}}}\n'
                              f'  other: {{cwd: {self.work}{self.USER}}}\n')
        # The marks of the victim: its argument, its environment, a file, a key, sockets.
        self.write(self.home + '/.secrets/token', CANARY, 0o600)
        self.victim = self.start([AIRLOCK, 'exec', '-i', 'platform', '--', PYTHON, '-c', VICTIM, CANARY, self.key, *self.sockets],
                                 stdin=subprocess.PIPE, env={'PLATFORM_KEY': CANARY})
        self.assertEqual(self.line_of(self.victim), b'ready\n')

    # --- attacking

    def attack(self, name, argument='', context='user', options=(), before=(), patience=PATIENCE):
        words = [*before, PYTHON, '-S', '-B', ATTACK, name, argument]
        if context == 'bare':
            # A machine without airlock, but for a mount namespace that keeps what is mounted.
            ended = self.run_program(['unshare', '-m', *words])
        else:
            ended = self.exec_in(context, *words, options=options, patience=patience)
        try:
            return json.loads(ended.out.splitlines()[-1])
        except (ValueError, IndexError):
            raise AssertionError(f'{name} broke: status {ended.status}, {ended.err[-300:]}')

    def refused(self, name, argument='', control='bare', **options):
        """In the user context it fails, elsewhere it does not."""
        got = self.attack(name, argument, **options)
        self.assertFalse(got['reached'], f'{name} {argument}: {got["how"]}')
        if control:
            there = self.attack(name, argument, control)
            self.assertTrue(there['reached'], f'control of {name} {argument}: {there["how"]}')
        return got['how']

    def user(self, script):
        return self.exec_in('user', 'sh', '-c', script)

    def alive(self):
        self.assertTrue(is_running(self.daemon))
        self.assertIsNone(self.victim.poll())
        self.assertEqual(self.exec_in('user', 'echo', 'alive').out, 'alive\n')
        self.assertEqual(self.exec_in('platform', 'sh', '-c', 'echo alive').out, 'alive\n')

    # --- rows

    def row_V01(self):
        """sees no process, command line or environment of the platform"""
        return self.refused('see', KARC)

    def row_V02(self):
        """none of all pids that answers a signal is foreign"""
        script = ('import os\n'
                  'for pid in range(2, int(open("/proc/sys/kernel/pid_max").read())):\n'
                  '    try: os.kill(pid, 0)\n'
                  '    except OSError: continue\n'
                  '    print(pid)\n')
        answering = {int(line) for line in self.exec_in('user', PYTHON, '-S', '-c', script).out.split()}
        space = self.namespace_of('user')
        everybody = len(members(space)) + 2
        self.assertGreater(len(answering), 0, 'control')
        self.assertLessEqual(len(answering), everybody)
        return f'{len(answering)} answer, all its own'

    def row_V03(self):
        """pkill -9 and kill -9 -1 end only its own processes"""
        before = self.ask('ctx', 'inspect', 'user')['initPid']
        for script in ('pkill -9 -f .', 'kill -9 -1'):
            self.user(script)
            self.alive()
        self.assertEqual(self.ask('ctx', 'inspect', 'user')['initPid'], before)
        return 'platform, daemon and init live'

    def row_V06(self):
        """NS_GET_PARENT leads to no other PID namespace"""
        return self.refused('parent_namespace')

    def row_V07(self):
        """has PID, mount, IPC and cgroup namespaces of its own"""
        pid = self.ask('ctx', 'inspect', 'user')['initPid']
        for kind in ('pid', 'mnt', 'ipc', 'cgroup'):
            self.assertNotIn(namespace(pid, kind), (0, namespace('self', kind), namespace(self.daemon, kind)), kind)
        self.assertEqual(namespace(pid, 'net'), namespace(self.daemon, 'net'), 'documented: networks are shared')
        return 'network is shared'

    def row_V10(self):
        """init: not traced, not read, no descriptor taken"""
        hows = [self.refused(name, control=None) for name in ('trace_init', 'read_init', 'open_init', 'steal_fd', 'compare_init')]
        # The same on an init that is no better than its programs, as unshare(1) makes it.
        for name in ('trace_init', 'open_init', 'steal_fd', 'compare_init'):
            ended = self.run_program(['unshare', '-pf', '--mount-proc', 'sh', '-c', f'{PYTHON} -S -B {ATTACK} {name}; true'])
            self.assertTrue(json.loads(ended.out)['reached'], f'control of {name}: {ended.out}')
        return hows[0]

    def row_V11(self):
        """signals to its init have no effect"""
        for name in ('STOP', 'KILL', 'SEGV', 'TERM'):
            self.user(f'kill -{name} 1')
            self.assertEqual(self.user('echo on').out, 'on\n', name)
        self.assertEqual(self.user('sleep 1000 & kill -KILL $!; wait $!').status, 137, 'control')
        return 'the context goes on'

    def row_V12(self):
        """a fresh /proc in a nested user namespace shows nobody and turns no knob"""
        return self.refused('nested_proc')

    def row_V12u(self):
        """umount /proc uncovers nothing"""
        how = self.refused('unmount_proc', KARC, control=None)
        # As `unshare --mount-proc` covers it.
        ended = self.run_program(['unshare', '-pf', '--mount-proc', PYTHON, '-S', '-B', ATTACK, 'unmount_proc', KARC])
        self.assertTrue(json.loads(ended.out)['reached'], 'control')
        return how

    def row_V13(self):
        """has the documented capabilities on every way to start a program"""
        def masks(text):
            return {name: int(value, 16) for name, value in re.findall(r'(Cap(?:Bnd|Eff|Prm|Inh|Amb)|NoNewPrivs|Seccomp):\s*(\w+)', text)}

        show = ['cat', '/proc/self/status']
        ways = {'exec': self.exec_in('user', *show).out,
                'routed': self.exec_in('platform', PYTHON, '-S', '-c', f'import subprocess; subprocess.run({show})').out,
                'shell': self.airlock('exec', 'user', '-c', ' '.join(show)).out,
                'terminal': self.run_program(['script', '-qec', f'{AIRLOCK} exec -t user -- {" ".join(show)}', '/dev/null']).out,
                'su': self.exec_in('user', 'su', '-s', '/bin/sh', 'nobody', '-c', ' '.join(show)).out}
        for way, text in ways.items():
            found = masks(text)
            self.assertEqual(found['CapBnd'], TEN, way)
            self.assertEqual((found['CapAmb'], found['CapInh']), (0, 0), way)
            self.assertEqual(found['CapEff'], 0 if way == 'su' else TEN, way)
            self.assertEqual(found['Seccomp'], 2, way)
            self.assertEqual(found['NoNewPrivs'], int(self.STRICT), way)
        self.assertNotEqual(masks(self.run_program(show).out)['CapBnd'], TEN, 'control')
        return 'ten capabilities, seccomp'

    def row_V14(self):
        """kernel objects: bpf, perf, dmesg, file handles, devices, mounts, raw sockets, modules"""
        kinds = ['bpf', 'perf', 'syslog', 'handle', 'mknod', 'mount', 'userfaultfd', 'packets', 'raw']
        kinds += ['module'] if os.path.exists('/proc/modules') else []
        kinds += ['io_uring'] if self.STRICT else []
        for kind in kinds:
            how = self.refused('kernel_objects', kind)
        return f'{len(kinds)} kinds: {how}'

    def row_V14i(self):
        """the same by the i386 entry and x32"""
        if os.uname().machine != 'x86_64':
            return 'no such entry here'
        for kind in ('keyctl', 'bpf', 'perf_event_open'):
            how = self.refused('i386', kind)
        getpid = self.attack('i386', 'getpid')
        self.assertEqual(getpid['reached'], not self.STRICT, 'the entry itself')
        self.refused('x32', control=None)
        return how

    def row_V15(self):
        """another context's processes are invisible"""
        sleeper = self.start([AIRLOCK, 'exec', 'other', '--', 'sleep', '987654'])
        eventually(lambda: 'sleep 987654' in self.exec_in('other', 'ps', '-e', '-o', 'args').out, 'control: it sees its own')
        self.assertNotIn('987654', self.user('ps -e -o args; cat /proc/[0-9]*/cmdline | tr "\\0" " "').out.replace('/proc/[0-9]*', ''))
        self.user('pkill -9 sleep')
        self.assertIsNone(sleeper.poll())
        self.end(sleeper)
        return 'neither seen nor killed'

    def row_V17(self):
        """mountinfo and cgroup tell nothing of the platform"""
        text = self.user('cat /proc/self/mountinfo /proc/self/cgroup /proc/self/mounts').out
        self.assertIn(' / ', text, 'control')
        for fragment in (CANARY, 'control.sock', self.runtime + '/view/platform', self.runtime + '/home/other'):
            self.assertNotIn(fragment, text)
        # One more procfs, however well covered, and a user namespace may mount a fresh one: with the machine's knobs.
        mounted = {line.split()[2] for line in self.user('cat /proc/self/mountinfo').out.splitlines() if ' - proc ' in line}
        self.assertEqual(len(mounted), 1, 'its own procfs and no other')
        return 'no path of another context'

    def row_V18(self):
        """kernel knobs cannot be turned: core_pattern, sysrq, cgroups"""
        return self.refused('knobs')

    def row_V18k(self):
        """kernel memory and keys cannot be read"""
        return self.refused('kernel_secrets', control=None)

    def row_T15(self):
        """types nothing into a terminal (TIOCSTI)"""
        inside = self.run_program(['script', '-qec', f'{AIRLOCK} exec -t user -- {PYTHON} -S -B {ATTACK} type_into_terminal', '/dev/null'])
        self.assertFalse(json.loads(inside.out[inside.out.index('{'):])['reached'], inside.out)
        with open('/proc/sys/dev/tty/legacy_tiocsti') as file:
            is_allowed = file.read().strip() == '1'
        bare = self.run_program(['script', '-qec', f'{PYTHON} -S -B {ATTACK} type_into_terminal', '/dev/null'])
        self.assertEqual(json.loads(bare.out[bare.out.index('{'):bare.out.rindex('}') + 1])['reached'], is_allowed or os.geteuid() == 0, 'control')
        return 'EPERM'

    def row_C01(self):
        """no secret of the platform in its environment, nor in a routed child's"""
        how = self.refused('environment', KARC, control=None)
        script = f'import subprocess; subprocess.run([{PYTHON!r}, "-S", "-B", {ATTACK!r}, "environment", {KARC!r}])'
        routed = self.exec_in('platform', PYTHON, '-S', '-c', script, options=('-e', 'PLATFORM_KEY=' + CANARY))
        self.assertFalse(json.loads(routed.out)['reached'], routed.out)
        self.assertTrue(self.attack('environment', KARC, 'platform', options=('-e', 'PLATFORM_KEY=' + CANARY))['reached'], 'control')
        return how

    def row_C02(self):
        """finds no secret in files it can reach"""
        return self.refused('find_text', KARC, control='platform')

    def row_C03(self):
        """a credential file refreshed by rename, made anew, or made late is not seen"""
        path = self.home + '/.secrets/token'
        for how in ('rename', 'unlink', 'new'):
            if how == 'rename':
                self.write(path + '.new', CANARY, 0o600)
                os.rename(path + '.new', path)
            elif how == 'unlink':
                os.unlink(path)
                self.write(path, CANARY, 0o600)
            else:
                path = self.home + '/.late-token'
                self.write(path, CANARY, 0o600)
            self.refused('read_file', path, control='platform')
        return 'absent'

    def row_C04(self):
        """a crashing agent leaves no core file in the shared folder"""
        crash = 'import os; os.abort()'
        folder = self.work + '/crash'
        os.mkdir(folder)
        self.exec_in('platform', PYTHON, '-S', '-c', crash, options=('-w', folder), env={'PLATFORM_KEY': CANARY})
        self.assertEqual(os.listdir(folder), [])
        with open('/proc/sys/kernel/core_pattern') as file:
            pattern = file.read().strip()
        if '|' not in pattern and '/' not in pattern:
            self.user(f'cd {folder} && ulimit -c unlimited && {PYTHON} -S -c "{crash}"')
            self.assertNotEqual(os.listdir(folder), [], 'control: cores are written here')
            for name in os.listdir(folder):
                os.unlink(f'{folder}/{name}')
        return 'no core'

    def row_C10(self):
        """keyrings of the platform cannot be searched"""
        return self.refused('key', self.key, control='platform')

    def row_C11(self):
        """sockets of the platform: in its HOME, abstract, the daemon's"""
        for path in self.sockets:
            how = self.refused('connect', path, control='platform')
        self.refused('connect', self.runtime + '/control.sock')
        self.refused('connect', self.runtime + '/view/platform/router.sock')
        return how

    def row_C13(self):
        """a working folder cannot lead out"""
        # What "in" a path like this is belongs to the requester's own side; the target context enters by path.
        os.symlink(self.home + '/.secrets', self.work + '/link')
        for folder in ('/proc/1/cwd', '/proc/1/root'):
            out = self.exec_in('user', 'pwd', '-P', options=('-w', folder)).out
            self.assertEqual(out, '' if self.has_own_ids() else '/\n', 'its own root at most')
        for folder in ('/proc/self/fd/7', self.home + '/.secrets', self.work + '/link', '/' + 'x' * 4096,
                       self.runtime + '/view'):
            ended = self.exec_in('user', 'pwd', '-P', options=('-w', folder))
            self.assertNotEqual(ended.status, 0, f'{folder[:40]}: {ended.out}')
        self.assertEqual(self.exec_in('user', 'pwd', '-P', options=('-w', self.work)).out, self.work + '\n', 'control')
        return 'refused'

    def row_C15(self):
        """errors tell nothing of environment, arguments or state"""
        asked = {'unknown': self.airlock('exec', 'nowhere', '--', 'true', CANARY),
                 'not found': self.exec_in('user', '/nothing/here', CANARY, env={'X': CANARY}),
                 'not executable': self.exec_in('user', '/etc/passwd', CANARY)}
        for what, ended in asked.items():
            self.assertNotEqual(ended.status, 0, what)
            self.assertNotIn(CANARY, ended.out + ended.err, what)
        with open(self.runtime + '/airlock.log') as file:
            self.assertNotIn(CANARY, file.read())
        return 'no canary'

    def row_M01(self):
        """unlinks or replaces nothing of airlock; the platform's next exec is routed"""
        paths = ['/etc/ld.so.preload', self.runtime, self.runtime + '/airlock-stub']
        how = self.refused('replace_mounts', ':'.join(path for path in paths if os.path.exists(path)), control=None)
        script = 'import subprocess; subprocess.run(["readlink", "/proc/self/ns/pid"])'
        routed = self.exec_in('platform', PYTHON, '-S', '-c', script).out
        self.assertIn(str(self.namespace_of('user')), routed)
        return how

    def row_D06(self):
        """preloading airlock's library itself leads nowhere else"""
        library = BIN + '/libairlock-preload.so'
        ended = self.exec_in('user', 'sh', '-c', 'readlink /proc/self/ns/pid', options=('-e', 'LD_PRELOAD=' + library))
        self.assertTrue(ended.status == REFUSED or str(self.namespace_of('user')) in ended.out, ended)
        return f'status {ended.status}'

    def row_D07(self):
        """cannot send another process's credentials"""
        return self.refused('spoof', '1')

    def row_D09(self):
        """the stub by hand, and as a target of itself, is refused"""
        stub = BIN + '/airlock-stub'
        for words in ([stub], [stub, 'exec1', '/bin/true', 'true'], [stub, 'exec1', stub, 'exec1', '/bin/true', 'true']):
            ended = self.exec_in('user', *words)
            self.assertIn(ended.status, (REFUSED, 127), words)
        own = self.runtime + '/airlock-stub'
        script = f'import subprocess; print(subprocess.run([{own!r}, "exec1", {own!r}, "true"]).returncode)'
        self.assertEqual(self.exec_in('platform', PYTHON, '-S', '-c', script).out, f'{REFUSED}\n')
        return 'refused'

    def row_D10(self):
        """a daemon of somebody else at the socket's place gets nothing"""
        folder = self.dir + '/fake'
        os.mkdir(folder)
        stub = folder + '/airlock-stub'
        subprocess.run(['cp', BIN + '/airlock-stub', stub], check=True)
        for path in (self.dir, folder):
            os.chmod(path, 0o777)
        serve = ('import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\nprint("up", flush=True)\n'
                 'c = s.accept()[0]\nprint(len(c.recv(1 << 20)), flush=True)')
        for uid, expected in ((65533, False), (0, True)):
            path = folder + '/router.sock'
            if os.path.exists(path):
                os.unlink(path)
            fake = self.start(['setpriv', '--reuid', str(uid), '--clear-groups', PYTHON, '-S', '-c', serve, path])
            self.assertEqual(self.line_of(fake), b'up\n')
            os.chmod(path, 0o777)
            stub_process = self.start([stub, 'exec1', '/bin/true', 'true'])
            got = int(self.line_of(fake))
            self.assertEqual(got > 0, expected, f'uid {uid} got {got} bytes')
            self.end(fake)
            self.end(stub_process)
        return 'nothing is sent'

    def row_D12(self):
        """writing into every descriptor forges no status"""
        script = f'{PYTHON} -S -B {ATTACK} write_everywhere; exit 42'
        self.assertEqual(self.user(script).status, 42)
        routed = f'import subprocess; print(subprocess.run(["sh", "-c", {script!r}], stdout=subprocess.DEVNULL).returncode)'
        self.assertEqual(self.exec_in('platform', PYTHON, '-S', '-c', routed).out, '42\n')
        return 'status 42'

    def row_R07(self):
        """zombies are reaped"""
        count = 50_000 if IS_FULL else 2_000
        space = self.namespace_of('user')
        base = len(members(space))
        # 100,000 forks of an interpreter are minutes on a busy machine.
        self.assertTrue(self.attack('zombies', str(count), patience=10 * PATIENCE)['reached'])
        eventually(lambda: len(members(space)) <= base and 'Z' not in self.user('ps -e -o stat=').out, 'all are reaped')
        return f'{count} reaped'

    def row_R08(self):
        """arguments at the kernel's limits end as they would bare"""
        script = ('import os, subprocess, sys\n'
                  'def end(argv):\n'
                  '    try: return subprocess.run(argv, stdout=subprocess.DEVNULL).returncode\n'
                  '    except OSError as error: return error.strerror\n'
                  'print([end(["true", "x" * size]) for size in (131071, 131072)], end(["true"] + ["y"] * 100000), end(["true"] + ["z" * 100000] * 30))\n')
        inside, bare = self.exec_in('platform', PYTHON, '-S', '-c', script).out, self.run_program([PYTHON, '-S', '-c', script]).out
        self.assertEqual(inside, bare)
        return bare.strip()

    def row_R09(self):
        """output that nobody reads does not grow the daemon"""
        process = self.start([AIRLOCK, 'exec', 'user', '--', 'sh', '-c', 'yes'])
        before = self.memory()
        for _ in range(20):
            self.alive()
        self.assertLess(self.memory() - before, 8 << 10)
        self.end(process)
        return 'the program waits'

    def memory(self):
        with open(f'/proc/{self.daemon}/status') as file:
            return int(re.search(r'VmRSS:\s*(\d+)', file.read()).group(1))

    def row_R13(self):
        """a full /dev/shm of its own stops nobody"""
        self.ask('ctx', 'create', 'small', '--limit', 'tmpfs=1M', '--cwd', self.work)
        ended = self.exec_in('small', 'sh', '-c', 'head -c 2M /dev/zero >/dev/shm/x; ls -s /dev/shm/x')
        self.assertIn('No space left', ended.err)
        self.assertEqual(self.exec_in('small', 'echo', 'on').out, 'on\n')
        self.alive()
        self.ask('ctx', 'rm', 'small')
        return 'ENOSPC'

    def row_R16(self):
        """creating and removing contexts leaves nothing"""
        count = 1_000 if IS_FULL else 30
        def state():
            with open(f'/proc/{self.daemon}/mountinfo') as file:
                mounts = len(file.readlines())
            return open_files(self.daemon), mounts, len(descendants(self.daemon)), len(os.listdir(f'/proc/{self.daemon}/task'))
        extra = ['--rootfs', 'shared'] if self.LEVEL == 'shared' else ['--isolation', 'strict'] if self.STRICT else []
        for number in range(count + 1):
            if number == 1:
                before = state()  # not before the first: some things are made once
            self.ask('ctx', 'create', 'brief', '--cwd', self.work, *extra)
            self.assertEqual(self.ask('ctx', 'rm', 'brief')['survivors'], 0)
        eventually(lambda: all(now <= was for now, was in zip(state(), before)), 'everything is as it was')
        return f'{count} contexts'

    def row_I01(self):
        """what it removes in the system's folders is removed for it alone"""
        # Nothing of this machine's own: a folder that only this test knows.
        folder = '/usr/local/airlock-test-' + os.path.basename(self.dir)
        os.mkdir(folder)
        try:
            self.write(folder + '/program', '#!/bin/sh\necho intact\n', 0o755)
            self.assertEqual(self.exec_in('user', folder + '/program').out, 'intact\n', 'control: it is seen')
            self.user(f'rm -rf {folder}/*; echo changed >{folder}/new')
            self.assertIn('changed', self.user(f'cat {folder}/new').out, 'control: its own change is there')
            is_intact = os.listdir(folder) == ['program'] and self.exec_in('platform', folder + '/program').out == 'intact\n'
            self.assertEqual(is_intact, self.LEVEL != 'shared')
            integrity = self.ask('ctx', 'inspect', 'user')['integrity']
            self.assertTrue(integrity.startswith('yes' if is_intact else 'no'), integrity)
            if not is_intact:
                raise NotPromised(integrity)
            return 'kept'
        finally:
            subprocess.run(['rm', '-rf', folder], check=True)

    def row_I02(self):
        """working folder and shares are the same in both"""
        self.user(f'echo from-user >{self.work}/both')
        self.assertEqual(self.exec_in('platform', 'cat', self.work + '/both').out, 'from-user\n')
        temporary = f'/tmp/{self.key}'
        self.user(f'echo shared >{temporary}')
        self.assertEqual(os.path.exists(temporary), not self.STRICT, '/tmp is shared, but for strict')
        if not self.STRICT:
            os.unlink(temporary)
        return 'private /tmp' if self.STRICT else 'with /tmp'

    def has_own_ids(self):
        return self.STRICT and not any('user ids' in lack for lack in self.ask('ctx', 'inspect', 'user')['lacks'])

    def row_I03(self):
        """uid 0 in it is nobody outside, and files keep their owners"""
        made = self.work + '/owned'
        ended = self.user(f'touch {made}.root; install -m 600 -o 1234 /dev/null {made}.user; '
                          f'stat -c %u {made}.root {made}.user; sleep 1000 >/dev/null 2>&1 & echo $!')
        root, user, inner = ended.out.split()
        self.assertEqual((root, user), ('0', '1234'), ended.err)
        self.assertEqual([os.stat(made + end).st_uid for end in ('.root', '.user')], [0, 1234], 'control: what the platform sees')
        with open(f'/proc/{pid_of(int(inner), self.namespace_of("user"))}/status') as file:
            uid = int(re.search(r'Uid:\s*(\d+)', file.read()).group(1))
        self.user(f'kill {inner}')
        if not self.has_own_ids():
            self.assertEqual(uid, 0, 'control')
            raise NotPromised('ids are the machine\'s')
        self.assertGreaterEqual(uid, 0x70000000)
        return f'uid {uid}'

    # --- running them

    def test_rows(self):
        for name in sorted(name for name in dir(self) if name.startswith('row_')):
            row = getattr(self, name)
            with self.subTest(name[4:]):
                try:
                    self.results[name[4:]] = ('held', row())
                except NotPromised as why:
                    self.results[name[4:]] = ('not promised', str(why))
                except AssertionError as error:
                    self.results[name[4:]] = ('FAILED', str(error).splitlines()[0])
                    raise
                except Exception as error:
                    self.results[name[4:]] = ('FAILED', repr(error))
                    raise
        self.victim.stdin.close()
        self.victim.wait(PATIENCE)
        self.write_results()

    def write_results(self):
        if not RESULTS:
            return
        rows = {name[4:]: getattr(self, name).__doc__ for name in dir(self) if name.startswith('row_')}
        with open(f'{RESULTS}/security-{self.LEVEL}.json', 'w') as file:
            json.dump({'level': self.LEVEL, 'texts': rows, 'results': self.results}, file)


class Secure(Level):
    LEVEL = 'secure'


class Shared(Level):
    LEVEL, USER = 'shared', ', rootfs: shared'


class Strict(Level):
    LEVEL, USER, STRICT = 'strict', f', isolation: strict, share: [{HERE}, {BIN}]', True


if __name__ == '__main__':
    del Level  # it has no rows of its own to be run
    main()
