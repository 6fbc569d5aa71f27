"""Interactive programs in a real terminal, bare and routed: the same screens after the same keys.

Two ways a routed program gets a terminal (docs/SEMANTICS.md): *hand-over*, where the agent has made it
for the program, and *relay*, where the program is a job among others in the agent's own.
"""

import os
import re

from harness import AIRLOCK, CANARY, Case, eventually, main, namespace
from screen import Screen

AT_PROMPT = r'ready>\Z'  # blanks at the end are not shown
CLEAR = r'\Aready>\Z'


def without_pids(text):
    """Nor repeated prompts: how often Enter was pressed until a shell told of a stop."""
    text = re.sub(r'^(\[\d\]) \d+', r'\1 PID', text, flags=re.M)
    text = re.sub(r'^(ready>\n)+(?=\n*ready>|\n*\[)', '', text, flags=re.M)
    return re.sub(r'\n+', '\n', text).strip()


def relay(command):
    """The agent is an interactive shell, in which each command is a job."""
    return [AIRLOCK, 'run', '--', *command]


class Terminals(Case):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.env.update(LESSHISTFILE='-')
        rc = self.write('rc', "PS1='ready> '; unset HISTFILE\n")
        self.bash = ['/bin/bash', '--rcfile', rc, '-i']

    # --- the four ways to run a dialog

    def shell(self, way, is_routed):
        """An interactive shell whose commands run: as jobs in its terminal (relay), or all in a
        terminal of their own that script(1) has made (hand-over)."""
        argv = self.bash if way == 'relay' else ['script', '-qec', ' '.join(self.bash), '/dev/null']
        screen = Screen(self, relay(argv) if is_routed else argv)
        screen.until(AT_PROMPT)
        return screen

    def check_place(self, screen, way, is_routed):
        """Where commands run, and the shell itself."""
        place = self.work + '/place'
        screen.enter(f'readlink /proc/self/ns/pid >{place}; echo "${{PLATFORM_KEY-}}." >>{place}; clear; echo told')
        screen.until(r'\Atold\n' + AT_PROMPT)
        with open(place) as file:
            ns, key = file.read().split()
        os.unlink(place)
        inode = int(re.search(r'\d+', ns).group())
        if not is_routed:
            self.assertEqual((inode, key), (namespace(), CANARY + '.'), 'control')
            return
        self.assertNotEqual(inode, namespace())
        self.assertEqual(key, CANARY + '.' if way == 'relay' else '.', 'the shell itself')

    def compare(self, way, dialog, same=lambda text: text):
        """`dialog(screen)` yields what is shown at points where it has settled; bare and routed, all
        of it must be equal."""
        shown = []
        for is_routed in (False, True):
            with self.subTest(way=way, is_routed=is_routed):
                screen = self.shell(way, is_routed)
                self.check_place(screen, way, is_routed)
                before = screen.settings()
                shown.append([same(text) for text in dialog(screen)])
                self.assertGreater(len(shown[-1]), 0)
                self.assertEqual(screen.settings(), before, 'settings of the terminal')
                screen.enter('exit 3')
                self.assertEqual(screen.ended(), 3)
                screen.close()
        if len(shown) == 2:
            self.assertEqual(shown[1], shown[0], f'screens by {way}')

    def enter_until(self, screen, pattern):
        """A shell tells of its jobs when it prompts. One prompt at a time: what it told must not scroll away."""
        def told():
            line = screen.line()
            screen.press('Enter')
            eventually(lambda: screen.line() > line, 'a new line')
            return re.search(pattern, screen.until(AT_PROMPT), re.M)
        eventually(told, f'the shell tells of {pattern!r}')

    def both(self, dialog, **options):
        for way in ('relay', 'hand-over'):
            self.compare(way, dialog, **options)

    # --- the matrix

    def test_vim(self):
        def dialog(screen):
            screen.enter('rm -f notes; vim.tiny -u NONE -i NONE notes')
            screen.until(r'"notes" \[New')
            screen.type('ione line')
            screen.press('Escape')
            yield screen.until(r'one line[\s\S]*"notes" \[New|\Aone line')
            screen.press('C-z')
            yield screen.until(r'Stopped.*vim[\s\S]*' + AT_PROMPT)
            screen.enter('fg')
            screen.until(r'\Aone line')
            screen.type('oanother')
            screen.press('Escape')
            screen.until(r'^another')
            screen.enter(':wq')
            yield screen.until(r'fg\n.*\n' + AT_PROMPT)
            screen.enter('clear; cat notes; date | vim.tiny -u NONE -i NONE -')
            screen.until('-stdin-')
            screen.enter(':q!')
            yield screen.until(AT_PROMPT)
        self.both(dialog)

    def test_less(self):
        def dialog(screen):
            for command in ('seq 1 5000 | less', 'seq 1 5000 >numbers; less numbers'):
                screen.enter(command)
                screen.until(r'\A1\n2\n[\s\S]*(:|numbers)\Z')
                screen.type(' ')
                yield screen.until(r'\A24\n[\s\S]*46\n:\Z')
                screen.enter('/^444$')
                yield screen.until(r'\A444\n')
                screen.press('C-z')
                yield screen.until(r'Stopped[\s\S]*' + AT_PROMPT)
                screen.enter('fg')
                screen.until(r'\A444\n[\s\S]*:\Z')
                screen.type('q')
                screen.until(AT_PROMPT)
                screen.enter('clear')
                screen.until(CLEAR)
        self.both(dialog)

    def test_bash_with_jobs(self):
        def dialog(screen):
            # In the foreground of a terminal that it does not lead, and with jobs of its own.
            screen.enter(f'clear; {" ".join(self.bash)}')
            screen.until(CLEAR)
            screen.enter('sleep 1000 &')
            screen.until(r'\[1\] \d+\n' + AT_PROMPT)
            screen.enter('cat &')
            screen.until(r'\[2\] \d+')
            self.enter_until(screen, r'\[2\]\+  Stopped +cat')
            yield screen.until(AT_PROMPT)
            screen.enter('fg %1')
            screen.until(r'^sleep 1000\Z')
            screen.press('C-z')
            screen.until(r'\[1\]\+  Stopped +sleep 1000\n' + AT_PROMPT)
            screen.enter('bg; jobs')
            yield screen.until(r'^\[1\].*Running.*\n.*Stopped.*\n' + AT_PROMPT)
            # One after the other: killed at once, bash sometimes forgets one, bare too.
            screen.enter('clear; kill -9 %1')
            self.enter_until(screen, r'^\[1\].*Killed')
            screen.enter('clear; fg')
            screen.until(r'\Acat\Z')
            screen.enter('seen')
            screen.until(r'^seen\nseen\Z')
            screen.press('C-d')
            screen.until(AT_PROMPT)
            screen.enter('clear; sh -c "echo up; exec sleep 1000"')
            screen.until(r'\Aup\Z')
            screen.press('C-c')
            screen.until(r'\^C\n' + AT_PROMPT)
            screen.enter('echo status $?')
            yield screen.until('status 130')
            screen.enter('clear; sh -c "echo up; exec sleep 1000"')
            screen.until(r'\Aup\Z')
            screen.press('C-\\')
            yield screen.until(r'Quit.*\n' + AT_PROMPT)
            screen.enter('stty size; : </dev/tty && echo has a terminal; exit 7')
            screen.until(r'24 80\nhas a terminal\nexit\n' + AT_PROMPT)
            screen.enter('echo status $?')
            yield screen.until(r'status 7\n' + AT_PROMPT)
        self.both(dialog, same=without_pids)

    def test_python(self):
        def dialog(screen):
            screen.enter('clear; /usr/bin/python3 -q')
            screen.until(r'^>>>\Z')
            screen.enter('6 * 7')
            screen.until(r'^42\n>>>\Z')
            screen.enter('import time; print("asleep"); time.sleep(1000)')
            screen.until(r'^asleep\Z')
            screen.press('C-c')
            yield screen.until(r'KeyboardInterrupt\n>>>\Z')
            screen.enter('input("who? ")')
            screen.until(r'^who\?\Z')
            screen.enter('me')
            yield screen.until(r"^'me'\n>>>\Z")
            screen.press('C-z')
            yield screen.until(r'Stopped.*\n' + AT_PROMPT)
            screen.enter('fg')
            screen.until(r'^/usr/bin/python3 -q\Z|>>>\Z')
            screen.enter('6 * 7 + 1')
            screen.until(r'^43\n>>>\Z')
            screen.press('C-d')
            screen.until(AT_PROMPT)
            screen.enter('clear; echo status $?')
            yield screen.until(r'^status 0\n' + AT_PROMPT)
        self.both(dialog)

    def test_top(self):
        def layout(text):
            """The lines that do not depend on what else runs."""
            return re.findall(r'^(?:top -|Tasks:|%Cpu|MiB Mem|MiB Swap)|PID USER.*COMMAND', text, re.M)

        def dialog(screen):
            screen.enter('clear; top -d 1000')
            yield screen.until(r'PID USER.*COMMAND\n[\s\S]*\d')
            screen.type('h')
            yield screen.until('Help for Interactive Commands')
            screen.press('Escape')
            screen.until(r'PID USER.*COMMAND')
            screen.type('q')
            screen.until(r'COMMAND[\s\S]*' + AT_PROMPT)
            screen.enter('clear')
            yield screen.until(CLEAR)
        self.both(dialog, same=layout)

    def test_password(self):
        def dialog(screen):
            ask = 'import getpass; print("length", len(getpass.getpass()))'
            screen.enter(f"clear; /usr/bin/python3 -c '{ask}'")
            screen.until(r'^Password:\Z')
            screen.type('hidden')
            screen.press('Enter')
            yield screen.until(r'^length 6\n' + AT_PROMPT)
            # Where standard input and output are not the terminal.
            screen.enter(f"clear; echo no | /usr/bin/python3 -c '{ask}' | cat")
            screen.until(r'^Password:\Z')
            screen.enter('hidden')
            screen.until(r'length 6\n+' + AT_PROMPT)  # two jobs, in either order
            screen.enter('clear; bash -c \'read -rsp "Word: " word; echo; echo "$word" | wc -c\'')
            screen.until(r'^Word:\Z')
            screen.enter('hidden')
            shown = screen.until(r'^7\n' + AT_PROMPT)
            self.assertNotIn('hidden', shown)
            yield shown
        self.both(dialog)

    def test_tmux(self):
        def dialog(screen):
            conf = self.write('tmux.conf', 'set -g status off\nset -g default-command "exec /bin/cat"\n')
            screen.enter(f'clear; tmux -S {self.work}/inner -f {conf} new-session')
            screen.until(r'\A\Z')
            screen.enter('within')
            yield screen.until(r'\Awithin\nwithin\Z')
            screen.enter('x' * 70)
            yield screen.until(r'^x{70}\nx{70}\Z')
            screen.press('C-d')
            screen.until(r'\[exited\]\n' + AT_PROMPT)
        self.both(dialog)

    def test_expect(self):
        def dialog(screen):
            talk = self.write('talk', 'spawn -noecho sh\nexpect -re {[#$] $}\nsend "stty size; tty >/dev/null; echo n$?\\r"\n'
                              'expect -re {n[0-9]}\nexpect -re {[#$] $}\ninteract\nputs "interacted"\n')
            screen.enter(f'clear; PS1="$ " expect {talk}')
            screen.until(r'n\d\n[#$]\Z')
            screen.enter('echo by hand')
            yield screen.until(r'^by hand\n[#$]\Z')
            screen.enter('exit')
            yield screen.until(r'^interacted\n' + AT_PROMPT)
        self.both(dialog)

    def test_settings(self):
        def dialog(screen):
            # What is typed before stty has ended is lost with it where it is relayed (docs/SEMANTICS.md).
            screen.enter('clear; stty -echo; echo unseen')
            screen.until(r'^unseen\n' + AT_PROMPT)
            screen.enter('echo not shown, but run')
            yield screen.until(r'^not shown, but run\n' + AT_PROMPT)
            screen.enter('stty echo; stty susp ^Y; clear; stty -a | grep -o susp.....; stty susp ^Z')
            yield screen.until(r'^susp = .Y\n' + AT_PROMPT)
        self.both(dialog, same=str.strip)  # `clear` may come a line late

    def test_resize(self):
        def dialog(screen):
            script = ('import os, signal, sys\n'
                      'say = lambda what: os.write(1, f"{what}\\n".encode())\n'
                      'signal.signal(signal.SIGWINCH, lambda *_: say(tuple(os.get_terminal_size())))\n'
                      'signal.signal(signal.SIGCONT, lambda *_: say("continued"))\n'
                      'print("waiting", flush=True)\nsys.stdin.readline()\n')
            screen.enter(f'clear; /usr/bin/python3 {self.write("winch.py", script)}')
            screen.until(r'^waiting\Z')
            screen.resize(100, 30)
            screen.until(r'\(100, 30\)\Z')
            screen.resize(70, 20)
            yield screen.until(r'\(70, 20\)\Z')
            screen.press('C-z')
            screen.until(AT_PROMPT)
            screen.resize(80, 24)
            screen.enter('fg')
            # Of that resize it hears only if tmux, which takes its time, makes it after the fg.
            screen.until(r'^continued$')
            screen.resize(90, 25)
            screen.until(r'\(90, 25\)\Z')
            screen.press('Enter')
            screen.until(AT_PROMPT)
            screen.enter('clear; stty size; seq 3 | (cat; stty size </dev/tty) | cat')
            yield screen.until(r'^25 90\n1\n2\n3\n25 90\n' + AT_PROMPT)
        self.both(dialog)

    def test_pipelines(self):
        def dialog(screen):
            for key in ('C-c',):  # with C-\\ it is chance whether the last one dies of it or of the end of its input
                screen.enter('clear; sh -c "echo up >&2; exec sleep 1000" | sleep 1000 | cat; echo ${PIPESTATUS[@]}')
                screen.until(r'\Aup\Z')
                screen.press(key)
                yield screen.until(AT_PROMPT)
            # Typed while another one of the job has the terminal.
            screen.enter('clear; yes | less; echo ${PIPESTATUS[@]}')
            screen.until(r'\Ay\ny\n[\s\S]*:\Z')
            screen.press('C-z')
            yield screen.until(r'Stopped[\s\S]*' + AT_PROMPT)
            screen.enter('fg')
            screen.until(r'\Ay\ny\n[\s\S]*:\Z')
            screen.type('q')
            screen.until(AT_PROMPT)
            screen.enter('clear; (echo out; echo err >&2) | sort; printf "a\\rb\\r\\nc\\n" | cat')
            yield screen.until(r'^c\n' + AT_PROMPT)
            screen.enter('clear; cat | sed -u s/^/SEEN/')
            screen.until(r'\A\Z')
            # What is typed before cat reads may be shown twice.
            screen.enter('one')
            screen.until(r'^SEENone\Z')
            screen.enter('two')
            screen.until('SEENtwo')
            screen.press('C-d')
            screen.until(AT_PROMPT)
        self.both(dialog, same=without_pids)

    def test_background(self):
        def dialog(screen):
            screen.enter('clear; cat &')
            screen.until(r'\[1\] \d+')
            self.enter_until(screen, r'Stopped.*cat')
            screen.until(AT_PROMPT)
            screen.enter('fg')
            screen.until(r'^cat\Z')
            screen.enter('seen')
            screen.until(r'^seen\nseen\Z')
            screen.press('C-d')
            yield screen.until(AT_PROMPT)
            screen.enter('clear; sh -c \'read -r line </dev/tty; echo "got $line"\' &')
            screen.until(r'\[1\] \d+')
            self.enter_until(screen, r'Stopped.*sh -c')
            screen.until(AT_PROMPT)
            screen.enter('fg')
            screen.until(r'fg\nsh -c.*\Z')
            screen.enter('a line')
            yield screen.until(r'^got a line\n' + AT_PROMPT)
        self.both(dialog, same=without_pids)


if __name__ == '__main__':
    main()
