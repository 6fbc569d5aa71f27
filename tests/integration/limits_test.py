"""`limits:` of a context: what one takes beyond them is refused, and the others go on. Each probe goes beyond
the same numbers in a context without limits."""

import glob
import json
import os
import signal
import subprocess
import unittest

from harness import AIRLOCK, BIN, PATIENCE, TIMED_OUT, USAGE, Case, descendants, eventually, main, runs_program

PYTHON = '/usr/bin/python3'
PIDS, MEMORY, FILES, TMPFS = 60, 64 << 20, 64, 1 << 20

# Bounded: each stops where an unlimited context would go on.
FORKS = '''
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
children = []
try:
    while len(children) < 200:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except BlockingIOError:
    pass
for pid in children:
    os.kill(pid, signal.SIGKILL)
print(len(children))
'''
ALLOCATE = f'print(len(bytearray({MEMORY * 3})))'
OPEN_FILES = '''
import os
count = 0
try:
    while count < 300:
        os.open("/dev/null", os.O_RDONLY)
        count += 1
except OSError:
    pass
print(count)
'''
FILL = f'''
import os
file, count = open("/dev/shm/flood", "wb", buffering=0), 0
try:
    while count < {TMPFS * 4}:
        count += file.write(bytes(65536))
except OSError:
    pass
os.unlink("/dev/shm/flood")
print(count)
'''


def cgroups(name):
    """Folders of the cgroups of contexts with this name."""
    return glob.glob(f'/sys/fs/cgroup/**/airlock-*-{name}', recursive=True)


def has_cgroups():
    """Whether this machine lets us make cgroups for pids: by trying."""
    for folder in glob.glob('/sys/fs/cgroup/pids'):
        probe = f'{folder}/airlock-test-{os.getpid()}'
        try:
            os.mkdir(probe)
            os.rmdir(probe)
            return True
        except OSError:
            pass
    return False


