"""A long time of everything at once: contexts that come and go, programs that end in all ways, floods. Afterwards the
daemon has what it had before: descriptors, mounts, processes, threads, cgroups, and about its memory."""

import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), 'integration')]

from harness import AIRLOCK, BIN, Case, descendants, eventually, main, open_files

SECONDS = float(os.environ.get('AIRLOCK_SOAK_SECONDS', 600))
SEED = int(os.environ.get('AIRLOCK_SOAK_SEED', random.randrange(1 << 32)))
AT_ONCE = 6
ALLOWED_GROWTH_KIB = 4 << 10  # of the daemon: allocator's slack, and the last 2000 route records


class Soak(Case):

    def setUp(self):
        super().setUp()
        self.audit = self.dir + '/audit'
        self.daemon = self.up(f'audit: {{folder: {self.audit}, max_size: 1M, keep: 2}}\ncontexts:\n'
                              f'  platform: {{cwd: {self.work}, child_context: user, route_child: always}}\n'
                              f'  user: {{cwd: {self.work}, limits: {{pids: 300, open_files: 256}}}}\n')
        self.random = random.Random(SEED)
        self.running, self.made = [], set()
        self.counts = {}

    def state(self):
        with open(f'/proc/{self.daemon}/mountinfo') as file:
            mounts = len(file.readlines())
        return {'descriptors': open_files(self.daemon), 'mounts': mounts, 'processes': len(descendants(self.daemon)),
                'threads': len(os.listdir(f'/proc/{self.daemon}/task')),
                'cgroups': len([path for path in glob.glob('/sys/fs/cgroup/*/**/airlock-*-soak*', recursive=True)])}

    def memory_kib(self):
        with open(f'/proc/{self.daemon}/status') as file:
            return int(re.search(r'VmRSS:\s*(\d+)', file.read()).group(1))

    # --- what happens

    def begin(self, *arguments):
        self.running.append(subprocess.Popen([AIRLOCK, *arguments], env=self.env, cwd=self.work, stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))

    def context(self):
        return self.random.choice(['user', 'platform', *self.made])

    def do_run(self):
        self.begin('exec', self.context(), '--', 'sh', '-c', self.random.choice(['true', 'exit 7', 'kill -9 $$', 'sleep 0.2', 'cat /proc/self/maps']))

    def do_route(self):
        self.begin('exec', 'platform', '--', 'python3', '-S', '-c', 'import subprocess\nfor i in range(5): subprocess.run(["true"])')

    def do_time_out(self):
        self.begin('exec', '--timeout', '200ms', self.context(), '--', 'sleep', '1000')

    def do_vanish(self):
        self.begin('exec', self.context(), '--', 'sleep', '1000')
        os.killpg(self.running[-1].pid, signal.SIGKILL)

    def do_flood(self):
        self.begin('exec', '--timeout', '2s', 'user', '--', 'bash', '-c', self.random.choice([
            'for i in {1..400}; do sleep 1000 & done; wait', 'yes', 'head -c 50M /dev/zero', 'kill -9 -1',
            'for i in {1..300}; do (true &) ; done', 'exec 3<>/dev/null; for i in {4..400}; do eval "exec $i<&3"; done 2>/dev/null']))

    def do_shell(self):
        self.begin('exec', 'user', '-c', self.random.choice(['cd /; X=1', 'exit 3', 'true | cat']))

    def do_create(self):
        if len(self.made) >= 4:
            return self.do_remove()
        name = f'soak{self.random.randrange(1000)}'
        extra = self.random.choice([[], ['--rootfs', 'shared'], ['--isolation', 'strict'], ['--limit', 'pids=100', '--limit', 'tmpfs=1M']])
        if name not in self.made and self.airlock('ctx', 'create', name, '--cwd', self.work, *extra).status == 0:
            self.made.add(name)

    def do_remove(self):
        if self.made:
            name = self.random.choice(sorted(self.made))
            self.made.discard(name)
            self.assertEqual(self.ask('ctx', 'rm', name)['survivors'], 0)

    def do_ask(self):
        self.ask(self.random.choice(['info', 'ps']))
        records = self.airlock('-o', 'json', 'routes').out.splitlines()  # one object a line
        self.assertTrue(all(json.loads(line) for line in records))

    def do_nonsense(self):
        self.airlock('exec', 'nowhere', '--', 'true')
        self.airlock('exec', 'user', '--', '/nothing/here')

    def test_everything_at_once(self):
        print(f'seed {SEED}, {SECONDS:.0f} s', flush=True)
        steps = sorted(name for name in dir(self) if name.startswith('do_'))
        before = memory = None
        end, warm = time.monotonic() + SECONDS, time.monotonic() + min(30, SECONDS / 4)
        while time.monotonic() < end:
            step = self.random.choice(steps)
            self.counts[step] = self.counts.get(step, 0) + 1
            getattr(self, step)()
            self.running = [process for process in self.running if process.poll() is None]
            while len(self.running) >= AT_ONCE:
                self.running[0].wait(60)
                self.running = [process for process in self.running if process.poll() is None]
            if before is None and time.monotonic() > warm:
                self.settle()
                before, memory = self.state(), self.memory_kib()
        self.settle()
        print(json.dumps(self.counts), f'memory {memory} -> {self.memory_kib()} KiB', before, flush=True)
        eventually(lambda: all(now <= was for now, was in zip(self.state().values(), before.values())), f'as before: {before}')
        self.assertLess(self.memory_kib() - memory, ALLOWED_GROWTH_KIB)
        self.assertEqual(self.airlock('audit', 'verify').status, 0)
        self.assertEqual(self.exec_in('user', 'echo', 'on').out, 'on\n')

    def settle(self):
        for process in self.running:
            process.wait(60)
        self.running = []
        while self.made:
            self.do_remove()
        for context in ('user', 'platform'):
            self.airlock('kill', context, 'all', '-s', 'KILL')
        # Whatever a flood has left in a context ends with it.
        self.exec_in('user', 'sh', '-c', 'kill -9 -1')
        eventually(lambda: not any(self.ask('ps')), 'no job runs')


if __name__ == '__main__':
    main()
