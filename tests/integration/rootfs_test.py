"""`rootfs:`: whose the system's folders are. With a daemon of its own lifetime (`airlock up`) what a context installs or
breaks there is its own; everything else is everybody's, and the platform's agents still find what their children installed.

Only names that no package has are used in the system's folders, so a failure here changes nothing of this machine.
"""

import json
import os
import signal
import subprocess
import unittest

from harness import AIRLOCK, CANARY, Case, eventually, main

MARK = 'airlock-test-'


class Rootfs(Case):
    def setUp(self):
        super().setUp()
        self.name = MARK + os.path.basename(self.dir)
        self.addCleanup(self.expect_system_untouched)

    def expect_system_untouched(self):
        for folder in ('/usr/bin', '/usr/local/bin', '/etc', '/opt', '/var/lib', '/var/cache', '/usr/src'):
            self.assertFalse(os.path.lexists(f'{folder}/{self.name}'), folder)

    def inside(self, script, context='user', **options):
        ended = self.exec_in(context, 'sh', '-ec', script, **options)
        self.assertEqual(ended.status, 0, ended)
        return ended.out

    def config(self, user=''):
        # The child's env shows where a routed program ran.
        return (f'contexts:\n  platform: {{cwd: {self.work}, child_context: user, route_child: always}}\n'
                f'  user: {{cwd: {self.work}, env: {{ROUTE_MARK: user}}{user}}}\n')

    def daemon(self, user='', **options):
        return self.up(self.config(user), **options)