class LimitsCase(Case):
    NAME = f'limited-{os.getpid() % 100000}'

    def serve(self, limits, before=()):
        config = (f'contexts:\n  user: {{cwd: {self.work}}}\n'
                  f'  {self.NAME}: {{cwd: {self.work}, limits: {{{limits}}}}}\n')
        file = self.write(self.dir + '/airlock.yaml', config)
        started = self.run_program([*before, AIRLOCK, 'up', '--config', file])
        self.addCleanup(self.airlock, 'down')
        return started

    def number(self, context, script):
        ended = self.exec_in(context, PYTHON, '-S', '-c', script)
        self.assertEqual(ended.status, 0, ended.err)
        return int(ended.out)

    def kept_by(self):
        return {limit['name']: limit['by'] for limit in self.ask('ctx', 'inspect', self.NAME)['limits']}

    def hits(self, name):
        return next(limit['hits'] for limit in self.ask('ctx', 'inspect', self.NAME)['limits'] if limit['name'] == name)

    def expect_pids_kept(self, slack):
        self.assertLessEqual(self.number(self.NAME, FORKS), PIDS + slack)
        self.assertEqual(self.number('user', FORKS), 200, 'control: without a limit')
        # Not used up for ever: numbers come back.
        for _ in range(4):
            self.assertGreater(self.number(self.NAME, FORKS), PIDS // 2)

    def expect_per_process_limits(self):
        self.assertLess(self.number(self.NAME, OPEN_FILES), FILES)
        self.assertEqual(self.number('user', OPEN_FILES), 300, 'control')
        raised = self.exec_in(self.NAME, 'sh', '-c', f'ulimit -n {FILES * 2}')
        self.assertNotEqual(raised.status, 0, 'root of the context cannot raise it')
        self.assertEqual(self.exec_in('user', 'sh', '-c', f'ulimit -n {FILES * 2}').status, 0, 'control')
        self.assertLessEqual(self.number(self.NAME, FILL), TMPFS)
        self.assertGreater(self.number('user', FILL), TMPFS, 'control')


@unittest.skipUnless(has_cgroups(), 'no writable cgroups here')
class ByCgroup(LimitsCase):

    def setUp(self):
        super().setUp()
        started = self.serve(f'pids: {PIDS}, memory: {MEMORY >> 20}M, cpu: 1, open_files: {FILES}, tmpfs: {TMPFS >> 10}K')
        self.assertEqual(started.status, 0, started.err)

    def test_they_hold(self):
        by = self.kept_by()
        for name in ('pids', 'memory', 'cpu'):
            self.assertTrue(by[name].startswith('cgroup v'), by)
        self.expect_pids_kept(0)
        self.assertGreater(self.hits('pids'), 0)
        self.expect_per_process_limits()

    def test_memory(self):
        ended = self.exec_in(self.NAME, PYTHON, '-S', '-c', ALLOCATE)
        self.assertEqual(ended.status, -signal.SIGKILL)
        self.assertEqual(self.hits('memory'), 1)
        self.assertEqual(self.number('user', ALLOCATE), MEMORY * 3, 'control')
        self.assertEqual(self.exec_in(self.NAME, 'echo', 'usable').out, 'usable\n')

    def test_cpu(self):
        self.ask('ctx', 'rm', self.NAME)
        self.ask('ctx', 'create', self.NAME, '--limit', 'cpu=0.02', '--cwd', self.work)
        self.exec_in(self.NAME, 'sh', '-c', 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done')
        self.assertGreater(self.hits('cpu'), 0, 'it was made to wait')

    def test_fork_bomb(self):
        bomb = self.start([AIRLOCK, 'exec', self.NAME, '--', 'bash', '-c', 'bomb() { bomb | bomb & }; bomb; wait'])
        eventually(lambda: self.hits('pids') > 0, 'the bomb has reached its limit')
        for _ in range(20):
            self.assertEqual(self.exec_in('user', 'true').status, 0)
        self.assertEqual(self.ask('ctx', 'inspect', self.NAME)['name'], self.NAME)
        self.assertEqual(self.ask('ctx', 'rm', self.NAME), {'survivors': 0, 'ok': True})
        self.finish(bomb)
        self.assertEqual(cgroups(self.NAME), [])

    def test_removed_with_the_context(self):
        self.assertEqual(len(cgroups(self.NAME)), len({os.path.dirname(path) for path in cgroups(self.NAME)}))
        self.assertGreater(len(cgroups(self.NAME)), 0, 'control')
        self.airlock('down')
        self.assertEqual(cgroups(self.NAME), [])

    def test_removed_after_a_killed_daemon(self):
        left = cgroups(self.NAME)
        self.assertGreater(len(left), 0, 'control')
        daemon = self.ask('info')['pid']
        below = descendants(daemon)
        os.kill(daemon, signal.SIGKILL)
        eventually(lambda: not set(below) & set(descendants(os.getpid())), 'its contexts have ended')
        self.reap_orphans()
        started = self.serve(f'pids: {PIDS}')
        self.assertEqual(started.status, 0, started.err)
        self.assertEqual(set(left) & set(cgroups(self.NAME)), set())
        self.assertEqual(len(cgroups(self.NAME)), 1, 'that of the living one stays')


class WithoutCgroups(LimitsCase):
    # A mount namespace without them, as in containers that mount them read-only or not at all.
    BEFORE = ['unshare', '-m', 'sh', '-c', 'umount -lR /sys/fs/cgroup 2>/dev/null; exec "$@"', 'sh']

    def test_pids_and_memory(self):
        started = self.serve(f'pids: {PIDS}, memory: {MEMORY >> 20}M, open_files: {FILES}, tmpfs: {TMPFS >> 10}K', self.BEFORE)
        if tuple(int(part) for part in os.uname().release.split('.')[:2]) < (6, 14):
            self.assertNotEqual(started.status, 0)
            return self.assertIn('Linux 6.14', started.err)
        self.assertEqual(started.status, 0, started.err)
        by = self.kept_by()
        self.assertIn('pid_max', by['pids'])
        self.assertIn('RLIMIT_DATA', by['memory'])
        with open('/proc/sys/kernel/pid_max') as file:
            before = file.read()
        # Numbers below 300 are given once, so that many more at first.
        self.assertLessEqual(self.number(self.NAME, FORKS.replace('200', '600')), PIDS + 300)
        self.assertEqual(self.number('user', FORKS.replace('200', '600')), 600, 'control')
        with open('/proc/sys/kernel/pid_max') as file:
            self.assertEqual(file.read(), before, "the machine's own is as it was")
        self.expect_per_process_limits()
        refused = self.exec_in(self.NAME, PYTHON, '-S', '-c', ALLOCATE)
        self.assertEqual(refused.status, 1)
        self.assertIn('MemoryError', refused.err)
        self.assertEqual(self.number('user', ALLOCATE), MEMORY * 3, 'control')

    def test_cpu_is_refused(self):
        started = self.serve('cpu: 0.5', self.BEFORE)
        self.expect_error(started, 126, f"context '{self.NAME}'", "limit 'cpu' cannot be kept here", 'cgroup')


class OfOneExec(LimitsCase):

    def test_wall_time(self):
        self.assertEqual(self.serve('exec_time: 300ms').status, 0)
        self.assertEqual(self.exec_in(self.NAME, 'sleep', '1000').status, TIMED_OUT)
        self.assertEqual(self.exec_in(self.NAME, 'sleep', '1000', options=('--timeout', '1h')).status, TIMED_OUT,
                         'a requester cannot ask for more')
        self.assertEqual(self.exec_in(self.NAME, 'true').status, 0, 'control')
        self.assertEqual(self.exec_in('user', 'sleep', '0.4').status, 0, 'control')

    def test_by_the_command_line(self):
        self.assertEqual(self.serve('open_files: 100').status, 0)
        made = self.airlock('ctx', 'create', 'other', '--limit', 'open_files=32', '--limit', 'exec_time=1m', '--cwd', self.work)
        self.assertEqual(made.status, 0, made.err)
        self.assertEqual(self.exec_in('other', 'sh', '-c', 'ulimit -n').out, '32\n')
        for wrong in ('files=3', 'open_files', 'open_files=0', 'memory=1T', 'cpu=none', 'exec_time=1day'):
            ended = self.airlock('ctx', 'create', 'third', '--limit', wrong)
            self.expect_error(ended, USAGE, wrong)
        ended = self.airlock('ctx', 'create', 'third', '--limit', 'pids=1')
        self.expect_error(ended, 1, "limit 'pids'", 'at least 8')


if __name__ == '__main__':
    main()
