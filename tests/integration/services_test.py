"""Services of the control plane: where and as whom they run, how they end and come back, their logs."""

import glob
import json
import os
import re
import resource
import signal
import socket
import stat
import time

from harness import (CANARY, REFUSED, TIMED_OUT, USAGE, command_line, eventually, is_running, main, members, namespace,
                     open_files, processes)
from network import LIBC, PYTHON, ServiceCase, fetch, own_network


def setUpModule():
    own_network()


SLEEP = ['sleep', '1000']


def counter(count):
    return lambda service: service['restarts'] >= count


class WhereTheyRun(ServiceCase):

    def test_own_uid_namespace_and_environment(self):
        show = ('import json, os; print(json.dumps({"uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(),'
                ' "env": dict(os.environ), "cwd": os.getcwd(), "fds": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],'
                ' "pids": [p for p in os.listdir("/proc") if p.isdigit()],'
                ' "signals": open("/proc/self/status").read()}), flush=True); import time; time.sleep(1000)')
        self.serve({'one': {'command': [PYTHON, '-S', '-c', show], 'env': {'MODE': 'test'}, 'cwd': self.dir + '/new'},
                    'two': {'command': SLEEP}})
        eventually(lambda: '"uid"' in self.log('one'), 'it has written')
        seen = json.loads(next(line for line in self.log('one').splitlines() if line.startswith('{')))
        one, two = self.service('one'), self.service('two')
        self.assertEqual(seen['uid'], one['uid'])
        self.assertNotEqual(one['uid'], two['uid'])
        for service in (one, two):
            self.assertTrue(61184 <= service['uid'] <= 65519, service)
        self.assertEqual((seen['gid'], seen['groups']), (one['uid'], []))
        self.assertEqual(os.stat(self.dir + '/new').st_uid, one['uid'], 'its cwd was made for it')
        self.assertEqual(seen['cwd'], self.dir + '/new')
        self.assertEqual(seen['env'], {'MODE': 'test', 'HOME': self.dir + '/new', 'USER': 'one', 'LOGNAME': 'one',
                                       'SHELL': '/bin/sh', 'PATH': self.env['PATH'], 'LANG': 'C.UTF-8',
                                       'TERM': 'xterm'})
        self.assertNotIn(CANARY, self.log('one'))
        self.assertEqual(seen['fds'], [0, 1, 2])
        self.assertEqual(re.search(r'^CapEff:\s*(\w+)', seen['signals'], re.M).group(1).strip('0'), '')
        # PID 1, its spawner, the two services: nobody of the other contexts.
        self.assertLessEqual(len(seen['pids']), 4)
        everyone = {namespace(pid) for pid in processes()}
        self.assertGreater(len(everyone), 1, 'control: there are other namespaces')
        self.assertEqual(namespace(self.pid_of_service('one')), self.namespace_of('control'))

    def test_user_of_the_configuration(self):
        self.serve({'web': {'command': ['id'], 'user': 'www-data', 'restart': 'never'}})
        eventually(lambda: 'uid=' in self.log('web'), 'it has written')
        self.assertIn('uid=33(www-data) gid=33(www-data) groups=33(www-data)', self.log('web'))
        self.assertEqual(self.service('web')['user'], 'www-data')

    def test_platform_home_is_not_theirs(self):
        os.chmod(self.home, 0o755)
        self.write(self.home + '/credentials', CANARY)
        look = ['cat', self.home + '/credentials']
        self.assertEqual(self.run_program(look).out, CANARY, 'control')
        self.serve({'look': {'command': look, 'restart': 'never'}})
        self.await_service('look', lambda s: s['state'] == 'failed', 'over')
        self.assertRegex(self.log('look'), 'No such file|Permission denied')
        self.assertNotIn(CANARY, self.log('look'))

    def test_control_is_hidden_and_stays(self):
        self.serve({'a': {'command': SLEEP}})
        inside = self.exec_in('user', 'ps', 'aux').out
        self.assertNotIn('sleep 1000', inside)
        self.assertIn('sleep 1000', self.run_program(['ps', 'aux']).out, 'control: the ancestor sees it')
        removed = self.airlock('ctx', 'rm', 'control')
        self.expect_error(removed, 1, "'control'", 'services run there')
        self.expect_error(self.airlock('ctx', 'create', 'control'), 1, 'control')

    def test_on_the_weaker_tiers(self):
        """Seen, as there is no PID namespace, but out of reach where the tier says so."""
        attack = ('import os, signal, socket, sys\ntry: socket.socket().bind(("127.0.0.1", 8080))\n'
                  'except OSError as error: print(error.strerror)\n'
                  'try: os.kill(int(sys.argv[1]), signal.SIGKILL)\nexcept OSError as error: print(error.strerror)\n')
        for tier, reached in (('uids', False), ('landlock', False), ('none', True)):
            with self.subTest(tier=tier):
                self.serve({'web': self.echo(8080)}, options=('--development', '--tier', tier))
                service = self.await_service('web')
                self.assertEqual(fetch('127.0.0.1', 8080), str(service['pid']))
                tried = self.exec_in('user', PYTHON, '-c', attack, str(service['pid']))
                self.assertEqual(tried.out, 'Address already in use\n' + ('' if reached else 'Operation not permitted\n'))
                after = self.await_service('web', lambda s: s['state'] == 'ready' and s['restarts'] == reached, 'ready')
                self.assertEqual(after['pid'] == service['pid'], not reached)
                self.assertEqual(fetch('127.0.0.1', 8080), str(after['pid']))
                self.assertEqual(self.airlock('down').status, 0)
                self.assertFalse(is_running(after['pid']))


