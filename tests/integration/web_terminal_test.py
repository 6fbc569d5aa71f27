"""The example examples/web-terminal in a real browser, from the form to the end of the shell."""

import os
import re
import shutil
import signal
import subprocess
import unittest

import sdk_test
from api_client import SECRETS
from chromium import CHROMIUM, Browser
from harness import HERE, eventually, main
from network import own_network

PACKAGES = ['@xterm/xterm@6', '@xterm/addon-fit@0.11']
# Kept from run to run.
CACHE = os.path.realpath(HERE + '/../../.cache/web-terminal')
PAGE = 'http://127.0.0.1:3000'


def setUpModule():
    npm = shutil.which('npm')
    if npm is None or CHROMIUM is None:
        raise unittest.SkipTest('needs npm and chromium')
    os.makedirs(CACHE, exist_ok=True)
    # Before this process has a network of its own.
    fetched = subprocess.run([npm, 'install', '--silent', '--prefer-offline', '--no-audit', '--no-fund', '--prefix', CACHE,
                              *PACKAGES], check=False)
    if fetched.returncode != 0:
        raise unittest.SkipTest(f'needs {" and ".join(PACKAGES)} from npm')
    own_network()


class WebTerminal(sdk_test.Sdk):
    test_acceptance = test_surface = test_readme = test_example_agent_host = test_example_interpreter = None

    def setUp(self):
        super().setUp()
        self.serve_api(api={'origins': [PAGE]})
        package = self.install()
        os.symlink(CACHE + '/node_modules/@xterm', self.dir + '/node_modules/@xterm')
        server = self.start([shutil.which('node'), package + '/examples/web-terminal/server.mjs', '3000'])
        self.assertEqual(self.line_of(server).decode(), PAGE + '\n')
        self.browser = Browser(self.start, self.dir)
        self.addCleanup(self.browser.close)
        self.browser.resize(800, 600)

    def log_in(self, secret):
        self.browser.open(PAGE + '/')
        self.browser.value(f'token.value = "{secret}"; form.requestSubmit()')

    def state(self):
        return self.browser.value('state.value')

    def shown(self):
        """The lines of the screen, as the page has them for its reader's eyes."""
        rows = self.browser.value('[...document.querySelectorAll(".xterm-rows > div")].map((row) => row.textContent)')
        return '\n'.join((rows or [])).replace('\xa0', ' ')

    def await_screen(self, pattern):
        try:
            return eventually(lambda: re.search(pattern, self.shown()), pattern + ' is shown')
        except AssertionError:
            print(self.shown(), self.state())
            raise

    def test_a_shell_in_the_browser(self):
        self.log_in(SECRETS['exec'])
        eventually(lambda: self.state() == 'connected', 'it is attached')
        self.browser.type('echo $((6*7))-$PLATFORM_KEY- "é你"\n')
        self.await_screen('(?m)^42-- é你')
        self.browser.type('stty size\n')
        rows, columns = map(int, self.await_screen(r'(?m)^(\d+) (\d+) *$').groups())
        self.browser.resize(400, 300)
        self.browser.type('until [ "$(stty size)" != "%d %d" ]; do :; done; echo now $(stty size)\n' % (rows, columns))
        smaller = self.await_screen(r'(?m)^now (\d+) (\d+) *$').groups()
        self.assertLess(int(smaller[0]), rows)
        self.assertLess(int(smaller[1]), columns)
        # The API dies; the shell does not, and the page finds it again.
        os.kill(self.pid_of_service('airlock-api'), signal.SIGKILL)
        eventually(lambda: self.state() == 'connected' and self.typed_and_shown(), 'attached again')
        self.browser.type('exit 3\n')
        eventually(lambda: self.state() == 'ended: 3', 'the end of the shell is shown')

    def typed_and_shown(self):
        """What is typed between two connections is lost, as with any terminal: until one is there."""
        self.browser.type('echo b$((1))ack\n')
        try:
            return eventually(lambda: 'b1ack' in self.shown(), 'it answers', 2)
        except AssertionError:
            return False

    def test_who_has_no_token_gets_no_terminal(self):
        self.log_in('wrong')
        title = eventually(self.state, 'the refusal is shown')
        self.assertNotIn(title, ('connected', 'reconnecting'))
        self.assertEqual(self.request('GET', '/api/v1/contexts/user/terminals').json['items'], [])

    def test_another_origin_is_refused(self):
        """The same page, from an address that the API does not list."""
        self.browser.open(PAGE.replace('127.0.0.1', 'localhost') + '/')
        self.browser.value(f'token.value = "{SECRETS["exec"]}"; void form.onsubmit(new Event("submit")).catch(() => state.value = "refused")')
        eventually(lambda: self.state() == 'refused', 'the browser may not ask')
        self.assertEqual(self.request('GET', '/api/v1/contexts/user/terminals').json['items'], [])


if __name__ == '__main__':
    main()