class Default(Rootfs):
    def test_system_folders_are_its_own(self):
        self.daemon()
        described = self.ask('ctx', 'inspect', 'user')
        self.assertEqual((described['rootfs'], described['integrity'][:4]), ('overlay', 'yes:'))
        for folder in ('/usr/lib', '/etc', '/opt', '/var/lib', '/var/cache', '/var/spool'):
            with self.subTest(folder):
                path = f'{folder}/{self.name}'
                self.assertEqual(self.inside(f'echo changed >{path}; cat {path}'), 'changed\n', 'control: it can')
                self.assertFalse(os.path.exists(path))
                self.assertNotEqual(self.exec_in('platform', 'test', '-e', path).status, 0)
        before = os.stat('/etc/passwd')
        self.assertEqual(self.inside('echo x:x:4242:4242::/:/bin/sh >>/etc/passwd; id -un 4242'), 'x\n')
        self.assertEqual(os.stat('/etc/passwd'), before)

    def test_everything_else_is_everybodys(self):
        self.daemon()
        for parent in ('/srv', '/usr/src', '/var', '/'):
            if not os.path.isdir(parent):
                continue
            with self.subTest(parent):
                path = f'{parent.rstrip("/")}/{self.name}'
                self.addCleanup(subprocess.run, ['rm', '-rf', path])
                self.inside(f'mkdir {path}; echo project >{path}/file')
                with open(path + '/file') as file:
                    self.assertEqual(file.read(), 'project\n')
                self.assertEqual(self.inside(f'cat {path}/file', 'platform'), 'project\n')
                self.inside(f'rm -r {path}', 'platform')
                self.assertNotEqual(self.exec_in('user', 'test', '-e', path).status, 0)

    def test_owners_modes_and_links_are_as_they_were(self):
        self.daemon()
        look = 'stat -c "%n %u %g %a %F" / /usr /usr/bin /usr/local/bin /etc /opt /var/lib /bin /lib /etc/shadow /usr/bin/su'
        bare = subprocess.run(['sh', '-c', look], capture_output=True, text=True, check=True)
        self.assertEqual(self.inside(look), bare.stdout)

    def test_links_and_folders_above_cannot_be_taken_away(self):
        # Everybody's, as they lie in /, and they lead to the system's folders.
        self.daemon()
        links = [path for path in ('/bin', '/sbin', '/lib', '/lib64', '/var/run', '/var/lock') if os.path.islink(path)]
        self.assertIn('/bin', links)
        for link in links:
            self.addCleanup(lambda link=link, to=os.readlink(link): os.path.lexists(link) or os.symlink(to, link))
            with self.subTest(link):
                # Tried only where it is a mount point: nothing else keeps it from going.
                self.inside(f'test -L {link}; grep " {link} " /proc/self/mountinfo')
                for attempt in (f'rm {link}', f'ln -sfn /tmp {link}', f'mv {link} {link}-{self.name}'):
                    ended = self.exec_in('user', 'sh', '-c', attempt)
                    self.assertNotEqual(ended.status, 0, attempt)
                    self.assertIn('Device or resource busy', ended.err)
        look = 'import os, sys\ntry: os.rmdir(sys.argv[1])\nexcept OSError as error: print(error.strerror)'
        for context, expected in (('user', 'Device or resource busy'), ('platform', 'Directory not empty')):
            ended = self.exec_in(context, '/usr/bin/python3', '-c', look, '/var')
            self.assertEqual(ended.out, expected + '\n', context)

    def test_sandboxes_that_remount_everything_work(self):
        self.daemon()
        sandbox = ['bwrap', '--unshare-user', '--ro-bind', '/', '/', '--dev', '/dev', 'sh', '-c', 'readlink /bin; echo x >/usr/x || echo refused']
        bare = self.run_program(sandbox)
        self.assertEqual(bare.out, 'usr/bin\nrefused\n', 'control')
        self.assertEqual(self.exec_in('user', *sandbox).out, bare.out)

    def test_an_agent_finds_what_its_children_installed(self):
        self.daemon()
        # Agents execute it themselves, by name and by path; bash as the agent has `command -v` and its own exec.
        program = '/usr/local/bin/' + self.name
        agent = (f'sh -c "printf \'#!/bin/sh\\necho mark=\\$ROUTE_MARK key=\\$PLATFORM_KEY\\n\' >{program}; chmod 755 {program}";'
                 f'for i in {{1..60000}}; do [ -x {program} ] && break; read -t 0.001 <> <(:); done;'
                 f'{self.name}; {program}; sh -c "rm {program}";'
                 f'for i in {{1..60000}}; do [ -e {program} ] || break; read -t 0.001 <> <(:); done;'
                 f'{program} 2>/dev/null; echo status=$?')
        ended = self.airlock('run', '--in', 'platform', '--', 'bash', '-c', agent)
        self.assertEqual(ended.out.splitlines(), ['mark=user key='] * 2 + ['status=127'], ended)

    def test_it_goes_with_the_context(self):
        self.daemon()
        path = f'/usr/bin/{self.name}'
        self.inside(f'mkdir {path}; for i in 1 2 3; do mkdir {path}/$i; head -c 100000 /dev/zero >{path}/$i/file; done')
        self.assertTrue(os.path.exists(f'{self.runtime}/upper/user/root/upper/usr/bin/{self.name}'), 'control: kept there')
        self.ask('ctx', 'rm', 'user')
        self.assertFalse(os.path.exists(f'{self.runtime}/upper/user'))
        eventually(lambda: not os.listdir(f'{self.runtime}/upper'), 'its remains are removed')
        self.ask('ctx', 'create', 'user', '--cwd', self.work)
        self.assertNotEqual(self.exec_in('user', 'test', '-e', path).status, 0)

    def test_a_killed_daemon_leaves_nothing_to_the_next(self):
        pid = self.daemon()
        self.inside(f'echo x >/etc/{self.name}')
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not self.airlock('info').out, 'it has ended')
        self.assertTrue(os.path.exists(f'{self.runtime}/upper/user/root/upper/etc/{self.name}'), 'control')
        self.daemon()
        self.assertNotEqual(self.exec_in('user', 'test', '-e', f'/etc/{self.name}').status, 0)

    def test_mounts_in_system_folders_are_the_real_ones(self):
        target = f'/opt/{self.name}'
        os.mkdir(target)
        self.addCleanup(os.rmdir, target)
        config = self.write(self.dir + '/airlock.yaml', self.config())
        script = (f'mount -t tmpfs volume {target} && mkdir {target}/sub && mount -t tmpfs inner {target}/sub && '
                  f'"$1" up --config {config} && "$1" exec user -- sh -c "echo x >{target}/file; echo y >{target}/sub/file"; '
                  f'cat {target}/file {target}/sub/file; "$1" down')
        ended = self.run_program(['unshare', '-m', 'sh', '-c', script, 'sh', AIRLOCK])
        self.assertIn('x\ny\n', ended.out, ended)
        self.assertFalse(os.path.exists(target + '/file'), 'it was another mount')

    def test_system_folders_on_another_file_system_are_its_own(self):
        config = self.write(self.dir + '/airlock.yaml', self.config())
        script = (f'mount --bind /var /var && "$1" up --config {config} && '
                  f'"$1" exec user -- sh -c "echo own >/var/lib/{self.name}; cat /var/lib/{self.name}; echo x >/etc/{self.name}"; '
                  f'ls /var/lib/{self.name}; "$1" -o json ctx inspect user >described; "$1" down')
        ended = self.run_program(['unshare', '-m', 'sh', '-c', script, 'sh', AIRLOCK])
        self.assertEqual(ended.out.splitlines()[-1:], ['own'], ended)
        with open(self.work + '/described') as file:
            self.assertEqual([lack for lack in json.load(file)['lacks'] if 'shared' in lack], [])

    def test_a_system_folder_that_is_a_mount_is_shared_and_said(self):
        config = self.write(self.dir + '/airlock.yaml', self.config())
        script = (f'mount --bind /opt /opt && "$1" up --config {config} && '
                  f'"$1" exec user -- touch /opt/{self.name}; ls /opt; rm /opt/{self.name}; '
                  '"$1" -o json ctx inspect user >described; "$1" down')
        ended = self.run_program(['unshare', '-m', 'sh', '-c', script, 'sh', AIRLOCK])
        self.assertIn(self.name, ended.out.split(), ended)
        with open(self.work + '/described') as file:
            self.assertIn('mounts of their own, shared with the platform: /opt', json.load(file)['lacks'])


