"""The commands of the CLI that use the API, by a connection that the daemon gives: no port, no token."""

import json
import os
import pty
import signal

from api_client import ApiCase
from harness import AIRLOCK, REFUSED, TIMED_OUT, USAGE, eventually, main
from network import PYTHON, own_network


def setUpModule():
    own_network()


class ByApi(ApiCase):

    def api(self, *arguments, status=0, **options):
        ended = self.airlock('api', *arguments, **options)
        self.assertEqual(ended.status, status, ended.err)
        return json.loads(ended.out)

    def spawn(self, *argv, **fields):
        return self.exec(list(argv), yieldMs=0, **fields)['id']

    def test_api(self):
        self.serve_api()
        names = [each['name'] for each in self.api('GET', '/api/v1/contexts')['items']]
        self.assertEqual(sorted(names), ['control', 'platform', 'user'])
        body = json.dumps({'argv': ['echo', 'hi']})
        self.assertEqual(self.api('POST', '/api/v1/contexts/user/exec', '-d', body)['stdout'], 'hi\n')
        self.assertEqual(self.api('POST', '/api/v1/contexts/user/exec', '-d', '@-', stdin=body.encode())['stdout'], 'hi\n')
        file = self.write(self.work + '/body.json', body)
        streamed = self.airlock('api', 'POST', '/api/v1/contexts/user/exec', '-d', '@' + file, '-H',
                                'Accept: application/x-ndjson')
        self.assertEqual([json.loads(line)['type'] for line in streamed.out.splitlines()], ['start', 'stdout', 'exit'])
        problem = self.api('GET', '/api/v1/contexts/nobody', status=1)
        self.assertEqual(problem['code'], 'context-not-found')
        for wrong in (('GET', 'api'), ('GET', '/a b'), ('G\nT', '/'), ('GET', '/', '-H', 'x')):
            self.assertEqual(self.airlock('api', *wrong).status, USAGE, wrong)
        # What others may not: the port still wants a token.
        self.refused(401, 'unauthorized', 'GET', '/api/v1/contexts', who=None)

    def test_who_may_not(self):
        self.serve_api()
        os.chmod(self.runtime + '/control.sock', 0o666)
        as_other = ['setpriv', '--reuid=1234', '--regid=1234', '--clear-groups', AIRLOCK, 'api', 'GET', '/api/v1/info']
        self.assertEqual(self.run_program(as_other).status, 1)
        inside = self.exec_in('user', AIRLOCK, 'api', 'GET', '/api/v1/info')
        self.assertIn('no daemon serves', inside.err)

    def test_without_an_api(self):
        self.up()
        self.expect_error(self.airlock('api', 'GET', '/api/v1/info'), 1, "no 'api'")
        self.expect_error(self.airlock('wait', 'exec_1'), 1, "no 'api'")

    def test_api_that_was_killed(self):
        self.serve_api()
        for _ in range(3):
            os.kill(self.pid_of_service('airlock-api'), signal.SIGKILL)
            self.assertIn('version', self.api('GET', '/api/v1/info'))

    def test_wait(self):
        self.serve_api()
        for text, status in (('exit 3', 3), ('kill -9 $$', -9), ('true', 0)):
            self.assertEqual(self.airlock('wait', self.spawn('sh', '-c', text)).status, status, text)
        late = self.spawn('sleep', '1000', timeoutMs=50, graceMs=50)
        self.assertEqual(self.airlock('wait', late).status, TIMED_OUT)
        self.assertEqual(self.airlock('wait', self.spawn('no-such-program')).status, 127)
        self.expect_error(self.airlock('wait', 'exec_0'), 1, 'exec-not-found')
        # A context, with a shell that stays.
        self.exec('true')
        running = self.spawn('cat', stdin='open')
        waiting = self.start([AIRLOCK, 'wait', 'user', running])
        self.assertIsNone(waiting.poll())
        self.expect(200, 'POST', f'/api/v1/execs/{running}/stdin?close=true', b'')
        self.assertEqual(self.finish(waiting).status, 0)
        self.assertEqual(self.airlock('wait', 'nobody').status, 1)
        both = self.ask('wait', self.spawn('true'), self.spawn('true'))
        self.assertEqual([each['status'] for each in both], ['exited', 'exited'])

    def test_yield_and_what_takes_it_up(self):
        self.serve_api()
        text = 'echo out; echo err >&2; read line; echo "got $line"; exit 4'
        ended = self.airlock('exec', 'user', '-i', '--yield', '300ms', '-e', 'A=b', '--no-shell', '-c', text)
        self.assertEqual((ended.status, ended.out), (0, 'out\n'), ended.err)
        error, told = ended.err.splitlines()
        self.assertEqual(error, 'err')
        found = next(word for word in told.split() if word.startswith('exec_'))
        self.assertEqual(self.airlock('logs', found).out, 'out\n')
        attached = self.airlock('attach', found, stdin=b'line\n')
        self.assertEqual((attached.status, attached.out, attached.err), (4, 'out\ngot line\n', 'err\n'))
        followed = self.airlock('logs', '-f', found)
        self.assertEqual((followed.status, followed.out), (0, 'out\ngot line\n'))
        self.assertEqual(self.airlock('wait', found).status, 4)
        # What ends in time ends as always.
        for arguments, status in ((['--', 'sh', '-c', 'exit 3'], 3), (['-c', 'exit 5'], 5), (['--', 'no-such'], 127)):
            self.assertEqual(self.airlock('exec', 'user', '--yield', '60s', *arguments).status, status, arguments)
        binary = self.start([AIRLOCK, 'exec', 'user', '--yield', '60s', '--', 'printf', r'a\0\377'])
        self.assertEqual(binary.communicate()[0], b'a\0\xff')
        for wrong in (['--yield', 'x', '--', 'true'], ['--yield', '1s', '-t', '--', 'true']):
            self.assertEqual(self.airlock('exec', 'user', *wrong).status, USAGE, wrong)
        self.assertEqual(self.airlock('exec', 'nobody', '--yield', '1s', '--', 'true').status, REFUSED)

    def test_a_terminal_is_attached(self):
        self.serve_api()
        found = self.spawn('sh', '-c', 'read line; stty size; echo "got $line"; exit 6', tty={'cols': 80, 'rows': 24})
        outer, inner = pty.openpty()
        self.addCleanup(os.close, outer)
        import fcntl
        import struct
        import termios
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack('HHHH', 33, 99, 0, 0))
        before = termios.tcgetattr(inner)
        first = self.start([AIRLOCK, 'attach', found], stdin=inner)
        eventually(lambda: termios.tcgetattr(inner) != before, 'it is raw')
        os.write(outer, b'\x1d')
        left = self.finish(first)
        self.assertEqual(left.status, 0, left.err)
        self.assertIn('goes on', left.err)
        self.assertEqual(termios.tcgetattr(inner), before)
        second = self.start([AIRLOCK, 'attach', found], stdin=inner)
        eventually(lambda: termios.tcgetattr(inner) != before, 'it is raw again')
        os.write(outer, b'word\r')
        ended = self.finish(second)
        os.close(inner)
        self.assertEqual(ended.status, 6, ended.err)
        self.assertIn('33 99', ended.out)
        self.assertIn('got word', ended.out)

    def test_events(self):
        self.serve_api(extra={'audit': {'folder': self.dir + '/audit'}})
        with self.stream('events', '-f') as process:
            eventually(lambda: self.exec_in('user', 'true').status == 0 and self.has_line(process), 'an event comes')
            self.assertIn('event', json.loads(self.line_of(process)))

    def has_line(self, process):
        import select
        return bool(select.select([process.stdout], [], [], 0.05)[0])

    # `self.stream` of ApiCase is one of HTTP; here it is a command's.
    def stream(self, *arguments):
        from network import ServiceCase
        return ServiceCase.stream(self, *arguments)


