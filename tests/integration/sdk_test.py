"""The TypeScript SDK against a real daemon: the five tests of the mission, and what else it does."""

import os
import shutil
import unittest

from api_client import SECRETS, ApiCase
from harness import HERE, main
from network import own_network

SDK = os.path.realpath(HERE + '/../../sdk/typescript')
JUPYTER = '/usr/bin/jupyter-server'


def setUpModule():
    own_network()
    if shutil.which('node') is None:
        raise unittest.SkipTest('needs Node')


class Sdk(ApiCase):

    def install(self):
        """The SDK as its user has it: packed and unpacked."""
        modules = self.dir + '/node_modules'
        os.mkdir(modules)
        package = modules + '/airlock-sdk'
        npm = shutil.which('npm')
        if npm is None:
            shutil.copytree(SDK, package)
            return package
        packed = self.run_program([npm, 'pack', '--silent', '--pack-destination', self.dir, SDK])
        self.assertEqual(packed.status, 0, packed.err)
        unpacked = self.run_program(['tar', '-xf', self.dir + '/' + packed.out.split()[-1], '-C', modules])
        self.assertEqual(unpacked.status, 0, unpacked.err)
        os.rename(modules + '/package', package)
        return package

    def run_tests(self, name, **env):
        package = self.install()
        shutil.copy(f'{HERE}/sdk/{name}.test.mjs', self.dir)
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

    def test_acceptance(self):
        if not os.path.exists(JUPYTER):
            self.skipTest('needs jupyter-server')
        self.serve_api(extra={'services': {'jupyter': {
            'command': [JUPYTER, '--ip=127.0.0.1', '--port=8888', '--no-browser', '--ServerApp.token=',
                        '--ServerApp.password=', '--allow-root'],
            'cwd': self.dir + '/jupyter', 'ports': [8888], 'ready': {'http': '/api'}}}})
        self.await_service('jupyter')
        self.run_tests('acceptance')

    def test_surface(self):
        self.serve_api()
        self.run_tests('surface')


if __name__ == '__main__':
    main()
