"""What a parent can observe of a child, bare and routed: state an exec keeps, signals, stops, ends, groups.
The agent is Python; each script runs bare and routed, and both must print the same (docs/SEMANTICS.md)."""

import contextlib
import ctypes
import errno
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

from harness import (AIRLOCK, BIN, Case, FIXTURES, LOST, REFUSED, command_line, descendants, eventually,
                     main, open_files)

sys.path.insert(0, FIXTURES)
import wire

FULL = os.environ.get('AIRLOCK_FULL') == '1'
PROBE = BIN + '/airlock-test-probe'
STATIC = BIN + '/airlock-test-where-static'

PRELUDE = '''
import ctypes, fcntl, json, os, resource, select, signal, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_TIMERSLACK, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 29, 36, 38
PROBE = {probe!r}
def prctl(option, value): assert libc.prctl(option, value, 0, 0, 0) == 0
def wait(pid, options=0):
    _, status = os.waitpid(pid, options)
    for name in ('WIFSTOPPED', 'WIFCONTINUED', 'WIFSIGNALED', 'WIFEXITED'):
        if getattr(os, name)(status):
            return name[3:], {{'S': os.WSTOPSIG, 'C': lambda s: 0}}.get(name[3], lambda s: os.waitstatus_to_exitcode(s))(status)
def members(group):
    found = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{{name}}/stat') as file: fields = file.read().rsplit(')', 1)[1].split()
        except OSError: continue
        if int(fields[2]) == group and fields[0] != 'Z': found.append(name)
    return found
def popen(script, **options):
    return subprocess.Popen([sys.executable, '-c', PROLOGUE + script], stdout=subprocess.PIPE, text=True, **options)
PROLOGUE = 'import os, signal, sys, time\\n'
'''.format(probe=PROBE)


class Oracle(Case):
    maxDiff = None

    def both(self, script, expect, *, env=None):
        """Runs the script as an agent both ways. `expect` must be in what the bare run prints."""
        agent = ['/usr/bin/python3', '-c', PRELUDE + script]
        bare = self.run_program(agent, env=env)
        self.assertEqual((bare.status, bare.err), (0, ''))
        self.assertIn(expect, bare.out, 'control')
        routed = self.routed(*agent, env=env)
        self.assertEqual((routed.status, routed.err, routed.out), (0, '', bare.out))


