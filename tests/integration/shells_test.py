"""Persistent shells from outside: `airlock exec -c` and its relatives against a real daemon.

Cases.test_NN are the failure cases that other exec services are known for; docs/SHELLS.md has the list.
"""

import base64
import json
import os
import pty
import shutil
import signal
import subprocess
import threading

from harness import AIRLOCK, REFUSED, USAGE, Case, command_line, eventually, main, members


class Shells(Case):
    engine = 'bash-builtin'

    def setUp(self):
        super().setUp()
        self.up()

    def in_shell(self, text, *options, context='user', **run_options):
        return self.airlock('exec', context, *options, '-c', text, **run_options)

    def result(self, text, *options, context='user', **run_options):
        """The JSON result of a command text; its output as bytes."""
        ended = self.airlock('-o', 'json', 'exec', context, *options, '-c', text, **run_options)
        self.assertTrue(ended.out, f'{ended.status}: {ended.err}')
        result = json.loads(ended.out)
        for name in ('stdout', 'stderr'):
            raw = result[name]
            result[name] = base64.b64decode(raw) if result[name + 'Encoding'] == 'base64' else raw.encode()
            self.assertEqual(len(result[name]), result[name + 'Bytes'])
        return result

    def steps(self, *steps):
        """Each step: command, what it prints, and how it ends (exit code, or -signal)."""
        for text, out, *rest in steps:
            ended = self.in_shell(text)
            self.assertEqual((ended.out, ended.status), (out, rest[0] if rest else 0), f'{text!r}: {ended.err}')

    def inside(self, *program):
        """How many processes of context user run with these words."""
        inode = self.namespace_of('user')
        return [pid for pid in members(inode) if command_line(pid) == ' '.join(program)]


