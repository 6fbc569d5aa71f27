"""The router is nobody's deputy: who is handed a connection, says something again, comes back under a number or a
name that was another's, gains nothing by it. Each refusal has its control: the one whose connection it is is served."""

import json
import os
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), 'integration')]

from harness import AIRLOCK, FIXTURES, PATIENCE, Case, eventually, main, members, open_files, pid_of

sys.path.insert(0, FIXTURES)
import wire

IS_FULL = bool(os.environ.get('AIRLOCK_FULL'))
PYTHON = '/usr/bin/python3'
START = f'import json, os, socket, subprocess, sys\nsys.path.insert(0, {FIXTURES!r})\nimport wire\n'
# Sends a request by a descriptor that it was given, and tells what came.
USE = START + '''
connection = socket.socket(fileno=int(sys.argv[1]))
connection.settimeout(60)
try:
    connection.sendall(bytes.fromhex(sys.argv[2]))
    print(json.dumps([kind for kind, _ in wire.answers(connection)]), flush=True)
except OSError as error:
    print(json.dumps(error.strerror), flush=True)
'''
RAN, REFUSED = [wire.STARTED, wire.EXITED], [wire.NOT_STARTED]


# What can be had of airlock's own processes. A process that has become a program meanwhile is no longer one.
WATCH = '''
import ctypes, json, os, signal, sys
stop, seen, looks = [], set(), 0
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
libc = ctypes.CDLL(None, use_errno=True)
def text(path):
    with open(path, "rb") as file: return file.read(64)
def take(pid, what):
    if what == "descriptors":
        pidfd = os.pidfd_open(pid)
        # Closed again: what has become a program has pipes that somebody waits for the end of.
        got = [libc.syscall(ctypes.c_long(438), pidfd, number, 0) for number in range(12)]
        for fd in [pidfd, *got]:
            if fd >= 0: os.close(fd)
        return any(fd >= 0 for fd in got)
    if what in ("fd", "map_files"):
        return any(os.readlink(f"/proc/{pid}/{what}/{name}") for name in os.listdir(f"/proc/{pid}/{what}"))
    return bool(text(f"/proc/{pid}/{what}"))
print("ready", flush=True)
while not stop:
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        try:
            comm = text(f"/proc/{pid}/comm").strip()
        except OSError: continue
        if comm in (b"env", b"true") and not os.path.exists(sys.argv[1]): open(sys.argv[1], "w").close()
        if not comm.startswith(b"airlock"): continue
        for what in ("environ", "auxv", "maps", "fd", "map_files", "descriptors"):
            try:
                looks += 1
                if take(pid, what) and text(f"/proc/{pid}/comm").strip() == comm: seen.add(f"{what} of {comm}")
            except OSError: pass
print(json.dumps([sorted(seen), looks]), flush=True)
'''