class State(Oracle):
    """What execve(2) keeps. The probe prints all of it; numbers of a namespace are reduced to relations."""
    SHOW = '''
KEYS = ('uid euid gid egid groups SigBlk SigIgn ShdPnd SigPnd NoNewPrivs nofile core umask nice personality cpus subreaper pdeathsig slack '
        'scheduler oom_score_adj leads_group leads_session timer1 ioprio').split()
def show(change=None, keys=KEYS, **options):
    out = subprocess.run([PROBE, '1'], preexec_fn=change, stdout=subprocess.PIPE, text=True, **options).stdout
    told = dict(line.split('=', 1) for line in out.splitlines() if '=' in line)
    told['leads_group'], told['leads_session'] = told['pgrp'] == told['pid'], told['sid'] == told['pid']
    print({key: told.get(key) for key in keys})
'''

    def test_nothing_changed(self):
        self.both(self.SHOW + 'show()', "'leads_group': False")

    def test_limits_and_priorities(self):
        self.both(self.SHOW + '''
show(lambda: os.umask(0o137))
show(lambda: os.nice(7))
show(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (123, 456)))
show(lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 4096)))
show(lambda: os.sched_setaffinity(0, {0}))
show(lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)))
show(lambda: libc.syscall(251, 1, 0, (3 << 13)))
show(lambda: libc.personality(0x0040000))
def oom(): open('/proc/self/oom_score_adj', 'w').write('321')
show(oom)
''', "'oom_score_adj': '321'")

    def test_attributes(self):
        self.both(self.SHOW + '''
show(lambda: prctl(PR_SET_PDEATHSIG, signal.SIGUSR1))
show(lambda: prctl(PR_SET_TIMERSLACK, 12345))
show(lambda: prctl(PR_SET_CHILD_SUBREAPER, 1))
show(lambda: prctl(PR_SET_NO_NEW_PRIVS, 1))
show(lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 1000.9))
''', "'timer1': '1000,0'")

    def test_groups_and_sessions(self):
        self.both(self.SHOW + '''
show(lambda: os.setpgid(0, 0))
show(os.setsid)
show(start_new_session=True)
show(process_group=0)
# A child that leads no group may make a session, and setsid(1) does not fork.
print(subprocess.run([sys.executable, '-c', 'import os; os.setsid(); print(os.getsid(0) == os.getpid())'], capture_output=True, text=True).stdout)
print(subprocess.run(['setsid', 'sh', '-c', 'exit 7']).returncode)
''', '7\n')

    def test_signals(self):
        self.both(self.SHOW + '''
def block(*numbers):
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
def pending():
    block(signal.SIGUSR1, signal.SIGRTMIN + 3)
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGRTMIN + 3)
show(lambda: block(signal.SIGUSR2, signal.SIGTERM, 40, 64))
show(pending)
def ignore():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGCHLD, signal.SIGTSTP, signal.SIGRTMAX): signal.signal(number, signal.SIG_IGN)
show(ignore, restore_signals=False)
''', "'ShdPnd'")

    def test_ids(self):
        self.both(self.SHOW + '''
show(user=65534, group=65533, extra_groups=[7, 65532], cwd='/')
show(user=0, group=12, extra_groups=[])
''', "'groups': '7,65532'")

    def test_a_timer_goes_on(self):
        # alarm(2) survives an exec: it ends the program, and it can be asked and cancelled there.
        self.both('''
def armed(seconds): return lambda: signal.setitimer(signal.ITIMER_REAL, seconds)
print(subprocess.run(['sleep', '1000'], preexec_fn=armed(0.05)).returncode)
print(subprocess.run([sys.executable, '-c', 'import signal; print(signal.alarm(0) in (999, 1000))'], preexec_fn=armed(1000), capture_output=True, text=True).stdout)
''', '-14\nTrue')


