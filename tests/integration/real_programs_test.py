"""Real programs as agents, bare and routed: same stdout, stderr and status.

Each row also proves where the agent and its child ran, by their PID namespaces, and that
PLATFORM_KEY, which the bare child sees (the control), is not seen by the routed one.
"""

import os
import pty
import re
import shutil
import subprocess
import unittest

from harness import (AIRLOCK, BIN, CANARY, Case, FIXTURES, Gate, descendants, main, namespace,
                     processes, runs_program)

NODE = shutil.which('node', path='/usr/local/bin:/usr/bin:/bin')
FULL = os.environ.get('AIRLOCK_FULL') == '1'


def sorted_lines(text):
    """For programs that run several children at once: their lines come in any order."""
    return sorted(text.splitlines())


def without_pids(text):
    """bash names the pid in "bash: line 1: 123 Terminated": different in each run."""
    return re.sub(r'(line \d+): +\d+ ', r'\1: PID ', text)


class RealPrograms(Case):
    maxDiff = 4000

    def setUp(self):
        super().setUp()
        self.write(self.home + '/.gitconfig',
                   '[user]\nname = A\nemail = a@example.org\n[init]\ndefaultBranch = main\n')
        # Hashes of git are the same in both runs.
        for who in ('AUTHOR', 'COMMITTER'):
            self.env[f'GIT_{who}_DATE'] = '2026-01-01T00:00:00Z'

    # --- one row

    def row(self, *argv, expect, status=0, prepare=None, same=lambda text: text,
            tty=False, stdin=b''):
        """Runs `argv` bare and routed and compares. `expect`: what stdout must hold, so that two
        equal failures do not pass. `same`: what must differ, taken out. PROBE in argv is the
        program that proves where it runs; every row has it once."""
        bare = self.observe(argv, False, prepare, tty, stdin)
        routed = self.observe(argv, True, prepare, tty, stdin)
        self.assertEqual(same(routed.out), same(bare.out), 'stdout')
        self.assertEqual(same(routed.err), same(bare.err), 'stderr')
        self.assertEqual(routed.status, bare.status, 'status')
        self.assertIn(expect, bare.out)
        self.assertEqual(bare.status, status, bare.err)

    def observe(self, argv, is_routed, prepare, tty, stdin):
        shutil.rmtree(self.dir, ignore_errors=True)  # the same paths in both runs
        for folder in (self.dir, self.home, self.work, self.parent):
            os.mkdir(folder)
        self.write(self.home + '/.gitconfig',
                   '[user]\nname = A\nemail = a@example.org\n[init]\ndefaultBranch = main\n')
        self.gate = Gate(self.dir)
        if prepare:
            prepare()
        argv = [word.replace('PROBE', self.gate.probe) for word in argv]
        if is_routed:
            argv = [AIRLOCK, 'run', '--user-env', 'ROUTE_MARK=user', '--', *argv]
        terminal = pty.openpty() if tty else None
        with open(self.dir + '/stdin', 'w+b') as file:
            file.write(stdin)
            file.seek(0)
            process = self.start(argv, stdin=file, stdout=terminal[1] if tty else subprocess.PIPE)
        if tty:
            os.close(terminal[1])
        try:
            seen = self.gate.wait(process)
            if seen is None:
                ended = self.finish(process)
                self.fail(f'the probe did not run; routed: {is_routed}; {ended}')
            self.check_place(process.pid, is_routed, *seen)
            self.gate.open()
            ended = self.finish(process)
            if tty:
                ended.out = self.read_terminal(terminal[0])
        finally:
            self.gate.close()
            if tty:
                os.close(terminal[0])
        return ended

    @staticmethod
    def read_terminal(master):
        data = b''
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:  # EIO: nobody has the other end any more
                return data.decode()
            data += block

    def check_place(self, pid, is_routed, probe_space, key, mark):
        own = namespace()
        if not is_routed:
            self.assertEqual((namespace(pid), probe_space), (own, own), 'bare: both are here')
            self.assertEqual(key, CANARY, 'control: the bare child sees the key')
            return
        init = BIN + '/airlock-init'
        below, everyone = descendants(pid), processes()
        agents = [each for each in below
                  if each in everyone and runs_program(everyone[each].parent, init)
                  and not runs_program(each, init)]
        # Those of the user context end at any time: 0.
        spaces = [space for space in map(namespace, agents) if space not in (probe_space, 0)]
        self.assertEqual(len(spaces), 1, 'one agent')
        agent_space = spaces[0]
        self.assertNotEqual(agent_space, own, "the agent's PID namespace")
        contexts = {context['name']: context['pidNamespace']
                    for context in self.ask('--runtime-dir', self.embedded_dir(), 'ctx', 'ls')}
        self.assertEqual(contexts, {'platform': agent_space, 'user': probe_space})
        self.assertEqual((key, mark), ('', 'user'), 'what the routed child sees')

    def bash(self, script, **expected):
        self.row('bash', '-c', script, **expected)

    # --- bash

    def test_bash_pipelines(self):
        self.bash('''PROBE
            printf "b\\na\\nc\\n" | sort | tr a-z A-Z | while read x; do echo "<$x>"; done
            false | true | sh -c "exit 4"; echo ${PIPESTATUS[@]}
            set -o pipefail; sh -c "exit 3" | cat; echo $?
            diff <(seq 1 3) <(seq 2 4); echo $? 1>&2''', expect='<A>\n<B>\n<C>\n1 0 4\n3\n')

    def test_bash_here_documents(self):
        self.bash('PROBE\nx=value\ncat <<EOF\nheld $x $(echo by child)\nEOF\n'
                  'cat <<"EOF" | tr a-z A-Z\nplain $x\nEOF\nsort <<< "z\ny"\n'
                  'cat 5<<< five <&5; head -c 200000 <<< $(seq 1 60000) | cksum',
                  expect='held value by child\nPLAIN $X\n')

    def test_bash_background_jobs(self):
        self.bash('''PROBE
            sh -c "exit 5" & wait $!; echo $?
            sleep 100 & kill -TERM $!; wait $!; echo $?
            sleep 100 & kill -KILL $!; wait $!; echo $?
            for i in 1 2 3 4; do sh -c "exit $i" & pids+=" $!"; done
            for pid in $pids; do wait $pid; echo $?; done
            (sleep 0.1; echo late) & echo early; wait; jobs''',
                  expect='5\n143\n137\n1\n2\n3\n4\nearly\nlate\n', same=without_pids)

    def test_bash_stops_and_continues(self):
        # The state is that of the stub, which mirrors the child's.
        self.bash('''PROBE; mkfifo pause; exec 7<>pause
            state() { read -r line </proc/$p/stat; line=${line##*) }; echo ${line%% *}; }
            until_state() { until [[ $(state) == $1 ]]; do read -t 0.01 -u 7; done; echo $1; }
            sleep 100 7<&- & p=$!; until_state S
            kill -STOP $p; until_state T
            kill -CONT $p; until_state S
            kill -TERM $p; wait $p; echo $?
            sh -c 'kill -STOP $$; exit 3' 7<&- & p=$!; until_state T
            kill -CONT $p; wait $p; echo $?''', expect='S\nT\nS\n143\nT\n3\n', same=without_pids)

    def test_bash_trap(self):
        self.bash('''PROBE
            trap "echo usr1" USR1; kill -USR1 $$; sh -c "exit 0"
            trap "" TERM; sh -c 'kill -TERM $$; echo ignored is inherited'
            trap - TERM; sh -c 'kill -TERM $$; echo not reached'; echo $?
            trap "echo err" ERR; sh -c "exit 9"; trap - ERR
            trap "echo exit; sh -c 'echo child of the exit trap'" EXIT; exit 6''', status=6,
                  expect='usr1\nignored is inherited\n143\nerr\nexit\nchild of the exit trap\n',
                  same=without_pids)

    def test_bash_exec(self):
        self.bash('''PROBE
            exec 3>out; echo bash >&3; sh -c "echo child >&3"; exec 3>&-; cat out
            exec 8<out; head -n 1 <&8 >/dev/null; exec 8<&-
            (exec -a other sh -c 'echo $0'); exec -c 2>&1 sh -c 'echo $0 "$@"; exit 5' zero one two''',
                  status=5, expect='bash\nchild\nother\nzero one two\n')

    def test_bash_dies_of_a_signal(self):
        self.bash('PROBE; sh -c "kill -SEGV \\$\\$"; echo $?; kill -KILL $$', status=-9,
                  expect='139\n', same=without_pids)

    def test_agent_replaces_itself(self):
        # Death of the routed program that has taken the agent's place is the agent's death.
        self.bash('exec sh -c "PROBE; echo here; kill -USR1 \\$\\$"', status=-10, expect='here\n')

    # --- make

    def test_make_with_jobserver(self):
        def prepare():
            shutil.copytree(FIXTURES + '/c_project', self.work, dirs_exist_ok=True)
        # Order of lines: four recipes at once.
        self.row('make', '-j4', 'WHERE=PROBE', prepare=prepare, same=sorted_lines,
                 expect='jobserver yes\n')
        self.assertTrue(os.access(self.work + '/hello', os.X_OK))

    # --- git

    def git_repository(self):
        subprocess.run(['git', 'init', '-q', self.work], env=self.env, check=True)
        self.write('file', 'content\n')
        subprocess.run(['git', 'add', 'file'], env=self.env, cwd=self.work, check=True)
        os.mkdir(self.work + '/below')

    def test_git_alias(self):
        self.row('git', '-C', 'below', '-c',
                 'alias.who=!PROBE; f() { echo "alias $1 ${GIT_PREFIX}|"; pwd; git status -s; exit 3; }; f',
                 'who', 'x y', prepare=self.git_repository, status=3, expect='alias x y below/|\n')

    def test_git_hooks(self):
        def prepare():
            self.git_repository()
            hooks = self.work + '/.git/hooks/'
            self.write(hooks + 'pre-commit', f'#!/bin/sh\n{self.gate.probe}\necho pre; git diff --cached --stat\n', 0o755)
            self.write(hooks + 'commit-msg', '#!/bin/bash\necho msg $(<$1) >&2; echo added >>$1\n', 0o755)
            self.write(hooks + 'post-commit', '#!/usr/bin/env python3\nimport os\nos.system("git rev-parse HEAD")\n', 0o755)
        # git gives its hooks' stdout to stderr.
        self.row('git', 'commit', '-m', 'one', prepare=prepare, expect='1 file changed')

    def test_git_refusing_hook(self):
        def prepare():
            self.git_repository()
            self.write(self.work + '/.git/hooks/pre-commit',
                       f'#!/bin/sh\n{self.gate.probe}\necho no >&2; exit 1\n', 0o755)
        self.row('git', 'commit', '-qm', 'one', prepare=prepare, status=1, expect='')

    def test_git_pager(self):
        # A pager is used on a terminal only: stdout is one here.
        def prepare():
            self.git_repository()
            subprocess.run(['git', 'commit', '-qm', 'one'], env=self.env, cwd=self.work, check=True)
            self.write('pager', f'#!/bin/sh\n{self.gate.probe}\nexec sed "s/^/paged: /"\n', 0o755)
        self.row('git', '-c', f'core.pager={self.work}/pager', 'log', prepare=prepare, tty=True,
                 expect='paged: Author: A <a@example.org>')

    # --- runtimes

    def test_python_10_mb_both_ways(self):
        script = '''
import hashlib, os, subprocess, sys
subprocess.run([sys.argv[1]], check=True)
data = bytes(range(256)) * 40960
for command in (['cat'], ['sh', '-c', 'cat; exit 3'],
                [sys.executable, '-c', 'import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)']):
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = child.communicate(data)
    print(len(out), hashlib.sha256(out).hexdigest() == hashlib.sha256(data).hexdigest(), child.returncode)
print(os.system('exit 7'), os.popen('echo popen').read(), subprocess.getoutput('echo shell'))
pid = os.posix_spawnp('sh', ['sh', '-c', 'kill -9 $$'], os.environ)
print(os.waitpid(pid, 0)[1])
'''
        self.row('/usr/bin/python3', '-c', script, 'PROBE', expect='10485760 True 3\n10485760 True 0\n1792 popen\n shell\n9\n')

    @unittest.skipUnless(NODE, 'node is not installed')
    def test_node_200_children_at_once(self):
        script = '''
const { spawn, spawnSync, execSync } = require('child_process');
spawnSync(process.argv[1], { stdio: 'inherit' });
const run = (i) => new Promise((done, failed) => {
  const child = spawn('sh', ['-c', `echo out${i}; echo err${i} >&2; exit ${i % 7}`]);
  let text = '';
  child.stdout.on('data', (data) => text += data);
  child.stderr.on('data', (data) => text += data);
  child.on('error', failed);
  child.on('close', (code, signal) => done([i, code, signal, text.split('\\n').sort().join(' ')].join()));
});
Promise.all([...Array(200).keys()].map(run)).then((all) => {
  console.log(all.join('\\n'));
  console.log(execSync('echo last').toString());
});
'''
        self.row(NODE, '-e', script, 'PROBE', expect='199,3,, err199 out199\nlast\n')

    def backticks(self, program, script, expect):
        if not shutil.which(program, path=self.env['PATH']):
            self.skipTest(f'{program} is not installed')
        self.row(program, '-e', script, expect=expect)

    def test_perl_backticks(self):
        self.backticks('perl', '''`PROBE`; print `echo one; echo two`; my @lines = `seq 3`;
            print scalar(@lines), "\\n"; `sh -c "exit 9"`; print $? >> 8, "\\n";
            `kill -9 \\$\\$`; print $? & 127, "\\n"; print system("true") == 0 ? "yes\\n" : "no\\n";
            open(my $pipe, "-|", "printf", "list %s", "form") or die; print <$pipe>, "\\n";''',
            'one\ntwo\n3\n9\n9\nyes\nlist form\n')

    def test_ruby_backticks(self):
        self.backticks('ruby', '`PROBE`; puts `echo one`; `exit 9`; puts $?.exitstatus', 'one\n9\n')

    def test_lua_popen(self):
        self.backticks('lua', 'os.execute("PROBE"); print(io.popen("echo one"):read("a"))', 'one\n')

    # --- tools that start programs

    def test_xargs(self):
        # Order of lines: eight children at once.
        self.row('xargs', '-P8', '-n4', 'sh', '-c', '[ $1 != 1 ] || PROBE </dev/null; echo "$#: $*"', 'sh',
                 stdin=b'\n'.join(str(i).encode() for i in range(1, 101)), same=sorted_lines,
                 expect='4: 97 98 99 100\n')

    def test_xargs_reports_failures(self):
        self.row('xargs', '-P8', '-n1', 'sh', '-c', '[ $0 != 1 ] || PROBE </dev/null; exit $(($0 % 2))',
                 stdin=b'1 2 3 4 5 6 7 8', status=123, expect='')

    def test_env_i(self):
        self.bash('PROBE; export A=1; env -i sh -c "env | sort; echo \\$A."; env -i B=2 /usr/bin/env;'
                  'env -u A env | grep -c ^A=', expect='B=2\n0\n', status=1)

    def test_tz(self):
        self.bash('PROBE; TZ=UTC date -d @0; TZ=EST5 date -d @0; export TZ=JST-9; date -d @0; unset TZ; date -d @0',
                  expect='Thu Jan  1 00:00:00 UTC 1970\nWed Dec 31 19:00:00 EST 1969\nThu Jan  1 09:00:00 JST 1970\n')

    def test_locale(self):
        self.bash('PROBE; printf "b\\nA\\na\\nB\\n" >in; LC_ALL=C sort in; LC_ALL=C.UTF-8 locale charmap; LC_ALL=C locale charmap',
                  expect='A\nB\na\nb\nUTF-8\nANSI_X3.4-1968\n')

    def test_venv(self):
        self.bash('''PROBE; /usr/bin/python3 -m venv --without-pip v || exit
            . v/bin/activate; command -v python; python -c "import sys; print(sys.prefix)"
            python -c "import subprocess; subprocess.run(['sh', '-c', 'command -v python'])"
            deactivate; command -v python3; sh -c 'echo "[$VIRTUAL_ENV]"' ''',
                  expect='/work/v/bin/python\n')

    def test_timeout_in_bash(self):
        self.bash('PROBE; timeout 1 sleep 9; echo $?; timeout -s KILL 1 sleep 9; echo $?; timeout 9 sh -c "exit 3"; echo $?',
                  expect='124\n137\n3\n', same=without_pids)

    def test_timeout_itself(self):
        # The agent has one second to live: enough to look at it, but if this machine is so busy that
        # it is not, look again.
        for is_last in (False, False, True):
            try:
                return self.row('timeout', '1', 'sh', '-c', 'PROBE; exec sleep 9', status=124, expect='')
            except AssertionError as failure:
                if is_last or 'one agent' not in str(failure):
                    raise

    def test_long_pipe(self):
        size = '4G' if FULL else '1G'
        self.bash(f'PROBE; cat /dev/zero | head -c {size} >/dev/null; echo ${{PIPESTATUS[@]}};'
                  f'cat /dev/zero | head -c {size} | wc -c', expect='141 0\n')


if __name__ == '__main__':
    main()