class HowTheyEnd(ServiceCase):

    def test_a_killed_service_comes_back_at_once(self):
        self.serve({'a': {'command': SLEEP, 'ready': 'none'}, 'b': {'command': SLEEP}})
        before, other = self.pid_of_service('a'), self.service('b')
        os.kill(before, signal.SIGKILL)
        after = self.await_service('a', lambda s: s['restarts'] == 1 and s['pid'] != 0, 'restarted')
        self.assertEqual((after['lastEnd'], after['failures']), ('killed by SIGKILL', 1))
        self.assertFalse(is_running(before))
        self.assertEqual(self.service('b')['pid'], other['pid'], 'the other one is left alone')

    def test_a_crash_loop_is_reported_and_goes_on(self):
        self.serve({'bad': {'command': ['sh', '-c', 'echo trying; exit 3'], 'restart_delay': '1ms',
                            'max_restart_delay': '20ms'},
                    'missing': {'command': ['/nonexistent/program'], 'restart_delay': '1ms',
                                'max_restart_delay': '20ms'},
                    'good': {'command': SLEEP}})
        bad = self.await_service('bad', lambda s: s['crashLooping'] and s['restarts'] > 6, 'in a crash loop')
        self.assertEqual(bad['lastEnd'], 'exit code 3')
        missing = self.await_service('missing', lambda s: s['crashLooping'], 'in a crash loop')
        self.assertEqual(missing['lastEnd'], 'not started: /nonexistent/program: not found in the context')
        self.assertEqual(self.service('good')['restarts'], 0, 'control')
        table = self.airlock('services').out
        self.assertIn('crash loop', table)
        self.assertIn("see 'airlock logs bad'", table)
        self.assertIn('trying', self.log('bad'))
        self.assertIn('service=bad crash loop: ended 5 times in a row', self.daemon_log())

    def test_restart_policies(self):
        self.serve({'never': {'command': ['false'], 'restart': 'never'},
                    'done': {'command': ['true'], 'restart': 'on-failure'},
                    'failing': {'command': ['false'], 'restart': 'on-failure', 'restart_delay': '1ms'}})
        self.await_service('never', lambda s: s['state'] == 'failed', 'failed')
        self.await_service('done', lambda s: s['state'] == 'stopped', 'stopped')
        self.await_service('failing', counter(3), 'restarted')
        self.assertEqual(self.service('never')['restarts'], 0)

    def test_stop_is_graceful_and_ends_in_time(self):
        polite = self.script('polite', f'''
import signal, sys, time
def stop(number, frame):
    open({self.dir + "/said-goodbye"!r}, "w").write(signal.Signals(number).name)
    sys.exit(0)
signal.signal(signal.SIGINT, stop)
print("armed", flush=True)
time.sleep(1000)
''')
        deaf = self.script('deaf', 'import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
                           'print("armed", flush=True)\ntime.sleep(1000)\n')
        os.chmod(self.dir, 0o777)
        self.serve({'polite': {'command': polite, 'stop_signal': 'INT'},
                    'deaf': {'command': deaf, 'stop_timeout': '200ms'}})
        for name in ('polite', 'deaf'):
            eventually(lambda: 'armed' in self.log(name), f'{name} is armed')
        self.assertEqual(self.airlock('restart', 'deaf').status, 0)
        self.await_service('deaf', lambda s: s['restarts'] == 1 and s['lastEnd'] == 'killed by SIGKILL', 'killed')
        self.assertIn('does not stop, so it is killed', self.log('deaf'))
        self.assertEqual(self.service('deaf')['failures'], 0, 'it was asked to')
        self.assertEqual(self.airlock('down').status, 0)
        with open(self.dir + '/said-goodbye') as file:
            self.assertEqual(file.read(), 'SIGINT')

    def test_the_clock_jumps(self):
        """By years, to and fro: what is to happen in a moment happens in a moment."""
        library = glob.glob('/usr/lib/*/faketime/libfaketime.so.1')
        if not library:
            self.skipTest('faketime is not installed')
        clock = self.write(self.dir + '/clock', '+0')
        env = {**self.env, 'LD_PRELOAD': library[0], 'FAKETIME_TIMESTAMP_FILE': clock, 'FAKETIME_NO_CACHE': '1',
               'DONT_FAKE_MONOTONIC': '1'}
        self.serve({'web': self.echo(8080)}, env=env)
        self.await_service('web')
        year = lambda: self.daemon_log().splitlines()[-1].split()[1][:4]
        for offset in ('+3650d', '-3650d'):
            with self.subTest(offset=offset):
                self.write(clock, offset)
                before = self.service('web')['restarts']
                os.kill(self.pid_of_service('web'), signal.SIGKILL)
                after = self.await_service('web', lambda s: s['state'] == 'ready' and s['restarts'] == before + 1, 'back')
                self.assertNotEqual(year(), time.strftime('%Y'), 'control: the daemon sees the jump')
                self.assertEqual(fetch('127.0.0.1', 8080), str(after['pid']))
                self.assertEqual(self.exec_in('user', 'sleep', '1000', options=('--timeout', '100ms')).status, TIMED_OUT)
                self.assertEqual(self.exec_in('user', 'true', options=('--timeout', '10m')).status, 0)

    def test_workers_end_with_their_service(self):
        workers = self.script('workers', 'import os, time\nos.fork() and os.fork()\ntime.sleep(1000)\n')
        self.serve({'workers': {'command': workers, 'ready': 'none', 'restart_delay': '1h', 'max_restart_delay': '1h'}})
        space = self.namespace_of('control')
        group = lambda: [pid for pid in members(space) if 'workers.py' in command_line(pid)]
        eventually(lambda: len(group()) == 3, 'control: it has two workers')
        for end in (lambda: os.kill(self.pid_of_service("workers"), signal.SIGKILL), lambda: self.airlock('restart', 'workers')):
            before = group()
            end()
            eventually(lambda: not set(before) & set(group()), 'its workers have ended')
            if not group():
                self.airlock('restart', 'workers')
            eventually(lambda: len(group()) == 3, 'it was started again')

    def test_what_escapes_its_service_ends_with_the_daemon(self):
        escape = self.script('escape', 'import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: '
                             'time.sleep(1000)\n os._exit(0)\ntime.sleep(1000)\n')
        self.serve({'escape': {'command': escape}})
        space = self.namespace_of('control')
        eventually(lambda: len(members(space)) >= 4, 'it has escaped')
        self.assertEqual(self.airlock('down').status, 0)
        self.assertEqual(members(space), [])

    def test_the_control_context_is_made_anew(self):
        self.serve({'web': self.echo(8080), 'plain': {'command': SLEEP}})
        self.await_service('web')
        for victim in ('init', 'spawner'):
            with self.subTest(victim=victim):
                restarts = self.service('web')['restarts']
                init = self.ask('ctx', 'inspect', 'control')['initPid']
                spawner = next(p.pid for p in processes().values() if p.parent == init)
                os.kill(init if victim == 'init' else spawner, signal.SIGKILL)
                self.await_service('web', lambda s: s['state'] == 'ready' and s['restarts'] > restarts, 'back')
                self.await_service('plain', lambda s: s['pid'] != 0, 'back')
                self.assertEqual(fetch('127.0.0.1', 8080), str(self.service('web')['pid']))


