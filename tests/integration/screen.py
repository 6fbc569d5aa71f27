"""A terminal that a test types into and reads: a tmux server of its own with one window of 80x24."""

import os
import re
import subprocess
import time

from harness import PATIENCE

SIZE = (80, 24)


class Screen:
    """Runs `argv` in a new terminal. Waits for what is shown, never for time to pass."""

    serial = 0

    def __init__(self, case, argv, env=None):
        self.case = case
        Screen.serial += 1
        self.socket = f'{case.dir}/screen-{Screen.serial}'
        words = [f'{name}={value}' for name, value in {**case.env, **(env or {})}.items()
                 if name not in ('TERM', 'TMUX', 'TMUX_PANE')]
        # What was shown last can be read after the end. The status tmux sometimes never knows.
        self.status = self.socket + '.status'
        tell = f'"$@"; echo $? >{self.status}.new; mv {self.status}.new {self.status}'
        self.tmux('-f', '/dev/null', 'start-server', ';', 'set', '-g', 'remain-on-exit', 'on', ';',
                  'set', '-g', 'default-terminal', 'screen', ';', 'set', '-g', 'status', 'off', ';',
                  'new-session', '-d', '-x', str(SIZE[0]), '-y', str(SIZE[1]), '-c', case.work,
                  'env', '-i', 'TERM=screen', *words, '/bin/sh', '-c', tell, 'sh', *argv)
        case.addCleanup(self.close)

    def tmux(self, *arguments):
        env = {'PATH': os.environ['PATH'], 'LANG': 'C.UTF-8', 'SHELL': '/bin/sh'}
        return subprocess.run(['tmux', '-S', self.socket, *arguments], env=env, check=True, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE).stdout

    def close(self):
        subprocess.run(['tmux', '-S', self.socket, 'kill-server'], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, what):
        return self.tmux('display-message', '-p', f'#{{{what}}}').strip()

    def text(self):
        """What is shown: lines without trailing blanks, no empty lines at the end."""
        return '\n'.join(line.rstrip() for line in self.tmux('capture-pane', '-p').split('\n')).rstrip()

    def line(self):
        """The line of the cursor, counted from the first that was ever shown."""
        return sum(map(int, self.tmux('display-message', '-p', '#{history_size} #{cursor_y}').split()))

    def type(self, text):
        self.tmux('send-keys', '-l', '--', text)

    def press(self, *keys):
        """Keys by tmux's names: Enter, C-c, Escape."""
        self.tmux('send-keys', '--', *keys)

    def enter(self, text):
        self.type(text)
        self.press('Enter')

    def resize(self, columns, rows):
        self.tmux('resize-window', '-x', str(columns), '-y', str(rows))

    def until(self, pattern):
        """Waits until what is shown matches the regular expression; returns what is shown."""
        deadline = time.monotonic() + PATIENCE
        while True:
            text = self.text()
            if re.search(pattern, text, re.M):
                return text
            if time.monotonic() > deadline:
                self.case.fail(f'never shown: {pattern!r}; shown at last:\n{text}')
            time.sleep(0.02)

    def ended(self):
        """Waits for the end of the program; its exit status, as a shell has it."""
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(self.status):
            if time.monotonic() > deadline:
                self.case.fail(f'does not end; shown at last:\n{self.text()}')
            time.sleep(0.02)
        with open(self.status) as file:
            return int(file.read())

    def settings(self):
        """stty -g of the terminal."""
        return subprocess.run(['stty', '-g', '-F', self.ask('pane_tty')], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
