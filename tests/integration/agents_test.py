"""Agents as they are, bare and routed: each of the ways real agents start their commands
(tests/agents/agent.c), dynamic and static, and the files by which airlock knows them.

Where a command ran is decided by what its shell can tell without starting a program: $ROUTE_MARK, and
/proc/$$/environ. Each row runs bare first: there the command must run beside the agent and see PLATFORM_KEY.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import unittest

from harness import AIRLOCK, BIN, CANARY, Case, REFUSED, descendants, eventually, main

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'agents')
NODE = shutil.which('node', path='/usr/local/bin:/usr/bin:/bin')
BWRAP = shutil.which('bwrap', path='/usr/local/bin:/usr/bin:/bin')

# Builtins only.
PROBE = ('mapfile -d "" e </proc/$$/environ; case "${e[*]}" in *' + CANARY + '*) echo shell sees the key;; '
         '*) echo shell sees no key;; esac; echo "shell in ${ROUTE_MARK:-platform}"')
BESIDE, ROUTED = 'shell sees the key\nshell in platform\n', 'shell sees no key\nshell in user\n'

PROFILE = '''
title: A fixture
commands: [fixture]
packages: ["*/fixture-agent"]
runtimes: [bin/agent]
scripts: [bin/launcher.mjs]
copies: [~/.fixture/copies]
share: [~/.fixture/snapshots]
hide: ["$FIXTURE_PRIVATE"]
pid_helpers: ["ps -p"]
env: { block: [FIXTURE_SESSION], pass: [FIXTURE_TOKEN] }
'''


@functools.cache
def enforcement():
    """{dynamic, static: the mechanism or None, mechanisms: why others do not work} of this machine."""
    done = subprocess.run([AIRLOCK, '-o', 'json', 'doctor'], stdout=subprocess.PIPE, timeout=60, check=False)
    return json.loads(done.stdout)['enforcement']


def refusal_of(kind):
    """Why no mechanism routes agents of this kind ('dynamic', 'static') here, or ''."""
    if enforcement()[kind]:
        return ''
    return '; '.join(f"{each['mechanism']}: {each['reason']}" for each in enforcement()['mechanisms']
                     if each['mechanism'] != 'preload')


class Agents(Case):
    maxDiff = 4000
    program = BIN + '/airlock-test-agent'
    enforce = ()  # the strongest mechanism that works here

    def setUp(self):
        super().setUp()
        self.profiles = self.dir + '/profiles'
        os.mkdir(self.profiles)
        self.write(self.profiles + '/fixture.yaml', PROFILE)
        self.env['AIRLOCK_PROFILES'] = self.profiles
        self.package = self.dir + '/opt/fixture-agent'
        os.makedirs(self.package + '/bin')
        self.agent = shutil.copy(self.program, self.package + '/bin/agent')
        os.makedirs(self.home + '/.fixture/copies')

    def bare(self, *words, **options):
        return self.run_program([self.agent, *words], **options)

    def under(self, *words, options=(), **run_options):
        return self.routed(self.agent, *words, **run_options,
                           options=('--route-log', self.dir + '/routes', *self.enforce, *options))

    def rules(self):
        """What the agent's execs were decided by, in order, without its own start."""
        with open(self.dir + '/routes') as file:
            return [record['rule'] for record in map(json.loads, file)][1:]

    def both(self, *words, status=7, own=(), extra='', clean=lambda text: text, **options):
        """Runs `words` bare and routed: the same, but for where the shell ran. `own`: rules that keep
        the agent's own programs beside it, in any number."""
        bare, routed = self.bare(*words, **options), self.under(*words, **options)
        self.assertEqual(bare.status, status, bare)
        self.assertIn(BESIDE, clean(bare.out), 'control: bare, the shell sees the key')
        self.assertEqual(clean(routed.out), clean(bare.out).replace(BESIDE, ROUTED), routed.err)
        self.assertEqual(routed.err, bare.err)
        self.assertEqual(routed.status, status)
        self.assertNotIn('without PLATFORM_KEY', routed.out.replace('agent: shown without', ''))
        self.assertIn(extra, routed.out)
        self.check_rules(own)
        return routed

    def check_rules(self, own):
        """Only these rules have kept programs of the agent beside it, and each of them has."""
        self.assertEqual({rule for rule in self.rules() if rule.startswith('fixture:')}, set(own))

    # --- ways to start a command

    def test_vfork_child_of_a_runtime(self):
        self.both('vfork', PROBE + '; echo err >&2; exit 7')

    def test_vfork_children_of_threads(self):
        # All four at once: lines come in any order.
        def clean(text):
            parts = sorted(text.splitlines())
            shell = [line for line in parts if line.startswith('shell')]
            kinds = sorted(set(shell))
            return ''.join(line + '\n' for line in parts if line not in shell) + ''.join(
                f'{line}\n' for line in sorted(kinds, key=lambda line: 'in' in line.split()))
        routed = self.both('threads', PROBE + '; exit 7', clean=clean)
        self.assertEqual(routed.out.count('shell in user'), 4)

    def test_exec_in_place(self):
        self.both('in-place', PROBE + '; exit 7', own={'fixture:runtime'})

    def test_relaunch_as_a_child(self):
        self.both('relaunch', PROBE + '; exit 7', own={'fixture:runtime'})

    def test_exec_in_place_again_and_again(self):
        routed = self.both('again', '12', PROBE + '; exit 7', own={'fixture:runtime'})
        self.assertEqual(routed.out.count('agent: again with PLATFORM_KEY'), 13)

    def test_many_of_itself_at_once(self):
        routed = self.both('crowd', PROBE + '; exit 7', own={'fixture:runtime'},
                           clean=lambda text: re.sub(r'(?s)\A.*(shell sees.*?\n).*(shell in.*?\n).*\Z', r'\1\2', text))
        self.assertEqual((routed.out.count('agent: vfork with PLATFORM_KEY'), routed.out.count('shell in user'),
                          routed.out.count('shell sees no key')), (16, 16, 16))

    def test_helper_that_gets_its_env_by_a_descriptor(self):
        # The helper stays, with its parent and without an environment; the shell is routed, and its
        # environment is the user's, not what came through the descriptor.
        routed = self.both('env-by-fd', PROBE + '; echo "fd=$FROM_DESCRIPTOR"; exit 7', own={'fixture:runtime'},
                           extra='fd=yes')
        self.assertNotIn(CANARY, routed.out)

    def test_many_spawns(self):
        routed = self.both('many', PROBE + '; exit 7',
                           clean=lambda text: re.sub(r'(shell sees.*\nshell in.*\n)+', r'\1', text))
        self.assertEqual(routed.out.count(ROUTED), 58)

    def test_terminal_of_its_own(self):
        # Lines end with \r\n there.
        self.both('pty', f'test -t 0 && echo a terminal; {PROBE}; exit 7', extra='a terminal',
                  clean=lambda text: text.replace('\r', ''))

    def test_one_file_as_both_streams(self):
        path = self.work + '/output'
        script = f'echo one; echo two >&2; printf "%s\\n" three >&2; {PROBE}; exit 7'
        for run, shell in ((self.bare, BESIDE), (self.under, ROUTED)):
            ended = run('one-file', script, path)
            self.assertEqual(ended.status, 7, ended)
            self.assertIn('agent: offset is size', ended.out)
            with open(path) as file:
                self.assertEqual(file.read(), 'one\ntwo\nthree\n' + shell)

    def test_sigkill_of_the_group(self):
        # sleep is of the group, and holds the pipe: it is gone, too. The agent kills at the first line.
        script = f'sleep 1000 & mapfile p < <({PROBE}); echo "${{p[@]//[$\'\\n\']/ }}"; wait'
        self.both('kill', script, status=137, extra='died of signal 9',
                  clean=lambda text: re.sub(r'(shell sees .*?) +(shell in \w+) *\n', r'\1\n\2\n', text))

    def test_exec_with_another_name(self):
        script = f'{PROBE}; (exec -a ugrep {self.agent} show); exit 7'
        bare, routed = self.bare('vfork', script), self.under('vfork', script)
        self.assertIn('agent: called ugrep\nagent: shown with PLATFORM_KEY\n', bare.out)
        self.assertIn(ROUTED + 'agent: called ugrep\nagent: shown without PLATFORM_KEY\n', routed.out)
        self.assertEqual((bare.status, routed.status), (7, 7))

    # --- daemons

    def test_daemon_outlives_its_user_interface(self):
        ask = self.home + '/.fixture/ask'
        result = self.work + '/result'
        script = f'{{ {PROBE}; }} >{result}; exit 7'
        # Bare: ps finds the daemon, and the daemon still starts commands when the first process is gone.
        ended = self.bare('daemon', script)
        self.assertIn('.fixture/copies/agent serve', ended.out)
        self.assertIn('agent: ps ended with 0', ended.out)
        with open(ask, 'w') as file:
            file.write('go\n')
        self.assertEqual(self.content_of(result), BESIDE)
        self.reset_daemon(ask, result)
        # Under a daemon of airlock, so that the context stays when the user interface has ended.
        self.up(f'contexts: {{platform: {{cwd: {self.work}, child_context: user}}, '
                f'user: {{cwd: {self.work}, env: {{ROUTE_MARK: user}}}}}}\n')
        ended = self.airlock('run', '--', self.agent, 'daemon', script)
        self.assertIn('.fixture/copies/agent serve', ended.out, ended)
        self.assertIn('agent: ps ended with 0', ended.out)
        with open(ask, 'w') as file:
            file.write('go\n')
        self.assertEqual(self.content_of(result), ROUTED)
        lines = self.airlock('-o', 'json', 'routes').out.splitlines()
        rules = [json.loads(line)['rule'] for line in lines]
        self.assertEqual([rule for rule in rules if rule.startswith('fixture:')], self.daemon_rules())

    def daemon_rules(self):
        return ['fixture:copy', 'fixture:pid-helper']

    def content_of(self, path):
        def complete():
            if not os.path.exists(path):
                return None
            with open(path) as file:
                text = file.read()
            return text if 'shell in' in text else None
        return eventually(complete, f'{path} is written')

    def reset_daemon(self, *paths):
        for path in paths:
            os.unlink(path)
        eventually(lambda: not descendants(os.getpid()), 'the bare daemon has ended')
        self.reap_orphans()

    def test_pids_are_the_agents_own(self):
        # A bare ps is asked where the agent is; one that a shell starts is not.
        ended = self.under('vfork', 'ps -p $$ -o args= | head -c 7; ps -e -o comm= | sort -u | tr "\\n" " "; exit 7')
        self.assertEqual(ended.status, 7, ended)
        self.assertNotIn('agent ', ended.out.split('PLATFORM_KEY')[1])
        self.assertNotIn('fixture:pid-helper', self.rules())

    # --- sandboxes of agents

    @unittest.skipUnless(BWRAP, 'bwrap is not installed')
    def test_own_sandbox(self):
        # There $$ is not what the /proc of outside knows; the redirection is the shell's own.
        script = PROBE.replace('/$$/', '/self/') + '; exit 7'
        ended = self.bare('sandbox', script)
        if 'child-pid' not in ended.out or ended.status != 7:
            self.skipTest(f'bwrap does not work here: {ended.err.strip()}')
        self.assertIn(BESIDE, ended.out)
        self.assertIn('agent: shown with PLATFORM_KEY', ended.out)
        routed = self.under('sandbox', script)
        self.assertIn('bwrap\'s info has a child-pid', routed.out, routed.err)
        # Descriptor 3, O_PATH, of the agent itself: in the sandbox it is the user's.
        self.assertIn(ROUTED, routed.out)
        self.assertIn('agent: shown without PLATFORM_KEY', routed.out)
        self.assertEqual(routed.status, 7, routed)

    def test_nothing_of_airlock_is_in_the_way_inside(self):
        # Routed once is routed: below there is no stub and no interposer that a sandbox could break.
        ended = self.under('vfork', 'echo "preload=$LD_PRELOAD"; env -i bash -c "exit 5"; echo $?; '
                                    'echo $AIRLOCK_LAUNCH; ls /proc/self/fd | wc -l; exit 7')
        self.assertEqual(ended.out.split('PLATFORM_KEY\n')[1], 'preload=\n5\n\n4\n', ended)

    # --- servers

    def test_language_server_that_watches_its_client(self):
        server = shutil.copy(Agents.program, self.work + '/language-server')
        bare = self.bare('server', server)
        self.assertEqual((bare.status, bare.out.count('sees its client')), (0, 1), bare)
        routed = self.under('server', server)
        self.assertIn('agent: the server runs without PLATFORM_KEY\nagent: the server does not see', routed.out)
        self.assertEqual(routed.status, 1)
        self.write(self.profiles + '/fixture.yaml',
                   PROFILE + f'servers: [{{ program: {self.work}/language-*, action: keep }}]\n')
        kept = self.under('server', server)
        self.assertIn('agent: the server runs with PLATFORM_KEY\nagent: the server sees its client\n', kept.out)
        self.assertEqual(kept.status, 0)
        self.assertEqual(self.rules(), ['fixture:server'])

    # --- identity

    def test_a_file_that_was_written_is_not_the_agent_any_more(self):
        # Its children can write what lies in the working directory; they do, and so it is routed.
        self.package = self.work + '/fixture-agent'
        os.makedirs(self.package + '/bin')
        self.agent = shutil.copy(self.program, self.package + '/bin/agent')
        launcher = self.write(self.package + '/bin/launcher.mjs', '#!/bin/sh\n'
                              f'{self.agent} show\nbash -c "touch {self.agent}"\n{self.agent} show\n', 0o755)
        ended = self.routed(launcher)
        self.assertEqual([line for line in ended.out.splitlines() if 'shown' in line],
                         ['agent: shown with PLATFORM_KEY', 'agent: shown without PLATFORM_KEY'], ended)

    def test_children_cannot_change_the_agent(self):
        self.assertEqual(self.bare('vfork', f'echo x >>{self.package}/bin/new; exit 7').status, 7)
        self.assertTrue(os.path.exists(self.package + '/bin/new'), 'control')
        script = (f'for c in ": >>{self.agent}" "rm {self.agent}" "mv {self.package} {self.dir}/opt/x" '
                  f'"rm {self.profiles}/fixture.yaml"; do bash -c "$c" 2>/dev/null && echo "worked: $c"; done; exit 7')
        ended = self.under('vfork', script)
        self.assertEqual((ended.status, ended.out.count('worked')), (7, 0), ended)

    def test_another_program_of_the_agents_name_is_routed(self):
        other = shutil.copy(self.program, self.work + '/agent')
        ended = self.under('vfork', 'exit 7')
        self.assertEqual(ended.status, 7)
        self.env['PATH'] = self.work + ':' + self.env['PATH']
        launcher = self.write(self.package + '/bin/launcher.mjs', f'#!/bin/sh\n{other} show; {self.agent} show\n', 0o755)
        ended = self.routed(launcher)
        self.assertEqual([line for line in ended.out.splitlines() if 'shown' in line],
                         ['agent: shown without PLATFORM_KEY', 'agent: shown with PLATFORM_KEY'], ended)

    # --- what the profile shares, hides, passes

    def test_profile_decides_what_children_see(self):
        private = self.dir + '/private'
        os.mkdir(private)
        self.write(private + '/secret', 'x')
        env = {'FIXTURE_PRIVATE': private, 'FIXTURE_SESSION': '1', 'FIXTURE_TOKEN': 'passed', 'OTHER_TOKEN': 'x'}
        script = (f'echo snap >~/.fixture/snapshots/new; ls {private} | wc -l; ls ~/.fixture; '
                  'echo "$FIXTURE_SESSION,$FIXTURE_TOKEN,$OTHER_TOKEN"; exit 7')
        bare = self.run_program(['/bin/sh', '-c', f'ls {private} | wc -l; echo "$FIXTURE_SESSION,$OTHER_TOKEN"'], env=env)
        self.assertEqual(bare.out, '1\n1,x\n')
        ended = self.under('vfork', script, env=env)
        self.assertEqual(ended.out.split('PLATFORM_KEY\n')[1], '0\nsnapshots\n,passed,\n', ended)
        with open(self.home + '/.fixture/snapshots/new') as file:
            self.assertEqual(file.read(), 'snap\n')

    def test_profiles_with_errors_start_nothing(self):
        self.write(self.profiles + '/broken.yaml', 'packages: [x]\nruntimes: [y]\nshar: []\n')
        ended = self.under('vfork', 'echo ran')
        self.assertEqual((ended.status, ended.out), (REFUSED, ''))
        self.assertIn(f'{self.profiles}/broken.yaml:1:12: ', ended.err)
        self.assertIn(f"{self.profiles}/broken.yaml:3:1: unknown key 'shar'; did you mean 'share'?", ended.err)

    # --- the doctor

    def test_doctor_explains_an_agent(self):
        report = self.ask('doctor', '--agent', self.agent)
        self.assertEqual(report['profile'], {'name': 'fixture', 'title': 'A fixture',
                                             'file': self.profiles + '/fixture.yaml'})
        self.assertEqual(report['runs'], [{'file': self.agent, 'kind': 'dynamic'}])
        self.assertEqual(report['stays']['files'], [self.agent])
        self.assertEqual(report['stays']['copies'], [self.home + '/.fixture/copies'])
        self.assertIn(self.package, report['children']['protect'])
        self.assertIn(self.home + '/.fixture/snapshots', report['children']['share'])
        self.assertTrue(report['mechanism'])
        text = self.airlock('doctor', '--agent', self.agent)
        self.assertEqual(text.status, 0, text.err)
        self.assertIn('A fixture, known by', text.out)
        self.assertIn('What it starts would be routed.', text.out)
        self.assertEqual(os.listdir(self.home + '/.fixture'), ['copies'], 'asking changes nothing')
        self.expect_error(self.airlock('doctor', '--agent', 'no-such-agent'), 1, 'no-such-agent: No such file')


