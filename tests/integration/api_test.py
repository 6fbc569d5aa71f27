"""The HTTP API from outside: who may use it, contexts, programs buffered and streamed, limits."""

import base64
import json
import os
import signal
import socket
import unittest

from api_client import PORT, SECRETS, ApiCase, events, sse_events
from harness import CANARY, eventually, main, members, namespace, processes
from network import PYTHON, own_network


def setUpModule():
    own_network()


def raw(request, shut=False):
    """What the server answers to these very bytes, until it closes."""
    with socket.create_connection(('127.0.0.1', PORT), 60) as connection:
        connection.sendall(request)
        if shut:
            connection.shutdown(socket.SHUT_WR)
        answer = b''
        while block := connection.recv(65536):
            answer += block
    return answer


class WhereItRuns(ApiCase):

    def test_service_of_the_control_context(self):
        self.serve_api()
        service = self.service('airlock-api')
        self.assertEqual((service['state'], service['ports'][0]['port']), ('ready', 8080))
        self.assertTrue(61184 <= service['uid'] <= 65519, service)
        pid = self.pid_of_service('airlock-api')
        self.assertEqual(namespace(pid), self.namespace_of('control'))
        with open(f'/proc/{pid}/status') as file:
            status = file.read()
        for name in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb'):
            self.assertRegex(status, rf'(?m)^{name}:\t0+$')
        # Nobody of a context sees it, and killing all it can leaves it alone.
        self.exec(['sh', '-c', 'kill -9 -1; pkill -9 airlock-api; true'])
        self.assertEqual(self.expect(200, 'GET', '/health')['status'], 'ok')
        self.assertEqual(self.pid_of_service('airlock-api'), pid)

    def test_its_port_is_nobody_elses(self):
        self.serve_api()
        bind = 'import socket; s = socket.socket(); s.bind(("127.0.0.1", %d))'
        self.assertIn('Address already in use', self.exec([PYTHON, '-c', bind % PORT])['stderr'])
        self.assertEqual(self.exec([PYTHON, '-c', bind % 8081])['exitCode'], 0, 'control')

    def test_it_may_not_end_the_daemon(self):
        self.serve_api()
        pid = self.pid_of_service('airlock-api')
        # Its own door, used as its own user from its own context.
        ask = ('import socket, struct, sys\n'
               's = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n'
               'for verb in ("info", "shutdown"):\n'
               '    text = (\'{"verb": "%s"}\' % verb).encode()\n'
               '    s.sendall(struct.pack("<IHHI", len(text) + 4, 30, 1, 0) + struct.pack("<I", len(text)) + text)\n'
               '    size, _, _, _ = struct.unpack("<IHHI", s.recv(12)); print(s.recv(size, socket.MSG_WAITALL)[4:])\n')
        uid = self.service('airlock-api')['uid']
        door = self.runtime + '/control.sock'
        inside = ['nsenter', '-t', str(pid), '-p', '-m', 'setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups',
                  PYTHON, '-c', ask, door]
        told = self.run_program(inside).out.splitlines()
        self.assertIn('"ok":true', told[0], 'control: it may ask')
        self.assertIn('not for the API', told[1])
        as_root = self.run_program(inside[:6] + inside[9:])
        self.assertNotEqual(as_root.status, 0, 'root of the control context is not the API')
        self.assertEqual(self.expect(200, 'GET', '/health')['status'], 'ok')

    def test_killed_and_back_with_what_runs(self):
        self.serve_api()
        pid = self.pid_of_service('airlock-api')
        with self.stream('/api/v1/contexts/user/exec',
                         {'command': 'echo before; read line; echo $line; exit 7', 'stdin': 'open'}) as response:
            start = next(e for e in events(response) if e['type'] == 'stdout')
            self.assertEqual(start['text'], 'before\n')
            running = self.expect(200, 'GET', '/api/v1/contexts/user/execs')['items'][0]
            os.kill(pid, signal.SIGKILL)
        # No connection is refused meanwhile.
        again = self.expect(200, 'GET', '/api/v1/execs/' + running['id'])
        self.assertEqual((again['status'], again['pid']), ('running', running['pid']))
        self.assertNotEqual(self.pid_of_service('airlock-api'), pid)
        self.expect(200, 'POST', f'/api/v1/execs/{running["id"]}/stdin?close=true', b'after\n')
        ended = self.expect(200, 'GET', f'/api/v1/execs/{running["id"]}?waitMs=60000')
        self.assertEqual((ended['status'], ended['exitCode']), ('exited', 7))
        output = self.expect(200, 'GET', f'/api/v1/execs/{running["id"]}/output')
        self.assertEqual(output['stdout'], 'before\nafter\n')


