"""The SDKs against a real daemon: the five tests of the mission, and what else it does."""

import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from api_client import SECRETS, ApiCase
from harness import AIRLOCK, HERE, main
from network import PYTHON, own_network

SDK = os.path.realpath(HERE + '/../../sdk/typescript')
PYTHON_SDK = os.path.realpath(HERE + '/../../sdk/python')
JUPYTER = '/usr/bin/jupyter-server'


def setUpModule():
    own_network()
    if shutil.which('node') is None:
        raise unittest.SkipTest('needs Node')


def quickstart(readme, language):
    """The first example of a README."""
    with open(readme) as file:
        return re.search(rf'```{language}\n(.*?)```', file.read(), re.S).group(1)


class SdkCase(ApiCase):

    def own_workspace(self):
        """A /workspace, where contexts are by default, that only this test has."""
        if not os.path.exists('/workspace'):
            os.mkdir('/workspace')
            self.addCleanup(os.rmdir, '/workspace')
        subprocess.run(['mount', '-t', 'tmpfs', 'workspace', '/workspace'], check=True)
        self.addCleanup(subprocess.run, ['umount', '/workspace'], check=True)

    def own_project(self):
        """What the quickstarts work on, where contexts are by default."""
        self.own_workspace()
        self.write('/workspace/package.json', '{"scripts": {"build": "echo is-built"}}')
        self.write('/workspace/Makefile', 'test:\n\ttouch is-tested\n')
        self.write('/workspace/server.js', 'setInterval(() => {}, 1000)')
        for words in (['init', '-q'], ['config', 'user.name', 'A'], ['config', 'user.email', 'a@example.org'], ['add', '-A']):
            self.assertEqual(self.run_program(['git', '-C', '/workspace', *words]).status, 0, words)

    def check_project(self):
        self.assertTrue(os.path.exists('/workspace/is-tested'))
        log = self.run_program(['git', '-C', '/workspace', 'log', '--format=%s'])
        self.assertEqual(log.out, "it's a message\n")