class Deputy(Case):

    def setUp(self):
        super().setUp()
        self.daemon = self.up(f'contexts:\n  platform: {{cwd: {self.work}, child_context: user, route_child: always}}\n'
                              f'  user: {{cwd: {self.work}}}\n')
        self.router = self.runtime + '/router.sock'
        self.use = self.write(self.dir + '/use.py', USE)

    def request(self, mark, context=b''):
        """Of a program that leaves a file of this name."""
        touch = [b'/usr/bin/touch', f'{self.work}/{mark}'.encode()]
        return wire.frame(wire.EXEC_REQUEST, wire.exec_request(touch, context=context)).hex()

    def has_run(self, mark):
        return os.path.exists(f'{self.work}/{mark}')

    def code(self, text, *arguments, context='platform'):
        ended = self.exec_in(context, PYTHON, '-S', '-c', START + text, *arguments)
        self.assertEqual(ended.status, 0, ended.err)
        return json.loads(ended.out)

    def last_rule(self):
        return json.loads(self.airlock('-o', 'json', 'routes').out.splitlines()[-1])['rule']

    def refuses(self, got, mark):
        self.assertFalse(self.has_run(mark), got)
        self.assertNotEqual(got, RAN)

    # --- connections of others

    def test_a_connection_that_a_child_inherits(self):
        use = (f'c = wire.connect({self.router!r})\nos.set_inheritable(c.fileno(), True)\n'
               f'argv = [{PYTHON!r}, "-S", {self.use!r}, str(c.fileno()), sys.argv[1]]\n')
        routed = use + 'print(subprocess.run(argv, close_fds=False, stdout=subprocess.PIPE, text=True).stdout)'
        self.refuses(self.code(routed, self.request('leaked')), 'leaked')
        self.assertEqual(self.last_rule(), 'identity')
        control = use + 'sys.argv = argv[2:]; exec(open(argv[2]).read())'
        self.assertEqual(self.code(control, self.request('own')), RAN)
        self.assertTrue(self.has_run('own'), 'control: its maker is served')

    def taker(self, place, mark, context=b''):
        """A program of the user context that waits to be handed a connection, says so, and uses it at a line's notice."""
        process = self.start([AIRLOCK, 'exec', '-i', 'user', '--', PYTHON, '-S', '-c', START + f'''
s = socket.socket(socket.AF_UNIX); s.bind({place!r}); s.listen(); print("ready", flush=True)
peer = s.accept()[0]
_, fds, _, _ = socket.recv_fds(peer, 1, 1)
print("held", flush=True); sys.stdin.readline()
sys.argv = ["", str(fds[0]), {self.request(mark, context)!r}]
exec(open({self.use!r}).read())'''], stdin=subprocess.PIPE)
        self.assertEqual(self.line_of(process), b'ready\n')
        return process

    def use_what_was_given(self, taker, mark):
        taker.stdin.write(b'\n')
        self.refuses(json.loads(self.line_of(taker)), mark)

    def give(self, place):
        return f'c = wire.connect({self.router!r}); s = wire.connect({place!r}); socket.send_fds(s, [b"x"], [c.fileno()])\n'

    def test_a_connection_that_is_passed(self):
        taker = self.taker(self.work + '/place', 'passed')
        giver = self.start([AIRLOCK, 'exec', 'platform', '--', PYTHON, '-S', '-c', START + self.give(self.work + '/place') + 's.recv(1)'])
        self.assertEqual(self.line_of(taker), b'held\n')
        self.use_what_was_given(taker, 'passed')
        self.assertEqual(self.finish(giver).status, 0, 'it was there meanwhile')
        self.assertEqual(self.last_rule(), 'identity')

    def test_a_control_connection_that_is_passed(self):
        place, control = self.work + '/place', self.runtime + '/control.sock'
        taker = self.taker(place, 'controlled', b'platform')
        with wire.connect(control) as connection, wire.connect(place) as to:
            socket.send_fds(to, [b'x'], [connection.fileno()])
            self.assertEqual(self.line_of(taker), b'held\n')
            self.use_what_was_given(taker, 'controlled')
        with wire.connect(control) as own:
            own.sendall(bytes.fromhex(self.request('own', b'platform')))
            self.assertEqual([kind for kind, _ in wire.answers(own)], RAN, 'control: its maker is served')

    def test_a_connection_whose_maker_has_ended(self):
        taker = self.taker(self.work + '/place', 'orphan')
        self.assertEqual(self.code(self.give(self.work + '/place') + 'print(1)'), 1)
        self.assertEqual(self.line_of(taker), b'held\n')
        self.use_what_was_given(taker, 'orphan')

    def test_a_process_with_the_number_of_one_that_ended(self):
        # In the platform, which may use the router and choose numbers (clone3's set_tid): still, a number is no identity.
        agent = self.start([AIRLOCK, 'exec', '-i', 'platform', '--', PYTHON, '-S', '-c', START + f'''
import ctypes, struct
left, right = socket.socketpair()
maker = os.fork()
if maker == 0:
    connection = wire.connect({self.router!r})
    socket.send_fds(left, [b"x"], [connection.fileno()])
    left.recv(1)
    os._exit(0)
_, fds, _, _ = socket.recv_fds(right, 1, 1)
print(maker, flush=True)
numbers = (ctypes.c_int * 2)(maker, int(sys.stdin.readline()))  # its own namespace's first, then the daemon's
right.send(b"x")
os.waitpid(maker, 0)
call = ctypes.create_string_buffer(struct.pack("11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(numbers), 2, 0))
again = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(435), call, ctypes.c_long(88))
if again == 0:
    sys.argv = ["", str(fds[0]), {self.request('reused')!r}]
    exec(open({self.use!r}).read())
    sys.stdout.flush()
    os._exit(0)
if again != maker: print(json.dumps("the number is not free: " + os.strerror(ctypes.get_errno())), flush=True)
os.waitpid(again, 0)'''], stdin=subprocess.PIPE)
        inner = int(self.line_of(agent))
        agent.stdin.write(b'%d\n' % pid_of(inner, self.namespace_of('platform')))
        got = json.loads(self.line_of(agent))
        self.assertNotIn('free', str(got), 'control: it was reused')
        self.refuses(got, 'reused')
        self.assertEqual(self.last_rule(), 'identity')

    # --- once more

    def test_a_connection_serves_one_request(self):
        twice = (f'c = wire.connect({self.router!r}); c.sendall(bytes.fromhex(sys.argv[1]) + bytes.fromhex(sys.argv[2]))\n'
                 'print(json.dumps([kind for kind, _ in wire.answers(c)]))')
        got = self.code(twice, self.request('one'), self.request('two'))
        self.assertTrue(self.has_run('one'), 'control')
        self.assertFalse(self.has_run('two'), got)

    def test_bytes_that_are_said_again(self):
        # What a stub has sent holds no secret: repeated, by whoever may ask, it is a request of its own; by others nothing.
        request = self.request('again')
        say = f'c = wire.connect({self.router!r}); c.sendall(bytes.fromhex(sys.argv[1])); print(json.dumps([k for k, _ in wire.answers(c)]))'
        self.assertEqual(self.code(say, request), RAN)
        os.unlink(f'{self.work}/again')
        ended = self.exec_in('user', PYTHON, '-S', '-c', START + say, request)
        self.assertIn('FileNotFoundError', ended.err)
        connection = wire.connect(self.runtime + '/view/platform/router.sock')
        connection.sendall(bytes.fromhex(request))
        self.assertEqual([kind for kind, _ in wire.answers(connection)], REFUSED)
        connection.close()
        self.assertFalse(self.has_run('again'))

    def test_a_name_that_is_used_again(self):
        # A connection made in a context that has ended is not one of the next context with that name.
        place = self.work + '/place'
        self.ask('ctx', 'create', 'brief', '--cwd', self.work, '--child-context', 'user')
        taker = self.taker(place, 'renamed')
        self.assertEqual(self.code(self.give(place) + 'print(1)', context='brief'), 1)
        self.assertEqual(self.line_of(taker), b'held\n')
        self.ask('ctx', 'rm', 'brief')
        self.ask('ctx', 'create', 'brief', '--cwd', self.work, '--child-context', 'user')
        self.use_what_was_given(taker, 'renamed')
        say = f'c = wire.connect({self.router!r}); c.sendall(bytes.fromhex(sys.argv[1])); print(json.dumps([k for k, _ in wire.answers(c)]))'
        self.assertEqual(self.code(say, self.request('anew'), context='brief'), RAN, 'control')

    # --- who watches

    def test_spawns_under_observation(self):
        """A program of the context looks at init, spawner and what they are about to start, all the time."""
        count = int(os.environ.get('AIRLOCK_SPAWNS', 100_000 if IS_FULL else 500))
        saw = self.work + '/saw'
        watcher = self.start([AIRLOCK, 'exec', 'user', '--', PYTHON, '-S', self.write(self.dir + '/watch.py', WATCH), saw])
        self.assertEqual(self.line_of(watcher), b'ready\n')
        files = open_files(self.daemon)
        spawn = ('import collections, os, sys\nends = collections.Counter()\n'
                 'while sum(ends.values()) < int(sys.argv[1]) or not os.path.exists(sys.argv[2]):\n'
                 '    pid = os.posix_spawn("/usr/bin/env", ["env", "true"], {"PATH": "/usr/bin:/bin"})\n'
                 '    ends[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])] += 1\nprint(list(ends))')
        ended = self.exec_in('platform', PYTHON, '-S', '-c', spawn, str(count), saw, patience=PATIENCE * (60 if IS_FULL else 1))
        self.assertEqual(ended.out, '[0]\n', ended.err)
        for pid in members(self.namespace_of('user')):
            if PYTHON.encode() in self.arguments(pid):
                os.kill(pid, signal.SIGTERM)
        seen, looks = json.loads(self.line_of(watcher))
        self.assertEqual(seen, [])
        self.assertGreater(looks, 0, 'control: it looked')
        eventually(lambda: open_files(self.daemon) <= files, 'the daemon has no more descriptors than before')
        print(f'{count} spawns, {looks} looks', flush=True)

    def arguments(self, pid):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                return file.read().split(b'\0')
        except OSError:
            return []


if __name__ == '__main__':
    main()
