"""One context takes all it can get; the others, the platform and the daemon go on answering. Latencies are printed, and
decide nothing: the machine may be busy. With AIRLOCK_FULL each flood lasts 10 s."""

import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), 'integration')]

from harness import AIRLOCK, REFUSED, Case, eventually, main, members, open_files
from network import LIBC, own_network

SECONDS = 10 if os.environ.get('AIRLOCK_FULL') else 2
PYTHON = '/usr/bin/python3'
PIDS, FILES = 300, 256
MEMORY_KIB = 40 << 10  # that the daemon may grow by: allocator's slack after the largest requests

# Children that end and are not waited for, as many as there may be; then it waits for its end.
ZOMBIES = '''
import os, sys, time
count = 0
try:
    while count < 5000:
        if os.fork() == 0: os._exit(0)
        count += 1
except BlockingIOError: pass
print(count, flush=True)
sys.stdin.read()
'''
# Descriptors in flight: sockets whose queues hold each other, as many as the kernel lets it.
RIGHTS = '''
import errno, os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
pairs, sent, end = [], 0, ""
try:
    while sent < 200_000:
        left, right = socket.socketpair()
        left.setblocking(False)
        pairs.append((left, right))
        try:
            while sent < 200_000:
                socket.send_fds(left, [b"x"], [pair[0].fileno() for pair in pairs[-1:]] * 250)
                sent += 250
        except BlockingIOError: pass
except OSError as error: end = errno.errorcode[error.errno]
print(sent, end, flush=True)
sys.stdin.read()
'''
# 2 MB of arguments, where the stack limit lets them be.
ARGUMENTS = '''
import resource, subprocess
resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
many = ["sh", "-c", "echo $# ${#1}", "sh"] + ["y" * 100_000] * 20
print([subprocess.run(many, stdout=subprocess.PIPE, text=True).stdout for _ in range(10)])
'''


def setUpModule():
    own_network()  # for its mounts


class Flood(Case):

    def setUp(self):
        super().setUp()
        self.limited = f'limited-{os.getpid() % 100000}'
        self.place()
        self.daemon = self.up(
            f'contexts:\n  platform: {{cwd: {self.work}, child_context: user, route_child: always}}\n'
            f'  user: {{cwd: {self.work}}}\n  other: {{cwd: {self.work}, child_context: user, route_child: always}}\n'
            f'  {self.limited}: {{cwd: {self.work}, limits: {{pids: {PIDS}, open_files: {FILES}}}}}\n')
        self.exec_in('platform', 'sh', '-c', 'true; true')
        self.memory, self.files = self.memory_kib(), open_files(self.daemon)

    def place(self):
        """What a test needs before its daemon."""

    def memory_kib(self):
        with open(f'/proc/{self.daemon}/status') as file:
            return int(re.search(r'VmRSS:\s*(\d+)', file.read()).group(1))

    def flood(self, context, *command, **options):
        return self.start([AIRLOCK, 'exec', *(['-i'] if options else []), context, '--', *command], **options)

    def python(self, context, script):
        return self.flood(context, PYTHON, '-S', '-c', script, stdin=subprocess.PIPE)

    def others_answer(self, what):
        """For SECONDS, and some times at least: programs elsewhere, routed ones, and the daemon."""
        took, end = [], time.monotonic() + SECONDS
        while time.monotonic() < end or len(took) < 20:
            start = time.monotonic()
            self.assertEqual(self.exec_in('user', 'true').status, 0)
            took.append(time.monotonic() - start)
        self.assertEqual(self.exec_in('platform', 'sh', '-c', 'echo routed; exit 3').status, 3)
        self.assertEqual(self.ask('info')['pid'], self.daemon)
        took.sort()
        at = lambda share: 1000 * took[min(len(took) - 1, int(len(took) * share))]
        print(f'{what}: `true` elsewhere, {len(took)} times: median {at(0.5):.1f} ms, p99 {at(0.99):.1f} ms', flush=True)

    def destroy(self, context):
        start = time.monotonic()
        self.assertEqual(self.ask('ctx', 'rm', context)['survivors'], 0)
        print(f'destroyed in {1000 * (time.monotonic() - start):.1f} ms', flush=True)

    def expect_as_before(self):
        eventually(lambda: open_files(self.daemon) <= self.files, 'no descriptor is left in the daemon')
        self.assertLess(self.memory_kib() - self.memory, MEMORY_KIB)


