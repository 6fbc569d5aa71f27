"""Bad input gives one clear `airlock: …` line and the documented exit code (docs/PROTOCOL.md §8), does
not hang, and leaves nothing behind (harness.py looks after each test)."""

import json
import os
import re

from harness import (AIRLOCK, BIN, CANARY, Case, NOT_FOUND, REFUSED, USAGE, is_running, main,
                     namespace)


class Usage(Case):
    def test_wrong_command_lines(self):
        for arguments in ([], ['nonsense'], ['--nonsense'], ['run'], ['run', '--'], ['run', '--nonsense', 'true'],
                          ['run', '--user-env'], ['run', '--user-env', 'NOVALUE', '--', 'true'],
                          ['run', '--user-env', '=x', '--', 'true'], ['run', '--tier', 'nonsense', '--', 'true'],
                          ['exec'], ['exec', 'user'], ['ctx'], ['ctx', 'create'], ['ctx', 'nonsense'], ['kill'],
                          ['kill', 'user'], ['route'], ['route', 'explain'], ['config'], ['config', 'check'],
                          ['-o', 'xml', 'version'], ['up', 'extra'], ['version', 'extra']):
            with self.subTest(arguments=arguments):
                self.expect_error(self.airlock(*arguments), USAGE)

    def test_no_daemon(self):
        for arguments in (['ps'], ['info'], ['ctx', 'ls'], ['ctx', 'create', 'a'], ['ctx', 'rm', 'a'], ['routes'],
                          ['kill', 'user', 'all'], ['route', 'explain', 'ls'], ['down']):
            with self.subTest(arguments=arguments):
                self.expect_error(self.airlock(*arguments), 1, self.runtime)
        self.expect_error(self.airlock('exec', 'user', '--', 'true'), REFUSED, self.runtime, 'airlock up')

    def test_contexts_of_run(self):
        for options, fragment in ((['--in', 'B d'], "'B d'"), (['--route-to', 'control'], "'control'"),
                                  (['--in', 'x', '--route-to', 'x'], 'itself'), (['--in', ''], "''"),
                                  (['--hide', 'relative'], "'relative'"), (['--share', 'relative'], "'relative'")):
            with self.subTest(options=options):
                self.expect_error(self.airlock('run', *options, '--', 'true'), REFUSED, fragment)

    def test_hide_a_file(self):
        file = self.write('file', '')
        self.expect_error(self.airlock('run', '--hide', file, '--', 'true'), REFUSED, file, 'only folders')

    def test_stub_by_hand(self):
        stub = BIN + '/airlock-stub'
        for arguments in ([], ['--help'], ['exec1'], ['exec0', '/bin/true', 'true'], ['/bin/true']):
            self.expect_error(self.run_program([stub, *arguments]), REFUSED, 'by hand')
        # Its own folder has no router socket, so it cannot be used to run something.
        ended = self.run_program([stub, 'exec1', '/usr/bin/touch', 'touch', self.work + '/ran'])
        self.expect_error(ended, REFUSED, 'router unreachable')
        self.assertFalse(os.path.exists(self.work + '/ran'))
        control = self.run_program(['/usr/bin/touch', self.work + '/ran'])
        self.assertTrue(control.status == 0 and os.path.exists(self.work + '/ran'), 'control')