class Cases(Shells):
    def test_01_heredocs(self):
        self.steps(("cat >m <<'EOF'\nline one\nEOF\nwc -l <m", '1\n'), ('echo ok', 'ok\n'))
        lost = self.in_shell('cat <<EOF\nlost end\n')
        self.assertEqual((lost.status, lost.out), (0, 'lost end\n'))
        self.assertIn('here-document', lost.err)
        self.steps(('echo ok', 'ok\n'))

    def test_02_unbalanced_text(self):
        for text in ('echo "abc', 'echo a; }', 'if true; then'):
            ended = self.in_shell(text)
            self.assertEqual((ended.status, ended.out), (2, ''), ended.err)
            self.assertIn('bash: ', ended.err)
            self.assertNotIn('airlock', ended.err, 'nothing of ours in it')
        self.steps(('echo hi \\', 'hi \\\n'), ('echo ok', 'ok\n'))

    def test_03_background_child_holds_the_pipe(self):
        result = self.result('sleep 1000 & echo started')
        self.assertEqual((result['stdout'], result['exitCode']), (b'started\n', 0))
        self.assertEqual(len(result['shell']['background']), 1)
        eventually(lambda: len(self.inside('sleep', '1000')) == 1, 'the child has become sleep')
        self.steps(('kill %1; wait; echo ended', 'ended\n'))
        client = self.start([AIRLOCK, 'exec', 'user', '-c', 'sleep 1000 & echo started'])
        self.assertEqual(client.wait(60), 0, 'also where it holds a pipe of the requester')
        self.assertEqual(self.line_of(client), b'started\n')

    def test_04_what_is_left_can_go_on_writing(self):
        self.steps(('mkfifo go; (read x <go; for i in 1 2 3; do echo tick$i; done; touch done) >log 2>&1 &', ''),
                   ('echo >go; wait; ls done; wc -l <log', 'done\n3\n'))

    def test_05_a_timeout_is_for_the_command_alone(self):
        quick = self.result("sh -c 'sleep 1000 &'", '--timeout', '60s')
        self.assertEqual((quick['exitCode'], quick['timedOut']), (0, False))
        late = self.result('sleep 1000', '--timeout', '200ms')
        self.assertEqual((late['exitCode'], late['signal'], late['timedOut']), (None, 'SIGTERM', True))
        self.steps(('pkill sleep; true', ''))

    def test_06_a_timeout_keeps_the_shell(self):
        self.steps(('cd /usr; A=1', ''))
        self.assertEqual(self.in_shell('sleep 1000', '--timeout', '200ms').status, 124)
        self.steps(('echo $A $PWD', '1 /usr\n'))

    def test_07_a_loop_of_builtins_is_ended(self):
        self.steps(('A=1', ''))
        late = self.result('while :; do :; done', '--timeout', '200ms', '--grace', '100ms')
        self.assertTrue(late['timedOut'])
        self.assertEqual((late['signal'], late['shell']['event']), ('SIGKILL', 'recovered'))
        self.steps(('echo $A', '1\n'))

    def test_08_a_kill_reaches_all_a_command_started(self):
        client = self.start([AIRLOCK, 'exec', 'user', '-c', "bash -c 'sleep 1001 & sleep 1002 & echo ready; wait'"])
        self.assertEqual(self.line_of(client), b'ready\n')
        job = [each for each in self.ask('ps', 'user') if each.get('shell') == 'default'][0]['job']
        self.assertEqual(self.airlock('kill', '-s', 'KILL', 'user', str(job)).status, 0)
        self.finish(client)
        eventually(lambda: not self.inside('sleep', '1001') and not self.inside('sleep', '1002'), 'both ended')

    def test_09_detached_processes_end_with_reset_and_context(self):
        self.assertEqual(self.in_shell("setsid sh -c 'sleep 1001' >/dev/null 2>&1 & disown; exit 0").status, 0)
        eventually(lambda: self.inside('sleep', '1001'), 'it runs')
        answer = self.ask('shell', 'reset', 'user')
        self.assertEqual(answer['survivors'], 0)
        self.assertGreaterEqual(answer['killed'], 1)
        self.assertEqual(self.inside('sleep', '1001'), [])
        self.in_shell("setsid sh -c 'sleep 1001' >/dev/null 2>&1 & disown; exit 0")
        self.assertEqual(self.airlock('ctx', 'rm', 'user').status, 0)

    def test_10_errexit_is_not_the_end(self):
        self.steps(('cd /usr; f(){ echo fn; }', ''))
        result = self.result('set -euo pipefail; false; echo no')
        self.assertEqual((result['exitCode'], result['stdout'], result['shell']['event']), (1, b'', 'recovered'))
        self.steps(('f; pwd', 'fn\n/usr\n'))

    def test_11_errexit_works(self):
        self.steps(('set -e\nfalse\necho survived', '', 1))

    def test_12_unset_variables(self):
        self.steps(('A=1', ''))
        for text, message in (('set -u; echo $NOPE', 'NOPE: unbound variable'), ('echo ${N:?msg}', 'N: msg')):
            ended = self.in_shell(text)
            self.assertEqual(ended.status, 127)
            self.assertIn(message, ended.err)
        self.steps(('echo $A', '1\n'))

    def test_13_exit_is_a_result(self):
        self.steps(('cd /usr; A=1; sleep 1000 >/dev/null 2>&1 &', ''), ('echo bye; exit 42', 'bye\n', 42), ('echo $A $PWD', '1 /usr\n'))

    def test_14_exec_replaces_the_shell(self):
        self.steps(('A=1', ''))
        listed = self.in_shell('exec ls /usr')
        self.assertEqual(listed.out.split(), sorted(os.listdir('/usr')))
        self.steps(('echo $A', '1\n'))

    def test_15_traps_and_sigkill(self):
        self.steps(("A=1; trap 'echo bye' EXIT", ''), ('exit 4', 'bye\n', 4), ('kill -9 $$', '', -signal.SIGKILL),
                   ('echo $A', '1\n'))

    def test_16_the_users_shell_is_the_users(self):
        self.steps(('PATH=/nonexistent; echo(){ :; }; printf(){ :; }; builtin(){ :; }; eval(){ :; }; alias mv=false; '
                    "log=1; dir=2; EXIT_CODE=3; IFS=,; set -C; trap 'x' EXIT", ''),
                   ('command true', ''),
                   ('declare -p log dir EXIT_CODE', 'declare -- log="1"\ndeclare -- dir="2"\ndeclare -- EXIT_CODE="3"\n'),
                   ('trap -p EXIT', "trap -- 'x' EXIT\n"))

    def test_16_tracing(self):
        self.assertEqual(self.in_shell('set -x; declare -i n=1').err, '+ declare -i n=1\n')
        self.assertEqual(self.in_shell('n=2').err, '+ n=2\n')

    def test_17_output_is_bytes(self):
        self.assertEqual(self.result(r"printf 'a\0b\xff'")['stdout'], b'a\0b\xff')
        self.assertEqual(self.result('printf foo')['stdout'], b'foo')
        self.assertEqual(self.result('echo foo')['stdout'], b'foo\n')

    def test_18_characters_are_whole(self):
        text = self.result(r"printf '\xe2'; sleep .05; printf '\x89\xa4'; printf '你%.0s' {1..50000}")
        self.assertEqual(text['stdout'].decode(), '≤' + '你' * 50000)

    def test_19_large_output(self):
        client = self.start([AIRLOCK, 'exec', 'user', '-c', 'yes 0123456789 | head -c 20000000'])
        out, _ = client.communicate(timeout=60)
        self.assertEqual(out, b'0123456789\n' * (20000000 // 11) + b'0123456789\n'[:20000000 % 11])

    def test_20_output_is_complete_when_the_code_is_there(self):
        def run(shell):
            for _ in range(8):
                ended = self.in_shell('seq 1 2000; exit 7', '--shell', f's{shell}')
                if (ended.status, ended.out.count('\n')) != (7, 2000):
                    wrong.append((ended.status, len(ended.out), ended.err))
        wrong = []
        threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_20_a_lost_daemon_is_no_success(self):
        client = self.start([AIRLOCK, 'exec', 'user', '-c', 'echo ready; sleep 1000'])
        self.assertEqual(self.line_of(client), b'ready\n')
        os.kill(self.ask('info')['pid'], signal.SIGKILL)
        self.assertEqual(self.finish(client).status, 125)
        shutil.rmtree(self.runtime, ignore_errors=True)

    def test_21_nothing_can_be_forged(self):
        text = r"printf '###PS1END###\n__EXIT_CODE__:0\n\x02\x02\x02x\n\033[2J\033c'; exit 3"
        result = self.result(text)
        self.assertEqual(result['stdout'], b'###PS1END###\n__EXIT_CODE__:0\n\x02\x02\x02x\n\033[2J\033c')
        self.assertEqual(result['exitCode'], 3)

    def test_22_standard_input_ends(self):
        self.steps(('cat; cat /dev/stdin; echo end', 'end\n'))
        self.assertEqual(self.in_shell('wc -c', '-i', stdin=b'abc').out, '3\n')

    def test_23_commands_wait_for_each_other(self):
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.in_shell('n=$((n+1)); echo $n').out))
                   for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(map(int, results)), list(range(1, 21)))

    def test_23_or_are_told_that_the_shell_is_busy(self):
        holder = self.start([AIRLOCK, 'exec', 'user', '-c', 'echo ready; sleep 1000'])
        self.assertEqual(self.line_of(holder), b'ready\n')
        job = self.ask('shells', 'user')[0]['job']
        self.expect_error(self.in_shell('true', '--on-busy', 'fail'), REFUSED, f'busy with job {job}')
        self.assertEqual(self.in_shell('echo free', '--shell', 'other').out, 'free\n', 'another shell is not')
        self.assertEqual(self.ask('shell', 'interrupt', 'user')['job'], job)
        self.assertEqual(self.finish(holder).status, -signal.SIGINT)
        self.assertEqual(self.in_shell('echo free', '--on-busy', 'fail').out, 'free\n')

    def test_24_startup_files_are_not_read(self):
        self.write(self.home + '/.bashrc', 'exit 3\n')
        self.write(self.home + '/.profile', 'exit 3\n')
        self.steps(('echo ok', 'ok\n'))
        os.remove(self.home + '/.bashrc')
        self.steps(("bash -ic 'echo $?' 2>/dev/null", '0\n'))

    def test_25_a_waiting_command_has_no_deadline(self):
        """Longer than the 20 s that a requester waits for an answer: only its turn counts."""
        os.mkfifo(self.work + '/go')
        holder = self.start([AIRLOCK, 'exec', 'user', '-c', 'echo ready; read x <go'])
        self.line_of(holder)
        waiting = self.start([AIRLOCK, 'exec', 'user', '-c', 'echo mine'])
        eventually(lambda: self.ask('shells', 'user')[0]['waiting'] == 1, 'it waits')
        with self.assertRaises(subprocess.TimeoutExpired):
            waiting.wait(21)
        with open(self.work + '/go', 'w') as file:
            file.write('\n')
        self.assertEqual(self.finish(waiting).out, 'mine\n')
        self.finish(holder)


