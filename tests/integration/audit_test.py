"""The audit log: what is recorded, what is not, and that nobody changes it unnoticed."""

import glob
import json
import os
import signal
import stat

from harness import AIRLOCK, CANARY, REFUSED, USAGE, Case, eventually, main

SECRET = 'secret-' + CANARY


class Audit(Case):

    def setUp(self):
        super().setUp()
        self.folder = self.dir + '/audit'
        self.seen = set()

    def serve(self, audit='', user=''):
        rules = f'routes: [{{program: /usr/bin/env, action: refuse}}]'
        self.up(f'audit: {{folder: {self.folder}{audit}}}\nsecrets: [{SECRET}]\n'
                f'contexts:\n  platform: {{cwd: {self.work}, child_context: user, route_child: always, {rules}}}\n'
                f'  user: {{cwd: {self.work}{user}}}\n')

    def text(self):
        text = ''
        for path in sorted(glob.glob(self.folder + '/audit.jsonl*'), key=lambda path: -len(path)):
            with open(path) as file:
                text += file.read()
        return text

    def records(self, event):
        return [record for record in map(json.loads, self.text().splitlines()) if record['event'] == event]

    def one(self, event, is_it=lambda record: True):
        return eventually(lambda: [record for record in self.records(event) if is_it(record)], event)[0]

    def verify(self, *arguments):
        return self.airlock('audit', 'verify', *arguments)

    def test_what_is_recorded(self):
        self.serve()
        self.exec_in('platform', 'sh', '-c', 'exit 3', SECRET, env={'OTHER': SECRET})
        start = self.one('exec', lambda record: record['program'].endswith('sh'))
        self.assertEqual((start['to'], start['rule'], start['outcome'], start['argc'], start['uid']),
                         ('platform', 'exec', 'run_in', 4, os.geteuid()))
        end = self.one('exec.ended', lambda record: record['job'] == start['job'])
        self.assertEqual((end['status'], end['timedOut'], end['context']), ({'exit': 3}, False, 'platform'))
        for field in ('durationMs', 'userUs', 'systemUs', 'maxRssKib'):
            self.assertGreaterEqual(end[field], 0)
        # A routed child, and one that is refused.
        self.exec_in('platform', 'python3', '-S', '-c', 'import subprocess; subprocess.run(["/bin/kill", "-l"])')
        routed = self.one('exec', lambda record: record['program'] == '/bin/kill')
        self.assertEqual((routed['from'], routed['to'], routed['outcome']), ('platform', 'user', 'run_in'))
        self.exec_in('platform', 'python3', '-S', '-c', 'import subprocess; subprocess.run(["/usr/bin/env"])')
        self.assertEqual(self.one('exec', lambda record: record['outcome'] == 'refuse')['program'], '/usr/bin/env')
        # Killed; timed out.
        self.exec_in('user', 'sh', '-c', 'kill -9 $$')
        self.one('exec.ended', lambda record: record['status'] == {'signal': signal.SIGKILL})
        self.exec_in('user', 'sleep', '1000', options=('--timeout', '100ms'))
        self.one('exec.ended', lambda record: record['timedOut'])
        # Commands of a persistent shell, one that ends it included.
        for text, status in (('exit 5', {'exit': 5}), ('(exit 6)', {'exit': 6}), ('kill -9 $$', {'signal': signal.SIGKILL})):
            self.airlock('exec', 'user', '-c', text)
            start = self.one('exec', lambda record: record['rule'] == 'shell' and record['job'] not in self.seen)
            self.seen.add(start['job'])
            self.assertEqual(self.one('exec.ended', lambda record: record['job'] == start['job'])['status'], status, text)
        # Contexts.
        self.ask('ctx', 'create', 'third', '-e', 'NAME=' + SECRET, '--cwd', self.work)
        self.assertEqual(self.one('context.created', lambda record: record['context'] == 'third')['envNames'], ['NAME'])
        self.ask('ctx', 'rm', 'third')
        self.assertEqual(self.one('context.destroyed')['survivors'], 0)
        self.airlock('down')
        self.one('daemon.stopped')
        self.assertNotIn(CANARY, self.text(), 'no argument, no value of a variable')

    def test_arguments_if_asked_for(self):
        self.serve(', argv: full')
        self.exec_in('user', 'true', 'shown', 'with ' + SECRET)
        start = self.one('exec', lambda record: record['argc'] == 3)
        self.assertEqual(start['argv'], ['true', 'shown', '(contains a secret)'])

    def test_limits(self):
        self.serve(user=', limits: {memory: 32M}')
        self.assertEqual(self.exec_in('user', 'python3', '-S', '-c', 'bytearray(1 << 28)').status != 0, True)
        if self.ask('ctx', 'inspect', 'user')['limits'][0]['by'].startswith('cgroup'):
            hit = self.one('limit.hit')
            self.assertEqual((hit['context'], hit['limit'], hit['times']), ('user', 'memory', 1))

    def test_files(self):
        self.serve(', max_size: 64K, keep: 2')
        self.assertEqual(stat.S_IMODE(os.stat(self.folder).st_mode), 0o700)
        for _ in range(150):
            self.exec_in('user', 'true')
        for path in glob.glob(self.folder + '/*'):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(self.verify().status, 0, self.verify().out)
        # Shown to no context, whoever it runs as.
        for context in ('user', 'platform'):
            ended = self.exec_in(context, 'ls', '-A', self.folder)
            self.assertEqual((ended.status, ended.out), (0, ''))
        self.assertNotEqual(os.listdir(self.folder), [], 'control')

    def test_it_goes_on_after_a_kill(self):
        self.serve()
        self.exec_in('user', 'true')
        self.one('exec.ended')
        os.kill(self.ask('info')['pid'], signal.SIGKILL)
        eventually(lambda: self.airlock('info').status != 0, 'the daemon has ended')
        self.serve()
        self.exec_in('user', 'true')
        self.assertEqual(len(self.records('daemon.started')), 2)
        self.assertEqual(self.verify().status, 0)

    def test_what_verify_sees(self):
        self.serve()
        for _ in range(5):
            self.exec_in('user', 'true')
        eventually(lambda: len(self.records('exec.ended')) == 5, 'five ends')
        head = self.airlock('audit', 'head').out.strip()
        path = self.folder + '/audit.jsonl'
        with open(path) as file:
            lines = file.readlines()

        def changed(new, *arguments):
            with open(path, 'w') as file:
                file.writelines(new)
            return self.verify(*arguments)

        self.assertEqual(changed(lines).status, 0, 'control')
        self.assertIn('intact', changed(lines).out)
        damaged = {
            'edited': lines[:3] + [lines[3].replace('"time":"2', '"time":"1')] + lines[4:],
            'removed': lines[:3] + lines[4:],
            'reordered': lines[:3] + [lines[4], lines[3]] + lines[5:],
            'cut off': lines[:-1] + [lines[-1][:-20]],
            'the end': lines[:-1],
            'the start': lines[1:],
        }
        for what, new in damaged.items():
            with self.subTest(what):
                ended = changed(new)
                self.assertEqual(ended.status, 1, ended.out)
                self.assertIn('NOT intact', ended.out)
        # Without a daemon an end that is missing is seen by who has noted the head.
        self.airlock('down')
        self.assertEqual(changed(lines[:-1], self.folder).status, 0)
        self.assertEqual(changed(lines[:-1], self.folder, '--head', head).status, 1)
        self.assertEqual(changed(lines, self.folder, '--head', head).status, 0, 'control')
        self.expect_error(self.verify(self.folder, '--head', 'x'), USAGE, 'NUMBER:HASH')

    def test_a_folder_that_cannot_be(self):
        self.write(self.dir + '/file', '')
        config = self.write(self.dir + '/airlock.yaml', f'audit: {{folder: {self.dir}/file/x}}\n')
        self.expect_error(self.airlock('up', '--config', config), REFUSED, 'audit log', 'Not a directory')
        config = self.write(self.dir + '/airlock.yaml', 'audit: {argv: full}\n')
        self.assertEqual(self.airlock('up', '--config', config).status, USAGE)


if __name__ == '__main__':
    main()
