"""The OpenAPI document: what a linter says, and that the TypeScript SDK's types agree with it."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, HERE, main

ROOT = os.path.realpath(HERE + '/../..')
DOCUMENT = ROOT + '/api/openapi.json'
OWN = HERE + '/openapi'


def run(*argv, cwd=None):
    return subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250)


def tools():
    """A folder with node_modules, kept beside the build while package.json is the same."""
    with open(OWN + '/package.json', 'rb') as file:
        wanted = hashlib.sha256(file.read()).hexdigest()[:16]
    folder = f'{os.path.dirname(os.path.realpath(BIN))}/npm-{wanted}'
    if not os.path.isdir(folder + '/node_modules'):
        npm = shutil.which('npm')
        assert npm, 'needs npm'
        new = tempfile.mkdtemp(prefix='npm-', dir=os.path.dirname(folder))
        shutil.copy(OWN + '/package.json', new)
        installed = run(npm, 'install', '--no-audit', '--no-fund', '--ignore-scripts', cwd=new)
        assert installed.returncode == 0, installed.stderr
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(new, folder)
    return folder


class OpenApi(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.tools = tools()

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='al-openapi-')
        self.addCleanup(shutil.rmtree, self.dir)

    def tool(self, name, *arguments):
        ended = run(f'{self.tools}/node_modules/.bin/{name}', *arguments, cwd=self.dir)
        return ended.returncode, ended.stdout + ended.stderr

    def lint(self, document):
        return self.tool('redocly', 'lint', '--config', OWN + '/redocly.yaml', document)

    def test_lint(self):
        status, told = self.lint(DOCUMENT)
        self.assertEqual(status, 0, told)
        with open(DOCUMENT) as file:
            text = file.read()
        broken = self.dir + '/broken.json'
        with open(broken, 'w') as file:
            file.write(text.replace('"#/components/schemas/Shell"', '"#/components/schemas/Shall"'))
        self.assertNotEqual(self.lint(broken)[0], 0, 'control')

    def check_types(self, document, types):
        for name in ('types.test-d.ts', 'tsconfig.json'):
            shutil.copy(f'{OWN}/{name}', self.dir)
        made, told = self.tool('openapi-typescript', document, '--default-non-nullable', 'false', '-o',
                               self.dir + '/schema.d.ts')
        self.assertEqual(made, 0, told)
        package = self.dir + '/node_modules/airlock-sdk'
        shutil.copytree(ROOT + '/sdk/typescript', package, dirs_exist_ok=True)
        with open(package + '/lib/index.d.ts', 'w') as file:
            file.write(types)
        return self.tool('tsc', '-p', self.dir)

    def test_types_of_the_sdk(self):
        with open(ROOT + '/sdk/typescript/lib/index.d.ts') as file:
            types = file.read()
        status, told = self.check_types(DOCUMENT, types)
        self.assertEqual(status, 0, told)
        for old, new in (('  queuedMs?: number;\n', ''), ('durationMs: number', 'durationMs: string'),
                         ("| 'exec-forgotten' ", '')):
            self.assertIn(old, types)
            self.assertNotEqual(self.check_types(DOCUMENT, types.replace(old, new))[0], 0, 'control: ' + old)


if __name__ == '__main__':
    main()
