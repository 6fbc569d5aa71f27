"""What every integration test needs: a private place, programs with deadlines, a look at /proc, and
the proof that nothing is left behind.

Each test gets a fresh folder, HOME and runtime folder, and after each test no process, no mount, no
runtime folder and no descriptor may be left. This process is the subreaper of all it starts, so
whatever outlives its parent is found, however it was daemonised.
"""

import contextlib
import ctypes
import glob
import json
import os
import re
import secrets
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(os.path.dirname(HERE), 'fixtures')
BIN = os.environ.get('AIRLOCK_BIN') or os.path.join(HERE, '../../build/bin')
BIN = os.path.realpath(BIN)
AIRLOCK = BIN + '/airlock'
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
# What must never be seen outside the platform: different in each run, so that nothing matches it
# by chance.
CANARY = 'canary-' + secrets.token_hex(12)

# How long anything may take before it counts as hanging. Not a measure of speed: the machine may be
# busy, and the build may carry sanitizers.
PATIENCE = float(os.environ.get('AIRLOCK_TEST_PATIENCE', 60))

# Exit codes of airlock itself (docs/PROTOCOL.md).
USAGE, TIMED_OUT, LOST, REFUSED, NOT_FOUND = 2, 124, 125, 126, 127

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass
class Ended:
    """How a program ended: status as of subprocess (-N: killed by signal N)."""
    status: int
    out: str
    err: str


@dataclass
class Process:
    pid: int
    parent: int
    state: str