class Killing(ApiCase):
    """Signals with a scope."""

    STRAYS = ('import os, signal, sys, time\n'
              'ready, tell = os.pipe()\n'
              'for kind in sys.argv[1:]:\n'
              '    if os.fork() == 0:\n'
              '        if kind == "session": os.setsid()\n'
              '        if kind == "orphan" and os.fork() != 0: os._exit(0)\n'
              '        if kind == "deaf": signal.signal(15, signal.SIG_IGN)\n'
              '        os.write(tell, b"x")\n'
              '        time.sleep(1000)\n'
              'for kind in sys.argv[1:]: os.read(ready, 1)\n'
              'print("ready", flush=True); time.sleep(1000)\n')

    def spawn(self, *kinds):
        found = self.exec([PYTHON, '-S', '-c', self.STRAYS, *kinds], yieldMs=0)['id']
        eventually(lambda: self.expect(200, 'GET', f'/api/v1/execs/{found}/output')['stdout'], 'it is ready')
        return found

    def count(self):
        return self.exec(['ps', '-eo', 'args'])['stdout'].count('import os, signal, sys')

    def kill(self, exec_id, **order):
        return self.expect(200, 'POST', f'/api/v1/execs/{exec_id}/signal', order)

    def test_scopes(self):
        self.serve_api()
        first = self.spawn('session', 'plain', 'orphan')
        # Another exec is not concerned, nor what is in a shell.
        other = self.spawn()
        self.exec('LOCAL=kept')
        # A process of another session is not in the group.
        self.expect(204, 'POST', f'/api/v1/execs/{self.spawn("session")}/signal', {'signal': 'SIGKILL'})
        eventually(lambda: self.count() == 6, 'its stray is left')
        self.assertEqual(self.kill(first, signal='SIGKILL', scope='exec'), {'delivered': 4, 'survivors': 0})
        eventually(lambda: self.count() == 2, 'the other, and the stray')
        self.assertEqual(self.expect(200, 'GET', '/api/v1/execs/' + other)['status'], 'running')
        self.assertEqual(self.exec('echo $LOCAL')['stdout'], 'kept\n')
        told = self.kill(other, signal=9, scope='context')
        self.assertEqual(told['survivors'], 0)
        self.assertGreaterEqual(told['delivered'], 3, 'with the shell')
        self.assertEqual(self.count(), 0)
        self.assertEqual(self.exec('echo "[$LOCAL]"')['stdout'], '[]\n', 'the context goes on, with a fresh shell')

    def test_escalation(self):
        self.serve_api()
        deaf = self.spawn('deaf', 'plain')
        self.assertEqual(self.kill(deaf, scope='exec'), {'delivered': 3, 'survivors': 1})
        self.assertEqual(self.count(), 1)
        again = self.spawn('deaf')
        told = self.kill(again, scope='exec', escalate={'afterMs': 50, 'signal': 'SIGKILL'})
        self.assertEqual(told, {'delivered': 2, 'survivors': 0})
        # The program and its group only.
        text = 'trap "" TERM; echo ready; while :; do sleep 1; done'
        stubborn = self.exec(['bash', '-c', text], yieldMs=0)['id']
        eventually(lambda: self.expect(200, 'GET', f'/api/v1/execs/{stubborn}/output')['stdout'], 'it is ready')
        self.assertEqual(self.kill(stubborn, escalate={'afterMs': 50}), {'delivered': 1, 'survivors': 0})
        self.assertEqual(self.expect(200, 'GET', '/api/v1/execs/' + stubborn)['signal'], 'SIGKILL')

    def test_in_a_shell(self):
        self.serve_api()
        running = self.exec('sleep 1000 & sleep 1001', yieldMs=0)['id']
        eventually(lambda: 'sleep 1001' in self.exec(['ps', '-eo', 'args'])['stdout'], 'it runs')
        self.expect(204, 'POST', f'/api/v1/execs/{running}/signal', {'signal': 'SIGKILL', 'scope': 'exec'})
        self.expect(200, 'GET', f'/api/v1/execs/{running}?waitMs=60000')
        eventually(lambda: 'sleep 100' not in self.exec(['ps', '-eo', 'args'])['stdout'], 'all of it is gone')

    def test_what_is_refused(self):
        self.serve_api()
        path = f'/api/v1/execs/{self.spawn()}/signal'
        for body in ({'scope': 'world'}, {'signal': 65}, {'escalate': 5}, {'escalate': {'afterMs': 60001}},
                     {'escalate': {'signal': 'SIGNOTHING'}}, {'escalate': {'other': 1}}):
            self.refused(400, 'invalid-request', 'POST', path, body)
        ended = self.exec(['true'])['id']
        for scope in ('leader', 'group', 'exec'):
            self.refused(409, 'exec-ended', 'POST', f'/api/v1/execs/{ended}/signal', {'scope': scope})

    def test_command_line(self):
        self.serve_api()
        first = self.spawn('session', 'deaf')
        told = self.ask('kill', '-s', 'TERM', '--scope', 'exec', '--kill-after', '50ms', first)
        self.assertEqual(told, {'delivered': 3, 'survivors': 0})
        second = self.spawn()
        self.assertEqual(self.airlock('kill', '-s', 'KILL', second).status, 0)
        self.assertEqual(self.airlock('wait', second).status, -9)
        third = self.spawn('deaf')
        left = self.airlock('kill', '--scope', 'exec', third)
        self.assertEqual(left.status, 0, left.err)
        self.assertIn('1 are left', left.err)
        whole = self.airlock('kill', '-s', 'KILL', '--scope', 'context', 'user')
        self.assertEqual(whole.status, 0, whole.err)
        self.assertIn('0 are left', whole.err)
        self.assertEqual(self.count(), 0)
        job = self.start([AIRLOCK, 'exec', 'user', '--', PYTHON, '-S', '-c', self.STRAYS, 'session'])
        self.assertEqual(self.line_of(job), b'ready\n')
        number = next(each['job'] for each in self.ask('ps', 'user') if 'python' in each['program'])
        self.assertEqual(self.ask('kill', '-s', 'KILL', '--scope', 'exec', 'user', str(number)),
                         {'delivered': 2, 'survivors': 0})
        self.assertEqual(self.finish(job).status, -9)
        for wrong in (['user'], ['--scope', 'exec', 'user'], ['-s', 'NOTHING', 'user'], ['--kill-after', 'x', 'user'],
                      ['--scope', 'leader', 'user', '17']):
            self.assertEqual(self.airlock('kill', *wrong).status, USAGE, wrong)
        self.assertEqual(self.airlock('kill', '--scope', 'context', 'nobody').status, 1)


