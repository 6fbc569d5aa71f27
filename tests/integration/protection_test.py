"""The control plane against a user context with uid 0: it is not seen, not signalled and not killed. The same
probes from outside, or on the context's own processes, succeed."""

import json
import os
import signal
import subprocess

from harness import eventually, is_running, main, members, pid_of, processes, runs_program, BIN
from network import PYTHON, ServiceCase, fetch, own_network


def setUpModule():
    own_network()


class ControlPlane(ServiceCase):

    def setUp(self):
        super().setUp()
        self.daemon = self.serve({'web': self.echo(8080), 'secret': {'command': ['sleep', '987654']}})
        self.await_service('web')
        self.agent = self.start([BIN + '/airlock', 'exec', 'platform', '--', 'sleep', '876543'])
        self.protected = {
            'routerd': self.daemon,
            'the service': eventually(lambda: self.pid_of_service('web'), 'the service'),
            'the control context': self.ask('ctx', 'inspect', 'control')['initPid'],
            'the agent': eventually(self.find_agent, 'the agent'),
            'the platform context': self.ask('ctx', 'inspect', 'platform')['initPid'],
        }

    def find_agent(self):
        space = self.namespace_of('platform')
        return next((pid for pid in members(space) if self.cmdline(pid) == 'sleep 876543'), None)

    @staticmethod
    def cmdline(pid):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                return file.read().rstrip(b'\0').replace(b'\0', b' ').decode(errors='replace')
        except OSError:
            return ''

    def everybody_lives(self, after):
        for what, pid in self.protected.items():
            self.assertTrue(is_running(pid), f'{what} has survived {after}')
        self.assertEqual(self.service('web')['restarts'], 0, after)
        self.assertTrue(fetch('127.0.0.1', 8080).isdigit(), after)

    def test_not_seen(self):
        inside, outside = self.exec_in('user', 'ps', 'aux').out, self.run_program(['ps', 'aux']).out
        for fragment in ('sleep 987654', 'sleep 876543', 'echo.py', 'airlock-routerd'):
            self.assertNotIn(fragment, inside)
            self.assertIn(fragment, outside, 'control: the ancestor sees it')
        self.assertIn('ps aux', inside, 'control: its own are seen')
        found = self.exec_in('user', 'sh', '-c', 'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n"').out
        self.assertNotIn('987654', found)

    def test_pkill_everything(self):
        own = self.start([BIN + '/airlock', 'exec', 'user', '--', 'sleep', '765432'])
        space = self.namespace_of('user')
        eventually(lambda: any(self.cmdline(pid) == 'sleep 765432' for pid in members(space)), 'a process to kill')
        self.exec_in('user', 'sh', '-c', 'trap "" TERM; pkill -9 -f .; true')
        own.wait(60)
        self.assertNotEqual(own.returncode, 0, 'control: it was killed')
        self.everybody_lives('pkill -9 -f .')
        self.assertEqual(self.exec_in('user', 'echo', 'alive').out, 'alive\n', 'the context is usable again')

    def test_kill_minus_one(self):
        own = self.start([BIN + '/airlock', 'exec', 'user', '--', 'sleep', '765432'])
        space = self.namespace_of('user')
        eventually(lambda: any(self.cmdline(pid) == 'sleep 765432' for pid in members(space)), 'a process to kill')
        for who in ([], ['setpriv', '--reuid', str(self.service('web')['uid']), '--clear-groups']):
            self.exec_in('user', *who, 'sh', '-c', 'kill -9 -1')
            self.everybody_lives('kill -9 -1 ' + ' '.join(who))
        own.wait(60)
        self.assertNotEqual(own.returncode, 0, 'control: it was killed')

    def test_kill_each_number(self):
        script = r'''
import collections, errno, json, os, signal
counts = collections.Counter()
last = int(open("/proc/sys/kernel/pid_max").read())
victim = os.fork()
if victim == 0: signal.pause()
for pid in range(2, last + 1):
    if pid in (os.getpid(), os.getppid()): continue
    try:
        os.kill(pid, signal.SIGKILL)
        counts["killed"] += 1
    except OSError as error:
        counts[errno.errorcode[error.errno]] += 1
os.wait()
print(json.dumps({"last": last, **counts}))
'''
        ended = self.exec_in('user', PYTHON, '-S', '-c', script)
        counts = json.loads(ended.out)
        # itself and its parent are left out; of the others only its child is there.
        self.assertEqual(counts['killed'], 1, counts)
        self.assertGreaterEqual(counts['ESRCH'], counts['last'] - 5, counts)
        self.everybody_lives('kill of each number')

    def test_files_of_the_control_plane(self):
        for path in (self.runtime + '/control.sock', self.runtime + '/log', self.runtime + '/ports-web.sock',
                     self.runtime + '/view'):
            self.assertEqual(self.exec_in('user', 'test', '-e', path).status, 1, path)
        self.assertTrue(os.path.exists(self.runtime + '/log'), 'control')


if __name__ == '__main__':
    main()