class Signals(Oracle):
    def test_every_number_arrives(self):
        self.both('''
child = popen("""
def say(number, frame): os.write(1, b"%d\\\\n" % number)
for number in range(1, 65):
    if number not in (9, 19, 32, 33): signal.signal(number, say)
print('ready', flush=True)
while True: signal.pause()
""")
print(child.stdout.readline(), end='')
for number in range(1, 65):
    if number in (9, 19, 32, 33): continue
    os.kill(child.pid, number)
    print(child.stdout.readline(), end='')
child.kill(); print(child.wait())
''', 'ready\n1\n2\n3\n')

    def test_to_the_process_or_to_its_group(self):
        # In the short life of a stub in which it cannot tell which it was, it takes all for its group's:
        # so first wait until the group has two members (bare: the family; routed: stub and witness).
        self.both('''
SCRIPT = """
import subprocess
name = sys.argv[1]
for number in (1, 10, 12, 15, 40):
    signal.signal(number, lambda number, frame: os.write(1, f"{name} {number}\\\\n".encode()))
if name == 'parent':
    child = subprocess.Popen([sys.executable, '-c', sys.argv[2], 'child', sys.argv[2]])
else:
    print('ready', flush=True)
while True: signal.pause()
"""
code = PROLOGUE + SCRIPT
leader = subprocess.Popen([sys.executable, '-c', code, 'parent', code], stdout=subprocess.PIPE, text=True, process_group=0)
print(leader.stdout.readline(), end='')
while len(members(leader.pid)) < 2: pass
for number in (1, 10, 40):
    os.kill(leader.pid, number)
    print('process', leader.stdout.readline(), end='')
for number in (10, 12, 15, 40):
    os.killpg(leader.pid, number)
    print('group', sorted(leader.stdout.readline() for _ in range(2)))
os.kill(leader.pid, 15)
print('process', leader.stdout.readline(), end='')
os.killpg(leader.pid, 9)
print(leader.wait(), repr(leader.stdout.read()))
while members(leader.pid): pass
''', "group ['child 15")

    def test_before_the_program_runs(self):
        self.both('''
for number in (1, 2, 10, 14, 15, 35, 64):
    print(number, end=' ')
    child = subprocess.Popen(['sleep', '1000'])
    child.send_signal(number)
    print(child.wait())
child = subprocess.Popen(['sleep', '1000']); child.kill(); print(child.wait())
''', '15 -15\n')

    def test_death(self):
        self.both('''
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for number in [*range(1, 32), *range(34, 65)]:
    if number not in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        print(number, subprocess.run(['sh', '-c', f'kill -{number} $$; exit 3']).returncode)
print([subprocess.run(['sh', '-c', f'exit {code}']).returncode for code in (0, 1, 2, 77, 124, 125, 126, 127, 128, 255)])
''', '11 -11\n')

    def test_stop_and_continue(self):
        self.both('''
for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
    child = subprocess.Popen(['sh', '-c', f'kill -{int(number)} $$; echo on; exit 5'], stdout=subprocess.PIPE, process_group=0)
    print(wait(child.pid, os.WUNTRACED))
    os.kill(child.pid, signal.SIGCONT)
    print(wait(child.pid, os.WCONTINUED), child.stdout.read())
    print(wait(child.pid))
# By its parent: ps, which runs where the child runs, sees that it really stops.
child = popen("print(os.getpid(), flush=True); sys.stdin.read()", stdin=subprocess.PIPE, process_group=0)
pid = child.stdout.readline().strip()
def state(): return subprocess.run(['ps', '-o', 'stat=', '-p', pid], capture_output=True, text=True).stdout[0]
print(state())
# A stub watches for SIGSTOP, as its tracer, once its program has run for a while.
def tracer(): return open(f'/proc/{child.pid}/status').read().split('TracerPid:')[1].split()[0]
def await_watch():
    while 'AIRLOCK_LAUNCH' in os.environ and tracer() == '0': pass
for send in (child.send_signal, lambda number: os.killpg(child.pid, number)) * 3:
  for number in (signal.SIGTSTP, signal.SIGTTOU, signal.SIGSTOP):
    await_watch()
    send(number)
    print(wait(child.pid, os.WUNTRACED))
    while state() != 'T': pass
    send(signal.SIGCONT)
    print(wait(child.pid, os.WCONTINUED))
    while state() != 'S': pass
child.stdin.close()
print(wait(child.pid))
''', "('STOPPED', 19)")


class Life(Oracle):
    def test_killed_groups_end(self):
        # The descendants hold the pipe: it ends when they have.
        self.both('''
child = subprocess.Popen(['sh', '-c', 'sleep 1000 & sh -c "sleep 1000; :" & echo ready; wait'], stdout=subprocess.PIPE, process_group=0)
print(child.stdout.readline())
os.killpg(child.pid, 9)
print(child.wait(), child.stdout.read())
''', '-9')

    def test_the_end_of_a_killed_stub_is_its_groups(self):
        # Bare, a SIGKILL leaves the children of the killed one; routed, its group goes with it (on_stub_kill).
        ended = self.routed('/usr/bin/python3', '-c', PRELUDE + '''
child = subprocess.Popen(['sh', '-c', 'sleep 1000 & echo ready; wait'], stdout=subprocess.PIPE)
print(child.stdout.readline())
child.kill()
print(child.wait(), child.stdout.read())
''')
        self.assertEqual((ended.status, ended.err, ended.out), (0, '', "b'ready\\n'\n-9 b''\n"))

    def test_daemons_survive_their_starter(self):
        self.both('''
readable, writable = os.pipe()
waiting, gate = os.pipe()
os.dup2(waiting, 30); os.dup2(writable, 31)
code = 'if os.fork(): os._exit(4)\\nos.setsid(); os.read(30, 1); os.write(31, b"alive")'
print(subprocess.run([sys.executable, '-c', PROLOGUE + code], pass_fds=(30, 31)).returncode)
os.write(gate, b'x')
print(os.read(readable, 100))
''', "4\nb'alive'")

    def test_a_parents_death(self):
        # Without PDEATHSIG a child goes on, with it the child is told.
        self.both('''
readable, writable = os.pipe()
os.dup2(writable, 31)
code = PROLOGUE + 'signal.signal(15, lambda *a: os.write(31, b"told")); os.write(32, b"x")\\nwhile os.read(33, 1): os.write(31, b"alive")'
for sig in (0, signal.SIGTERM):
    started, starting = os.pipe()
    waiting, gate = os.pipe()
    os.dup2(starting, 32); os.dup2(waiting, 33); os.close(waiting); os.close(starting)
    pid = os.fork()
    if pid == 0:
        subprocess.Popen([sys.executable, '-c', code], pass_fds=(31, 32, 33), preexec_fn=lambda: sig and prctl(PR_SET_PDEATHSIG, sig))
        os.read(started, 1)
        os._exit(0)
    os.waitpid(pid, 0)
    if sig: print(os.read(readable, 100))
    os.write(gate, b'x')
    print(os.read(readable, 100))
    os.close(gate); os.close(33)
''', "b'alive'\nb'told'\nb'alive'")