class Sdk(SdkCase):

    def install(self):
        """The SDK as its user has it: packed, and installed by npm where there is one."""
        package = self.dir + '/node_modules/airlock-sdk'
        npm = shutil.which('npm')
        if npm is None:
            shutil.copytree(SDK, package)
            return package
        packed = self.run_program([npm, 'pack', '--silent', '--pack-destination', self.dir, SDK])
        self.assertEqual(packed.status, 0, packed.err)
        installed = self.run_program([npm, 'install', '--silent', '--offline', '--no-audit', '--no-fund', '--prefix', self.dir,
                                      self.dir + '/' + packed.out.split()[-1]])
        self.assertEqual(installed.status, 0, installed.err)
        self.assertEqual(sorted(os.listdir(self.dir + '/node_modules')), ['.package-lock.json', 'airlock-sdk'], 'nothing else')
        return package

    def run_tests(self, name, **env):
        package = self.install()
        for file in (f'{name}.test.mjs', 'shows.cjs'):
            shutil.copy(f'{HERE}/sdk/{file}', self.dir)
        node = shutil.which('node')
        ended = self.run_program([node, '--test', f'{self.dir}/{name}.test.mjs'], patience=240, env={
            'PATH': os.path.dirname(os.path.realpath(node)) + ':' + self.env['PATH'], 'WORK': self.work,
            'AIRLOCK_TOKEN': SECRETS['admin'], 'SDK': package, **self.web_socket_option(node), **env})
        self.assertEqual(ended.status, 0, ended.out + ended.err)
        self.assertRegex(ended.out, r'(?m)^(# |. )pass [1-9]')

    def web_socket_option(self, node):
        """Nodes before 22 have a WebSocket that has to be asked for."""
        known = self.run_program([node, '--help']).out
        return {'NODE_OPTIONS': '--experimental-websocket'} if '--experimental-websocket' in known else {}

    def test_by_a_contexts_own_door(self):
        self.serve_api()
        text = ('const { connect } = require(process.argv[1]); (async () => {\n'
                'const sandbox = await connect({ url: "unix:" + process.argv[2] });\n'
                'const context = await sandbox.getContext("user");\n'
                'const result = await context.exec(["sh", "-c", "echo out; exit 3"]);\n'
                'const types = []; for await (const e of context.execStream("echo x")) types.push(e.type);\n'
                'const other = await sandbox.getContext("platform").catch((error) => error.code);\n'
                'console.log(JSON.stringify([result.stdout, result.exitCode, types, other])); })();\n')
        door = self.runtime + '/api.sock'
        ended = self.exec_in('user', shutil.which('node'), '-e', text, SDK, door)
        self.assertEqual(ended.status, 0, ended.err)
        told = json.loads(ended.out)
        self.assertEqual(told, ['out\n', 3, ['start', 'stdout', 'exit'], 'forbidden-scope'])
        text = ('import airlock_sdk as sdk, json, sys\n'
                'sandbox = sdk.connect("unix:" + sys.argv[1]); context = sandbox.get_context("user")\n'
                'result = context.exec(["sh", "-c", "echo out; exit 3"])\n'
                'types = [event.type for event in context.exec_stream("echo x")]\n'
                'try: sandbox.get_context("platform")\n'
                'except sdk.AuthError as error: print(json.dumps([result.stdout, result.exit_code, types, error.code]))\n')
        ended = self.exec_in('user', PYTHON, '-B', '-c', text, door, options=('-e', 'PYTHONPATH=' + PYTHON_SDK))
        self.assertEqual(ended.status, 0, ended.err)
        self.assertEqual(json.loads(ended.out), told)

    def by_door(self, *options):
        """The command lines of both SDKs' programs for a terminal by the door, and what they need in their environment."""
        door = self.runtime + '/api.sock'
        yield 'node', [shutil.which('node'), f'{HERE}/sdk/door_terminal.cjs', SDK, door, *options], ()
        yield 'python', [PYTHON, '-B', '-W', 'error', f'{HERE}/sdk/door_terminal.py', door, *options], ('-e', 'PYTHONPATH=' + PYTHON_SDK)

    def test_a_terminal_by_the_door(self):
        self.serve_api()
        for name, argv, options in self.by_door('use'):
            with self.subTest(name):
                ended = self.exec_in('user', *argv, options=options)
                self.assertEqual(ended.status, 0, ended.err)
                self.assertEqual(json.loads(ended.out), {'size': True, 'lines': 20000, 'busy': 'terminal-busy', 'left': 'taken-over', 'exitCode': 4})

    def test_a_terminal_by_the_door_outlives_the_api(self):
        self.serve_api()
        for name, argv, options in self.by_door('lose'):
            with self.subTest(name):
                client = self.start([AIRLOCK, 'exec', 'user', *options, '--', *argv])
                self.assertEqual(self.line_of(client), b'attached\n')
                os.kill(self.pid_of_service('airlock-api'), signal.SIGKILL)
                told = json.loads(self.line_of(client))
                self.assertGreaterEqual(told['losses'], 1)
                self.assertEqual(told['wrong'], [], 'nothing is lost or doubled')
                self.assertEqual(self.finish(client).status, 0)
                self.await_service('airlock-api')

    def test_acceptance(self):
        if not os.path.exists(JUPYTER):
            self.skipTest('needs jupyter-server')
        self.own_workspace()
        self.serve_api(extra={'services': {'jupyter': {
            'command': [JUPYTER, '--ip=127.0.0.1', '--port=8888', '--no-browser', '--ServerApp.token=',
                        '--ServerApp.password=', '--allow-root'],
            'cwd': self.dir + '/jupyter', 'ports': [8888], 'ready': {'http': '/api'}}}})
        self.await_service('jupyter')
        self.run_tests('acceptance')

    def test_surface(self):
        self.serve_api()
        self.run_tests('surface')

    def test_readme(self):
        self.own_project()
        self.serve_api()
        package, node = self.install(), shutil.which('node')
        own = """const message = "it's a message", screen = process.stdout;\n"""
        script = self.write(self.dir + '/quickstart.mjs', own + quickstart(package + '/README.md', 'js'))
        ran = self.run_program([node, script], env={'AIRLOCK_TOKEN': SECRETS['admin'], **self.web_socket_option(node)})
        self.assertEqual(ran.status, 0, ran.err)
        self.assertIn('is-built', ran.out)
        self.check_project()

    def run_example(self, *argv):
        """An example as its user runs it, with a token; what it prints."""
        package = self.install()
        example = self.run_program([shutil.which('node'), f'{package}/examples/{argv[0]}', *argv[1:]], cwd=self.work,
                                   patience=60, env={'PATH': self.env['PATH'], 'AIRLOCK_TOKEN': SECRETS['admin'],
                                                     'PLATFORM_KEY': 'of-the-platform'})
        self.assertEqual(example.status, 3, example.out + example.err)
        return example

    def test_example_agent_host(self):
        self.serve_api()
        env = self.write(self.work + '/user.json', json.dumps({'USER_KEY': 'of-the-user'}))
        agent = self.write(self.work + '/agent.py', 'import os, subprocess, sys\n'
                           'print("agent:", os.environ.get("PLATFORM_KEY"), flush=True)\n'
                           'subprocess.run(["sh", "-c", "echo child: $PLATFORM_KEY,$USER_KEY"])\nsys.exit(3)\n')
        ran = self.run_example('agent-host.mjs', env, PYTHON, agent)
        self.assertEqual(ran.out, 'agent: of-the-platform\nchild: ,of-the-user\n')
        self.assertIn('→ workspace', ran.err)

    def test_example_interpreter(self):
        self.serve_api()
        code = self.write(self.work + '/code.py', 'import os, sys\nprint("key:", os.environ.get("PLATFORM_KEY"))\n'
                          'sys.exit(3)\n')
        self.assertEqual(self.run_example('interpreter.mjs', code).out, 'key: None\n')


