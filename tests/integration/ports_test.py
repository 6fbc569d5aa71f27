"""Held ports: nobody else can have one, whatever its service does. Each refusal is counted by errno
and stands beside the same probe where it succeeds."""

import ctypes
import json
import os
import signal
import socket
import threading
import time

from harness import REFUSED, eventually, main
from network import (NEIGHBOUR, OTHER_ADDRESS, OURS, PYTHON, Neighbour, ServiceCase, fetch, own_network)


def setUpModule():
    own_network()


# Tries every address, option and family of a port, as uid 0 and as another; prints how often each errno came.
# Arguments: port, protocols, uids. A try that succeeds is listed as "BOUND".
CHALLENGE = '''
import collections, errno, json, os, socket, sys
port, protocols, uids = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
addresses = [(socket.AF_INET, a, None) for a in ("0.0.0.0", "127.0.0.1", "127.0.0.2", OTHER)]
addresses += [(socket.AF_INET6, a, only) for a in ("::", "::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0") for only in (0, 1)]
def attempt(kind, family, address, only, reuse, reuseport):
    with socket.socket(family, kind) as s:
        if only is not None: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        if reuse: s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuseport: s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            s.bind((address, port))
            if kind == TCP: s.listen()
            return "BOUND"
        except OSError as error:
            return errno.errorcode[error.errno]
counts = collections.Counter()
for uid in map(int, uids):
    read, write = os.pipe()
    if os.fork() == 0:
        if uid: os.setgid(uid); os.setuid(uid)
        own = collections.Counter()
        for kind in [{"tcp": TCP, "udp": UDP}[name] for name in protocols]:
            for family, address, only in addresses:
                for reuse in (0, 1):
                    for reuseport in (0, 1):
                        own[attempt(kind, family, address, only, reuse, reuseport)] += 1
        os.write(write, json.dumps(own).encode())
        os._exit(0)
    os.close(write)
    counts.update(json.loads(os.fdopen(read).read()))
    os.wait()
print(json.dumps(counts))
'''.replace('OTHER', repr(OTHER_ADDRESS))
# 12 addresses × 4 options, by protocol and uid; a v4-mapped address on an IPv6-only socket is EINVAL.
TRIES, MAPPED_ON_V6ONLY = 48, 8