class Concurrency(Oracle):
    def test_64_threads(self):
        self.both('''
results = [None] * 64
start = threading.Barrier(64)
def run(i):
    start.wait()
    results[i] = [subprocess.run(['sh', '-c', f'printf "{i} "; exit {i % 7}'], capture_output=True, text=True).stdout for _ in range(3)]
threads = [threading.Thread(target=run, args=(i,)) for i in range(64)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results == [[f'{i} '] * 3 for i in range(64)])
''', 'True')

    def test_from_a_signal_handler(self):
        self.both('''
ran = []
def handler(number, frame): ran.append(subprocess.run(['sh', '-c', 'exit 3']).returncode)
signal.signal(signal.SIGUSR1, handler)
for _ in range(20): os.kill(os.getpid(), signal.SIGUSR1)
print(ran)
''', '[3, 3, 3')

    def test_while_malloc_is_busy(self):
        # malloc_trim(3) holds the lock of an arena for as long as it takes to walk it; ctypes lets go of Python's meanwhile.
        self.both('''
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
blocks = [libc.malloc(4096) for _ in range(20000)]
for block in blocks[::2]: libc.free(block)
trims, done = [], threading.Event()
def trim():
    while not done.is_set(): trims.append(libc.malloc_trim(0))
threads = [threading.Thread(target=trim) for _ in range(2)]
for thread in threads: thread.start()
ends = [subprocess.run(['sh', '-c', 'exit 3']).returncode for _ in range(30)]
ends += [os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', 'exit 4'], os.environ), 0)[1]) for _ in range(30)]
done.set()
for thread in threads: thread.join()
print(ends == [3] * 30 + [4] * 30, len(trims) > 0)
''', 'True True')

    def test_a_large_parent(self):
        size = 2048 if FULL else 512
        self.both(f'''
memory = bytearray(os.urandom(1 << 20)) * {size}
print([subprocess.run(['sh', '-c', 'exit 3']).returncode for _ in range(3)], len(memory) >> 20)
''', f'[3, 3, 3] {size}')