class NotStarted(Case):
    """Programs that cannot be started: as agents, and as children of one, where the errors must be
    those of a direct exec."""

    def setUp(self):
        super().setUp()
        self.write('plain', 'text')
        self.write('bad_interpreter', '#!/nonexistent/interpreter\n', 0o755)
        self.write('garbage', '\x7fELF garbage', 0o755)
        self.write('no_format', 'echo ran $0\n', 0o755)
        self.write('crlf', '#!/bin/sh\r\necho x\r\n', 0o755)
        os.symlink('loop', self.work + '/loop')
        os.mkdir(self.work + '/folder')

    def test_agents(self):
        work = self.work
        for program, code in (('/nonexistent', NOT_FOUND), ('nonexistent-name', NOT_FOUND), ('', REFUSED),
                              (work + '/plain', REFUSED), (work + '/folder', REFUSED),
                              (work + '/bad_interpreter', NOT_FOUND), (work + '/garbage', REFUSED),
                              (work + '/crlf', NOT_FOUND), (work + '/loop', REFUSED)):
            with self.subTest(program=program):
                ended = self.routed(program)
                self.expect_error(ended, code, program)

    def test_static_agent_is_refused(self):
        # Its children would not be routed by the interposer alone.
        ended = self.routed(BIN + '/airlock-stub', 'x', options=('--enforce', 'preload'))
        self.expect_error(ended, REFUSED, 'static')

    def test_children_get_the_same_errors(self):
        script = '''
import os, subprocess
for word in ("/nonexistent", "nonexistent-name", "", "./plain", "./folder", "./bad_interpreter", "./garbage",
             "./no_format", "./crlf", "./loop", "./plain/x", "x" * 5000, "/etc/passwd/x"):
    try:
        print(word[:20], subprocess.run([word], capture_output=True).returncode)
    except OSError as error:
        print(word[:20], error.strerror, error.filename == word)
    print(os.system(word[:300] or ":") >> 8, flush=True)
'''
        bare = self.run_program(['/usr/bin/python3', '-c', script])
        routed = self.routed('/usr/bin/python3', '-c', script)
        self.assertEqual(bare.status, 0, bare.err)
        self.assertIn('Exec format error', bare.out, 'control')
        self.assertEqual(routed.out, bare.out)
        self.assertEqual(routed.err, bare.err)
        script = '; '.join(f'{word}; echo $?' for word in
                           ('/nonexistent', 'nonexistent-name', './plain', './folder', './bad_interpreter',
                            './garbage', './no_format', './loop', './plain/x'))
        bare = self.run_program(['bash', '-c', script])
        routed = self.routed('bash', '-c', script)
        self.assertEqual((routed.out, routed.err), (bare.out, bare.err))

    def test_arguments_beyond_the_limits(self):
        script = '''
import os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, 64 << 20))
SUM = ['sh', '-c', 'n=0; for w; do n=$((n + ${#w})); done; echo $n', 'sh']
for argv in (['x' * 131071], ['x' * 131072], ['x' * 100000] * 10, ['x' * 100000] * 60, ['x' * 100000] * 100, ['a'] * 100000, []):
    for command in (SUM + argv, ['wc', '-c']):
        try:
            done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL,
                                  env={'PATH': '/usr/bin:/bin', **({f'V{i}': w for i, w in enumerate(argv)} if command[0] == 'wc' else {})})
            print(len(argv), command[0], done.returncode, done.stdout, done.stderr)
        except OSError as error:
            print(len(argv), command[0], error.strerror)
'''
        bare = self.run_program(['/usr/bin/python3', '-c', script])
        routed = self.routed('/usr/bin/python3', '-c', script)
        self.assertIn('Argument list too long', bare.out, 'control')
        self.assertIn("b'5900000", bare.out.replace('6000000', '5900000'), 'control: nearly 6 MB pass')
        self.assertEqual((routed.out, routed.err), (bare.out, bare.err))

    def test_folder_missing_in_the_context(self):
        # The agent goes where its children cannot follow: into HOME, and into a deleted folder.
        os.mkdir(self.home + '/private')
        for script, fragment in ((f'cd {self.home}/private', f'working directory {self.home}/private'),
                                 ('mkdir gone; cd gone; rmdir ../gone', 'working directory')):
            bare = self.run_program(['bash', '-c', script + '; /bin/true; exit $?'])
            self.assertEqual(bare.status, 0, 'control')
            self.expect_error(self.routed('bash', '-c', script + '; /bin/true; exit $?'), REFUSED, fragment)
            if os.path.isdir(self.work + '/gone'):
                os.rmdir(self.work + '/gone')

    def test_target_that_is_the_stub(self):
        self.up()
        stub = self.runtime + '/airlock-stub'
        # The stub itself is never wrapped: called in the platform as the interposer calls it, it routes.
        ended = self.airlock('run', '--', 'bash', '-c', f'{stub} exec1 /bin/readlink readlink /proc/self/ns/pid; exit $?')
        self.assertEqual(ended.out, f'pid:[{self.namespace_of("user")}]\n', ended.err)
        for target in (stub, self.runtime + '/../rt/airlock-stub'):
            ended = self.airlock('run', '--', 'bash', '-c', f'{stub} exec1 {target} airlock-stub exec1 /bin/true true; exit $?')
            self.expect_error(ended, REFUSED, 'stub')
        ended = self.airlock('run', '--', 'bash', '-c', f'{stub}; exit $?')
        self.expect_error(ended, REFUSED, 'by hand')
        rules = [json.loads(line)['rule'] for line in self.airlock('-o', 'json', 'routes').out.splitlines()]
        self.assertEqual(rules.count('stub-recursion'), 2, rules)