class WhoMayAsk(ApiCase):

    def test_tokens_and_scopes(self):
        self.serve_api()
        for path in ('/health', '/ready', '/metrics'):
            self.assertEqual(self.request('GET', path, who=None).status, 200, path)
        for headers in ({}, {'Authorization': 'Bearer wrong'}, {'Authorization': 'Basic ' + SECRETS['admin']}):
            answer = self.refused(401, 'unauthorized', 'GET', '/api/v1/info', who=None, headers=headers)
            self.assertEqual(answer.headers['WWW-Authenticate'], 'Bearer')
        self.refused(401, 'unauthorized', 'GET', '/api/v1/nothing', who=None)
        self.refused(404, 'not-found', 'GET', '/api/v1/nothing')
        self.refused(405, 'method-not-allowed', 'PUT', '/api/v1/contexts')
        run = ('POST', '/api/v1/contexts/user/exec', {'argv': ['true']})
        self.expect(200, 'GET', '/api/v1/contexts', who='read')
        self.refused(403, 'forbidden-scope', *run, who='read')
        self.expect(200, *run, who='exec')
        self.refused(403, 'forbidden-scope', 'POST', '/api/v1/contexts', {'name': 'other'}, who='exec')
        self.expect(200, *run, who='only-user')
        self.refused(403, 'forbidden-scope', 'POST', '/api/v1/contexts/platform/exec', {'argv': ['true']},
                     who='only-user')
        listed = self.expect(200, 'GET', '/api/v1/contexts', who='only-user')['items']
        self.assertEqual([each['name'] for each in listed], ['user'])
        # Of an exec of another context it learns nothing, not even its output.
        other = self.exec(['echo', 'secret'], context='platform')['id']
        for path in ('', '/output'):
            self.refused(403, 'forbidden-scope', 'GET', f'/api/v1/execs/{other}{path}', who='only-user')

    def test_tokens_are_read_again_when_the_file_changes(self):
        self.serve_api()
        self.expect(200, 'GET', '/api/v1/info', who='read')
        from api_client import TOKENS
        self.write_tokens([each for each in TOKENS if each['name'] != 'read'])
        eventually(lambda: self.request('GET', '/api/v1/info', who='read').status == 401, 'it is gone')
        self.expect(200, 'GET', '/api/v1/info', who='admin')
        self.write(self.tokens_folder + '/tokens.json', '{"tokens": [{"name": "broken"}]}', 0o600)
        self.write_tokens(TOKENS)
        eventually(lambda: self.request('GET', '/api/v1/info', who='read').status == 200, 'it is back')

    def test_tokens_file_is_hidden_from_contexts(self):
        self.serve_api()
        look = f'cat {self.tokens_folder}/tokens.json'
        self.assertIn('sha256', self.run_program(['sh', '-c', look]).out, 'control')
        seen = self.exec(look)
        self.assertNotEqual(seen['exitCode'], 0)
        self.assertIn('No such file', seen['stderr'])

    def test_host_and_origin(self):
        self.serve_api({'hosts': ['api.example'], 'origins': ['https://app.example']})
        for host in ('localhost', '127.0.0.1:8080', '[::1]:8080', 'api.example:8080', 'API.example'):
            self.expect(200, 'GET', '/api/v1/info', headers={'Host': host})
        self.refused(403, 'forbidden-host', 'GET', '/api/v1/info', headers={'Host': 'evil.example'})
        self.refused(403, 'forbidden-host', 'GET', '/api/v1/info', headers={'Origin': 'https://evil.example'})
        self.refused(403, 'forbidden-host', 'GET', '/api/v1/info', headers={'Origin': 'null'})
        page = {'Origin': 'https://app.example'}
        answer = self.request('GET', '/api/v1/info', headers=page)
        self.assertEqual((answer.status, answer.headers['Access-Control-Allow-Origin']), (200, page['Origin']))
        asks = {**page, 'Access-Control-Request-Method': 'POST'}
        answer = self.request('OPTIONS', '/api/v1/contexts/user/exec', who=None, headers=asks)
        self.assertEqual((answer.status, answer.headers['Access-Control-Allow-Origin']), (204, page['Origin']))
        self.assertIsNone(self.request('GET', '/api/v1/info').headers['Access-Control-Allow-Origin'], 'control')