class Late(Oracle):
    """What only the context finds out: 126 or 127, one line, and a record in the route log."""

    def routed_with_log(self, script):
        log = self.work + '/log'
        ended = self.routed('/usr/bin/python3', '-c', PRELUDE + script, options=['--route-log', log])
        with open(log) as file:
            records = [json.loads(line) for line in file]
        return ended, [record for record in records if record['outcome'] == 'failed']

    def test_late_failures_are_logged(self):
        script = '''
def told(argv):
    try: done = subprocess.run(argv, capture_output=True, text=True)
    except OSError as error: return error.strerror
    return done.returncode, done.stderr
with open('busy', 'wb') as file, open('/bin/true', 'rb') as original:
    file.write(original.read()); file.flush(); os.chmod('busy', 0o755)
    print(told(['./busy']))
os.makedirs(os.environ['HOME'] + '/own', exist_ok=True)
program = os.environ['HOME'] + '/own/program'
with open(program, 'w') as file: file.write('#!/bin/sh\\nexit 3\\n')
os.chmod(program, 0o755)
print(told([program]))
'''
        bare = self.run_program(['/usr/bin/python3', '-c', PRELUDE + script])
        self.assertEqual(bare.out, "Text file busy\n(3, '')\n", 'control')
        ended, failed = self.routed_with_log(script)
        self.assertEqual(ended.out.splitlines(), [
            "(126, 'airlock: ./busy: Text file busy\\n')",
            f"(127, 'airlock: {self.home}/own/program: not found in the context\\n')"])
        self.assertEqual([(record['program'], record['reason']) for record in failed], [
            ('./busy', './busy: Text file busy'),
            (self.home + '/own/program', self.home + '/own/program: not found in the context')])
        self.assertTrue(all(record['job'] and record['to'] == 'user' for record in failed))

    def test_no_descriptor_is_free(self):
        # A static program needs none. The stub does, for its router: refused, and nothing runs.
        ended = self.routed('/usr/bin/python3', '-c', PRELUDE + f'''
def run(limit): return subprocess.run([{STATIC!r}, 'x'], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)), capture_output=True, text=True)
few, enough = run(3), run(64)
print(few.returncode, repr(few.stderr)); print(enough.returncode, bool(enough.stdout))
''')
        line = f'airlock: {STATIC} was not started: router unreachable: socket: No file descriptors available\n'
        self.assertEqual(ended.out, f'126 {line!r}\n0 True\n')


class Descriptors(Oracle):
    def test_shared_offset(self):
        # One file as stdout and stderr, and read on by the parent: one offset for all.
        self.both('''
with open('file', 'w+') as file:
    file.write('first '); file.flush()
    subprocess.run(['sh', '-c', 'printf "out "; printf "err " >&2; printf "out "'], stdout=file, stderr=file)
    print(os.lseek(file.fileno(), 0, os.SEEK_CUR))
    file.write('last'); file.flush()
print(open('file').read())
with open('file', 'rb', buffering=0) as file:
    print(subprocess.run(['head', '-c', '6'], stdin=file, capture_output=True).stdout, file.read())
''', 'first out err out last')

    def test_locks(self):
        # flock(2) and OFD locks are the open file's: they travel, and last as long as the child.
        self.both('''
file = open('locked', 'w')
fcntl.flock(file, fcntl.LOCK_EX)
child = subprocess.Popen(['cat'], stdin=subprocess.PIPE, pass_fds=[file.fileno()])
file.close()
other = open('locked')
def is_free():
    try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: return False
    return True
print(is_free())
child.stdin.close(); child.wait()
print(is_free())
''', 'False\nTrue')


class SlowDisk:
    """A file system by FUSE(4) with one program whose content comes only when released. By hand, since
    nothing else on a machine can be as slow at will."""
    CONTENT = b'#!/bin/sh\necho slow; exit 5\n'
    LOOKUP, FORGET, GETATTR, OPEN, READ, INIT = 1, 2, 3, 14, 15, 26

    def __init__(self, folder):
        self.folder, self.held, self.reading = folder, [], threading.Event()
        self.released = False
        self.device = os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC)
        options = f'fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions'
        if ctypes.CDLL(None, use_errno=True).mount(b'slow', folder.encode(), b'fuse', 6, options.encode()) != 0:
            os.close(self.device)
            raise OSError(ctypes.get_errno(), 'mount a FUSE file system')
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def attributes(self, node):
        mode, size = (0o40755, 0) if node == 1 else (0o100755, len(self.CONTENT))
        return struct.pack('<QQQQQQIIIIIIIIII', node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def reply(self, unique, data=b'', error=0):
        with contextlib.suppress(FileNotFoundError):  # who asked was interrupted
            os.write(self.device, struct.pack('<IiQ', 16 + len(data), -error, unique) + data)

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 1 << 20)
            except OSError:  # ENODEV: unmounted
                return
            _, opcode, unique, node = struct.unpack_from('<IIQQ', request)
            if opcode == self.INIT:
                self.reply(unique, struct.pack('<IIIIHHIIHH', 7, 31, 0, 0, 0, 0, 1 << 16, 1, 0, 0) + bytes(32))
            elif opcode == self.LOOKUP:
                found = request[40:-1] == b'program'
                self.reply(unique, struct.pack('<QQQQII', 2, 0, 1, 1, 0, 0) + self.attributes(2) if found else b'',
                           0 if found else errno.ENOENT)
            elif opcode == self.GETATTR:
                self.reply(unique, struct.pack('<QII', 1, 0, 0) + self.attributes(node))
            elif opcode == self.OPEN:
                self.reply(unique, struct.pack('<QII', 1, 0, 0))
            elif opcode == self.READ:
                self.held.append(unique)
                self.reading.set()
                if self.released:
                    self.answer_reads()
            elif opcode != self.FORGET:
                self.reply(unique, error=errno.ENOSYS)

    def answer_reads(self):
        while self.held:
            with contextlib.suppress(OSError):  # whoever asked may have been killed
                self.reply(self.held.pop(), self.CONTENT)

    def release(self):
        self.released = True
        self.answer_reads()

    def close(self):
        self.release()
        subprocess.run(['umount', '-l', self.folder], check=True)
        os.close(self.device)