class Readiness(ServiceCase):

    def test_each_kind(self):
        os.chmod(self.dir, 0o777)
        gate = self.dir + '/gate'
        http = self.script('answers', f'''
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists({gate!r}) and self.path == "/health" else 503)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8081), Handler).serve_forever()
''')
        late = self.script('late', ECHO_AFTER % gate)
        self.serve({'http': {'command': http, 'ports': [8081], 'ready': {'http': '/health'}},
                    'accept': {'command': late + ['127.0.0.1', '8082'], 'ports': [8082]},
                    'command': {'command': SLEEP, 'ready': {'command': ['test', '-e', gate]}},
                    'none': {'command': SLEEP}})
        self.await_service('none')
        eventually(lambda: '503' in self.log('http'), 'the probe has asked')
        for name in ('http', 'accept', 'command'):
            self.assertEqual(self.service(name)['state'], 'starting', name)
        self.write(gate, '')
        for name in ('http', 'accept', 'command'):
            self.await_service(name)

    def test_not_ready_in_time_is_a_failure(self):
        self.serve({'slow': {'command': SLEEP, 'ports': [8080], 'ready': {'timeout': '50ms'},
                             'restart_delay': '1ms', 'max_restart_delay': '10ms'}})
        slow = self.await_service('slow', lambda s: s['crashLooping'], 'in a crash loop')
        self.assertIn('not ready in time', slow['lastEnd'])