class PythonSdk(SdkCase):

    def install(self):
        """The SDK as its user has it: installed by pip, in a venv. Returns that one's Python."""
        source, venv = self.dir + '/sdk', self.dir + '/venv'
        shutil.copytree(PYTHON_SDK, source)  # pip builds where the source is
        # With Debian's setuptools and wheel, as there is no network.
        self.addCleanup(shutil.rmtree, venv)  # it has files whose names begin with `core`
        made = self.run_program([PYTHON, '-m', 'venv', '--system-site-packages', venv])
        self.assertEqual(made.status, 0, made.out + made.err)
        installed = self.run_program([venv + '/bin/pip', 'install', '-q', '--no-index', '--no-build-isolation', source])
        self.assertEqual(installed.status, 0, installed.err)
        shutil.rmtree(source)
        return venv + '/bin/python'

    def environment(self):
        return {'PATH': self.env['PATH'], 'WORK': self.work, 'AIRLOCK_TOKEN': SECRETS['admin'],
                'PYTHONDONTWRITEBYTECODE': '1', 'PLATFORM_KEY': 'of-the-platform'}

    def test_surface(self):
        self.serve_api()
        ended = self.run_program([self.install(), '-B', '-W', 'error', HERE + '/sdk/surface.py'], patience=240,
                                 env=self.environment())
        self.assertEqual(ended.status, 0, ended.out + ended.err)
        self.assertRegex(ended.err, r'Ran [1-9]\d* tests')

    def test_example_interpreter(self):
        self.serve_api()
        code = self.write(self.work + '/code.py', 'import os, sys\nprint("key:", os.environ.get("PLATFORM_KEY"))\n'
                          'sys.exit(3)\n')
        ran = self.run_program([PYTHON, '-B', PYTHON_SDK + '/examples/interpreter.py', code], patience=60,
                               env={**self.environment(), 'PYTHONPATH': PYTHON_SDK})
        self.assertEqual((ran.out, ran.status), ('key: None\n', 3), ran.err)

    def test_readme(self):
        self.own_project()
        self.serve_api()
        script = self.write(self.dir + '/quickstart.py', 'message = "it\'s a message"\n' + quickstart(PYTHON_SDK + '/README.md', 'python'))
        ran = self.run_program([self.install(), '-B', '-W', 'error', script], env=self.environment())
        self.assertEqual(ran.status, 0, ran.err)
        self.assertRegex(ran.out, r'(?m)^0 Makefile$')
        self.assertIn('is-built', ran.out)
        self.check_project()


if __name__ == '__main__':
    main()