class Slow(Case):
    def test_slow_exec_stops_nobody(self):
        os.mkdir(self.dir + '/disk')
        try:
            disk = SlowDisk(self.dir + '/disk')
        except OSError as reason:
            self.skipTest(str(reason))
        self.addCleanup(disk.close)
        self.up()
        first, second = (self.start([AIRLOCK, 'exec', 'user', '--', self.dir + '/disk/program']) for _ in range(2))
        self.assertTrue(disk.reading.wait(60), 'control: it is being read')
        for i in range(10):
            self.assertEqual(self.exec_in('user', 'sh', '-c', f'exit {i}').status, i)
        self.assertIsNone(first.poll(), 'control: all that was meanwhile')
        second.kill()
        self.assertEqual(second.wait(), -9)
        disk.release()
        ended = self.finish(first)
        self.assertEqual((ended.status, ended.out, ended.err), (5, 'slow\n', ''))


class Stub(Case):
    """The stub and a router that is none of ours."""

    def setUp(self):
        super().setUp()
        self.stub = shutil.copy(BIN + '/airlock-stub', self.dir)
        self.listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.listener.close)

    def listen(self):
        self.listener.bind(self.dir + '/router.sock')
        self.listener.listen()

    def call(self):
        # Not a pipe: of one that the program alone had, nobody reads the line any more.
        with open(self.dir + '/err', 'w') as err:
            return self.start([self.stub, 'exec1', '/usr/bin/touch', 'touch', self.work + '/ran'], stderr=err)

    def expect_closed(self, process, code, *fragments):
        ended = self.finish(process)
        with open(self.dir + '/err') as err:
            ended.err = err.read()
        self.expect_error(ended, code, *fragments)
        self.assertFalse(os.path.exists(self.work + '/ran'))

    def test_cut_after_every_message(self):
        self.listen()
        answers = [wire.frame(wire.STARTED, struct.pack('<Qi', 16, 5)), wire.frame(3, struct.pack('<i', signal.SIGTSTP)),
                   wire.frame(4), wire.frame(wire.EXITED, struct.pack('<iQQQB', 7 << 8, 0, 0, 0, 0) + bytes(22))]  # and an empty ShellResult
        whole = b''.join(answers)
        ends = [sum(map(len, answers[:count])) for count in range(len(answers) + 1)]
        for cut in sorted({0, 1, 5, 11, 12, 13, *ends, *(end - 1 for end in ends[1:])}):
            with self.subTest(cut=cut):
                process = self.call()
                connection, _ = self.listener.accept()
                self.assertEqual(wire.receive(connection)[0], wire.EXEC_REQUEST)
                connection.sendall(whole[:cut])
                connection.close()
                if cut == len(whole):
                    self.assertEqual(self.finish(process).status, 7, 'control')
                else:
                    self.expect_closed(process, LOST if cut >= ends[1] else REFUSED, '/usr/bin/touch')

    def test_cut_inside_the_request(self):
        self.listen()
        for size in (0, 1, 12, 100):
            process = self.call()
            connection, _ = self.listener.accept()
            if size:
                connection.recv(size)
            connection.close()
            self.expect_closed(process, REFUSED, 'was not started')

    def test_nonsense_from_the_router(self):
        self.listen()
        for data in (b'HTTP/1.1 400 Bad Request\r\n\r\n', bytes(64), wire.frame(99), wire.frame(wire.EXEC_REQUEST, b'x'),
                     wire.frame(wire.NOT_STARTED, b'short'), wire.header(4, wire.STARTED, version=9) + b'abcd'):
            with self.subTest(data=data[:12]):
                process = self.call()
                connection, _ = self.listener.accept()
                wire.receive(connection)
                connection.sendall(data)
                self.expect_closed(process, REFUSED, 'was not started')
                connection.close()

    def test_somebody_elses_router(self):
        os.chmod(self.dir, 0o777)
        pid = os.fork()
        if pid == 0:
            os.setuid(65534)
            self.listen()
            os._exit(0)
        os.waitpid(pid, 0)
        self.expect_closed(self.call(), REFUSED, 'router unreachable')
        os.unlink(self.dir + '/router.sock')
        listener = self.start(['setpriv', '--reuid', '65534', '--clear-groups', '/usr/bin/python3', '-c',
                               'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print(1, flush=True); s.accept()',
                               self.dir + '/router.sock'])
        self.line_of(listener)
        os.chmod(self.dir + '/router.sock', 0o777)
        self.expect_closed(self.call(), REFUSED, 'uid 65534 listens there')
        self.end(listener)

    def test_context_without_a_route(self):
        self.up()
        ended = self.exec_in('user', self.stub, 'exec1', '/usr/bin/touch', 'touch', self.work + '/ran')
        self.expect_error(ended, REFUSED, 'router unreachable')
        self.assertFalse(os.path.exists(self.work + '/ran'))

    def test_a_thousand_stubs(self):
        self.up()
        stub = self.runtime + '/airlock-stub'
        words = [stub, 'exec1'] * 1000 + ['/usr/bin/touch', 'touch', self.work + '/ran']
        ended = self.airlock('run', '--', '/usr/bin/python3', '-c',
                             'import os, sys; os.execv(sys.argv[1], sys.argv[1:])', *words)
        self.expect_error(ended, REFUSED, 'stub')
        self.assertFalse(os.path.exists(self.work + '/ran'))