class Contexts(ApiCase):

    def test_life_of_a_context(self):
        self.serve_api()
        spec = {'name': 'work', 'cwd': self.work, 'env': {'A': '1', 'B': 'two words'}}
        made = self.expect(201, 'POST', '/api/v1/contexts', spec)
        self.assertEqual((made['name'], made['isolation'], sorted(made['envNames'])), ('work', 'secure', ['A', 'B']))
        self.refused(409, 'context-exists', 'POST', '/api/v1/contexts', spec)
        self.assertEqual(self.exec('echo "$A $B"; pwd', 'work')['stdout'], f'1 two words\n{self.work}\n')
        self.expect(200, 'PATCH', '/api/v1/contexts/work', {'env': {'A': None, 'C': '3'}, 'cwd': '/tmp'})
        self.assertEqual(self.exec('echo "$A,$B,$C"; pwd', 'work')['stdout'], ',two words,3\n/tmp\n')
        self.assertEqual(self.expect(200, 'GET', '/api/v1/contexts/work')['cwd'], '/tmp')
        self.assertEqual(self.expect(200, 'DELETE', '/api/v1/contexts/work'), {'survivors': 0})
        for method in ('GET', 'DELETE'):
            self.refused(404, 'context-not-found', method, '/api/v1/contexts/work')
        self.refused(404, 'context-not-found', 'POST', '/api/v1/contexts/work/exec', {'argv': ['true']})

    def test_what_is_wrong_is_told_by_field(self):
        self.serve_api()
        answer = self.refused(400, 'invalid-request', 'POST', '/api/v1/contexts',
                              {'name': 7, 'colour': 'red', 'env': {'A=B': 'x'}, 'cwd': CANARY + '\0'})
        pointers = {each['pointer'] for each in answer.json['errors']}
        self.assertEqual(pointers, {'/name', '/colour', '/env', '/cwd'})
        self.assertNotIn(CANARY, answer.body.decode())
        self.refused(400, 'invalid-request', 'POST', '/api/v1/contexts', {'name': '../etc'})
        self.refused(400, 'invalid-request', 'POST', '/api/v1/contexts', {})

    def test_a_destroyed_context_ends_its_execs(self):
        self.serve_api()
        self.expect(201, 'POST', '/api/v1/contexts', {'name': 'work', 'cwd': self.work})
        with self.stream('/api/v1/contexts/work/exec', {'command': 'echo there; sleep 1000'}) as response:
            stream = events(response)
            self.assertEqual([next(stream)['type'], next(stream)['text']], ['start', 'there\n'])
            self.expect(200, 'DELETE', '/api/v1/contexts/work')
            last = list(stream)
        self.assertEqual([(each['type'], each['status']) for each in last], [('exit', 'lost')])


