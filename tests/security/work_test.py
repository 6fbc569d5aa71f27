"""Developers' work goes on in a `secure` context, as uid 0 and as a plain user: real programs, each with what proves
that it worked. The system's folders are an overlay, so nothing here changes the machine."""

import json
import os
import shutil
import socket
import subprocess
import sys
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), 'integration')]

from harness import AIRLOCK, Case, command_line, descendants, eventually, main, namespace
from network import own_network

PYTHON = '/usr/bin/python3'
RESULTS = os.environ.get('AIRLOCK_SECURITY_RESULTS')
AS_USER = ('setpriv', '--reuid', '1000', '--regid', '1000', '--clear-groups')

LANDLOCK = r'''
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
ruleset = libc.syscall(ctypes.c_long(444), struct.pack("Q", 1 << 2), ctypes.c_long(8), ctypes.c_long(0))  # READ_FILE
assert ruleset >= 0, os.strerror(ctypes.get_errno())
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.syscall(ctypes.c_long(446), ctypes.c_long(ruleset), ctypes.c_long(0)) == 0, os.strerror(ctypes.get_errno())
try: open("/etc/passwd").read()
except PermissionError: print("confined")
'''


ADDON = r'''
#include <node_api.h>
NAPI_MODULE_INIT() {
  napi_value answer;
  napi_create_int32(env, 42, &answer);
  napi_set_named_property(env, exports, "answer", answer);
  return exports;
}
'''


def node_gyp():
    """Its script: a package of its own, or npm's copy."""
    places = ['/usr/share/nodejs/node-gyp/bin/node-gyp.js', '/usr/lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js',
              '/usr/local/lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js']
    return next((place for place in places if os.path.exists(place)), None)


def setUpModule():
    own_network()


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    return unittest.skipIf(missing, 'not installed: ' + ', '.join(missing))


