"""The API with clients that others have written, from npm."""

import os
import shutil
import subprocess
import unittest

import sdk_test
from api_client import PORT
from harness import HERE, main
from network import own_network

PACKAGES = ['ws@8', '@kubernetes/client-node@1']
# Kept from run to run.
CACHE = os.path.realpath(HERE + '/../../.cache/clients')


def setUpModule():
    npm = shutil.which('npm')
    if npm is None:
        raise unittest.SkipTest('needs npm')
    os.makedirs(CACHE, exist_ok=True)
    # Before this process has a network of its own.
    fetched = subprocess.run([npm, 'install', '--silent', '--prefer-offline', '--no-audit', '--no-fund', '--prefix', CACHE,
                              *PACKAGES], check=False)
    if fetched.returncode != 0:
        raise unittest.SkipTest(f'needs {" and ".join(PACKAGES)} from npm')
    own_network()


class Clients(sdk_test.Sdk):
    test_acceptance = test_surface = test_readme = None

    def install(self):
        package = super().install()
        for name in ('ws', '@kubernetes'):  # what they need lies beside them
            os.symlink(f'{CACHE}/node_modules/{name}', f'{self.dir}/node_modules/{name}')
        return package

    def test_clients(self):
        self.serve_api()
        self.run_tests('clients', PORT=str(PORT))


if __name__ == '__main__':
    main()