class Buffered(ApiCase):

    def test_results(self):
        self.serve_api()
        ended = self.exec('echo out; echo err >&2; exit 3')
        self.assertEqual((ended['stdout'], ended['stderr'], ended['exitCode'], ended['signal'], ended['timedOut'],
                          ended['status'], ended['success']), ('out\n', 'err\n', 3, None, False, 'exited', False))
        self.assertIsInstance(ended['durationMs'], int)
        self.assertTrue(self.exec(['true'])['success'])
        killed = self.exec('kill -TERM $$')
        self.assertEqual((killed['exitCode'], killed['signal'], killed['exitStatus'], killed['status']),
                         (None, 'SIGTERM', 143, 'signaled'))
        late = self.exec('echo partial; sleep 1000', timeoutMs=300, graceMs=100)
        self.assertEqual((late['stdout'], late['timedOut'], late['status']), ('partial\n', True, 'timed_out'))
        missing = self.exec(['no-such-program'])
        self.assertEqual((missing['exitCode'], missing['status'], missing['error']['errno']), (127, 'failed', 'ENOENT'))
        self.assertEqual(self.exec(['/etc/passwd'])['exitCode'], 126)

    def test_input_env_and_cwd(self):
        self.serve_api()
        self.assertEqual(self.exec('cat')['stdout'], '')
        self.assertEqual(self.exec(['wc', '-c'], stdin={'text': 'abc'})['stdout'], '3\n')
        data = bytes(range(256)) * 1000
        summed = self.exec(['sha256sum'], stdin={'base64': base64.b64encode(data).decode()})
        import hashlib
        self.assertEqual(summed['stdout'].split()[0], hashlib.sha256(data).hexdigest())
        shown = self.exec('echo $MARK; pwd', env={'MARK': 'x y'}, cwd='/tmp')
        self.assertEqual(shown['stdout'], 'x y\n/tmp\n')
        self.assertEqual(self.exec('echo "[$MARK]"')['stdout'], '[]\n')
        self.assertNotIn(CANARY, self.exec('env')['stdout'])

    def test_the_end_of_the_input_reaches_the_program(self):
        self.serve_api()
        running = self.exec(['cat'], stdin='open', yieldMs=0)
        self.assertGreater(running['pid'], 0)
        path = '/api/v1/execs/' + running['id']
        self.expect(200, 'POST', path + '/stdin', b'some ')
        self.expect(200, 'POST', path + '/stdin?close=true', b'')
        self.assertEqual(self.expect(200, 'GET', path + '?waitMs=60000')['exitCode'], 0)
        self.assertEqual(self.expect(200, 'GET', path + '/output')['stdout'], 'some ')

    def test_output_of_any_bytes(self):
        self.serve_api()
        binary = self.exec(r"printf 'a\0b\377'")
        self.assertEqual((binary['stdoutEncoding'], base64.b64decode(binary['stdout'])), ('base64', b'a\0b\xff'))
        self.assertEqual(self.exec(r"printf 'a\0b'")['stdout'], 'a\0b')
        self.assertEqual(self.exec("printf 'no newline \U0001f4a5'")['stdout'], 'no newline \U0001f4a5')

    def test_large_output_is_cut_in_the_middle_and_counted(self):
        self.serve_api()
        ended = self.exec('echo head; yes é | tr -d "\\n" | head -c 50000000; echo tail', output={'maxBytes': 10000})
        self.assertEqual((ended['stdoutBytes'], ended['stdoutTruncated']), (50000010, True))
        self.assertTrue(ended['stdout'].startswith('head\n') and ended['stdout'].endswith('tail\n'))
        self.assertEqual(ended['stdoutOmitted']['bytes'] + len(ended['stdout'].encode()), 50000010)

    def test_what_stays_in_the_background_does_not_delay(self):
        self.serve_api()
        ended = self.exec('sleep 1000 & echo started')
        self.assertEqual((ended['stdout'], ended['exitCode']), ('started\n', 0))
        pid, = (each['pid'] for each in ended['background'])
        # The shell's child is there at once; it becomes sleep whenever it is its turn.
        eventually(lambda: self.exec(['ps', '-o', 'args=', '-p', str(pid)])['stdout'] == 'sleep 1000\n', 'it goes on')

    def test_yield_and_wait(self):
        self.serve_api()
        running = self.exec('echo begun; read line; echo $line', stdin='open', yieldMs=0)
        self.assertEqual((running['status'], running['exitCode']), ('running', None))
        path = '/api/v1/execs/' + running['id']
        self.assertEqual(self.expect(200, 'GET', path + '?waitMs=1')['status'], 'running')
        self.expect(200, 'POST', path + '/stdin', b'the line\n')
        self.assertEqual(self.expect(200, 'GET', path + '?waitMs=60000')['exitCode'], 0)
        self.assertEqual(self.expect(200, 'GET', path + '/output')['stdout'], 'begun\nthe line\n')
        self.refused(409, 'exec-ended', 'POST', path + '/stdin', b'x')
        self.refused(409, 'exec-ended', 'POST', path + '/signal', {'signal': 'SIGTERM'})
        self.assertEqual(self.request('DELETE', path).status, 204)
        self.refused(404, 'exec-not-found', 'GET', path)

    def test_a_client_that_leaves_ends_the_program(self):
        self.serve_api()
        for onwards in (False, True):
            mark = f'100{int(onwards)}'
            body = {'argv': ['sleep', mark], 'onDisconnect': 'detach' if onwards else 'kill'}
            with self.connection() as connection:
                connection.request('POST', '/api/v1/contexts/user/exec', json.dumps(body),
                                   self.headers(**{'Content-Type': 'application/json'}))
                eventually(lambda: f'sleep {mark}' in self.exec(['ps', 'aux'])['stdout'], 'it runs')
            if not onwards:
                eventually(lambda: f'sleep {mark}' not in self.exec(['ps', 'aux'])['stdout'], 'it is killed')
        self.assertIn('sleep 1001', self.exec(['ps', 'aux'])['stdout'])