class Availability(Flood):

    def test_control_nobody_floods(self):
        self.others_answer('nobody floods')

    def test_fork_bomb(self):
        space = self.namespace_of(self.limited)
        bomb = self.flood(self.limited, 'bash', '-c', 'bomb() { bomb | bomb & }; bomb; wait')
        eventually(lambda: len(members(space)) > PIDS // 2, 'control: it has reached its limit')
        self.others_answer('fork bomb')
        self.destroy(self.limited)
        self.finish(bomb)
        self.expect_as_before()

    def test_zombies(self):
        storm = self.python(self.limited, ZOMBIES)
        self.assertGreater(int(self.line_of(storm)), PIDS // 2, 'control: there are some')
        self.others_answer('zombies')
        self.destroy(self.limited)
        self.finish(storm)
        self.expect_as_before()

    def test_descriptors_in_flight(self):
        # The kernel counts them per user id, for whoever has no CAP_SYS_RESOURCE: a context without `open_files` can take
        # them from others of that kind (docs/SECURITY.md); one with it cannot.
        flood = self.python(self.limited, RIGHTS)
        sent, why = self.line_of(flood).split()
        self.assertIn(why, (b'ETOOMANYREFS', b'EMFILE'), 'control: it has reached its limit')
        self.others_answer(f'{sent.decode()} descriptors in flight')
        self.assertEqual(self.exec_in('other', 'sh', '-c', 'echo routed; exit 4').status, 4)
        self.end(flood)
        more = self.python('user', RIGHTS)
        self.assertGreater(int(self.line_of(more).split()[0]), int(sent), 'control: there the limit does not bind')
        self.others_answer('descriptors in flight, without a limit')
        refused = self.exec_in('other', 'sh', '-c', 'env true; exit $?')
        self.assertIn(refused.status, (0, REFUSED), 'not promised; but never unrouted')
        print(f'a context of the same kind meanwhile: status {refused.status} {refused.err.strip()}', flush=True)
        self.end(more)
        self.expect_as_before()

    def test_long_arguments(self):
        bare = self.run_program([PYTHON, '-S', '-c', ARGUMENTS])
        runs = [self.start([AIRLOCK, 'exec', 'platform', '--', PYTHON, '-S', '-c', ARGUMENTS]) for _ in range(4)]
        self.others_answer('2 MB of arguments')
        for run in runs:
            self.assertEqual(self.finish(run).out, bare.out)
        self.assertIn('20 100000', bare.out, 'control')
        self.expect_as_before()

    def test_readers_that_do_not_read(self):
        script = 'import subprocess; subprocess.run(["yes"])'
        lazy = [self.flood('other', PYTHON, '-S', '-c', script) for _ in range(10)] + [self.flood('user', 'yes') for _ in range(10)]
        for process in lazy:
            self.assertEqual(self.line_of(process), b'y\n', 'control: it writes')
        self.others_answer('20 readers that do not read')
        for process in lazy:
            self.end(process)
        self.expect_as_before()


class FullDisk(Flood):
    """The daemon's own folder, in which a context's HOME lies, on a disk that the context fills."""

    def place(self):
        disk = self.dir + '/disk'
        os.mkdir(disk)
        LIBC.mount(b'none', disk.encode(), b'tmpfs', 0, b'size=32m,mode=0755')
        self.addCleanup(LIBC.umount2, disk.encode(), 2)
        self.runtime = self.env['AIRLOCK_RUNTIME_DIR'] = disk + '/rt'

    def test_full_disk(self):
        filled = self.exec_in(self.limited, 'sh', '-c', 'head -c 64M /dev/zero >$HOME/much')
        self.assertIn('No space left', filled.err, 'control')
        self.others_answer('a full disk')
        self.assertEqual(self.exec_in(self.limited, 'echo', 'on').out, 'on\n')
        made = self.airlock('ctx', 'create', 'late', '--cwd', self.work)
        if made.status != 0:
            self.expect_error(made, 1, 'No space left')
        self.destroy(self.limited)
        self.airlock('ctx', 'rm', 'late')
        self.ask('ctx', 'create', 'late', '--cwd', self.work)
        self.assertEqual(self.exec_in('late', 'echo', 'room').out, 'room\n', 'what it took has ended with it')
        self.expect_as_before()


if __name__ == '__main__':
    main()
