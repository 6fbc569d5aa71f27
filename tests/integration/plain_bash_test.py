"""Persistent shells of a bash that airlock's builtin does not fit: the same cases, and those that differ.
docs/SHELLS.md has the table.
"""

import os
import shutil
import signal
import tempfile

import shells_test
from harness import AIRLOCK, BIN, REFUSED, main


class PlainBash(shells_test.Cases, shells_test.More, shells_test.Contexts):
    """All of that with a bash that the builtin does not fit: here because it is missing. What is defined in this
    class differs, and only that."""
    engine = 'bash-loop'
    test_25_a_waiting_command_has_no_deadline = None  # long, and of routerd alone

    @classmethod
    def setUpClass(cls):
        """The programs of this build without the builtin."""
        super().setUpClass()
        cls.programs = tempfile.mkdtemp(prefix='al-programs-', dir='/tmp')
        cls.addClassCleanup(shutil.rmtree, cls.programs)
        os.chmod(cls.programs, 0o755)
        os.symlink(BIN + '/profiles', cls.programs + '/profiles')
        for name in os.listdir(BIN):
            source = f'{BIN}/{name}'
            if name.startswith(('airlock', 'lib')) and os.path.isfile(source) and name != 'airlock-shell.so':
                try:
                    os.link(source, f'{cls.programs}/{name}')
                except OSError:
                    shutil.copy2(source, f'{cls.programs}/{name}')

    def airlock(self, *arguments, **options):
        program = self.programs + '/airlock' if arguments[0] == 'up' else AIRLOCK
        return self.run_program([program, *arguments], **options)

    def lost(self, text, out, *, code=None, number=None):
        """`text` ends the shell; its output and status are as true as ever, and a fresh shell comes."""
        self.steps(('A=1', ''))
        result = self.result(text)
        self.assertEqual((result['stdout'], result['exitCode'], result['signal']), (out, code, number), result)
        self.assertEqual((result['shell']['event'], result['shell']['engine']), ('lost', 'bash-loop'))
        self.assertIn('cannot open shared object', result['shell']['noCheckpoint'])
        self.steps(('echo ${A-fresh}', 'fresh\n'))

    def test_07_a_loop_of_builtins_is_ended(self):
        self.steps(('A=1', ''))
        late = self.result('while :; do :; done', '--timeout', '200ms', '--grace', '100ms')
        self.assertTrue(late['timedOut'])
        self.assertEqual((late['signal'], late['shell']['event']), ('SIGKILL', 'lost'))
        self.steps(('echo ${A-fresh}', 'fresh\n'))

    def test_10_errexit_is_not_the_end(self):
        self.lost('set -euo pipefail; false; echo no', b'', code=1)
        self.steps(('set -e; true', ''), ('A=1', ''), ('echo $A; set +e; false', '1\n', 1), ('echo $?', '1\n'))

    def test_12_unset_variables(self):
        for text, message in (('set -u; echo $NOPE', 'NOPE: unbound variable'), ('echo ${N:?msg}', 'N: msg')):
            self.lost(text, b'', code=1)
            self.assertIn(message, self.in_shell(text).err)

    def test_13_exit_is_a_result(self):
        self.lost('echo bye; exit 42', b'bye\n', code=42)

    def test_14_exec_replaces_the_shell(self):
        self.lost('exec ls /usr', ''.join(name + '\n' for name in sorted(os.listdir('/usr'))).encode(), code=0)

    def test_15_traps_and_sigkill(self):
        self.lost("trap 'echo bye' EXIT; exit 4", b'bye\n', code=4)
        self.lost('kill -9 $$', b'', number='SIGKILL')

    def test_16_tracing(self):
        self.assertEqual(self.in_shell('set -x; declare -i n=1').err, '++ declare -i n=1\n')
        self.assertEqual(self.in_shell('n=2; set +x').err, '++ n=2\n++ set +x\n')
        self.assertEqual(self.in_shell('n=3').err, '')

    def test_23_an_interrupt(self):
        """Of a program: the shell stays. Of what goes on all the same: the second ends the shell."""
        self.steps(('A=1', ''))
        once = self.start([AIRLOCK, 'exec', 'user', '-c', "sh -c 'echo ready; exec sleep 1000'"])
        self.assertEqual(self.line_of(once), b'ready\n')
        self.ask('shell', 'interrupt', 'user')
        self.assertEqual(self.finish(once).status, 130)
        self.steps(('echo $A', '1\n'))
        loop = self.start([AIRLOCK, 'exec', 'user', '-c', "while :; do sh -c 'echo ready; exec sleep 1000'; done"])
        for _ in range(2):
            self.assertEqual(self.line_of(loop), b'ready\n')
            self.ask('shell', 'interrupt', 'user')
        self.assertEqual(self.finish(loop).status, -signal.SIGINT)

    def test_23_or_are_told_that_the_shell_is_busy(self):
        holder = self.start([AIRLOCK, 'exec', 'user', '-c', 'echo ready; sleep 1000'])
        self.assertEqual(self.line_of(holder), b'ready\n')
        job = self.ask('shells', 'user')[0]['job']
        self.expect_error(self.in_shell('true', '--on-busy', 'fail'), REFUSED, f'busy with job {job}')

    def test_no_copy_while_something_is_held(self):
        self.result('exec 9>lock; flock 9')
        self.assertIn('only bash with', self.result('true')['shell']['noCheckpoint'])
        self.steps(('flock -n lock true', '', 1), ('exec 9>&-', ''), ('flock -n lock true', ''))

    def test_files_have_one_offset(self):
        """The requester's own descriptor, not one opened anew."""
        with open(self.work + '/out', 'w+b') as file:
            for text in ('echo one', 'echo two; exit 3', 'echo three'):
                client = self.start([AIRLOCK, 'exec', 'user', '-c', text], stdout=file)
                self.finish(client)
            file.seek(0)
            self.assertEqual(file.read(), b'one\ntwo\nthree\n')


if __name__ == '__main__':
    main()