class Work(Case):

    def setUp(self):
        super().setUp()
        self.up(f'contexts:\n  user: {{cwd: {self.work}, rootfs: overlay}}\n')
        os.chmod(self.work, 0o777)

    def ok(self, script, expected=None, who=()):
        ended = self.exec_in('user', *who, 'bash', '-ec', script)
        self.assertEqual(ended.status, 0, f'{ended.out[-500:]}\n{ended.err[-1500:]}')
        if expected is not None:
            self.assertIn(expected, ended.out)
        return ended.out

    @needs('dpkg-deb', 'apt-get')
    def test_W01_apt_get_install(self):
        """apt-get install"""
        name = 'airlock-test-' + os.path.basename(self.dir).replace('_', 'x').lower()
        root = f'{self.work}/deb'
        os.makedirs(root + '/DEBIAN')
        os.makedirs(root + '/usr/bin')
        self.write(root + '/DEBIAN/control', f'Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: x\n')
        self.write(root + '/DEBIAN/postinst', '#!/bin/sh\nid -u >/var/lib/from-postinst\n', 0o755)
        self.write(root + f'/usr/bin/{name}', '#!/bin/sh\necho installed\n', 0o755)
        self.ok(f'dpkg-deb --root-owner-group -b deb {name}.deb && apt-get install -y {self.work}/{name}.deb && {name}', 'installed')
        self.ok(f'cat /var/lib/from-postinst && apt-get remove -y {name} && ! test -e /usr/bin/{name}', '0')
        self.assertNotEqual(self.run_program(['dpkg', '-s', name]).status, 0, 'not on the machine')

    @needs('npm', 'node')
    def test_W02_npm_install(self):
        """npm install, with a script"""
        os.makedirs(self.work + '/package')
        self.write(self.work + '/package/package.json', json.dumps({'name': 'package', 'version': '1.0.0', 'main': 'i.js',
                                                                     'scripts': {'postinstall': 'echo ran >../ran'}}))
        self.write(self.work + '/package/i.js', 'module.exports = 42')
        os.makedirs(self.work + '/app')
        self.ok('cd app && npm init -y >/dev/null && npm install --offline --no-audit --no-fund --install-links ../package >/dev/null && '
                'node -e "console.log(require(\'package\'))"', '42')

    @needs('useradd')
    def test_W03_users(self):
        """chown, useradd, su"""
        self.ok('useradd -m -b /opt -u 4242 dev && touch f && chown dev: f && stat -c %U f && su dev -c "id -un; touch ~/own" && stat -c %u /opt/dev/own', 'dev\ndev\n4242')
        self.assertFalse(os.path.exists('/opt/dev/own'), 'not on the machine')

    @needs('strace', 'gdb', 'cc')
    def test_W04_debuggers(self):
        """strace and gdb of own children"""
        self.ok('strace -f -o trace -e trace=execve sh -c "true; /bin/true" && grep -c execve trace')
        self.write(self.work + '/p.c', 'int answer = 42; int main(void) { return answer; }\n')
        self.ok('cc -g -o p p.c && gdb -q -batch -ex "break main" -ex run -ex "print answer" -ex kill ./p', '= 42')
        self.ok('gdb -q -batch -ex "break main" -ex run -ex "print answer" -ex kill ./p', '= 42', AS_USER)

    @needs('postgres', 'initdb')
    def test_W05_postgres(self):
        """postgres: initdb and start as a user"""
        self.ok('initdb -D data -A trust >/dev/null && echo "select 6*7" | postgres --single -D data postgres', '42', AS_USER)
        self.ok('pg_ctl -D data -o "-k /tmp -c listen_addresses=" -w start >/dev/null && pg_ctl -D data status && pg_ctl -D data -w stop', 'server is running', AS_USER)

    def test_W06_port_80(self):
        """a server on port 80"""
        self.ok(f'{PYTHON} -S -c "import socket; s = socket.create_server((\'127.0.0.1\', 80)); print(s.getsockname())"', '80')
        denied = self.exec_in('user', *AS_USER, PYTHON, '-S', '-c', "import socket; socket.create_server(('127.0.0.1', 80))")
        self.assertNotEqual(denied.status, 0, 'control: not as a plain user')

    def test_W07_ping(self):
        """ping, where net.ipv4.ping_group_range allows it"""
        script = f'{PYTHON} -S -c "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); print(\'ok\')"'
        knob = '/proc/sys/net/ipv4/ping_group_range'  # of the network namespace that only this test has
        for groups, works in (('1 0', False), ('0 2147483647', True)):
            with open(knob, 'w') as file:
                file.write(groups)
            self.assertEqual(self.exec_in('user', 'sh', '-c', script).out == 'ok\n', works, groups)

    def test_W08_user_namespaces(self):
        """unshare -Ur as a plain user (what Chromium's sandbox needs)"""
        self.ok('unshare -Ur id -u', '0', AS_USER)
        self.ok('unshare -Urpf sh -c "echo \\$\\$"', '1', AS_USER)

    @needs('bwrap')
    def test_W08_bwrap(self):
        """bwrap sandboxes, without an own /proc"""
        sandbox = 'bwrap --ro-bind / / --dev-bind /dev /dev --tmpfs /tmp --unshare-user --unshare-pid --die-with-parent'
        self.ok(f'{sandbox} sh -c "echo in; ! touch /usr/x 2>/dev/null"', 'in', AS_USER)

    def test_W08_landlock(self):
        """Landlock sandboxes"""
        for who in ((), AS_USER):
            self.assertEqual(self.exec_in('user', *who, PYTHON, '-S', '-c', LANDLOCK).out, 'confined\n')

    @needs('git')
    def test_W09_git_clone(self):
        """git clone"""
        self.ok('git init -q origin && cd origin && git config user.email a@example.org && git config user.name a && echo x >f && git add f && '
                'git commit -qm one && cd .. && git clone -q origin copy && git -C copy log --format=%s', 'one')

    @needs('make', 'cc', 'cmake')
    def test_W10_builds(self):
        """cc, make -j with a jobserver, cmake"""
        targets = ' '.join(f'o{i}' for i in range(20))
        self.write(self.work + '/Makefile', f'all:\n\t+$(MAKE) -f Inner {targets}\n')
        self.write(self.work + '/Inner', 'o%:\n\tcc -x c -c -o $@ /dev/null\n')
        self.ok('make -j4 2>&1 | tee log && ! grep -i jobserver log && ls o* | wc -l', '20')
        self.write(self.work + '/CMakeLists.txt', 'cmake_minimum_required(VERSION 3.20)\nproject(p C)\nadd_executable(p p.c)\n')
        self.write(self.work + '/p.c', '#include <stdio.h>\nint main(void) { puts("built"); }\n')
        self.ok('cmake -S . -B b >/dev/null && cmake --build b -j4 >/dev/null && b/p', 'built')

    @needs('npm', 'node', 'c++', 'make')
    def test_W10_node_gyp(self):
        """node-gyp: an addon in C, as npm builds them"""
        gyp = node_gyp()
        if not gyp or not os.path.exists('/usr/include/node/node_api.h'):
            self.skipTest("not installed: node-gyp and node's headers")
        self.write(self.work + '/binding.gyp', json.dumps({'targets': [{'target_name': 'addon', 'sources': ['addon.c']}]}))
        self.write(self.work + '/addon.c', ADDON)
        self.write(self.work + '/package.json', json.dumps({'name': 'addon', 'version': '1.0.0'}))
        self.ok(f'node {gyp} rebuild --nodedir=/usr -j 2 >log 2>&1 || {{ cat log; exit 1; }}; '
                'node -p "require(\'./build/Release/addon.node\').answer"', '42')

    def test_W11_venv(self):
        """a venv and pip"""
        with zipfile.ZipFile(self.work + '/sample-1-py3-none-any.whl', 'w') as wheel:
            wheel.writestr('sample.py', 'answer = 42\n')
            wheel.writestr('sample-1.dist-info/METADATA', 'Metadata-Version: 2.1\nName: sample\nVersion: 1\n')
            wheel.writestr('sample-1.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
            wheel.writestr('sample-1.dist-info/RECORD', '')
        self.ok(f'{PYTHON} -m venv v && v/bin/pip -q install --no-index ./sample-1-py3-none-any.whl && v/bin/python -c "import sample; print(sample.answer)" && rm -r v', '42')

    def test_W12_tar(self):
        """tar with owners"""
        self.ok('mkdir d && touch d/f && chown 1234:5678 d/f && tar cf a.tar d && rm -r d && tar xpf a.tar && stat -c %u:%g d/f', '1234:5678')

    @needs('chromium')
    def test_W13_chromium(self):
        """headless Chromium: as a plain user with its own sandbox, as root with --no-sandbox"""
        page = 'data:text/html,<p id=p>x<script>p.textContent=6*7</script>'
        chromium = lambda *flags: f"HOME=$PWD chromium --headless --disable-gpu {' '.join(flags)} --dump-dom '{page}'"
        self.ok(chromium(), '<p id="p">42</p>', AS_USER)
        self.ok(chromium('--no-sandbox', '--user-data-dir=$PWD/root'), '<p id="p">42</p>')
        refused = self.exec_in('user', 'bash', '-c', chromium('--user-data-dir=$PWD/root'))
        self.assertIn('Running as root without --no-sandbox', refused.err, 'its own rule, inside and outside of contexts')
        self.ask('ctx', 'rm', 'user')
        self.ask('ctx', 'create', 'user', '--isolation', 'strict', '--cwd', self.work)
        refused = self.exec_in('user', *AS_USER, 'bash', '-c', chromium())
        self.assertIn('No usable sandbox', refused.err, 'strict has no user namespaces')
        self.ok(chromium('--no-sandbox'), '<p id="p">42</p>', AS_USER)

    @needs('chromium')
    def test_W13_chromium_sandbox(self):
        """its renderers are in namespaces of their own, without rights"""
        self.write(self.work + '/page.html', '<title>busy</title><script>for (;;) {}</script>')
        script = f'HOME=$PWD exec chromium --headless --disable-gpu file://{self.work}/page.html'
        browser = self.start([AIRLOCK, 'exec', 'user', '--', *AS_USER, 'bash', '-c', script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        renderers = lambda: [pid for pid in descendants(os.getpid()) if '--type=renderer' in command_line(pid)]
        renderer = eventually(renderers, 'a renderer runs')[0]
        self.assertNotIn(namespace(renderer), (0, self.namespace_of('user')))
        for kind in ('user', 'net'):  # the context has those of this test
            self.assertNotIn(namespace(renderer, kind), (0, namespace('self', kind)), kind)
        with open(f'/proc/{renderer}/status') as file:
            status = file.read()
        for line in ('CapEff:\t0000000000000000', 'NoNewPrivs:\t1', 'Seccomp:\t2'):
            self.assertIn(line, status)
        self.end(browser)

    @needs('node')
    def test_W14_removal_of_everything(self):
        """rm -rf /usr/bin/* ends with the context; the platform's node goes on"""
        self.ok('node -e "console.log(6*7)"', '42')
        # This machine's programs are at stake: first what can be undone.
        sample = '/usr/bin/airlock-test-' + os.path.basename(self.dir)
        self.ok(f'touch {sample} && test -e {sample}')
        self.assertFalse(os.path.exists(sample), 'the overlay holds')
        self.assertTrue(self.ask('ctx', 'inspect', 'user')['integrity'].startswith('yes'))
        self.exec_in('user', 'sh', '-c', 'rm -rf /usr/bin/* /usr/lib/node_modules')
        self.assertNotEqual(self.exec_in('user', 'ls').status, 0, 'control: gone in the context')
        self.assertEqual(self.exec_in('platform', 'node', '-e', 'console.log(6*7)').out, '42\n')
        self.assertTrue(os.path.exists('/usr/bin/python3'))
        self.ask('ctx', 'rm', 'user')
        self.ask('ctx', 'create', 'user', '--rootfs', 'overlay', '--cwd', self.work)
        self.ok('ls / >/dev/null && echo back', 'back')


if __name__ == '__main__':
    main()
