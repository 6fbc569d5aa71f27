"""Terminals at the edges: who is killed when, whose terminal it is, what a program can do with it."""

import fcntl
import os
import pty
import re
import select
import signal
import termios
import time

from harness import (AIRLOCK, PATIENCE, Case, command_line, descendants, eventually, main,
                     runs_program)
from screen import Screen

AT_PROMPT = r'ready>\Z'


class Outer:
    """A terminal with a session of its own, as an emulator gives it to a shell."""

    def __init__(self, case, argv, **options):
        self.case = case
        self.master, self.slave = pty.openpty()
        self.seen = b''
        self.first_settings = self.settings()
        slave = self.slave

        def take_terminal():
            for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
                signal.signal(each, signal.SIG_DFL)  # whoever runs the tests may ignore them
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.process = case.start(argv, stdin=slave, stdout=slave, stderr=slave,
                                  preexec_fn=take_terminal, **options)
        case.addCleanup(self.close)

    def close(self):
        for fd in (self.master, self.slave):
            os.close(fd)

    def settings(self):
        return termios.tcgetattr(self.slave)

    def is_raw(self):
        return not self.settings()[3] & termios.ICANON

    def write(self, data):
        os.write(self.master, data)

    def until(self, pattern):
        """Reads until all that was read matches; returns the match."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.seen)):
            if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
                self.case.fail(f'never shown: {pattern}; shown: {self.seen}')
            self.seen += os.read(self.master, 65536)
        return found


# Starts argv with its own terminal as 0, 1 and 2, waits, and tells how its settings were before and
# after, and what became of the child.
AGENT = '''
import subprocess, sys, termios, time
before = termios.tcgetattr(0)
child = subprocess.Popen(sys.argv[1:])
print('started', child.pid, flush=True)
status = child.wait()
deadline = time.monotonic() + 20  # a guard does it after the child's end
while termios.tcgetattr(0) != before and time.monotonic() < deadline: pass
print('settings', 'same' if termios.tcgetattr(0) == before else 'changed', 'status', status, flush=True)
'''

# Starts argv in a terminal it makes for it, and tells what it says there and how it ends.
MAKER = '''
import os, pty, sys
pid, master = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
said, ends = b'', 0
while True:
    try: data = os.read(master, 65536)
    except OSError: data = b''
    if not data: break
    said += data
print(said.decode().replace('\\r\\n', '|'), os.waitpid(pid, 0)[1], flush=True)
'''

# Where standard input, output and error lead to.
DEVICES = 'stat -Lc %d:%i /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 | uniq'


class Killed(Case):
    """Whoever is killed: the terminal is as it was."""

    def start_cat(self):
        outer = Outer(self, [AIRLOCK, 'run', '--', '/usr/bin/python3', '-c', AGENT, 'cat'])
        outer.until(rb'started \d+')
        outer.write(b'typed\n')
        outer.until(rb'typed\r\ntyped\r\n')
        self.assertTrue(outer.is_raw(), 'control: it was changed')
        return outer

    def one_below(self, pid, is_wanted, what):
        # What is typed early is shown before the program is exec'ed.
        found = eventually(lambda: [each for each in descendants(pid) if is_wanted(each)], what)
        self.assertEqual(len(found), 1, f'{what}: {[command_line(each) for each in found]}')
        return found[0]

    def expect_restored(self, outer):
        self.finish(outer.process)
        eventually(lambda: outer.settings() == outer.first_settings, 'the settings are back')

    def test_program(self):
        outer = self.start_cat()
        os.kill(self.one_below(outer.process.pid, lambda pid: command_line(pid) == 'cat', 'cat'),
                signal.SIGKILL)
        outer.until(rb'settings same status -9')
        self.expect_restored(outer)

    def test_stub(self):
        outer = self.start_cat()
        # Its guard is a copy of it: the stub is the one that the agent has started.
        agent = self.one_below(outer.process.pid, lambda pid: 'settings' in command_line(pid) and
                               runs_program(pid, os.path.realpath('/usr/bin/python3')), 'agent')
        with open(f'/proc/{agent}/task/{agent}/children') as file:
            stub = int(file.read())
        self.assertTrue(command_line(stub).startswith('airlock-stub'))
        os.kill(stub, signal.SIGKILL)
        outer.until(rb'settings same status -9')
        self.expect_restored(outer)

    def test_agent(self):
        outer = self.start_cat()
        agent = self.one_below(outer.process.pid, lambda pid: 'settings' in command_line(pid) and
                               runs_program(pid, os.path.realpath('/usr/bin/python3')), 'agent')
        os.kill(agent, signal.SIGKILL)
        self.expect_restored(outer)
        self.assertEqual(outer.process.returncode, -signal.SIGKILL)

    def test_airlock(self):
        outer = self.start_cat()
        os.kill(outer.process.pid, signal.SIGKILL)
        self.expect_restored(outer)

    def test_daemon(self):
        outer = self.start_cat()
        os.kill(self.daemon_below(outer.process.pid), signal.SIGKILL)
        self.expect_restored(outer)

    def test_monitor(self):
        # By a program with uid 0: its terminal hangs up, its requester loses it.
        outer = self.start_cat()
        cat = self.one_below(outer.process.pid, lambda pid: command_line(pid) == 'cat', 'cat')
        with open(f'/proc/{cat}/stat') as file:
            os.kill(int(file.read().rsplit(')', 1)[1].split()[1]), signal.SIGKILL)
        outer.until(rb'airlock: lost \S*cat: .*\r\n')
        outer.until(rb'settings same status 125')
        self.expect_restored(outer)


class Ownership(Case):
    def test_hand_over(self):
        ask = ('import os, sys; fd = os.open("/dev/tty", os.O_RDWR); '
               'print(os.isatty(fd), os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == os.getpgrp(), '
               'os.fstat(0).st_rdev == os.fstat(2).st_rdev); sys.exit(7)')
        argv = ['/usr/bin/python3', '-c', MAKER, '/usr/bin/python3', '-c', ask]
        bare, routed = self.run_program(argv), self.routed(*argv)
        self.assertEqual(bare.out, f'True True True True| {7 << 8}\n')
        self.assertEqual((routed.out, routed.err), (bare.out, ''))

    def test_one_end_of_file_after_all_output(self):
        argv = ['/usr/bin/python3', '-c', MAKER, 'sh', '-c', 'seq 3; echo last; exit 7']
        for _ in range(10):
            self.assertEqual(self.routed(*argv).out, f'1|2|3|last| {7 << 8}\n')

    def test_whose_terminal_a_program_gets(self):
        # (dev:inode of the agent's terminal, the program's), for a job and for what has its own.
        script = self.write('who.py', AGENT.replace('print(\'started\'', 'subprocess.call(["true"]); print(\'started\''))
        own = 'import os; s = os.fstat(0); print(f"own {s.st_dev}:{s.st_ino}.", flush=True)\n'
        self.write(script, own + AGENT)
        for mode, is_same in (('auto', False), ('relay', False), ('share', True)):
            with self.subTest(tty=mode):
                self.up(f'contexts: {{platform: {{child_context: user, cwd: {self.work}}}, '
                        f'user: {{tty: {mode}, cwd: {self.work}}}}}\n')
                outer = Outer(self, [AIRLOCK, 'run', '--', '/usr/bin/python3', script, 'sh', '-c', DEVICES])
                found = outer.until(rb'own (\d+:\d+)\.[\s\S]*?\n(\d+:\d+)\r\n[\s\S]*settings same status 0')
                self.finish(outer.process)
                self.assertEqual(found[1] == found[2], is_same)
                self.assertEqual(self.airlock('down').status, 0)

    def test_a_terminal_besides_is_refused(self):
        # Not on 0 to 2, and not the one that is relayed to.
        self.up()
        agent = ('import os, pty, subprocess; m, s = pty.openpty(); os.set_inheritable(s, True); '
                 'print(subprocess.run(["sh", "-c", f"test -e /proc/self/fd/{s} && echo has || echo not"], '
                 'close_fds=False, stdout=subprocess.PIPE).stdout.decode(), end="")')
        bare = self.run_program(['/usr/bin/python3', '-c', agent])
        self.assertEqual(bare.out, 'has\n', 'control')
        routed = self.airlock('run', '--', '/usr/bin/python3', '-c', agent)
        self.assertEqual(routed.out, 'not\n')
        self.assertRegex(self.airlock('-o', 'json', 'routes').out, r'"refusedFds":\["\d+: a terminal"\]')

    def test_what_is_typed_cannot_be_faked(self):
        # TIOCSTI: bare, the shell runs what its child "typed"; routed, it went to the child's terminal.
        fake = self.write('fake.py', 'import fcntl, termios\nfor c in b"echo in" b"jected\\n":\n'
                          '  fcntl.ioctl(0, termios.TIOCSTI, bytes([c]))\n')
        rc = self.write('rc', "PS1='ready> '; unset HISTFILE\n")
        bash = ['/bin/bash', '--rcfile', rc, '-i']
        for is_routed in (False, True):
            screen = Screen(self, [AIRLOCK, 'run', '--', *bash] if is_routed else bash)
            screen.until(AT_PROMPT)
            screen.enter(f'clear; /usr/bin/python3 {fake}; echo faked')
            screen.until(r'^faked\n(.*\n)*ready>')
            screen.enter('echo sure')
            shown = screen.until(r'^sure\n' + AT_PROMPT)
            self.assertEqual('\ninjected' in shown.replace('echo injected', ''), not is_routed, shown)
            screen.enter('exit 0')
            self.assertEqual(screen.ended(), 0)


class Commands(Case):
    def test_exec_with_a_terminal(self):
        self.up()
        outer = Outer(self, [AIRLOCK, 'exec', '-t', 'user', '--', 'sh', '-c', 'tty; stty size; read line; echo "<$line>"; exit 7'])
        outer.until(rb'/dev/pts/\d+\r\n')
        outer.write(b'typed\n')
        outer.until(rb'<typed>\r\n')
        self.finish(outer.process)
        self.assertEqual(outer.process.returncode, 7)
        self.assertEqual(outer.settings(), outer.first_settings)

    def test_exec_with_a_terminal_where_there_is_none(self):
        self.up()
        seen = self.exec_in('user', 'sh', '-c', 'test -t 0 && test -t 1 && test -t 2 && stty size; cat; exit 7',
                            options=['-t'], stdin=b'typed\n')
        self.assertEqual(seen.status, 7)
        self.assertEqual(seen.out.replace('typed\r\n', '', 1), '24 80\r\ntyped\r\n', 'echoed, then written')
        control = self.exec_in('user', 'sh', '-c', 'test -t 1 || echo none')
        self.assertEqual(control.out, 'none\n')

    def test_terminals_of_exec_are_relayed(self):
        self.up()
        outer = Outer(self, [AIRLOCK, 'exec', 'user', '--', 'sh', '-c', f'test -t 1 && test -t 2 && ! test -t 0 && {DEVICES}'])
        found = outer.until(rb'\d+:\d+\r\n(\d+):(\d+)\r\n')
        own = os.fstat(outer.slave)
        self.assertNotEqual((int(found[1]), int(found[2])), (own.st_dev, own.st_ino))
        self.finish(outer.process)

    def test_a_suspended_agent(self):
        rc = self.write('rc', "PS1='ready> '; unset HISTFILE\n")
        screen = Screen(self, ['/bin/bash', '--rcfile', rc, '-i'])
        screen.until(AT_PROMPT)
        before = screen.settings()
        screen.enter(f'clear; {AIRLOCK} run -- sh -c "echo up; cat; exit 7"')
        screen.until(r'\Aup\Z')
        screen.enter('one')
        screen.until(r'^one\none\Z')
        screen.press('C-z')
        screen.until(r'Stopped[\s\S]*' + AT_PROMPT)
        self.assertEqual(screen.settings(), before)
        screen.enter('fg')
        screen.until(r'exit 7"\Z')
        screen.enter('two')
        screen.until(r'^two\ntwo\Z')
        screen.press('C-d')
        screen.until(AT_PROMPT)
        screen.enter('echo status $?')
        screen.until(r'^status 7\n' + AT_PROMPT)
        screen.enter('exit 0')
        self.assertEqual(screen.ended(), 0)

    def test_interrupt_reaches_the_agent_too(self):
        # Who shares the terminal's foreground group is interrupted by Ctrl-C, not the program alone.
        script = 'trap "echo agent interrupted" INT; sh -c "echo up; exec cat"; echo status $?'
        shown = []
        for prefix in ([], [AIRLOCK, 'run', '--']):
            outer = Outer(self, [*prefix, 'bash', '-c', script])
            outer.until(rb'up\r\n')
            outer.write(b'ready\n')
            outer.until(rb'ready\r\nready\r\n')
            outer.write(b'\x03')
            shown.append(outer.until(rb'\^C[\s\S]*status \d+\r\n')[0])
            self.finish(outer.process)
        self.assertEqual(shown[1], shown[0])
        self.assertIn(b'agent interrupted', shown[0])


if __name__ == '__main__':
    main()