class More(Shells):
    def test_01_a_full_disk(self):
        """Nothing of ours goes through files: where none can be written all is as ever."""
        self.steps(('ulimit -f 0; (echo x >file) 2>/dev/null; echo $?', '153\n'),
                   ('echo x 2>/dev/null >/dev/full', '', 1),
                   ('seq 1 3; exit 3', '1\n2\n3\n', 3), ('echo ok', 'ok\n'))

    def test_02_no_descriptor_is_left(self):
        census = 'ls /proc/self/fd | wc -l; ls /proc/$PPID/fd | wc -l'
        self.steps(('true', ''))
        before = self.in_shell(census).out
        for number in range(100):
            self.assertEqual(self.in_shell('exit 1' if number % 10 == 0 else ':').status, number % 10 == 0)
        self.assertEqual(self.in_shell(census).out, before)

    def test_04_a_failed_start_is_no_running_command(self):
        self.expect_error(self.in_shell('true', '-w', '/nonexistent'), REFUSED, '/nonexistent')
        shell = self.ask('shells', 'user')[0]
        self.assertEqual((shell['job'], shell['waiting']), (None, 0))

    def test_05_very_short_processes(self):
        self.steps(('for i in $(seq 200); do (exit 3) & c=0; wait $! || c=$?; [ $c = 3 ] || echo wrong; done', ''))

    def test_06_a_stopped_job(self):
        """A stop of its child stops nobody else; a time limit ends it all the same."""
        late = self.result("sh -c 'kill -STOP $$'", '--timeout', '200ms', '--grace', '100ms')
        self.assertTrue(late['timedOut'])
        self.steps(('echo ok', 'ok\n'))

    def test_07_what_was_printed_before_a_timeout(self):
        late = self.result('echo partial; sleep 1000', '--timeout', '200ms')
        self.assertEqual((late['stdout'], late['timedOut']), (b'partial\n', True))

    def test_08_questions_to_a_terminal_are_only_bytes(self):
        self.assertEqual(self.result(r"printf '\e[6n\e]10;?\a'")['stdout'], b'\x1b[6n\x1b]10;?\x07')

    def test_09_env_of_one_command(self):
        self.assertEqual(self.in_shell('echo $A $PWD', '-e', 'A=it\'s "$(x)"', '-w', '/usr').out, 'it\'s "$(x)" /usr\n')
        self.steps(('echo ${A-none} $PWD', f'none {self.work}\n'))

    def test_10_what_is_typed_is_in_no_log(self):
        secret = 'not-to-be-logged-4711'
        self.in_shell(f'true {secret}', '-e', f'S={secret}')
        self.assertNotIn(secret, self.airlock('routes').out)
        with open(self.runtime + '/airlock.log') as log:
            self.assertNotIn(secret, log.read())
        holder = self.start([AIRLOCK, 'exec', 'user', '-c', f': {secret}; echo ready; sleep 1000'])
        self.line_of(holder)
        inode = self.namespace_of('user')
        self.assertEqual([pid for pid in members(inode) if secret in command_line(pid)], [], 'nor in an argv')

    def test_12_orphans_are_reaped(self):
        self.steps(('for i in $(seq 500); do (sleep .01 >/dev/null 2>&1 &) ; done', ''))
        eventually(lambda: not self.inside('sleep', '.01'), 'they end')
        eventually(lambda: self.in_shell("ps -e -o stat= | grep -c Z").out == '0\n', 'no zombies')

    def test_no_copy_while_something_is_held(self):
        for name, hold, release, why in (
                ('pipe', 'exec 3> >(cat >/dev/null)', 'exec 3>&-', 'pipe'),
                ('lock', 'exec 9>lock; flock 9', 'exec 9>&-', 'lock'),
                ('coproc', 'coproc cat', 'kill $!; wait; exec {COPROC[0]}<&- {COPROC[1]}>&-', 'pipe')):
            with self.subTest(name):
                self.assertIsNone(self.result(hold, '--shell', name)['shell']['noCheckpoint'])
                self.assertIn(why, self.result('true', '--shell', name)['shell']['noCheckpoint'])
                lost = self.result('exit 3', '--shell', name)
                self.assertEqual((lost['exitCode'], lost['shell']['event']), (3, 'lost'))
                self.result(hold, '--shell', name)
                self.in_shell(release, '--shell', name)
                kept = self.result('exit 4', '--shell', name)
                self.assertEqual((kept['exitCode'], kept['shell']['event']), (4, 'recovered'))