class InterposedAgents(Agents):
    """The same by the interposer alone, as where nothing may be mounted."""
    enforce = ('--enforce', 'preload')


class StaticAgents(Agents):
    """The same, where the agent has no interposer in it."""
    program = BIN + '/airlock-test-agent-static'

    def setUp(self):
        super().setUp()
        if why := refusal_of('static'):
            ended = self.under('vfork', 'echo ran')
            self.assertEqual((ended.status, ended.out), (REFUSED, ''))
            self.assertIn('a statically linked program', ended.err)
            self.skipTest('static agents are refused here: ' + why)

    def is_farmed(self):
        """Under a farm what lies in no bin folder is refused."""
        return enforcement()['static'] == 'farm'

    def check_rules(self, own):
        # A farm lets its own files be executed, and nobody is asked.
        check = self.assertLessEqual if self.is_farmed() else self.assertEqual
        check({rule for rule in self.rules() if rule.startswith('fixture:')}, set(own))

    def daemon_rules(self):
        return ['fixture:pid-helper'] if self.is_farmed() else super().daemon_rules()

    def in_tier_userns(self, *words):
        """As a person without privilege, who has one user id in there."""
        for folder in (self.home, self.work, self.parent, self.dir, self.package, self.profiles):
            os.chown(folder, 65534, 65534)
        as_user = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--']
        return self.run_program([*as_user, AIRLOCK, 'run', '--enforce', 'binfmt', '--user-env', 'ROUTE_MARK=user',
                                 '--', self.agent, *words])

    def test_without_privilege(self):
        if why := {each['mechanism']: each['reason'] for each in enforcement()['mechanisms']}['binfmt']:
            self.skipTest('binfmt: ' + why)
        for words in (('relaunch',), ('in-place',), ('again', '5'), ('env-by-fd',)):
            with self.subTest(way=words[0]):
                ended = self.in_tier_userns(*words, PROBE + '; exit 7')
                self.assertIn(ROUTED, ended.out, ended)
                self.assertIn(f'agent: {words[0]} with PLATFORM_KEY', ended.out)
                self.assertEqual(ended.status, 7)

    def test_too_deep_in_itself(self):
        # Under binfmt each time takes a user namespace within the one before, of which there are 32.
        if enforcement()['static'] != 'binfmt':
            self.skipTest('static agents are not routed by binfmt here')
        self.assertEqual(self.bare('again', '40', 'exit 7').status, 7)
        ended = self.under('again', '40', 'exit 7')
        self.assertEqual(ended.status, REFUSED, ended)
        self.assertIn("airlock: ", ended.err)
        self.assertGreater(ended.out.count('agent: again'), 25)

    def test_language_server_that_watches_its_client(self):
        if not self.is_farmed():
            return super().test_language_server_that_watches_its_client()
        server = shutil.copy(Agents.program, self.work + '/language-server')
        self.assertIn('sees its client', self.bare('server', server).out)
        refused = self.under('server', server)
        self.assertEqual((refused.status, refused.out), (127, 'agent: server with PLATFORM_KEY\n'), refused)
        self.write(self.profiles + '/fixture.yaml',
                   PROFILE + f'servers: [{{ program: {self.work}/language-*, action: keep }}]\n')
        kept = self.under('server', server)
        self.assertIn('agent: the server runs with PLATFORM_KEY\nagent: the server sees its client\n', kept.out)
        self.assertEqual(kept.status, 0)

    def test_doctor_explains_an_agent(self):
        report = self.ask('doctor', '--agent', self.agent)
        self.assertEqual(report['runs'], [{'file': self.agent, 'kind': 'static'}])
        self.assertTrue(report['mechanism'])