def processes():
    """All processes this one can see."""
    found = {}
    for name in os.listdir('/proc'):
        if not name.isdigit():
            continue
        try:
            with open(f'/proc/{name}/stat') as file:
                fields = file.read().rsplit(')', 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[int(name)] = Process(int(name), int(fields[1]), fields[0])
    return found


def descendants(of):
    """Pids below `of` that still run; zombies have ended."""
    everyone = processes()
    children = {}
    for process in everyone.values():
        children.setdefault(process.parent, []).append(process.pid)
    below, todo = [], [of]
    while todo:
        for pid in children.get(todo.pop(), []):
            todo.append(pid)
            if everyone[pid].state != 'Z':
                below.append(pid)
    return below


def namespace(pid='self', kind='pid'):
    """Inode of a process's namespace; 0 if it has gone (or is none of ours: EACCES)."""
    try:
        return os.stat(f'/proc/{pid}/ns/{kind}').st_ino
    except OSError:
        return 0


def is_running(pid):
    """False for who has ended, also if nobody has taken note of it yet (a zombie)."""
    process = processes().get(pid)
    return process is not None and process.state != 'Z'


def members(inode):
    """Our processes that run in a PID namespace, seen from outside. Ours only: the kernel gives the inode
    of a namespace that has ended to the next one, which may be another test's."""
    return [pid for pid in descendants(os.getpid()) if namespace(pid) == inode]


def runs_program(pid, program):
    """True if `pid` runs the file `program`."""
    try:
        return os.path.samestat(os.stat(f'/proc/{pid}/exe'), os.stat(program))
    except OSError:
        return False


def command_line(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            return file.read().replace(b'\0', b' ').decode(errors='replace').strip()
    except OSError:
        return '(gone)'


def eventually(is_true, what, patience=PATIENCE):
    """Waits for observable state that has no descriptor to wait on. Returns what is_true() gave."""
    deadline = time.monotonic() + patience
    while True:
        result = is_true()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f'still not so after {patience:.0f} s: {what}')
        time.sleep(0.005)


def open_files(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def pid_of(inner, inode):
    """The pid, seen from here, of pid `inner` of the PID namespace `inode`."""
    for pid in members(inode):
        try:
            with open(f'/proc/{pid}/status') as file:
                numbers = re.search(r'^NSpid:(.*)$', file.read(), re.M).group(1).split()
        except OSError:
            continue
        if int(numbers[-1]) == inner:
            return pid
    return None


class Case(unittest.TestCase):
    """A test with a place of its own."""

    folders = set()

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='al-', dir='/tmp')
        self.folders.add(self.dir)
        os.chmod(self.dir, 0o755)
        self.home, self.work = self.dir + '/home', self.dir + '/work'
        # Where embedded daemons put their folders, and where `airlock up` serves.
        self.parent, self.runtime = self.dir + '/p', self.dir + '/rt'
        for folder in (self.home, self.work, self.parent):
            os.mkdir(folder)
        self.env = {
            'PATH': PATH, 'HOME': self.home, 'USER': 'root', 'LOGNAME': 'root',
            'SHELL': '/bin/bash', 'LANG': 'C.UTF-8', 'TERM': 'xterm',
            'AIRLOCK_RUNTIME_DIR': self.runtime, 'AIRLOCK_RUNTIME_PARENT': self.parent,
            'PLATFORM_KEY': CANARY,
        }
        for name in ('ASAN_OPTIONS', 'UBSAN_OPTIONS', 'TSAN_OPTIONS'):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.own_files = open_files('self')
        self.addCleanup(self.expect_nothing_left)

    # --- running programs

    def start(self, argv, *, env=None, cwd=None, **options):
        """Popen in a session of its own; ended after the test if it still runs."""
        options.setdefault('stdin', subprocess.DEVNULL)
        options.setdefault('stdout', subprocess.PIPE)
        options.setdefault('stderr', subprocess.PIPE)
        # Unbuffered, so that select() knows of every line (line_of).
        process = subprocess.Popen(argv, bufsize=0, env={**self.env, **(env or {})}, cwd=cwd or self.work,
                                   start_new_session=True, **options)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def finish(self, process, stdin=None, patience=PATIENCE):
        try:
            out, err = process.communicate(stdin, timeout=patience)
        except subprocess.TimeoutExpired:
            self.fail(f'hangs: {process.args}')
        decode = lambda data: (data or b'').decode(errors='backslashreplace')
        self.end(process)
        return Ended(process.returncode, decode(out), decode(err))

    def line_of(self, process, stream=None):
        """The next line of its stdout, b'' at its end."""
        stream = stream or process.stdout
        if not select.select([stream], [], [], PATIENCE)[0]:
            self.fail(f'says nothing: {process.args}')
        return stream.readline()

    def run_program(self, argv, *, stdin=None, patience=PATIENCE, **options):
        if stdin is not None:
            options['stdin'] = subprocess.PIPE
        return self.finish(self.start(argv, **options), stdin, patience)

    def airlock(self, *arguments, **options):
        return self.run_program([AIRLOCK, *arguments], **options)

    def routed(self, *agent, options=(), **run_options):
        """`airlock run` of an agent with an embedded daemon, as in the issue."""
        return self.airlock('run', '--user-env', 'ROUTE_MARK=user', *options, '--', *agent,
                            **run_options)

    # --- a daemon that others share

    def write(self, name, text, mode=0o644):
        path = name if name.startswith('/') else f'{self.work}/{name}'
        with open(path, 'w') as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def up(self, config=None, env=None, options=()):
        """Starts a daemon; returns its pid."""
        config = config or f'contexts: {{platform: {{cwd: {self.work}}}, user: {{cwd: {self.work}}}}}\n'
        file = self.write(self.dir + '/airlock.yaml', config)
        started = self.airlock('up', '--config', file, *options, env=env)
        self.assertEqual(started.status, 0, started.err)
        self.addCleanup(self.airlock, 'down')
        return self.ask('info')['pid']

    def ask(self, *arguments, **options):
        """The JSON answer of a command that must succeed."""
        answer = self.airlock('-o', 'json', *arguments, **options)
        self.assertEqual(answer.status, 0, answer.err)
        return json.loads(answer.out)

    def exec_in(self, context, *command, options=(), **run_options):
        return self.airlock('exec', context, *options, '--', *command, **run_options)

    def namespace_of(self, context):
        return self.ask('ctx', 'inspect', context)['pidNamespace']

    def daemon_below(self, pid):
        """The routerd that `airlock run` with this pid has started, once it is there."""
        return eventually(lambda: [child for child in descendants(pid)
                                   if runs_program(child, BIN + '/airlock-routerd')],
                          'an embedded daemon')[0]

    def embedded_dir(self):
        """Runtime folder of the only embedded daemon."""
        folders = glob.glob(self.parent + '/airlock-*')
        self.assertEqual(len(folders), 1, folders)
        return folders[0]

    # --- judging

    def expect_error(self, ended, code, *fragments):
        """The documented code and one clear line; nothing on stdout, no crash."""
        self.assertEqual(ended.status, code, f'status; stderr: {ended.err}')
        self.assertEqual(ended.out, '')
        lines = ended.err.splitlines()
        self.assertEqual(len(lines), 1, f'expected one line on stderr, found {lines}')
        self.assertTrue(lines[0].startswith('airlock: '), f"expected 'airlock: …', found {lines[0]!r}")
        for fragment in fragments:
            self.assertIn(fragment, lines[0])

    def expect_nothing_left(self):
        """Nobody runs, nothing is mounted, no runtime folder is left, no descriptor, no core."""
        problems = []
        try:
            eventually(lambda: not descendants(os.getpid()), 'no process is left', 5)
        except AssertionError:
            left = descendants(os.getpid())
            problems.append('processes left: ' + '; '.join(command_line(pid) for pid in left))
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(AssertionError):
                eventually(lambda: not descendants(os.getpid()), 'killed', 5)
        self.reap_orphans()
        with open('/proc/self/mountinfo') as file:
            problems += ['mount left: ' + line for line in file if self.dir in line]
        problems += ['runtime folder left: ' + name for name in os.listdir(self.parent)]
        problems += ['core file: ' + name
                     for name in glob.glob(self.dir + '/**/core*', recursive=True)
                     if stat.S_ISREG(os.lstat(name).st_mode)]
        if open_files('self') > self.own_files:
            problems.append(f'{open_files("self") - self.own_files} descriptors left in the test')
        shutil.rmtree(self.dir, ignore_errors=True)
        self.folders.discard(self.dir)
        if problems:
            self.fail('\n'.join(problems))

    @staticmethod
    def reap_orphans():
        for process in processes().values():
            if process.parent == os.getpid() and process.state == 'Z':
                os.waitpid(process.pid, os.WNOHANG)


class Gate:
    """A program to be started by an agent, `probe`: it tells where it runs and what it sees, and
    waits until the test has looked around."""

    def __init__(self, folder):
        self.probe, ready, self.go = folder + '/probe', folder + '/ready', folder + '/go'
        os.mkfifo(ready)
        os.mkfifo(self.go)
        # Opened for both directions: neither end ever waits for the other to come.
        self.ready = os.open(ready, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(self.probe, 'w') as file:
            file.write('#!/bin/sh\n'
                       'ns=$(readlink /proc/self/ns/pid)\n'
                       f'printf "%s\\n" "$ns" "${{PLATFORM_KEY-}}" "${{ROUTE_MARK-}}" >{ready}\n'
                       f'read -r line <{self.go}\n')
        os.chmod(self.probe, 0o755)

    def wait(self, process):
        """What the probe tells: its PID namespace, PLATFORM_KEY, ROUTE_MARK. None if the program
        ended without it."""
        pidfd = os.pidfd_open(process.pid)
        try:
            ready, _, _ = select.select([self.ready, pidfd], [], [], PATIENCE)
            if self.ready not in ready:
                return None
            space, key, mark = os.read(self.ready, 4096).decode().split('\n')[:3]
            return int(re.search(r'\d+', space).group()), key, mark
        finally:
            os.close(pidfd)

    def open(self):
        with open(self.go, 'w') as file:
            file.write('\n')

    def close(self):
        os.close(self.ready)


def give_up(number, _):
    """Somebody ends the tests: nothing of them stays. (After a SIGKILL of this process daemons do; the
    PID namespace that `./dev test` runs in ends those.)"""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for folder in Case.folders:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(128 + number)


def main():
    """Runs the tests of the calling file. The last line tells how many passed, failed, and did not
    run, those with their reasons."""
    if not os.access(AIRLOCK, os.X_OK):
        sys.exit(f'{AIRLOCK} is not there: build first, or set AIRLOCK_BIN')
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, give_up)
    program = unittest.main(module='__main__', exit=False, verbosity=2)
    result = program.result
    not_run = result.skipped
    # Of a test with several failing subtests only one counts.
    failed = len({getattr(case, 'test_case', case).id() for case, _ in result.failures + result.errors})
    for case, reason in not_run:
        print(f'NOT RUN: {case.id()}: {reason}')
    passed = result.testsRun - failed - len(not_run)
    print(f'{passed} passed, {failed} failed, {len(not_run)} not run', flush=True)
    sys.exit(1 if failed or passed == 0 else 0)