class Chosen(Rootfs):
    def test_shared(self):
        self.daemon(', rootfs: shared')
        path = f'/usr/local/bin/{self.name}'
        try:
            self.inside(f'echo x >{path}')
            self.assertTrue(os.path.exists(path))
        finally:
            self.inside(f'rm -f {path}')
        described = self.ask('ctx', 'inspect', 'user')
        self.assertEqual((described['rootfs'], described['integrity'][:3]), ('shared', 'no:'))

    def test_run_without_a_daemon_shares_them(self):
        # What the agent's children install is there when it has ended.
        path = f'/usr/local/bin/{self.name}'
        try:
            ended = self.routed('bash', '-c', f'sh -c "echo $ROUTE_MARK >{path}"; cat {path}')
            self.assertEqual((ended.status, os.path.exists(path)), (0, True), ended)
        finally:
            if os.path.exists(path):
                os.unlink(path)

    def test_who_runs_agents_shares_them(self):
        self.daemon()
        made = self.ask('ctx', 'create', 'agents', '--child-context', 'user', '--cwd', self.work)
        self.assertEqual(made['rootfs'], 'shared')

    def test_strict_has_them_too(self):
        self.daemon(', isolation: strict')
        path = f'/etc/{self.name}'
        self.assertEqual(self.inside(f'echo x >{path}; stat -c "%u %U" {path} /etc /usr/bin/env'), '0 root\n' * 3)
        self.assertFalse(os.path.exists(path))
        described = self.ask('ctx', 'inspect', 'user')
        self.assertEqual(described['integrity'][:4], 'yes:')
        self.assertEqual([lack for lack in described['lacks'] if 'user ids' in lack], [])


class Place(Rootfs):
    """Where the runtime folder is in memory, as /run often is."""

    def setUp(self):
        super().setUp()
        self.memory = self.dir + '/memory'
        os.mkdir(self.memory)
        subprocess.run(['mount', '-t', 'tmpfs', 'memory', self.memory], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', self.memory])
        self.runtime = self.env['AIRLOCK_RUNTIME_DIR'] = self.memory + '/rt'
        self.state = self.env['AIRLOCK_STATE_DIR'] = self.dir + '/state'

    def test_changes_are_kept_in_the_state_folder_that_no_context_sees(self):
        self.daemon()
        self.inside(f'echo {CANARY} >/etc/{self.name}')
        found = subprocess.run(['grep', '-rl', CANARY, self.state], capture_output=True, text=True)
        self.assertTrue(found.stdout.endswith(f'/user/root/upper/etc/{self.name}\n'), found)
        self.ask('ctx', 'create', 'other', '--cwd', self.work)
        for context in ('user', 'other', 'platform'):
            self.assertEqual(self.inside(f'ls -A {self.state}', context), '', context)
        self.airlock('down')
        eventually(lambda: not os.listdir(self.state), 'it is empty')

    def test_without_any_disk_the_default_is_shared_and_overlay_is_in_memory(self):
        self.env['AIRLOCK_STATE_DIR'] = self.memory + '/state'
        self.daemon()
        described = self.ask('ctx', 'inspect', 'user')
        self.assertEqual((described['rootfs'], described['integrity'][:3]), ('shared', 'no:'))
        made = self.ask('ctx', 'create', 'apart', '--rootfs', 'overlay', '--cwd', self.work)
        self.assertEqual((made['rootfs'], made['integrity'][:4]), ('overlay', 'yes:'))
        self.inside(f'echo x >/etc/{self.name}', 'apart')
        self.assertFalse(os.path.exists(f'/etc/{self.name}'))

    def test_a_relative_state_folder_is_refused(self):
        self.env['AIRLOCK_STATE_DIR'] = 'state'
        config = self.write(self.dir + '/airlock.yaml', self.config())
        ended = self.airlock('up', '--config', config)
        self.assertNotEqual(ended.status, 0)
        self.assertIn("AIRLOCK_STATE_DIR=state: Invalid argument (expected the absolute path of a folder of airlock's own)", ended.err)


if __name__ == '__main__':
    if os.geteuid() != 0:
        raise unittest.SkipTest('needs root: the tier namespaces')
    main()