ECHO_AFTER = '''
import os, sys, time
while not os.path.exists(%r): time.sleep(0.01)
import socket
server = socket.socket()
server.bind((sys.argv[1], int(sys.argv[2])))
server.listen()
while True: server.accept()[0].close()
'''


class Logs(ServiceCase):

    def test_both_streams_follow_and_lines(self):
        os.mkfifo(self.work + '/go', 0o666)
        os.chmod(self.work + '/go', 0o666)
        self.serve({'talk': {'command': ['sh', '-c', 'echo out; echo err >&2; while read -r x <go; do echo "$x"; done'],
                             'cwd': self.work}})
        eventually(lambda: self.log('talk').count('err\n') >= 1, 'it has written')
        with self.stream('logs', '-f', 'talk') as following:
            eventually(lambda: b'err' in self.line_of(following), 'the log so far')
            for word in ('one', 'two'):
                with open(self.work + '/go', 'w') as file:
                    file.write(word + '\n')
                line = b''
                while line != word.encode() + b'\n':
                    line = self.line_of(following)
                    self.assertNotEqual(line, b'')
        lines = self.log('talk').splitlines()
        self.assertEqual([line for line in lines if line in ('one', 'two')], ['one', 'two'], lines)
        self.assertEqual(self.airlock('logs', 'talk', '-n', '2').out.splitlines(), lines[-2:])
        self.expect_error(self.airlock('logs', 'nobody'), 1, "there is no service 'nobody'")
        self.expect_error(self.airlock('restart', 'nobody'), 1, "there is no service 'nobody'")
        path = self.service('talk')['log']['path']
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(self.exec_in('user', 'test', '-e', path).status, 1, 'not in a context')

    def test_rotation(self):
        self.serve({'flood': {'command': ['sh', '-c', 'i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; '
                                          'sleep 1000'], 'log': {'max_size': '4K', 'keep': 2}}})
        eventually(lambda: 'line 1999' in self.log('flood'), 'all is written')
        folder = self.runtime + '/log'
        self.assertEqual(sorted(os.listdir(folder)), ['flood.log', 'flood.log.1', 'flood.log.2'])
        kept = ''
        for end in ('.2', '.1', ''):
            with open(f'{folder}/flood.log{end}') as file:
                kept += file.read()
        lines = re.findall(r'^line (\d+)$', kept, re.M)
        self.assertEqual(lines, [str(n) for n in range(int(lines[0]), 2000)], 'nothing is lost in between')

    def test_a_full_disk(self):
        small = self.dir + '/small'
        os.mkdir(small)
        self.assertEqual(LIBC.mount(b'tmpfs', small.encode(), b'tmpfs', 0, b'size=16k'), 0)
        self.addCleanup(LIBC.umount2, small.encode(), 2)
        flood = 'i=0; while [ $i -lt 3000 ]; do echo a line to fill the disk $i; i=$((i+1)); done; touch done; sleep 1000'
        os.chmod(self.work, 0o777)
        self.serve({'flood': {'command': ['sh', '-c', flood], 'cwd': self.work}}, extra={'log_dir': small})
        eventually(lambda: os.path.exists(self.work + '/done'), 'the service went on')
        log = self.await_service('flood', lambda s: s['log']['droppedBytes'] > 0, 'short of a disk')['log']
        self.assertIn('No space left', log['error'])
        self.assertIn('bytes of its log are lost', self.airlock('services').out)
        self.assertEqual(self.service('flood')['restarts'], 0)
        self.assertEqual(self.daemon_log().count('its log is not kept'), 1, 'said once')

    def test_a_log_folder_that_cannot_be(self):
        refused = self.refuse({'a': {'command': SLEEP}}, {'log_dir': '/proc/no/such/folder'})
        self.expect_error(refused, REFUSED, '/proc/no/such/folder')