class NobodyElse(ServiceCase):

    def challenge(self, port, *uids, protocols='tcp'):
        tried = self.exec_in('user', PYTHON, '-S', '-c', CHALLENGE, str(port), protocols, *map(str, uids))
        self.assertEqual(tried.status, 0, tried.err)
        return json.loads(tried.out)

    def test_every_address_option_and_family(self):
        both = [8080, {'port': 8080, 'protocol': 'udp'}]
        self.serve({'web': self.echo(8080, ports=both),
                    'silent': {'command': ['sleep', '1000'], 'ports': [8888, {'port': 8888, 'protocol': 'udp'}],
                               'ready': 'none'}})
        service = self.await_service('web')
        control = self.challenge(8090, 0, 1000, protocols='tcp,udp')
        self.assertEqual(control, {'BOUND': 4 * (TRIES - MAPPED_ON_V6ONLY), 'EINVAL': 4 * MAPPED_ON_V6ONLY},
                         'control: each attempt works on a port that nobody holds')
        for port in (8080, 8888):
            for uid in (0, 1000, service['uid']):
                with self.subTest(port=port, uid=uid):
                    self.assertEqual(self.challenge(port, uid, protocols='tcp,udp'),
                                     {'EADDRINUSE': 2 * (TRIES - MAPPED_ON_V6ONLY), 'EINVAL': 2 * MAPPED_ON_V6ONLY})
        self.assertEqual(fetch('127.0.0.1', 8080), str(service['pid']))

    def test_a_holder_with_reuseport_would_be_joined(self):
        """Why airlock's has it not."""
        self.up()
        with socket.socket(socket.AF_INET6) as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            holder.bind(('::', 8070))
            holder.listen()
            self.assertGreater(self.challenge(8070, 0).get('BOUND', 0), 0)

    def test_what_people_type(self):
        self.serve({'web': self.echo(8080), 'notebook': self.echo(8888)})
        self.await_service('web')
        rows = [([PYTHON, '-m', 'http.server', '8080'], 'OSError: [Errno 98] Address already in use'),
                ([PYTHON, '-m', 'http.server', '--bind', '127.0.0.1', '8080'],
                 'OSError: [Errno 98] Address already in use'),
                (['nc', '-l', '8888'], 'nc: Address already in use'),
                (['nc', '-l', '127.0.0.1', '8888'], 'nc: Address already in use'),
                (['nc', '-6', '-l', '::1', '8888'], 'nc: Address already in use'),
                (['node', '-e', 'require("http").createServer().listen(8080)'], 'EADDRINUSE')]
        for command, message in rows:
            with self.subTest(command=command):
                ended = self.exec_in('user', *command)
                self.assertEqual(ended.status, 1)
                self.assertIn(message, ended.err)
                self.assertTrue(message in ended.err.splitlines()[-1] or command[0] == 'node')
        free = self.exec_in('user', 'timeout', '0.5', 'nc', '-l', '8090')
        self.assertEqual(free.status, 124, 'control: nc listens on a port that is free')

    def test_taken_at_start(self):
        with socket.socket() as holder:
            holder.bind(('127.0.0.3', 8081))
            holder.listen()
            refused = self.refuse({'a': self.echo(8080), 'b': self.echo(8081)})
        program = os.path.realpath(f'/proc/{os.getpid()}/exe')
        self.expect_error(refused, REFUSED, "service 'b'", 'tcp port 8081',
                          f'taken by pid {os.getpid()} ({program})', 'choose another port')
        self.assertEqual(fetch('127.0.0.1', 8080), 'ConnectionRefusedError', 'nothing was started')
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
            holder.bind(('0.0.0.0', 8081))
            refused = self.refuse({'a': {'command': ['true'], 'ports': [{'port': 8081, 'protocol': 'udp'}]}})
        self.expect_error(refused, REFUSED, 'udp port 8081', f'taken by pid {os.getpid()}')

    def test_a_port_below_1024(self):
        self.serve({'web': self.echo(80)})
        self.await_service('web')
        self.assertTrue(fetch('127.0.0.1', 80).isdigit())

    def test_without_ipv6(self):
        with open('/proc/sys/net/ipv6/conf/all/disable_ipv6', 'w') as file:
            file.write('1')
        try:
            self.serve({'web': self.echo(8080)})
            self.await_service('web')
            self.assertTrue(fetch('127.0.0.1', 8080).isdigit())
            self.assertNotIn('BOUND', self.challenge(8080, 0))
        finally:
            with open('/proc/sys/net/ipv6/conf/all/disable_ipv6', 'w') as file:
                file.write('0')


# Binds a port as fast as it can, with REUSEADDR and REUSEPORT, until told to stop; tells when it is at it. With
# a won port it answers "stolen". Prints tries and wins.
ATTACK = '''
import os, select, socket, sys
port = int(sys.argv[1])
tries = wins = 0
print("at it", flush=True)
while not select.select([0], [], [], 0)[0]:
    for address in ("0.0.0.0", "127.0.0.1", "::", "::1"):
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
            s.setsockopt(socket.SOL_SOCKET, option, 1)
            tries += 1
            try:
                s.bind((address, port))
                s.listen()
                wins += 1
            except OSError:
                pass
            s.close()
print(tries, wins, flush=True)
'''