class Streamed(ApiCase):

    def test_ndjson_and_sse(self):
        self.serve_api()
        body = {'command': 'echo out; echo err >&2; exit 5'}
        with self.stream('/api/v1/contexts/user/exec', body) as response:
            self.assertEqual(response.headers['Content-Type'], 'application/x-ndjson')
            got = list(events(response))
        self.assertEqual(got[0]['type'], 'start')
        self.assertEqual({e['type']: e.get('text') for e in got[1:-1]}, {'stdout': 'out\n', 'stderr': 'err\n'})
        self.assertEqual((got[-1]['type'], got[-1]['exitCode']), ('exit', 5))
        with self.stream('/api/v1/contexts/user/exec', body, accept='text/event-stream') as response:
            got = list(sse_events(response))
        self.assertEqual([got[0][0], got[-1][0]], ['start', 'exit'])
        self.assertEqual({name: data['text'] for name, data, _ in got[1:-1]}, {'stdout': 'out\n', 'stderr': 'err\n'})
        self.assertEqual((got[-1][1]['exitCode'], got[-1][2]), (5, 'o4.e4'))
        with self.stream('/api/v1/contexts/user/exec', {'argv': ['no-such']}) as response:
            got = list(events(response))
        self.assertEqual([e['type'] for e in got], ['start', 'stderr', 'exit'])
        self.assertEqual((got[-1]['status'], got[-1]['exitCode']), ('failed', 127))
        self.assertIn('no-such', got[1]['text'])

    def test_characters_are_never_split(self):
        self.serve_api()
        text = '你好\U0001f600' * 40000
        with self.stream('/api/v1/contexts/user/exec', {'argv': ['cat'], 'stdin': {'text': text}}) as response:
            got = [e['text'] for e in events(response) if e['type'] == 'stdout']
        self.assertEqual(''.join(got), text)
        self.assertGreater(len(got), 1)
        slow = r"printf '\xe2'; read a; printf '\x89\xa4'"
        with self.stream('/api/v1/contexts/user/exec', {'command': slow, 'stdin': 'open'}) as response:
            stream = events(response)
            exec_id = next(stream)['id']
            self.expect(200, 'POST', f'/api/v1/execs/{exec_id}/stdin', b'\n')
            self.assertEqual([e.get('text') for e in stream], ['≤', None])
        with self.stream('/api/v1/contexts/user/exec', {'command': r"printf 'a\xe2'"}) as response:
            got = [e for e in events(response) if e['type'] == 'stdout']
        self.assertEqual(b''.join(e['text'].encode() if 'text' in e else base64.b64decode(e['base64']) for e in got),
                         b'a\xe2')

    def test_a_slow_reader_stops_the_program_or_misses_some(self):
        self.serve_api()
        count = 40_000_000
        flood = f'head -c {count} /dev/zero | tr "\\0" x; echo; echo done >&2'
        for choice in ('block', 'skip'):
            path = '/api/v1/contexts/user/exec'
            with self.stream(path, {'command': flood, 'slowReader': choice}) as response:
                stream = events(response)
                exec_id = next(stream)['id']
                if choice == 'skip':  # it ends although nobody reads
                    self.assertEqual(self.expect(200, 'GET', f'/api/v1/execs/{exec_id}?waitMs=60000')['exitCode'], 0)
                pid = self.pid_of_service('airlock-api')
                with open(f'/proc/{pid}/status') as file:
                    rss = next(int(line.split()[1]) for line in file if line.startswith('VmRSS'))
                self.assertLess(rss, 100_000, 'kB; the output is not kept in memory')
                got = list(stream)
            read = sum(len(e['text']) for e in got if e['type'] == 'stdout')
            skipped = sum(e['bytes'] for e in got if e['type'] == 'notice')
            self.assertEqual(read + skipped, count + 1, choice)
            self.assertEqual(skipped > 0, choice == 'skip')
            self.assertEqual([e['type'] for e in got].count('exit'), 1)

    def test_output_from_a_cursor_on(self):
        self.serve_api()
        with self.stream('/api/v1/contexts/user/exec',
                         {'command': 'for i in 1 2 3 4 5 6 7 8 9; do echo $i; read line; done', 'stdin': 'open',
                          'onDisconnect': 'detach'}) as response:
            stream = events(response)
            exec_id = next(stream)['id']
            seen = [next(stream)]
        path = f'/api/v1/execs/{exec_id}'
        self.expect(200, 'POST', path + '/stdin?close=true', b'\n' * 9)
        with self.stream(path + '/output', accept='text/event-stream', method='GET',
                         headers={'Last-Event-ID': seen[0]['cursor']}) as response:
            rest = list(sse_events(response))
        self.assertEqual(seen[0]['text'] + ''.join(d['text'] for n, d, _ in rest if n == 'stdout'),
                         ''.join(f'{i}\n' for i in range(1, 10)))
        self.assertEqual(rest[-1][0], 'exit')
        self.refused(400, 'invalid-request', 'GET', path + '/output?since=o99999.e0')

    def test_signals(self):
        self.serve_api()
        for wanted, scope in (('SIGINT', 'leader'), (15, 'group'), ('KILL', 'group')):
            with self.stream('/api/v1/contexts/user/exec', {'argv': ['sleep', '1000']}) as response:
                stream = events(response)
                exec_id = next(stream)['id']
                answer = self.request('POST', f'/api/v1/execs/{exec_id}/signal', {'signal': wanted, 'scope': scope})
                self.assertEqual(answer.status, 204)
                last = list(stream)[-1]
            expected = {'SIGINT': 'SIGINT', 15: 'SIGTERM', 'KILL': 'SIGKILL'}[wanted]
            self.assertEqual((last['type'], last['signal']), ('exit', expected))
        self.refused(400, 'invalid-request', 'POST', f'/api/v1/execs/{exec_id}/signal', {'signal': 'SIGNOPE'})

    def test_a_terminal(self):
        self.serve_api()
        body = {'command': 'tty; stty size; read a; stty size; exit 4', 'tty': {'cols': 100, 'rows': 30}}
        with self.stream('/api/v1/contexts/user/exec', body) as response:
            stream = events(response)
            exec_id = next(stream)['id']
            text = ''
            while '30 100' not in text:
                text += next(stream)['text']
            self.assertIn('/dev/pts/', text)
            self.assertEqual(self.request('POST', f'/api/v1/execs/{exec_id}/resize', {'cols': 90, 'rows': 20}).status,
                             204)
            self.expect(200, 'POST', f'/api/v1/execs/{exec_id}/stdin', b'go\n')
            rest = list(stream)
        self.assertIn('20 90', ''.join(e['text'] for e in rest if e['type'] == 'stdout'))
        self.assertEqual(rest[-1]['exitCode'], 4)
        self.refused(409, 'exec-ended', 'POST', f'/api/v1/execs/{exec_id}/resize', {'cols': 1, 'rows': 1})