class Config(Case):
    # Text, line of the error, what it says.
    BAD = (
        ('contexts: [\n', 0, ''),
        ('a: 1\n', 1, "'a'"),
        ('- a\n', 1, 'expected'),
        ('log_level: 7\n', 1, 'trace'),
        ('\nlog_level: [info]\n', 2, 'expected'),
        ('runtime_dir: relative\n', 1, 'absolute'),
        ('require_tier: nonsense\n', 1, 'namespaces'),
        ('contexts:\n  user:\n    cwd: relative\n', 3, 'absolute'),
        ('contexts:\n  user:\n    nonsense: 1\n', 3, "'nonsense'"),
        ('contexts:\n  user:\n    env: text\n', 3, 'expected'),
        ('contexts:\n  user:\n    env: {A: [1]}\n', 3, 'expected'),
        ('contexts:\n  Bad Name: {}\n', 2, 'name'),
        ('contexts:\n  control: {}\n', 2, 'reserved'),
        ('contexts:\n  user: {}\n  user: {}\n', 3, "'user'"),
        ('contexts:\n  platform:\n    child_context: nobody\n', 3, "'nobody'"),
        ('contexts:\n  platform:\n    child_context: platform\n', 3, 'platform'),
        ('contexts:\n  a:\n    child_context: b\n  b:\n    child_context: c\n  c:\n    child_context: a\n', None, 'a'),
        ('contexts:\n  platform:\n    routes:\n      - {program: ls, action: here}\n', 4, 'absolute'),
        ('contexts:\n  platform:\n    routes:\n      - {program: /bin/ls, action: nonsense}\n', 4, 'refuse'),
        ('contexts:\n  platform:\n    routes:\n      - {program: /bin/ls, action: route, to: nobody}\n', 4, "'nobody'"),
        ('contexts:\n  user:\n    isolation: weird\n', 3, 'secure'),
        ('contexts:\n  user:\n    limits: {pids: -1}\n', 3, 'pids'),
        ('\ttab: 1\n', 1, ''),
        ('log_level: \xff\n', None, ''),
    )

    def test_errors_name_file_and_line(self):
        for text, line, fragment in self.BAD:
            with self.subTest(text=text):
                file = self.write('bad.yaml', text)
                checked = self.airlock('config', 'check', file)
                self.assertEqual((checked.status, checked.out), (USAGE, ''), checked.err)
                place = file if line is None else f'{file}:{line or ""}'
                self.assertTrue(checked.err.startswith(place), checked.err)
                self.assertRegex(checked.err, r'^\S+:\d+:\d+: ')
                self.assertIn(fragment, checked.err)
                started = self.airlock('up', '--config', file)
                self.assertEqual((started.status, started.out), (USAGE, ''), started.err)
                self.assertEqual(started.err, checked.err)
                self.assertFalse(os.path.exists(self.runtime), 'no runtime folder')

    def test_all_errors_at_once(self):
        file = self.write('bad.yaml', 'a: 1\nb: 2\nlog_level: loud\n')
        lines = self.airlock('config', 'check', file).err.splitlines()
        self.assertEqual([re.match(r'.*?:(\d+):', line).group(1) for line in lines], ['1', '2', '3'])

    def test_unreadable(self):
        file = self.write('secret.yaml', 'log_level: info\n', 0o600)
        as_other = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--']
        control = self.airlock('config', 'check', file)
        self.assertEqual(control.status, 0, control.err)
        for argv in ([AIRLOCK, 'config', 'check', '/nonexistent.yaml'], [AIRLOCK, 'config', 'check', self.work],
                     [*as_other, AIRLOCK, 'config', 'check', file], [AIRLOCK, 'config', 'check', '/dev/zero']):
            with self.subTest(argv=argv):
                ended = self.run_program(argv)
                self.assertEqual((ended.status, ended.out), (USAGE, ''), ended.err)
                self.assertEqual(len(ended.err.splitlines()), 1, ended.err)
                self.assertIn(argv[-1], ended.err)

    def test_values_are_not_quoted(self):
        file = self.write('bad.yaml', f'contexts:\n  user:\n    env:\n      A_TOKEN={CANARY}:\n        x: 1\nsecrets: {{a: {CANARY}}}\n')
        ended = self.airlock('config', 'check', file)
        self.assertEqual(ended.status, USAGE)
        self.assertNotIn(CANARY, ended.err)

    def test_example_is_valid(self):
        example = os.path.join(os.path.dirname(__file__), '../../docs/airlock.example.yaml')
        with open(example) as file:
            text = file.read()
        checked = self.airlock('config', 'check', self.write('example.yaml', text))
        self.assertEqual((checked.status, checked.err), (0, ''))