class Lifespans(ApiCase):

    def test_configured_and_created(self):
        self.serve_api(extra={'contexts': {'platform': {'cwd': self.work}, 'user': {'cwd': self.work, 'ttl': '1h'},
                                           'short': {'cwd': self.work, 'idle_timeout': '300ms'}}})
        self.assertEqual(self.ask('ctx', 'inspect', 'user')['ttlMs'], 3_600_000)
        eventually(lambda: 'short' not in [each['name'] for each in self.ask('ctx', 'ls')], 'it was idle')
        made = self.ask('ctx', 'create', 'made', '-w', self.work, '--ttl', '2h', '--idle-timeout', '90s')
        self.assertEqual((made['ttlMs'], made['idleTimeoutMs']), (7_200_000, 90_000))
        changed = self.ask('ctx', 'set', 'made', '--ttl', 'none', '--idle-timeout', '300ms')
        self.assertEqual((changed['ttlMs'], changed['idleTimeoutMs']), (None, 300))
        eventually(lambda: 'made' not in [each['name'] for each in self.ask('ctx', 'ls')], 'it was idle')
        self.assertEqual(self.airlock('ctx', 'create', 'other', '--ttl', 'soon').status, USAGE)
        for flag, there in (('--api-socket', True), ('--no-api-socket', False)):
            made = self.ask('ctx', 'create', 'c' + flag[2:5], '-w', self.work, flag)
            self.assertEqual(made['apiSocket'] is not None, there, flag)


if __name__ == '__main__':
    main()
