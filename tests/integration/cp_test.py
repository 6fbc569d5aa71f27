"""airlock cp: files into and out of a context, without an API."""

import os
import shutil
import socket
import stat
import subprocess

from harness import AIRLOCK, CANARY, Case, USAGE, eventually, main


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


class Copy(Case):

    def setUp(self):
        super().setUp()
        self.out = self.dir + '/out'
        os.mkdir(self.out)
        # What the context does not share: copied, or not there.
        self.inside = '/dev/shm'

    def cp(self, *arguments, status=0, **options):
        ended = self.airlock('cp', *arguments, **options)
        self.assertEqual(ended.status, status, ended.err)
        return ended

    def refused(self, *arguments, fragments=(), **options):
        self.expect_error(self.airlock('cp', *arguments, **options), 1, *fragments)

    def inside_text(self, path):
        return self.exec_in('user', 'cat', path).out

    def read(self, path):
        with open(path, 'rb') as file:
            return file.read()

    def test_files(self):
        self.up()
        contents = bytes(range(256)) * 2000
        source = self.out + '/source'
        with open(source, 'wb') as file:
            file.write(contents)
        os.chmod(source, 0o751)
        self.cp(source, f'user:{self.inside}/copy')
        self.assertEqual(self.exec_in('user', 'stat', '-c', '%a %s', self.inside + '/copy').out, f'751 {len(contents)}\n')
        self.assertFalse(os.path.exists(self.inside + '/copy'), 'control: it is the context\'s own folder')
        self.cp(f'user:{self.inside}/copy', self.out + '/back')
        self.assertEqual((self.read(self.out + '/back'), mode(self.out + '/back')), (contents, 0o751))
        # Into folders, under its own name.
        self.cp(source, f'user:{self.inside}')
        self.assertEqual(self.exec_in('user', 'cmp', self.inside + '/copy', self.inside + '/source').status, 0)
        self.cp(f'user:{self.inside}/source', self.dir)
        self.assertEqual(self.read(self.dir + '/source'), contents)
        # Relative paths begin at the context's folder, and here at ours.
        self.cp('source', 'user:relative', cwd=self.out)
        self.assertEqual(self.read(self.work + '/relative'), contents)
        self.cp('user:relative', '.', cwd=self.out)
        self.assertEqual(self.read(self.out + '/relative'), contents)
        self.assertEqual(sorted(os.listdir(self.out)), ['back', 'relative', 'source'])

    def test_standard_streams(self):
        self.up()
        data = os.urandom(300_000) + b'\0'
        ended = subprocess.run([AIRLOCK, 'cp', '-', f'user:{self.inside}/f'], input=data, env=self.env, timeout=60)
        self.assertEqual(ended.returncode, 0)
        ended = subprocess.run([AIRLOCK, 'cp', f'user:{self.inside}/f', '-'], env=self.env, timeout=60,
                               stdout=subprocess.PIPE)
        self.assertEqual((ended.returncode, ended.stdout), (0, data))
        self.cp('/dev/null', f'user:{self.inside}/f', status=1)
        self.cp(f'user:{self.inside}/f', '/dev/null')
        self.assertTrue(stat.S_ISCHR(os.stat('/dev/null').st_mode))

    def test_folders(self):
        self.up()
        tree = self.out + '/tree'
        os.makedirs(tree + '/a/b')
        os.mkdir(tree + '/empty')
        os.makedirs(tree.encode() + b'/\xff')
        for name in ('one', 'a/two', 'a/b/three'):
            with open(f'{tree}/{name}', 'w') as file:
                file.write(name)
        os.chmod(tree + '/a/two', 0o600)
        os.symlink('../one', tree + '/a/link')
        os.symlink('/nowhere', tree + '/dangling')
        os.chmod(tree + '/a/b', 0o555)
        self.refused(tree, f'user:{self.inside}/t', fragments=['-r copies folders'])
        self.cp('-r', tree, f'user:{self.inside}/t')
        self.cp('-r', f'user:{self.inside}/t', self.out + '/back')
        self.assertEqual(self.run_program(['diff', '-r', '--no-dereference', tree, self.out + '/back']).out, '')
        for name in ('a', 'a/b', 'a/two', 'one'):
            self.assertEqual(mode(f'{self.out}/back/{name}'), mode(f'{tree}/{name}'), name)
        self.assertEqual(os.readlink(self.out + '/back/dangling'), '/nowhere')
        self.assertIn(b'\xff', os.listdir(self.out.encode() + b'/back'))
        # Again, into what is there; and as a folder in a folder.
        self.cp('-r', tree + '/a', f'user:{self.inside}')
        self.cp('-r', tree + '/a', f'user:{self.inside}')
        self.assertEqual(self.inside_text(self.inside + '/a/two'), 'a/two')
        self.refused(f'user:{self.inside}/t', self.out, fragments=['-r copies folders'])
        os.chmod(tree + '/a/b', 0o755), os.chmod(self.out + '/back/a/b', 0o755)

    def test_what_is_no_file_is_left_out_and_told(self):
        self.up()
        os.makedirs(self.out + '/tree')
        os.mkfifo(self.out + '/tree/fifo')
        self.write(self.out + '/tree/file', 'text')
        ended = self.cp('-r', self.out + '/tree', f'user:{self.inside}/t', status=1)
        self.assertRegex(ended.err, r'^airlock: cp: .*/fifo: left out')
        self.assertEqual(self.inside_text(self.inside + '/t/file'), 'text')
        self.exec_in('user', 'mkfifo', self.inside + '/t/fifo')
        ended = self.cp('-r', f'user:{self.inside}/t', self.out + '/back', status=1)
        self.assertIn('fifo: left out', ended.err)
        self.assertEqual(self.read(self.out + '/back/file'), b'text')
        self.refused(f'user:{self.inside}/t/fifo', self.out, fragments=['no regular file'])

    def test_mistakes(self):
        self.up()
        self.write(self.out + '/f', 'new')
        for pair in (('a', 'b'), ('user:a', 'user:b'), ('-', '-')):
            self.expect_error(self.airlock('cp', *pair), USAGE, 'CONTEXT:PATH')
        self.refused(self.out + '/nothing', 'user:x', fragments=['nothing', 'No such file'])
        self.refused('user:/nothing', self.out, fragments=['/nothing', 'No such file'])
        self.refused('nobody:/x', self.out, fragments=["no context 'nobody'"])
        self.refused(self.out + '/f', 'user:/nothing/f', fragments=['No such file'])
        self.refused(self.out + '/f', 'user:/proc/f')
        self.refused(f'user:{self.home}/x', self.out, fragments=['No such file'])
        self.refused('user:/etc/passwd', self.out + '/nothing/x', fragments=['No such file'])
        # A name with a colon here is one that says it is here.
        self.write(self.out + '/user:x', 'colon')
        self.cp('./user:x', f'user:{self.inside}/colon', cwd=self.out)
        self.assertEqual(self.inside_text(self.inside + '/colon'), 'colon')
        self.airlock('down')
        self.refused('user:/etc/passwd', self.out)

    def test_what_a_context_says_leads_nowhere_else(self):
        """A symlink that a context puts into a tree is copied, and never written through."""
        self.up()
        os.mkdir(self.out + '/victim')
        self.exec_in('user', 'sh', '-c', f'mkdir -p {self.inside}/t/a; echo evil > {self.inside}/t/a/f')
        os.mkdir(self.out + '/back')
        os.symlink(self.out + '/victim', self.out + '/back/a')
        self.refused('-r', f'user:{self.inside}/t/.', self.out + '/back')
        self.assertEqual(os.listdir(self.out + '/victim'), [])
        os.unlink(self.out + '/back/a')
        self.cp('-r', f'user:{self.inside}/t/.', self.out + '/back')
        self.assertEqual(self.read(self.out + '/back/a/f'), b'evil\n', 'control')
        self.refused(f'user:{self.home}/../{self.home}/secret', self.out)

    def test_a_copy_that_is_interrupted_leaves_nothing(self):
        self.up()
        self.exec_in('user', 'sh', '-c', f'echo old > {self.inside}/f')
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        process = self.start([AIRLOCK, 'cp', '-', f'user:{self.inside}/f'], stdin=theirs)
        theirs.close()
        ours.sendall(bytes(100_000))
        eventually(lambda: 'airlock-files' in self.exec_in('user', 'ps', '-e').out, 'it runs')
        process.kill()
        eventually(lambda: 'airlock-files' not in self.exec_in('user', 'ps', '-e').out, 'it has ended')
        self.assertEqual(self.inside_text(self.inside + '/f'), 'old\n')
        self.assertEqual(self.exec_in('user', 'ls', '-A', self.inside).out, 'f\n')

    def test_platform_and_user_apart(self):
        self.up()
        self.write(self.home + '/.secret', CANARY)
        self.cp(f'platform:{self.home}/.secret', self.out + '/control')
        self.assertEqual(self.read(self.out + '/control'), CANARY.encode())
        self.refused(f'user:{self.home}/.secret', self.out, fragments=['No such file'])

    def test_in_every_tier(self):
        shared = self.dir + '/shared'
        os.mkdir(shared)
        os.chmod(shared, 0o777)
        self.write(self.out + '/f', 'text')
        self.write(self.home + '/.secret', CANARY)
        for tier in ('namespaces', 'userns', 'uids', 'landlock', 'none'):
            with self.subTest(tier):
                self.up(options=('--tier', tier, '--require-tier', tier, *(('--development',) if tier == 'none' else ())))
                for _ in range(2):
                    self.cp(self.out + '/f', f'user:{shared}/{tier}')
                self.assertEqual(self.read(f'{shared}/{tier}'), b'text')
                self.cp(f'user:{shared}/{tier}', '-')
                # What its programs can read, it copies; below /tmp not every tier can hide it.
                told = self.airlock('cp', f'user:{self.home}/.secret', '-').out
                self.assertEqual(told, self.exec_in('user', 'cat', self.home + '/.secret').out)
                self.assertEqual(told, '' if tier in ('namespaces', 'userns') else CANARY)
                self.airlock('down')
        self.assertEqual(sorted(os.listdir(shared)), ['landlock', 'namespaces', 'none', 'uids', 'userns'])

    def test_completion_knows_it(self):
        for shell in ('bash', 'zsh', 'fish'):
            told = self.airlock('completion', shell).out
            self.assertRegex(told, r"'cp'")
        if shutil.which('bash'):
            script = 'source <(airlock completion bash); COMP_WORDS=(airlock cp --rec) COMP_CWORD=2; _airlock; echo "${COMPREPLY[@]}"'
            told = self.run_program(['bash', '-c', script], env={'PATH': os.path.dirname(AIRLOCK) + ':' + self.env['PATH']})
            self.assertEqual(told.out, '--recursive\n')


if __name__ == '__main__':
    main()