class Limits(ApiCase):

    def test_sizes(self):
        self.serve_api()
        run = '/api/v1/contexts/user/exec'
        self.refused(413, 'payload-too-large', 'POST', run, b'x' * (9 << 20), headers={'Content-Type': 'application/json'})
        self.refused(431, 'headers-too-large', 'GET', '/api/v1/info', headers={'X-Long': 'x' * 20000})
        self.refused(400, 'invalid-request', 'POST', run, b'[' * 100, headers={'Content-Type': 'application/json'})
        deep = b'{"argv":' * 20 + b'1' + b'}' * 20
        self.assertIn('deeper', self.refused(400, 'invalid-request', 'POST', run, deep, headers={
            'Content-Type': 'application/json'}).json['detail'])
        self.refused(415, 'unsupported-media-type', 'POST', run, b'{}', headers={'Content-Type': 'text/plain'})
        self.refused(400, 'invalid-request', 'POST', run, {'argv': ['true'], 'timeout': 3})
        long = 'x' * 100_000
        self.assertEqual(len(self.exec(['printf', '%s%s', long, long])['stdout']), 200_000, 'control')

    def test_what_is_no_http(self):
        self.serve_api()
        self.assertTrue(raw(b'hello\r\n\r\n').startswith(b'HTTP/1.1 400 '))
        bad = b'GET /%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
        self.assertTrue(raw(bad).startswith(b'HTTP/1.1 400 '))
        self.assertTrue(raw(b'GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n').startswith(b'HTTP/1.0 200 '))
        self.assertEqual(raw(b'', shut=True), b'')
        self.assertEqual(self.expect(200, 'GET', '/health')['status'], 'ok')

    def test_too_many_connections_of_one_client(self):
        self.serve_api()
        with self.connection() as working:
            working.request('GET', '/health')
            working.getresponse().read()
            idle = [socket.create_connection(('127.0.0.1', PORT)) for _ in range(520)]
            refused = [s for s in idle[511:] if s.recv(20, socket.MSG_WAITALL) == b'HTTP/1.1 429 Too Man']
            self.assertGreaterEqual(len(refused), 9)
            working.request('GET', '/health')
            self.assertEqual(working.getresponse().status, 200, 'those that are served still are')
            for each in idle:
                each.close()
        eventually(lambda: self.request('GET', '/health').status == 200, 'others are served again')

    def test_metrics(self):
        self.serve_api()
        self.exec(['true'])
        self.refused(401, 'unauthorized', 'GET', '/api/v1/info', who=None)
        text = self.request('GET', '/metrics', who=None).body.decode()
        self.assertIn('airlock_execs_total{status="exited"} 1\n', text)
        self.assertIn('airlock_http_requests_total{operation="exec",status="200"} 1\n', text)
        self.assertIn('airlock_http_refused_tokens_total 1\n', text)
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z]+="[^"]*",?)+\})? \d+(\.\d+)?)$')


if __name__ == '__main__':
    main()