class UnderAttack(ServiceCase):

    def attack(self, port):
        """An attacker with uid 0 in the user context, at work."""
        attacker = self.start([self.airlock_program(), 'exec', '-i', 'user', '--', PYTHON, '-S', '-c', ATTACK, str(port)],
                              stdin=-1)
        self.assertEqual(self.line_of(attacker), b'at it\n')
        return attacker

    def airlock_program(self):
        from harness import AIRLOCK
        return AIRLOCK

    def call_off(self, attacker):
        """How often the attacker has tried, and won."""
        tries, wins = self.finish(attacker, b'stop\n').out.split()
        return int(tries), int(wins)

    def test_killed_a_hundred_times(self):
        self.serve({'web': self.echo(8080, restart_delay='1ms', max_restart_delay='5ms')})
        self.await_service('web')
        attacker = self.attack(8080)
        clients = Clients(8080)
        kills = 0
        started = time.monotonic()
        while kills < 100:
            pid = self.pid_of_service('web') if self.service('web')['state'] == 'ready' else None
            if pid:
                os.kill(pid, signal.SIGKILL)
                kills += 1
                eventually(lambda: self.service('web')['restarts'] >= kills, 'restarted')
        served = clients.stop()
        seconds = time.monotonic() - started
        tries, wins = self.call_off(attacker)
        print(f'{tries} bind attempts ({tries / seconds:.0f}/s) in {kills} kills: {wins} won; clients: {served}')
        self.assertEqual(wins, 0)
        self.assertGreater(tries, 10_000)
        self.assertEqual(served['refused'], 0)
        self.assertEqual(served['foreign'], 0)
        self.assertEqual(served['unanswered'], 0)
        self.assertGreater(served['served'], 0)
        # What the service had accepted when it was killed is lost with it, and nothing else is.
        self.assertLessEqual(served['reset'], kills)
        self.assertGreaterEqual(self.service('web')['restarts'], 100)

    def test_without_a_holder_the_attacker_wins(self):
        """The control of the one above: the same service, killed, without airlock."""
        self.up()
        server = self.start([PYTHON, '-S', self.write(self.dir + '/echo.py', ECHO_SERVER), '8090'], stdout=-1)
        self.assertEqual(self.line_of(server), b'listening\n')
        attacker = self.attack(8090)
        server.kill()
        server.wait()
        eventually(lambda: fetch('127.0.0.1', 8090) != '', 'somebody was asked')
        time_limit = time.monotonic() + 60
        wins = 0
        while wins == 0 and time.monotonic() < time_limit:
            _, wins = self.call_off(attacker)
            if wins == 0:
                attacker = self.attack(8090)
        self.assertGreater(wins, 0)

    def test_shut_down_a_thousand_times(self):
        shutting = self.script('shutting', '''
import os, select, socket
s = socket.socket(fileno=3)
assert os.environ["LISTEN_PID"] == str(os.getpid())
def listens(): return s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
for i in range(1000):
    while not listens(): pass
    s.shutdown(socket.SHUT_RDWR)
while not listens(): pass
print("done", flush=True)
while True:
    connection, peer = s.accept()
    with connection: connection.sendall(b"%d" % os.getpid())
''')
        self.serve({'web': {'command': shutting, 'ports': [{'port': 8080, 'expose': 'all'}],
                            'sockets': 'listen_fds', 'ready': 'none'}})
        attacker = self.attack(8080)
        eventually(lambda: 'done' in self.log('web'), 'a thousand times')
        tries, wins = self.call_off(attacker)
        self.assertEqual(wins, 0)
        self.assertGreater(tries, 0)
        port = self.service('web')['ports'][0]
        self.assertGreaterEqual(port['resets'], 1000)
        self.assertEqual(fetch('127.0.0.1', 8080), str(self.service('web')['pid']), 'it serves again')
        self.assertIn('was shut down 10', self.airlock('services').out)
        self.assertEqual(self.service('web')['restarts'], 0, self.log('web'))

    def test_services_that_do_not_serve(self):
        """Closed, never bound, crash-looping, held by a fork only: nobody else can have it, and who has
        connected meanwhile is served in the end."""
        gate = self.dir + '/gate'
        closing = self.script('closing', SERVE_AFTER % (gate, 's = take(); s.close()'))
        crashing = self.script('crashing', SERVE_AFTER % (gate, 'take(); os.kill(os.getpid(), 11)'))
        forking = self.script('forking', SERVE_AFTER % (gate, 's = take()\nread, write = os.pipe()\n'
                                                        'if os.fork(): os.close(write); os.read(read, 1); os._exit(1)\n'
                                                        'os.setsid(); os.close(write)\nwhile not os.path.exists(GATE): time.sleep(0.01)\nserve(s)'))
        never = self.script('never', SERVE_AFTER % (gate, ''))
        usual = {'ready': 'none', 'restart_delay': '1ms', 'max_restart_delay': '20ms'}
        self.serve({name: {'command': command + [str(port)], 'ports': [port], **usual}
                    for name, command, port in (('closing', closing, 8081), ('crashing', crashing, 8082),
                                                ('forking', forking, 8083), ('never', never, 8084))})
        self.await_service('crashing', lambda s: s['crashLooping'], 'in a crash loop')
        waiting = []
        for port in (8081, 8082, 8083, 8084):
            connection = socket.create_connection(('127.0.0.1', port), 5)
            connection.sendall(b'hello\n')
            waiting.append(connection)
            tried = self.exec_in('user', PYTHON, '-S', '-c', CHALLENGE, str(port), 'tcp', '0')
            self.assertNotIn('BOUND', json.loads(tried.out), port)
            self.assertGreater(json.loads(tried.out)['EADDRINUSE'], 0)
        eventually(lambda: self.service('never')['ports'][0]['queued'] == 1, 'it waits')
        self.write(gate, '')
        for connection in waiting:
            connection.settimeout(60)
            self.assertEqual(connection.recv(100), b'served')
            connection.close()


