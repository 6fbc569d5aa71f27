"""Static agents under each mechanism that can route them: what a person who starts one expects. The agent is
busybox's shell, which no library can be loaded into; where a program ran is told by airlock-test-where. The
ways past a mechanism are in dodge_test.py.
"""

import functools
import json
import os
import re
import shutil
import subprocess

from harness import AIRLOCK, BIN, CANARY, Case, main

WHERE = BIN + '/airlock-test-where'
BUSYBOX = '/bin/busybox'


@functools.cache
def mechanisms():
    """{name: why it does not work here, or ''}"""
    told = subprocess.run([AIRLOCK, '-o', 'json', 'doctor'], capture_output=True, check=False).stdout
    return {each['mechanism']: each['reason'] for each in json.loads(told)['enforcement']['mechanisms']}


def under_each(test):
    """Runs a test under each mechanism that works here; the others are told as not run."""
    @functools.wraps(test)
    def run(self):
        for mechanism in ('binfmt', 'ptrace'):
            with self.subTest(mechanism=mechanism):
                if mechanisms()[mechanism]:
                    self.skipTest(f'{mechanism}: {mechanisms()[mechanism]}')
                test(self, mechanism)
    return run


class StaticAgents(Case):
    def agent(self, mechanism, script, options=(), **run_options):
        return self.routed(BUSYBOX, 'sh', '-c', script, options=('--enforce', mechanism, *options),
                           **run_options)

    def expect_user(self, text, count=1):
        found = re.findall(r'^where \S+ key=(\S*) mark=(\S*)', text, re.M)
        self.assertEqual(found, [('', 'user')] * count, text)

    def test_control_bare(self):
        ended = self.run_program([BUSYBOX, 'sh', '-c', f'{WHERE}; exit 3'])
        self.assertIn(f'key={CANARY} mark= ', ended.out)
        self.assertEqual(ended.status, 3)

    @under_each
    def test_output_and_status(self, mechanism):
        ended = self.agent(mechanism, f'{WHERE} 5; echo status $?; {WHERE} | cat >&2; exit 7')
        self.expect_user(ended.out)
        self.expect_user(ended.err)
        self.assertIn('status 5', ended.out)
        self.assertEqual(ended.status, 7)

    @under_each
    def test_what_cannot_be_executed(self, mechanism):
        # The errno of a direct exec, so the shell says the same.
        script = '/nonexistent; echo $?; nonexistent; echo $?; /etc/passwd; echo $?; /; echo $?'
        bare = self.run_program([BUSYBOX, 'sh', '-c', script])
        ended = self.agent(mechanism, script)
        self.assertEqual((ended.out, ended.err), (bare.out, bare.err))

    @under_each
    def test_many_words(self, mechanism):
        # Beyond what fits one datagram to an init, and its memory is moved for the stub's sake.
        script = 'set -- $(seq 1 60000); printf "%s\\n" "$@" | tail -n1; /usr/bin/printf "%s\\n" "$@" | wc -l'
        ended = self.agent(mechanism, script)
        self.assertEqual(ended.out, '60000\n60000\n', ended.err)

    @under_each
    def test_empty_environment(self, mechanism):
        self.expect_user(self.agent(mechanism, f'env -i {WHERE}; exec {WHERE}').out, 2)

    @under_each
    def test_own_sandbox(self, mechanism):
        sandbox = 'bwrap --unshare-user --ro-bind / / --dev-bind /dev /dev'
        ended = self.agent(mechanism, f'{sandbox} {WHERE}')
        self.expect_user(ended.out + ended.err)
        self.assertEqual(ended.status, 7)

    @under_each
    def test_run_here_by_a_rule(self, mechanism):
        # A copy under another name, so that only one of two is run here.
        here = shutil.copy(WHERE, self.work + '/here')
        config = (f'contexts: {{platform: {{cwd: {self.work}, child_context: user, enforce: %s, '
                  f'routes: [{{program: {here}, action: here}}]}}, user: {{env: {{ROUTE_MARK: user}}}}}}\n')
        self.up(config % mechanism)
        ended = self.airlock('run', '--', BUSYBOX, 'sh', '-c', f'{here}; {WHERE}; {here} 4')
        self.airlock('down')
        kinds = re.findall(r'key=(\S*) mark=(\S*)', ended.out)
        self.assertEqual(kinds, [(CANARY, ''), ('', 'user'), (CANARY, '')], ended.out + ended.err)
        self.assertEqual(ended.status, 4)

    @under_each
    def test_user_and_files_stay_what_they_are(self, mechanism):
        script = 'id -u >/dev/null; read -r line </proc/self/uid_map; stat -c %u:%g /etc/passwd . >ids; ' \
                 ': >made; exit 0'
        ended = self.agent(mechanism, script)
        self.assertEqual(ended.status, 0, ended.err)
        made = os.stat(self.work + '/made')
        self.assertEqual((made.st_uid, made.st_gid), (os.getuid(), os.getgid()))
        with open(self.work + '/ids') as file:
            self.assertEqual(file.read(), f'0:0\n{os.getuid()}:{os.getgid()}\n')
        os.remove(self.work + '/made')

    def test_without_isolation(self):
        # Where nobody can mount: ptrace.
        if mechanisms()['ptrace']:
            self.skipTest('ptrace: ' + mechanisms()['ptrace'])
        ended = self.agent('auto', f'{WHERE}; exit 7', options=('--tier', 'none', '--development'))
        self.expect_user(ended.out)
        self.assertEqual(ended.status, 7)


if __name__ == '__main__':
    main()