class BadInput(ServiceCase):

    def test_refused_before_anything_starts(self):
        rows = [({'user': 'nobody-we-know'}, REFUSED, "service 'a': user 'nobody-we-know'"),
                ({'cwd': '/proc/1/new'}, REFUSED, "service 'a': create its cwd /proc/1/new")]
        for keys, status, fragment in rows:
            with self.subTest(**keys):
                self.expect_error(self.refuse({'a': {'command': SLEEP, **keys}}), status, fragment)
                self.assertFalse(os.path.exists(self.runtime + '/control.sock') and
                                 self.airlock('info').status == 0)

    def test_ports_that_are_none(self):
        for ports in ([0], [70000], [8080, 8080]):
            with self.subTest(ports=ports):
                refused = self.refuse({'a': {'command': SLEEP, 'ports': ports}})
                self.assertEqual((refused.status, refused.out), (USAGE, ''))
                self.assertRegex(refused.err, r'airlock.yaml:\d+:\d+: ')


class Reload(ServiceCase):

    def test_adds_changes_and_removes(self):
        self.serve({'stays': self.echo(8081), 'goes': self.echo(8082), 'changes': self.echo(8083)})
        for name in ('stays', 'goes', 'changes'):
            self.await_service(name)
        stays = self.service('stays')
        self.change({'stays': self.echo(8081), 'changes': self.echo(8084), 'new': self.echo(8085)})
        self.assertEqual(self.airlock('reload').status, 0)
        self.await_service('new')
        eventually(lambda: [s['name'] for s in self.ask('services')] == ['changes', 'new', 'stays'], 'gone')
        self.await_service('changes', lambda s: s['state'] == 'ready' and s['ports'][0]['port'] == 8084, 'changed')
        after = self.service('stays')
        self.assertEqual((after['pid'], after['restarts']), (stays['pid'], 0), 'what did not change is not touched')
        for port in (8081, 8084, 8085):
            self.assertTrue(fetch('127.0.0.1', port).isdigit(), port)
        for port in (8082, 8083):
            eventually(lambda: fetch('127.0.0.1', port) == 'ConnectionRefusedError', f'port {port} is given up')

    def test_sighup(self):
        daemon = self.serve({'a': self.echo(8081)})
        self.await_service('a')
        self.change({'a': self.echo(8081), 'b': self.echo(8082)})
        os.kill(daemon, signal.SIGHUP)
        eventually(lambda: len(self.ask('services')) == 2, 'added')
        self.await_service('b')

    def test_what_is_wrong_changes_nothing(self):
        self.serve({'a': self.echo(8081)})
        before = self.await_service('a')
        self.write(self.dir + '/airlock.yaml', 'services: {a: {command: no}}')
        failed = self.airlock('reload')
        self.assertEqual(failed.status, 1)
        self.assertIn('airlock.yaml:1:25', failed.err)
        with self.taken(8092):
            self.change({'a': self.echo(8081), 'b': self.echo(8092)})
            failed = self.airlock('reload')
            self.assertEqual(failed.status, 1)
            self.assertIn(f'taken by pid {os.getpid()} (', failed.err)
        self.assertEqual([s['name'] for s in self.ask('services')], ['a'])
        self.assertEqual(self.service('a')['pid'], before['pid'])

    def taken(self, port):
        holder = socket.socket()
        holder.bind(('0.0.0.0', port))
        holder.listen()
        return holder

class Faults(ServiceCase):

    def test_out_of_descriptors(self):
        daemon = self.serve({'web': self.echo(8080)})
        self.await_service('web')
        victim = self.pid_of_service('web')
        limits = resource.prlimit(daemon, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon, resource.RLIMIT_NOFILE, (open_files(daemon), limits[1]))
        try:
            os.kill(victim, signal.SIGKILL)
            eventually(lambda: 'Too many open files' in self.daemon_log(), 'it cannot start anything')
            client = socket.create_connection(('127.0.0.1', 8080), 10)
            client.sendall(b'hello\n')
        finally:
            resource.prlimit(daemon, resource.RLIMIT_NOFILE, limits)
        client.settimeout(60)
        with client:
            self.assertTrue(client.recv(100).strip().isdigit(), 'who has waited is served')
        self.await_service('web')
        self.assertIn('not started', self.log('web'))


if __name__ == '__main__':
    main()