# A service that does something odd until the gate opens, and then serves. %s: the gate, the odd thing.
SERVE_AFTER = '''
import os, socket, sys, time
GATE = %r
def take():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", int(sys.argv[1])))
    s.listen(1)
    return s
def serve(s):
    while True:
        connection, peer = s.accept()
        with connection:
            if connection.recv(100): connection.sendall(b"served")
if not os.path.exists(GATE):
    %s
while not os.path.exists(GATE): time.sleep(0.01)
serve(take())
'''.replace('    %s\n', '    exec(ODD)\n').replace('def take', 'ODD = %r\ndef take')

ECHO_SERVER = '''
import os, socket, sys
server = socket.socket()
server.bind(("0.0.0.0", int(sys.argv[1])))
server.listen()
print("listening", flush=True)
while True: server.accept()[0].close()
'''


class Clients:
    """Threads that ask a service again and again and count how that ends."""

    def __init__(self, port, threads=4):
        self.port, self.is_over = port, False
        self.counts = {'served': 0, 'refused': 0, 'reset': 0, 'foreign': 0, 'unanswered': 0, 'slowest': 0.0}
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.work) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def work(self):
        while not self.is_over:
            started = time.monotonic()
            try:
                with socket.create_connection(('127.0.0.1', self.port), 30) as connection:
                    connection.sendall(b'hello\n')
                    answer = connection.recv(100)
                outcome = 'served' if answer.strip().isdigit() else 'foreign' if answer else 'reset'
            except ConnectionRefusedError:
                outcome = 'refused'
            except (ConnectionResetError, BrokenPipeError):
                outcome = 'reset'
            except TimeoutError:
                outcome = 'unanswered'
            with self.lock:
                self.counts[outcome] += 1
                self.counts['slowest'] = max(self.counts['slowest'], time.monotonic() - started)

    def stop(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()
        return self.counts


class WhoReachesThem(ServiceCase):

    def test_expose(self):
        neighbour = Neighbour()
        self.addCleanup(neighbour.end)
        self.serve({'all': self.echo(8081, '127.0.0.1', ports=[{'port': 8081, 'expose': 'all'}]),
                    'loopback': self.echo(8082, '0.0.0.0', ports=[{'port': 8082, 'expose': 'loopback'}]),
                    'asked-all': self.echo(8083, '0.0.0.0'), 'asked-loopback': self.echo(8084, '127.0.0.1'),
                    'asked-one': self.echo(8085, OTHER_ADDRESS, ready='none'), 'asked-v6': self.echo(8086, '::1'),
                    'passed': {'command': self.script('passed', PASSED), 'ports': [8087], 'sockets': 'listen_fds'},
                    'asked-two': {'command': self.script('two', ASKS_TWO % (OTHER_ADDRESS,)), 'ports': [8088]}})
        for name in ('all', 'loopback', 'asked-all', 'asked-loopback', 'asked-v6', 'passed', 'asked-two'):
            self.await_service(name)
        eventually(lambda: fetch(OTHER_ADDRESS, 8085).isdigit(), 'asked-one serves')
        reached, hidden = 'reached', 'TimeoutError'
        table = [(8081, reached, reached, reached), (8082, reached, hidden, hidden), (8083, reached, reached, reached),
                 (8084, reached, hidden, hidden), (8085, hidden, reached, hidden), (8086, reached, hidden, hidden),
                 (8087, reached, hidden, hidden), (8088, reached, reached, hidden)]
        for port, *expected in table:
            with self.subTest(port=port):
                seen = [fetch('127.0.0.1', port), fetch(OTHER_ADDRESS, port), neighbour.fetch(OURS, port)]
                self.assertEqual([reached if one.isdigit() else one for one in seen], expected)
        self.assertEqual(fetch('::1', 8082), str(self.service('loopback')['pid']), 'both families')

    def test_a_locked_filter_is_not_the_services_to_change(self):
        unlock = self.script('unlock', '''
import errno, os, socket
s = socket.socket(fileno=3)
SO_DETACH_FILTER, SO_LOCK_FILTER = 27, 44
for option in (SO_DETACH_FILTER, SO_LOCK_FILTER):
    try:
        s.setsockopt(socket.SOL_SOCKET, option, 0)
        print("changed", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
''' + PASSED[PASSED.index('while True'):])
        self.serve({'fixed': {'command': unlock, 'ports': [{'port': 8081, 'expose': 'loopback'}], 'sockets': 'listen_fds'},
                    'free': {'command': unlock, 'ports': [8082], 'sockets': 'listen_fds'}})
        for name in ('fixed', 'free'):
            self.await_service(name)
        words = lambda name: [line for line in self.log(name).splitlines() if not line.startswith('airlock:')]
        eventually(lambda: len(words('fixed')) == 2 and len(words('free')) == 2, 'both have tried')
        self.assertEqual(words('fixed'), ['EPERM', 'EPERM'])
        self.assertEqual(words('free')[0], 'changed', 'control')
        self.assertEqual(fetch(OTHER_ADDRESS, 8081), 'TimeoutError')

    def test_the_next_run_may_ask_for_something_else(self):
        address = self.write(self.dir + '/address', '0.0.0.0')
        program = self.script('asks', ECHO_OF_FILE % address)
        self.serve({'web': {'command': program, 'ports': [8080]}})
        for asked, expected in (('0.0.0.0', True), ('127.0.0.1', False), ('0.0.0.0', True)):
            self.write(address, asked)
            restarts = self.service('web')['restarts']
            self.assertEqual(self.airlock('restart', 'web').status, 0)
            self.await_service('web', lambda s: s['state'] == 'ready' and s['restarts'] > restarts, 'restarted')
            self.assertEqual(fetch(OTHER_ADDRESS, 8080).isdigit(), expected, asked)
            self.assertTrue(fetch('127.0.0.1', 8080).isdigit(), 'control')

    def test_control_not_reachable_from_here(self):
        neighbour = Neighbour()
        self.addCleanup(neighbour.end)
        services = {'web': self.echo(8080, ports=[{'port': 8080, 'expose': 'all'}])}
        ask = [PYTHON, '-S', '-c', 'import socket, sys\ntry: socket.create_connection(("127.0.0.1", 8080), 1.5); print("reached")\n'
               'except OSError as e: print(type(e).__name__)']
        for reachable in (True, False):
            with self.subTest(reachable=reachable):
                self.serve(services, extra={'control': {'reachable': reachable}})
                pid = str(self.await_service('web')['pid'])
                self.assertEqual(self.exec_in('user', *ask).out.strip(), 'reached' if reachable else 'TimeoutError')
                self.assertEqual(self.exec_in('platform', *ask).out.strip(), 'reached' if reachable else 'TimeoutError')
                self.assertEqual(neighbour.fetch(OURS, 8080), pid)
                self.assertEqual(self.airlock('down').status, 0)


PASSED = '''
import os, socket
s = socket.socket(fileno=3)
while True:
    connection, peer = s.accept()
    with connection:
        if connection.recv(100): connection.sendall(b"%d" % os.getpid())
'''

ASKS_TWO = '''
import os, select, socket
listeners = []
for address in ("127.0.0.1", %r):
    s = socket.socket()
    s.setblocking(False)
    s.bind((address, 8088))
    s.listen()
    listeners.append(s)
while True:
    for s in select.select(listeners, [], [])[0]:
        try: connection, peer = s.accept()
        except BlockingIOError: continue
        with connection:
            connection.setblocking(True)
            if connection.recv(100): connection.sendall(b"%%d" %% os.getpid())
'''

ECHO_OF_FILE = '''
import os, socket
s = socket.socket()
s.bind((open(%r).read(), 8080))
s.listen()
while True:
    connection, peer = s.accept()
    with connection:
        if connection.recv(100): connection.sendall(b"%%d" %% os.getpid())
'''


class HandedOver(ServiceCase):

    def words(self, name):
        return [line for line in self.log(name).splitlines() if not line.startswith('airlock:')]

    def test_listen_fds(self):
        show = self.script('show', '''
import os, socket, subprocess
print(os.environ["LISTEN_PID"] == str(os.getpid()), os.environ["LISTEN_FDS"], os.environ["LISTEN_FDNAMES"])
for fd in (3, 4): 
    s = socket.socket(fileno=fd)
    print(s.family.name, s.type.name, s.getsockname()[1], s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR),
          s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT))
print(subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True).stdout.split(),
      os.environ.get("LD_PRELOAD"), flush=True)
''')
        self.serve({'web': {'command': show, 'ports': [{'port': 8080, 'name': 'http'}, {'port': 53, 'protocol': 'udp'}],
                            'sockets': 'listen_fds', 'ready': 'none', 'restart': 'never'}})
        eventually(lambda: len(self.words('web')) == 4, 'it has written')
        self.assertEqual(self.words('web'), ['True 2 http:53', 'AF_INET6 SOCK_STREAM 8080 1 0',
                                             'AF_INET6 SOCK_DGRAM 53 0 0', "['0', '1', '2', '3'] None"])

    def test_bind_as_the_service_sees_it(self):
        """An IPv4 service sees IPv4 addresses, its flags are kept, other ports are its own business."""
        show = self.script('show', '''
import errno, fcntl, os, socket
def flags(s): return [s.getblocking(), bool(fcntl.fcntl(s, fcntl.F_GETFD) & fcntl.FD_CLOEXEC)]
s = socket.socket()
s.set_inheritable(True)
number = s.fileno()
before = flags(s)
s.bind(("0.0.0.0", 8080))
s.listen(1)
print(flags(s) == before, s.fileno() == number, s.getsockname(), flush=True)
second = socket.socket(socket.AF_INET6)
try: second.bind(("::", 8080)); print("bound twice")
except OSError as error: print("blocking:", errno.errorcode[error.errno], flush=True)
third = socket.socket(socket.AF_INET6)
third.setblocking(False)
third.bind(("::1", 8080))
print("non-blocking:", flags(third)[0], flush=True)
s.setblocking(True)
other = socket.socket()
other.bind(("127.0.0.1", 8099))
print(other.getsockname(), flush=True)
foreign = socket.socket()
try: foreign.bind(("127.0.0.1", 8081)); print("stole", flush=True)
except OSError as error: print("foreign:", errno.errorcode[error.errno], flush=True)
connection, peer = s.accept()
print(peer[0], connection.getpeername()[0], connection.getsockname(), flush=True)
connection.close()
''')
        self.serve({'a': {'command': show, 'ports': [8080], 'ready': 'none', 'restart': 'never'},
                    'b': {'command': ['sleep', '1000'], 'ports': [8081], 'ready': 'none'}})
        eventually(lambda: len(self.words('a')) == 5, 'it waits for a connection')
        with socket.create_connection(('127.0.0.1', 8080), 5):
            eventually(lambda: len(self.words('a')) == 6, 'it has accepted')
        self.assertEqual(self.words('a'), ["True True ('0.0.0.0', 8080)", 'blocking: EADDRINUSE', 'non-blocking: False',
                                           "('127.0.0.1', 8099)", 'foreign: EADDRINUSE',
                                           "127.0.0.1 127.0.0.1 ('127.0.0.1', 8080)"])

    def test_after_fork_exec_and_closing_everything(self):
        inner = self.write(self.dir + '/inner.py', ECHO_OF_FILE % self.write(self.dir + '/address', '127.0.0.1'))
        outer = self.script('outer', f'''
import os
os.closerange(3, 1000)
if os.fork(): os.waitpid(-1, 0)
os.execv({PYTHON!r}, [{PYTHON!r}, "-S", {inner!r}])
''')
        self.serve({'web': {'command': outer, 'ports': [8080]}})
        self.await_service('web')
        self.assertTrue(fetch('127.0.0.1', 8080).isdigit())

    def test_udp(self):
        show = self.script('show', '''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 5353))
while True:
    data, peer = s.recvfrom(100)
    s.sendto(data + b" from " + peer[0].encode(), peer)
    if data == b"die": raise SystemExit(1)
''')
        self.serve({'dns': {'command': show, 'ports': [{'port': 5353, 'protocol': 'udp'}], 'restart_delay': '300ms'}})
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(60)
            client.connect(('127.0.0.1', 5353))
            for data in (b'one', b'die', b'waits', b'die', b'two'):
                client.send(data)
            self.assertEqual([client.recv(100) for _ in range(5)],
                             [data + b' from 127.0.0.1' for data in (b'one', b'die', b'waits', b'die', b'two')],
                             'what comes while it is down waits for it')
        self.assertGreaterEqual(self.service('dns')['restarts'], 2)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(0.5)
            client.connect((OTHER_ADDRESS, 5353))
            client.send(b'from elsewhere')
            with self.assertRaises(TimeoutError):
                client.recv(100)

    def test_only_the_service_gets_its_port(self):
        """The socket that gives ports away is for one uid of the control context."""
        ask = self.script('ask', '''
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(struct.pack("<IHHIHBI4s", 11, 50, 1, 0, 8080, 0, 4, bytes([127, 0, 0, 1])))
    head = s.recvmsg(16, socket.CMSG_SPACE(4))
    print(struct.unpack("<IHHIi", head[0])[4], len(head[1]), flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
''')
        path = self.runtime + '/ports-web.sock'
        quiet = {'ready': 'none', 'restart': 'never'}
        self.serve({'web': {'command': ask + [path], 'ports': [8080], **quiet},
                    'other': {'command': ask + [path], **quiet}})
        eventually(lambda: self.words('web') and self.words('other'), 'both have asked')
        self.assertEqual(self.words('web'), ['0 1'], 'control')
        self.assertEqual(self.words('other'), ['PermissionError'])
        self.assertEqual(self.exec_in('user', *ask, path).out, 'FileNotFoundError\n')
        # From outside, with uid 0 and the real path, it is the wrong namespace.
        outside = self.run_program(ask + [f'{self.runtime}/view/control/ports-web.sock'])
        self.assertEqual(outside.out, '1 0\n')


if __name__ == '__main__':
    main()