@unittest.skipUnless(NODE, 'node is not installed')
class NodeAgents(Case):
    """Scripts where npm puts them, known by the profiles that airlock ships."""

    def install(self, package, file, source):
        path = f'{self.dir}/lib/node_modules/{package}/{file}'
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(source, path)
        os.chmod(path, 0o755)
        return path

    def link(self, name, path):
        os.makedirs(self.dir + '/bin', exist_ok=True)
        os.symlink(os.path.relpath(path, self.dir + '/bin'), f'{self.dir}/bin/{name}')
        self.env['PATH'] = self.dir + '/bin:' + self.env['PATH']

    def rules(self):
        with open(self.dir + '/routes') as file:
            return [record['rule'] for record in map(json.loads, file)][1:]

    def run_both(self, *argv):
        bare = self.run_program([*argv, PROBE + '; exit 7'])
        routed = self.routed(*argv, PROBE + '; exit 7', options=('--route-log', self.dir + '/routes'))
        self.assertEqual((bare.status, routed.status), (7, 7), (bare, routed))
        self.assertIn(BESIDE, bare.out)
        self.assertEqual(routed.out, bare.out.replace(BESIDE, ROUTED), routed.err)
        return routed

    def test_script_that_runs_itself_again(self):
        script = self.install('@google/gemini-cli', 'bundle/gemini.js', SOURCES + '/relauncher.mjs')
        self.write(os.path.dirname(script) + '/package.json', '{"type": "module"}')
        self.link('gemini', script)
        for argv in (['gemini'], [script], [NODE, '--max-old-space-size=512', script]):
            with self.subTest(argv=argv):
                routed = self.run_both(*argv)
                for who in ('first', 'again', 'worker'):
                    self.assertIn(f'agent: {who} with PLATFORM_KEY', routed.out)
                self.assertEqual([rule for rule in self.rules() if rule != 'gemini:script'], ['child_context'])

    def test_the_agents_node_is_not_the_agent(self):
        script = self.install('@google/gemini-cli', 'bundle/gemini.js', SOURCES + '/relauncher.mjs')
        self.write(os.path.dirname(script) + '/package.json', '{"type": "module"}')
        own = 'console.log(process.env.PLATFORM_KEY ? "own: with" : "own: without")'
        self.write('workspace.js', own)
        # The command is run by bash in the user context; so let the agent itself run node.
        with open(script, 'w') as file:
            file.write("import { spawnSync } from 'node:child_process';\n"
                       "for (const words of [['workspace.js'], ['-e', " + json.dumps(own) + "], ['-r', './workspace.js', import.meta.url.slice(7) + '.none']])\n"
                       "  console.log(String(spawnSync(process.execPath, words).stdout).trim());\n")
        self.assertEqual(self.run_program([NODE, script]).out.split(), ['own:', 'with'] * 3)
        self.assertEqual(self.routed(NODE, script).out.split(), ['own:', 'without'] * 3)

    def test_launcher_of_an_executable(self):
        script = self.install('@openai/codex', 'bin/codex.js', SOURCES + '/launcher.mjs')
        self.write(os.path.dirname(script) + '/package.json', '{"type": "module"}')
        program = self.install('@openai/codex-linux-x64', 'vendor/x/bin/codex', BIN + '/airlock-test-agent')
        os.symlink(program, os.path.dirname(script) + '/agent')
        self.link('codex', script)
        routed = self.run_both('codex', 'env-by-fd')
        self.assertIn('agent: env-by-fd with PLATFORM_KEY', routed.out)
        self.assertEqual(self.rules().count('codex:runtime'), 2)
        self.assertEqual(self.rules().count('child_context'), 1)

    def test_launcher_of_a_static_executable(self):
        script = self.install('@openai/codex', 'bin/codex.js', SOURCES + '/launcher.mjs')
        self.write(os.path.dirname(script) + '/package.json', '{"type": "module"}')
        program = self.install('@openai/codex-linux-x64', 'vendor/x/bin/codex', BIN + '/airlock-test-agent-static')
        os.symlink(program, os.path.dirname(script) + '/agent')
        self.link('codex', script)
        if why := refusal_of('static'):
            ended = self.routed('codex', 'vfork', 'echo ran')
            self.assertEqual((ended.status, ended.out), (REFUSED, ''))
            self.assertIn(program, ended.err)
            self.skipTest('static agents are refused here: ' + why)
        self.assertIn('agent: env-by-fd with PLATFORM_KEY', self.run_both('codex', 'env-by-fd').out)


if __name__ == '__main__':
    main()