class RuntimeFolder(Case):
    def up_in(self, folder, *prefix):
        config = self.write('good.yaml', f'contexts: {{platform: {{cwd: {self.work}}}, user: {{cwd: {self.work}}}}}\n')
        return self.run_program([*prefix, AIRLOCK, '--runtime-dir', folder, 'up', '--config', config])

    def test_not_usable(self):
        file = self.write('file', '')
        for folder, fragment in (('relative', 'absolute'), (self.dir + '/' + 'x' * 60, '50'), (file + '/x', file),
                                 (file, file), ('/proc/airlock', '/proc/airlock'), ('/nonexistent/x', '/nonexistent/x')):
            with self.subTest(folder=folder):
                self.expect_error(self.up_in(folder), REFUSED, fragment)

    def test_not_writable(self):
        folder = self.dir + '/locked'
        os.mkdir(folder, 0o755)
        as_other = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--']
        self.expect_error(self.up_in(folder + '/rt', *as_other), REFUSED, folder, 'Permission denied')
        self.assertEqual(os.listdir(folder), [])

    def test_already_served(self):
        pid = self.up()
        again = self.airlock('up', '--config', self.dir + '/airlock.yaml')
        self.expect_error(again, REFUSED, self.runtime, 'already')
        self.assertTrue(is_running(pid))
        self.assertEqual(self.exec_in('user', 'echo', 'served').out, 'served\n', 'the first still serves')

    def test_embedded_parent_not_usable(self):
        file = self.write('file', '')
        for parent in (file, '/nonexistent', '/proc', '/' + 'x' * 100):
            with self.subTest(parent=parent):
                ended = self.airlock('run', '--', 'true', env={'AIRLOCK_RUNTIME_PARENT': parent})
                self.expect_error(ended, REFUSED, 'AIRLOCK_RUNTIME_PARENT')

    def test_runtime_dir_of_run_is_a_file(self):
        # Nobody can serve there: as if nobody did.
        file = self.write('file', '')
        self.assertEqual(self.airlock('--runtime-dir', file + '/x', 'run', '--', 'bash', '-c', 'exit 3').status, 3)