class Many(Case):
    """Spawns leave nothing behind: not a process, a descriptor or memory, in the daemon and both inits."""
    COUNT = 50000 if FULL else 1000

    def census(self, daemon):
        found = {}
        for pid in [daemon, *descendants(daemon)]:
            with open(f'/proc/{pid}/status') as file:
                memory = next(int(line.split()[1]) for line in file if line.startswith('VmRSS'))
            found[pid] = (open_files(pid), memory)
        return found

    def test_100000_spawns(self):
        daemon = self.up()
        loop = 'i=0; while [ $i -lt %d ]; do /bin/true || exit 1; i=$((i+1)); done; exit 7'
        def run(count):
            agents = [self.start([AIRLOCK, 'run', '--', 'dash', '-c', loop % count]) for _ in range(2)]
            for agent in agents:
                ended = self.finish(agent, patience=3000)
                self.assertEqual((ended.status, ended.err), (7, ''))
        run(1100)  # the route log keeps the last 2000
        eventually(lambda: len(self.census(daemon)) <= 7, 'only the daemon, the inits and a few lenders')
        before = self.census(daemon)
        run(self.COUNT)
        eventually(lambda: len(self.census(daemon)) <= len(before), f'no process is left of {before}')
        after = self.census(daemon)
        for pid in before.keys() & after.keys():
            self.assertLessEqual(after[pid][0], before[pid][0], f'descriptors of {command_line(pid)}')
            self.assertLess(after[pid][1] - before[pid][1], 1500, f'KiB that {command_line(pid)} has grown by')
        self.assertIn(daemon, after)


if __name__ == '__main__':
    main()