class Contexts(Shells):
    def test_the_result(self):
        result = self.result('cd /usr; export B=1; sleep 1000 & exit_code() { return 5; }; exit_code')
        self.assertEqual(result['exitCode'], 5)
        self.assertEqual(result['shell']['cwd'], '/usr')
        self.assertEqual(result['shell']['engine'], self.engine)
        self.assertEqual(self.ask('shells', 'user')[0]['engine'], self.engine)
        self.assertEqual(sorted(result['shell']['envChanged']), ['B', 'OLDPWD', 'PWD'])
        self.assertEqual(len(result['shell']['background']), 1)
        self.assertGreaterEqual(result['durationMs'], 0)
        plain = self.airlock('-o', 'json', 'exec', 'user', '--', 'sh', '-c', 'echo x; exit 3')
        self.assertEqual(plain.status, 3)
        self.assertIn('"shell": null', plain.out)

    def test_changes_reach_live_shells(self):
        self.steps(('A=own; export GONE=1', ''))
        value = 'it\'s "$(touch made)" `x` \n end'
        self.assertEqual(self.airlock('env', 'user', 'set', f'B={value}', 'GONE=2').status, 0)
        self.steps(('printf %s "$B"; echo "|$A|$GONE"', value + '|own|2\n'), ('ls', ''))
        self.assertEqual(self.airlock('env', 'user', 'get', 'B').out, value + '\n')
        self.assertEqual(self.ask('env', 'user', 'get'), {'B': value, 'GONE': '2'})
        self.assertEqual(self.airlock('env', 'user', 'unset', 'B', 'GONE').status, 0)
        self.steps(('echo ${B-none}${GONE-none}', 'nonenone\n'))
        self.assertEqual(self.airlock('env', 'user', 'get', 'B').status, 1)
        self.expect_error(self.airlock('env', 'user', 'set', 'noequals'), USAGE, 'NAME=value')

    def test_folders(self):
        self.assertEqual(self.airlock('pwd', 'user').out, self.work + '\n')
        self.steps(('cd /usr; A=1', ''))
        self.assertEqual(self.airlock('pwd', 'user').out, '/usr\n', 'the shell has moved')
        self.assertEqual(self.airlock('cd', 'user', 'bin').status, 0)
        self.assertEqual(self.airlock('pwd', 'user').out, '/usr/bin\n')
        self.steps(('echo $PWD $A', '/usr/bin 1\n'))
        self.assertEqual(self.exec_in('user', 'pwd').out, '/usr/bin\n')
        self.expect_error(self.airlock('cd', 'user', 'nowhere'), 1, 'nowhere')
        self.assertEqual(self.airlock('pwd', 'user').out, '/usr/bin\n')

    def test_persistent_or_not(self):
        self.assertEqual(self.airlock('ctx', 'create', 'once', '-w', '/', '--no-persistent').status, 0)
        self.in_shell('A=1', context='once')
        self.assertEqual(self.in_shell('echo ${A-none} ${BASH_VERSION:+bash}', context='once').out, 'none bash\n')
        self.assertEqual(self.ask('shells', 'once'), [])
        self.in_shell('A=1', '--shell', 'kept', context='once')
        self.assertEqual(self.in_shell('echo $A', '--shell', 'kept', context='once').out, '1\n')
        self.steps(('A=1', ''))
        self.assertEqual(self.in_shell('echo ${A-none}', '--no-shell').out, 'none\n')
        self.assertEqual(self.in_shell('cat; exit 9', '--no-shell', '-i', stdin=b'in').status, 9)

    def test_wrong_command_lines(self):
        self.expect_error(self.in_shell('true', '--shell', ''), USAGE, '--shell', 'empty')
        self.expect_error(self.in_shell('true', '--shell', 'a', '--no-shell'), USAGE, 'exclude')
        self.expect_error(self.in_shell('true', '--shell', 'A b'), REFUSED, 'expected a lower-case letter')
        self.expect_error(self.in_shell('true', '--grace', 'soon'), USAGE, '--grace')
        self.expect_error(self.exec_in('user', 'true', options=['--on-busy', 'fail']), USAGE, '--on-busy')
        self.expect_error(self.airlock('shell', 'reset', 'user', '--shell', 'none'), 1, "no shell 'none'")
        self.expect_error(self.airlock('shell', 'interrupt', 'nowhere'), 1, "no context 'nowhere'")

    def test_a_reset_refuses_who_waits(self):
        holder = self.start([AIRLOCK, 'exec', 'user', '-c', "trap '' TERM INT; echo ready; while :; do :; done"])
        self.line_of(holder)
        waiting = self.start([AIRLOCK, 'exec', 'user', '-c', 'echo never'])
        eventually(lambda: self.ask('shells', 'user')[0]['waiting'] == 1, 'it waits')
        self.assertEqual(self.ask('shell', 'reset', 'user')['survivors'], 0)
        self.assertEqual(self.finish(holder).status, -signal.SIGKILL)
        self.expect_error(self.finish(waiting), REFUSED, 'the shell was reset')
        self.steps(('echo fresh', 'fresh\n'))

    def test_a_waiting_command_can_be_cancelled(self):
        holder = self.start([AIRLOCK, 'exec', 'user', '-c', 'echo ready; sleep 1000'])
        self.line_of(holder)
        waiting = self.start([AIRLOCK, 'exec', 'user', '-c', 'echo never'])
        jobs = eventually(lambda: [j for j in self.ask('ps', 'user') if j.get('shell') and j['pid'] == 0], 'it waits')
        self.assertEqual(self.airlock('kill', 'user', str(jobs[0]['job'])).status, 0)
        self.expect_error(self.finish(waiting), REFUSED, 'cancelled')

    def test_kill_all_leaves_nothing_of_a_shell(self):
        self.in_shell('setsid sleep 1001 >/dev/null 2>&1 & true')
        eventually(lambda: self.inside('sleep', '1001'), 'it runs')
        self.assertEqual(self.airlock('kill', 'user', 'all').status, 0)
        eventually(lambda: not self.inside('sleep', '1001'), 'nothing is left')

    def test_interactive(self):
        """On a terminal of its own, with what a persistent shell exports and where that is."""
        self.steps(('export A="a  b"; cd /usr', ''))
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        client = self.start([AIRLOCK, 'sh', 'user', '--shell', 'default'], stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        os.write(master, b'printf "<%s|%s|%s>" "$A" "$PWD" "$(tty)"; exit 7\n')
        seen = b''
        while True:
            try:
                block = os.read(master, 4096)
            except OSError:
                break
            seen += block
        self.assertEqual(client.wait(60), 7)
        self.assertRegex(seen.decode(errors='replace'), r'<a  b\|/usr\|/dev/pts/\d+>')


class Completion(Case):
    def test_bash(self):
        """What bash itself makes of it."""
        script = self.airlock('completion', 'bash').out
        ask = script + '\nCOMP_WORDS=(airlock "$@"); COMP_CWORD=$#; _airlock; printf "%s\\n" "${COMPREPLY[@]}"\n'
        complete = lambda *words: self.run_program(['bash', '-c', ask, 'bash', *words]).out.split()
        self.assertIn('exec', complete('ex'))
        self.assertEqual(complete('ctx', 'cr'), ['create'])
        self.assertEqual(complete('exec', '--on'), ['--on-busy'])
        self.assertIn('--enforce', complete('ctx', 'create', '--'))
        self.up()
        folder = os.path.dirname(AIRLOCK)
        named = self.run_program(['bash', '-c', ask, 'bash', 'exec', 'us'], env={'PATH': f'{folder}:{os.environ["PATH"]}'})
        self.assertEqual(named.out, 'user\n')

    def test_others_parse(self):
        for shell in ('zsh', 'fish'):
            with self.subTest(shell):
                script = self.airlock('completion', shell)
                self.assertEqual(script.status, 0)
                self.assertIn('airlock', script.out)
                program = shutil.which(shell)
                if not program:
                    self.skipTest(f'no {shell} here')
                checked = self.run_program([program, '-n', self.write('script', script.out)])
                self.assertEqual((checked.status, checked.err), (0, ''))
        self.assertEqual(self.airlock('completion', 'csh').status, USAGE)


if __name__ == '__main__':
    main()