class Privileges(Case):
    """Neither root nor user namespaces: a process without capabilities in a user namespace that may not
    have any below it."""

    WITHOUT = ['unshare', '--user', '--map-user=65534', '--map-group=65534', '--keep-caps', 'sh', '-c',
               'echo 0 >/proc/sys/user/max_user_namespaces && '
               'exec setpriv --ambient-caps=-all --inh-caps=-all -- "$@"', 'sh']

    def setUp(self):
        super().setUp()
        probe = self.run_program([*self.WITHOUT, 'sh', '-c', 'id -u; grep ^CapEff /proc/self/status; unshare -U true; echo $?; unshare -p true; echo $?'])
        self.assertEqual(probe.out, '65534\nCapEff:\t0000000000000000\n1\n1\n', 'control: really without: ' + probe.err)

    def test_refused(self):
        config = self.write('c.yaml', f'contexts: {{platform: {{cwd: {self.work}}}, user: {{cwd: {self.work}}}}}\n')
        for command in (['run', '--', 'bash', '-c', f'touch {self.work}/ran'], ['up', '--config', config]):
            ended = self.run_program([*self.WITHOUT, AIRLOCK, *command])
            # What is missing is told for each tier, so this error may have several lines.
            self.assertEqual((ended.status, ended.out), (REFUSED, ''))
            self.assertTrue(ended.err.startswith('airlock: '), ended.err)
            for fragment in ('CAP_SYS_ADMIN', 'user namespaces', '--development'):
                self.assertIn(fragment, ended.err)
        self.assertFalse(os.path.exists(self.work + '/ran'))
        told = self.run_program([*self.WITHOUT, AIRLOCK, 'doctor'])
        self.assertEqual(told.status, 1)
        self.assertIn('--cap-add SYS_ADMIN', told.out)

    def test_development_goes_on_with_a_warning(self):
        # bash reads by itself where it is; its child tells the same, so it is not isolated, but the
        # environment is separated all the same.
        script = 'sh -c "readlink /proc/self/ns/pid; echo [\\$PLATFORM_KEY] \\$ROUTE_MARK"; exit 5'
        ended = self.run_program([*self.WITHOUT, AIRLOCK, 'run', '--development', '--user-env', 'ROUTE_MARK=user',
                                  '--', 'bash', '-c', script])
        self.assertEqual(ended.status, 5, ended.err)
        self.assertEqual(ended.out, f'pid:[{namespace()}]\n[] user\n')
        self.assertIn('not isolated', ended.err)
        self.assertRegex(ended.err, 'DEVELOPMENT|warn')
        lines = ended.err.splitlines()
        self.assertTrue(lines[0].startswith('airlock'), lines)

    AS_USER = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--']

    def as_user(self, *arguments):
        """As a person at a shell: no privilege, a HOME and folders of one's own."""
        for folder in (self.home, self.work, self.parent):
            os.chown(folder, 65534, 65534)
        return self.run_program([*self.AS_USER, AIRLOCK, *arguments])

    def test_a_person_with_user_namespaces(self):
        """The control: with user namespaces it works, in tier userns."""
        # Some rounds: the daemon, non-dumpable and without privilege, must know the namespaces of its
        # contexts whatever the init has done so far.
        for _ in range(8):
            ended = self.as_user('run', '--user-env', 'ROUTE_MARK=user', '--', 'bash', '-c',
                                 'sh -c "readlink /proc/self/ns/pid; echo [\\$PLATFORM_KEY] \\$ROUTE_MARK; id -u"; exit 5')
            self.assertEqual((ended.status, ended.err), (5, ''))
            self.assertEqual(ended.out.splitlines()[1:], ['[] user', '65534'])
            self.assertNotEqual(ended.out.splitlines()[0], f'pid:[{namespace()}]')

    def test_a_person_whose_home_is_not_their_own(self):
        # As in containers run with another uid: HOME is root's.
        os.chmod(self.home, 0o755)
        for folder in (self.work, self.parent):
            os.chown(folder, 65534, 65534)
        ended = self.run_program([*self.AS_USER, AIRLOCK, 'run', '--', 'bash', '-c', 'true; exit 5'])
        self.assertEqual((ended.status, ended.err), (5, ''))

    def test_tier_userns_as_root(self):
        ended = self.routed('bash', '-c', 'readlink /proc/self/ns/user; cat /proc/self/uid_map; exit 0', options=['--tier', 'userns'])
        self.assertEqual((ended.status, ended.err), (0, ''))
        space, uid_map = ended.out.splitlines()
        self.assertNotEqual(space, os.readlink('/proc/self/ns/user'))
        self.assertEqual(uid_map.split(), ['0', '0', '1'])

    def test_tiers_weaker_than_required(self):
        for tier in ('uids', 'landlock'):
            ended = self.airlock('run', '--tier', tier, '--', 'true')
            self.expect_error(ended, REFUSED, tier, 'userns or stronger is required', '--require-tier ' + tier)
            ended = self.airlock('run', '--tier', tier, '--require-tier', tier, '--', 'bash', '-c', 'true; exit 4')
            self.assertEqual((ended.status, ended.err), (4, ''))
        self.expect_error(self.airlock('run', '--tier', 'none', '--', 'true'), REFUSED, 'none')
        ended = self.airlock('run', '--tier', 'none', '--development', '--', 'bash', '-c', 'true; exit 4')
        self.assertEqual(ended.status, 4)


if __name__ == '__main__':
    main()
