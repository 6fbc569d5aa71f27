"""The audit log of what is started over the HTTP API: one record when it starts, one when it ends, whichever way it
was asked for; who asked, and never what was typed or set."""

import glob
import json
import os
import signal
from urllib.parse import quote

from api_client import events, sse_events
from attach_test import KUBERNETES, AttachCase
from harness import CANARY, eventually, main
from network import PYTHON, own_network
from web_socket import STDIN, WebSocket

RUN = '/api/v1/contexts/user/exec'
SECRET = 'secret-' + CANARY
# A request by a context's own door.
BY_DOOR = '''
import http.client, json, socket, sys
client = http.client.HTTPConnection('localhost')
client.sock = socket.socket(socket.AF_UNIX)
client.sock.connect(sys.argv[1])
client.request('POST', '/api/v1/contexts/user/exec', json.dumps({'argv': ['true']}),
               {'Content-Type': 'application/json', 'X-Request-Id': 'door'})
print(client.getresponse().status)
'''


def setUpModule():
    own_network()


class AuditOfApi(AttachCase):

    def serve(self, **audit):
        self.serve_api(extra={'audit': {'folder': self.dir + '/audit', **audit}})

    def text(self):
        text = ''
        for path in sorted(glob.glob(self.dir + '/audit/audit.jsonl*')):
            with open(path) as file:
                text += file.read()
        return text

    def records(self, event, request):
        return [record for record in map(json.loads, self.text().splitlines())
                if record['event'] == event and record.get('requestId') == request]

    def ask_for(self, request, method, path, body=None, **options):
        """One request of this name, which must do."""
        answer = self.request(method, path, body, headers={'X-Request-Id': request}, **options)
        self.assertLess(answer.status, 300, answer.body)
        return answer.json if answer.body[:1] in (b'{', b'[') else None

    def expect_records(self, request, operation, status, program, exec_id=None, client='127.0.0.1', token='admin', context='user'):
        """Exactly one record when it started and one when it ended, both with everything. The end's."""
        end = eventually(lambda: self.records('exec.ended', request), request + ': its end')
        start = self.records('api.exec', request)
        self.assertEqual((len(start), len(end)), (1, 1), request)
        for record in (start[0], end[0]):
            told = [record.get(name) for name in ('operation', 'exec', 'client', 'token', 'context', 'program', 'job')]
            self.assertEqual(told, [operation, exec_id, client, token, context, program, start[0]['job']], request)
        self.assertEqual(start[0]['outcome'], 'run_in')
        self.assertLess(start[0]['seq'], end[0]['seq'])
        if isinstance(status, str):
            self.assertEqual(list(end[0]['status']), [status], request)
        else:
            self.assertEqual(end[0]['status'], status, request)
        self.assertGreaterEqual(end[0]['durationMs'], 0)
        return end[0]

    def expect_whole(self):
        verified = self.airlock('audit', 'verify')
        self.assertEqual(verified.status, 0, verified.out)
        self.assertNotIn(CANARY, self.text(), 'no argument, no value, no name of a file')

    def test_execs(self):
        self.serve()
        told = self.ask_for('buffered', 'POST', RUN, {'argv': ['sh', '-c', 'exit 3', SECRET], 'env': {'OTHER': SECRET}})
        end = self.expect_records('buffered', 'exec', {'exit': 3}, 'sh', told['id'])
        self.assertEqual(end['timedOut'], False)
        told = self.ask_for('text', 'POST', RUN, {'command': f'kill -9 $$ # {SECRET}', 'shell': False})
        self.expect_records('text', 'exec', {'signal': signal.SIGKILL}, 'bash', told['id'])
        for name, accept, read in (('sse', 'text/event-stream', lambda response: list(sse_events(response))[0][1]),
                                   ('ndjson', 'application/x-ndjson', lambda response: list(events(response))[0])):
            with self.stream(RUN, {'argv': ['echo', SECRET]}, accept, headers={'X-Request-Id': name}) as response:
                self.expect_records(name, 'exec', {'exit': 0}, 'echo', read(response)['id'])
        told = self.ask_for('timed', 'POST', RUN, {'argv': ['sleep', '1000'], 'timeoutMs': 50}, who='exec')
        self.assertTrue(self.expect_records('timed', 'exec', {'signal': signal.SIGTERM}, 'sleep', told['id'], token='exec')['timedOut'])
        # Once for both: the second is told of the first one's.
        for request in ('once', 'again'):
            told = self.request('POST', RUN, {'argv': ['true']}, headers={'X-Request-Id': request, 'Idempotency-Key': 'k'}).json
        self.expect_records('once', 'exec', {'exit': 0}, 'true', told['id'])
        self.assertEqual(self.records('api.exec', 'again'), [])
        self.expect_whole()

    def test_shells(self):
        self.serve()
        for name, text, status in (('first', f'echo {SECRET}', {'exit': 0}), ('ends-it', 'exit 5', {'exit': 5}),
                                   ('kills-it', 'kill -9 $$', {'signal': signal.SIGKILL})):
            told = self.ask_for(name, 'POST', RUN, {'command': text})
            self.expect_records(name, 'exec', status, '(shell default)', told['id'])
        # The shell itself has one, too, used or not yet.
        self.expect(201, 'POST', '/api/v1/contexts/user/shells', {'name': 'made'})
        shells = eventually(lambda: [record for record in map(json.loads, self.text().splitlines())
                                     if record['event'] == 'shell.started' and record['shell'] == 'made'], 'its record')
        self.assertEqual([(record['context'], record['uid']) for record in shells], [('user', os.getuid())])
        self.assertEqual(self.text().count('"shell":"default"'), 1, 'it outlives its commands')
        # Not run: the shell is busy; cancelled in its queue by a reset.
        busy = self.ask_for('busy', 'POST', RUN, {'command': 'read line', 'stdin': 'open', 'yieldMs': 0})
        answer = self.request('POST', RUN, {'command': SECRET, 'onBusy': 'fail'}, headers={'X-Request-Id': 'refused'})
        self.assertEqual(answer.status, 409)
        refused = eventually(lambda: self.records('exec.ended', 'refused'), 'its end')
        self.assertIn('busy', refused[0]['status']['failed'])
        waits = self.ask_for('waits', 'POST', RUN, {'command': SECRET, 'yieldMs': 0})
        self.assertEqual(waits['status'], 'queued')
        self.expect(200, 'POST', '/api/v1/contexts/user/shells/default:reset')
        self.expect_records('waits', 'exec', 'failed', '(shell default)', waits['id'])
        self.expect_records('busy', 'exec', {'signal': signal.SIGKILL}, '(shell default)', busy['id'])
        self.ask_for('anew', 'POST', RUN, {'command': ':'})
        eventually(lambda: self.text().count('"shell":"default"') == 2, 'another one after the reset')
        self.expect_whole()

    def test_what_cannot_be_started(self):
        self.serve()
        told = self.ask_for('missing', 'POST', RUN, {'argv': ['no-such-program', SECRET]})
        self.assertEqual(told['exitCode'], 127)
        end = self.expect_records('missing', 'exec', 'failed', 'no-such-program', told['id'])
        self.assertIn('no-such-program', end['status']['failed'])
        made = self.ask_for('terminal', 'POST', '/api/v1/contexts/user/terminals', {'argv': ['no-such-program', SECRET]})
        self.expect_records('terminal', 'createTerminal', 'failed', 'no-such-program', made['exec']['id'])
        self.expect_whole()

    def test_terminals(self):
        self.serve()
        made = self.ask_for('made', 'POST', '/api/v1/contexts/user/terminals',
                            {'argv': ['bash', '--norc'], 'env': {'OTHER': SECRET}}, who='only-user')
        with self.attach_terminal(made) as screen:
            screen.type(f'echo {SECRET}; echo armed-$((1+1))\n')
            screen.until('armed-2')
        # Its program anew: the old one ends, the new one is another request's.
        again = self.ask_for('anew', 'POST', f'/api/v1/terminals/{made["id"]}/reset')
        self.expect_records('made', 'createTerminal', {'signal': signal.SIGKILL}, 'bash', made['exec']['id'], token='only-user')
        self.assertEqual(self.records('exec.ended', 'anew'), [], 'it runs')
        with self.attach_terminal(made) as screen:
            screen.type('exit 4\n')
            self.assertEqual(screen.exit()['exitCode'], 4)
        self.expect_records('anew', 'resetTerminal', {'exit': 4}, 'bash', again['exec']['id'])
        self.expect_whole()

    def test_kubernetes(self):
        self.serve()
        path = '/api/v1/namespaces/default/pods/user/exec?stdin=true&stdout=true&stderr=true'
        words = ''.join('&command=' + quote(word) for word in ('sh', '-c', 'read line; exit 6', SECRET))
        for name, flags in (('pipes', ''), ('tty', '&tty=true')):
            client = self.attach(path + flags + words, client=WebSocket, protocols=(KUBERNETES,), headers={'X-Request-Id': name})
            client.send(STDIN, f'{SECRET}\n'.encode())
            while client.receive():
                pass
            self.expect_records(name, 'kubernetesExec', {'exit': 6}, 'sh', client.headers['x-airlock-exec'])
        self.expect_whole()

    def test_files(self):
        self.serve()
        path = f'?path={self.work}/{CANARY}'
        files = '/api/v1/contexts/user/files'
        for name, operation, method, where, body in (
                ('put', 'writeFile', 'PUT', files + path, SECRET.encode()), ('get', 'readFile', 'GET', files + path, None),
                ('list', 'listFiles', 'GET', f'{files}:list?path={self.work}', None),
                ('stat', 'statFile', 'GET', files + ':stat' + path, None), ('remove', 'removeFile', 'DELETE', files + path, None)):
            self.ask_for(name, method, where, body)
            self.expect_records(name, operation, {'exit': 0}, '(files)')
        # Whoever has as much as was promised may go: the program that works on files ends by itself.
        self.ask_for('again', 'PUT', files + path, SECRET.encode())
        for number in range(30):
            self.ask_for(f'get-{number}', 'GET', files + path)
        for number in range(30):
            self.expect_records(f'get-{number}', 'readFile', {'exit': 0}, '(files)')
        self.expect_whole()

    def test_by_a_contexts_own_door(self):
        self.serve()
        ended = self.exec_in('user', PYTHON, '-S', '-c', BY_DOOR, self.runtime + '/api.sock')
        self.assertEqual(ended.out, '200\n', ended.err)
        end = eventually(lambda: self.records('exec.ended', 'door'), 'its end')[0]
        self.assertEqual((end['client'], end['context'], end['status']), ('context user', 'user', {'exit': 0}))
        # Positive control: who did not ask the API has no such fields.
        others = eventually(lambda: [record['program'] for record in map(json.loads, self.text().splitlines())
                                     if record['event'] == 'exec.ended' and 'client' not in record], 'the one that asked')
        self.assertEqual(others, [PYTHON])

    def test_while_the_api_is_killed(self):
        self.serve()
        running = self.ask_for('kept', 'POST', RUN, {'argv': ['cat'], 'stdin': 'open', 'yieldMs': 0})
        terminal = self.ask_for('lost', 'POST', '/api/v1/contexts/platform/terminals', {'argv': ['cat']})
        os.kill(self.pid_of_service('airlock-api'), signal.SIGKILL)
        self.expect(200, 'POST', f'/api/v1/execs/{running["id"]}/stdin?close=true', b'')
        self.expect_records('kept', 'exec', {'exit': 0}, 'cat', running['id'])
        # A context that goes takes what runs there with it.
        self.assertEqual(self.records('exec.ended', 'lost'), [])
        self.expect(200, 'DELETE', '/api/v1/contexts/platform')
        self.expect_records('lost', 'createTerminal', 'lost', 'cat', terminal['exec']['id'], context='platform')
        self.expect_whole()

    def test_arguments_if_asked_for(self):
        self.serve(argv='full')
        told = self.ask_for('shown', 'POST', RUN, {'argv': ['true', 'shown'], 'env': {'OTHER': SECRET}})
        end = self.expect_records('shown', 'exec', {'exit': 0}, 'true', told['id'])
        shown = [record['argv'] for record in map(json.loads, self.text().splitlines())
                 if record['event'] == 'exec' and record['job'] == end['job']]
        self.assertEqual(shown, [['true', 'shown']])
        self.expect_whole()


if __name__ == '__main__':
    main()
