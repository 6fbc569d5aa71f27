"""Terminals and other execs over WebSocket: both framings, who may attach, and what clients do wrong."""

import base64
import json
from urllib.parse import quote

from api_client import PORT, SECRETS, ApiCase
from harness import eventually, main
from network import own_network
from web_socket import (BINARY, CLOSE, RESIZE, SIGNAL, STATUS, STDERR, STDIN, STDOUT, TEXT, Attached, Refused,
                        WebSocket)

KUBERNETES = 'v5.channel.k8s.io'


def setUpModule():
    own_network()


class AttachCase(ApiCase):

    def attach(self, path, who='admin', headers=None, client=Attached, **options):
        made = client(PORT, path, self.headers(who, **(headers or {})), **options)
        self.addCleanup(made.close)
        return made

    def terminal(self, context='user', **fields):
        return self.expect(201, 'POST', f'/api/v1/contexts/{context}/terminals', fields)

    def attach_terminal(self, terminal, query='', **options):
        return self.attach(f'/api/v1/terminals/{terminal["id"]}/attach{query}', **options)

    def refused_socket(self, status, code, path, **options):
        with self.assertRaises(Refused) as refused:
            self.attach(path, **options)
        self.assertEqual((refused.exception.status, refused.exception.code), (status, code))

    def running(self, argv_or_command, **fields):
        """An exec that goes on; its path."""
        return '/api/v1/execs/' + self.exec(argv_or_command, yieldMs=0, **fields)['id']

    def told(self, terminal):
        return self.expect(200, 'GET', f'/api/v1/terminals/{terminal["id"]}')


class Terminals(AttachCase):

    def test_a_shell_in_a_terminal(self):
        self.serve_api()
        terminal = self.terminal(cols=100, rows=30, argv=['bash', '--norc'])
        with self.attach_terminal(terminal) as screen:
            self.assertEqual(screen.protocol, 'airlock.v1')
            self.assertEqual(screen.headers['x-airlock-exec'], terminal['exec']['id'])
            self.assertEqual(screen.status('start')['tty'], True)
            screen.type('stty size; tty; echo $TERM; echo two-$((1+1))\n')
            text = screen.until('two-2')
            for part in ('30 100', '/dev/pts/', 'xterm-256color'):
                self.assertIn(part, text)
            # The size reaches the program as a signal, and Ctrl-C does.
            screen.type("""bash -c 'trap "echo now \\$(stty size)" WINCH; echo armed-$((1+1)); while :; do sleep 0.1; done'\n""")
            screen.until('armed-2')
            screen.send(RESIZE, {'cols': 90, 'rows': 20})
            eventually(lambda: self.told(terminal)['cols'] == 90, 'the size is set')
            screen.until('now 20 90')
            screen.type('\x03')
            screen.until('^C')
            screen.type('exit 7\n')
            ended = screen.exit()
        self.assertEqual((ended['exitCode'], ended['status']), (7, 'exited'))
        self.assertEqual((self.told(terminal)['state'], self.told(terminal)['exec']['exitCode']), ('ended', 7))

    def test_escape_sequences_and_any_bytes_pass(self):
        self.serve_api()
        terminal = self.terminal(command='stty raw -echo; echo ready; head -c 512 | od -An -v -tx1 | tr -d " \\n"')
        every = bytes(range(256)) + b'\x1b[A\x1b[200~paste\x1b[201~\x1b[<0;1;1M'.ljust(256, b'.')
        with self.attach_terminal(terminal) as screen:
            screen.until('ready')
            screen.send(STDIN, every)
            screen.until(every.hex())
            self.assertEqual(screen.exit()['exitCode'], 0)

    def test_states_and_the_end_of_the_input(self):
        self.serve_api()
        terminal = self.terminal(argv=['cat'])
        eventually(lambda: self.told(terminal)['state'] == 'detached', 'it runs and nobody is there')
        self.assertLessEqual(self.told(terminal)['idleLeftMs'], 30 * 60 * 1000)
        with self.attach_terminal(terminal) as writer:
            self.assertEqual(writer.state(state='attached', hasWriter=True)['attached'], 1)
            self.assertIsNone(self.told(terminal)['idleLeftMs'])
            with self.attach_terminal(terminal, '?role=viewer', who='read') as viewer:
                writer.state(attached=2)
                writer.type('hello\n')
                viewer.until('hello\r\nhello\r\n')
            writer.state(attached=1)
            writer.send(CLOSE, bytes([STDIN]))
            self.assertEqual(writer.exit()['exitCode'], 0)
        listed = self.expect(200, 'GET', '/api/v1/contexts/user/terminals')['items']
        self.assertEqual([(each['id'], each['state']) for each in listed], [(terminal['id'], 'ended')])
        self.assertEqual(self.expect(200, 'GET', '/api/v1/contexts/platform/terminals')['items'], [])

    def test_it_lives_on_and_is_attached_again_where_it_was(self):
        self.serve_api()
        terminal = self.terminal(command='stty -echo; for i in $(seq 1 9); do echo line $i; read go; done; exit 3')
        first = self.attach_terminal(terminal)
        first.until('line 1')
        first.type('\n')
        first.until('line 2\r\n')
        first.drop()
        eventually(lambda: self.told(terminal)['state'] == 'detached', 'it is noticed')
        with self.attach_terminal(terminal, '?since=' + first.cursor,
                                  since=(first.at[STDOUT], first.at[STDERR])) as again:
            again.type('\n' * 8)
            ended = again.exit()
        self.assertEqual(ended['exitCode'], 3)
        whole = first.output[STDOUT] + again.output[STDOUT]
        self.assertEqual(whole.decode(), ''.join(f'line {i}\r\n' for i in range(1, 10)))
        self.refused_socket(400, 'invalid-request', f'/api/v1/terminals/{terminal["id"]}/attach?since=o9999.e0')
        with self.attach_terminal(terminal) as later:  # of what has ended, too
            self.assertEqual(later.exit()['exitCode'], 3)
            self.assertEqual(later.output[STDOUT], whole)

    def test_takeover(self):
        self.serve_api()
        terminal = self.terminal(argv=['cat'])
        old = self.attach_terminal(terminal)
        old.type('one\n')
        old.until('one\r\none\r\n')
        self.refused_socket(409, 'terminal-busy', f'/api/v1/terminals/{terminal["id"]}/attach')
        new = self.attach_terminal(terminal, '?takeover=1')
        while old.step():
            pass
        self.assertEqual(old.closed[0], 4001)
        new.type('two\n')
        self.assertIn('one\r\n', new.until('two\r\ntwo\r\n'), 'what was shown before')
        old.drop()

    def test_reset(self):
        self.serve_api()
        terminal = self.terminal(argv=['bash', '--norc'], env={'MARK': 'kept'})
        with self.attach_terminal(terminal) as screen:
            screen.send(RESIZE, {'cols': 77, 'rows': 11})
            screen.type('MARK=lost; stty -icanon; echo first-$MARK; sleep 1000\n')
            screen.until('first-lost')
            eventually(lambda: self.told(terminal)['cols'] == 77, 'the size is set')
            before = self.told(terminal)['exec']
            after = self.expect(200, 'POST', f'/api/v1/terminals/{terminal["id"]}/reset')['exec']
            self.assertNotEqual(after['id'], before['id'])
            screen.output[STDOUT], screen.at[STDOUT] = b'', None
            while screen.at[STDOUT] is None:  # what was on its way
                channel, payload = screen.receive()
                if channel == STATUS and json.loads(payload).get('id') == after['id']:
                    screen.at[STDOUT] = 0
            screen.type('echo again-$MARK; stty size\n')
            screen.until('11 77')
            self.assertIn('again-kept', screen.output[STDOUT].decode())
            old = self.expect(200, 'GET', f'/api/v1/execs/{before["id"]}?waitMs=60000')
            self.assertEqual(old['signal'], 'SIGKILL')
            self.assertNotIn('sleep 1000', self.exec(['ps', 'aux'])['stdout'])

    def test_timers(self):
        self.serve_api()
        # The terminals end when their time is over; those that are looked at only by the one timer.
        lonely = self.terminal(argv=['cat'], idleTimeoutMs=300)
        short = self.terminal(argv=['cat'], timeoutMs=300, idleTimeoutMs=0)
        watched = self.terminal(argv=['cat'], idleTimeoutMs=300)
        screen = self.attach_terminal(watched)
        screen.status('start')
        self.assertEqual(self.wait_for(lonely)['signal'], 'SIGHUP')
        self.assertTrue(self.wait_for(short)['timedOut'])
        screen.type('still here\n')
        screen.until('still here\r\nstill here')
        screen.drop()
        self.assertEqual(self.wait_for(watched)['signal'], 'SIGHUP')

    def wait_for(self, terminal):
        return self.expect(200, 'GET', f'/api/v1/execs/{terminal["exec"]["id"]}?waitMs=60000')

    def test_the_end_of_one(self):
        self.serve_api()
        stubborn = self.terminal(command='trap "" HUP; echo ready; while :; do sleep 0.1; done')
        with self.attach_terminal(stubborn) as screen:
            screen.until('ready')
            self.assertEqual(self.request('DELETE', f'/api/v1/terminals/{stubborn["id"]}').status, 204)
            self.assertEqual(screen.exit()['signal'], 'SIGKILL')
        self.refused(404, 'terminal-not-found', 'GET', '/api/v1/terminals/term_0')
        self.refused(404, 'context-not-found', 'POST', '/api/v1/contexts/nowhere/terminals', {})
        self.refused(400, 'invalid-request', 'POST', '/api/v1/contexts/user/terminals', {'cols': 0})


class Execs(AttachCase):

    def test_pipes(self):
        self.serve_api()
        path = self.running('cat; echo done >&2; exit 5', stdin='open')
        with self.attach(path + '/attach') as attached:
            blob = bytes(range(256)) * 200
            for _ in range(20):
                attached.send(STDIN, blob)
            attached.send(CLOSE, bytes([STDIN]))
            ended = attached.exit()
        self.assertEqual((ended['exitCode'], ended['cursor']), (5, f'o{len(blob) * 20}.e5'))
        self.assertEqual(attached.output, {STDOUT: blob * 20, STDERR: b'done\n'})

    def test_signals(self):
        self.serve_api()
        path = self.running(['sleep', '1000'])
        with self.attach(path + '/attach') as attached:
            attached.status('start')
            attached.send(SIGNAL, {'signal': 'SIGINT'})
            self.assertEqual(attached.exit()['signal'], 'SIGINT')

    def test_a_slow_viewer_never_blocks_the_program(self):
        self.serve_api()
        count = 40_000_000
        # It begins when the client is there, and ends although the client does not read.
        flood = f'read go; head -c {count} /dev/zero | tr "\\0" x; echo done >&2'
        for query in ('', '?slowReader=block'):
            path = self.running(flood, stdin='open')
            with self.attach(path + '/attach' + query, receive_buffer=65536) as slow:
                slow.status('start')
                slow.type('go\n')
                if not query:
                    self.assertEqual(self.expect(200, 'GET', path + '?waitMs=60000')['exitCode'], 0)
                with open(f'/proc/{self.pid_of_service("airlock-api")}/status') as file:
                    rss = next(int(line.split()[1]) for line in file if line.startswith('VmRSS'))
                self.assertLess(rss, 100_000, 'kB; the output is not kept in memory')
                got = slow.exit()
            self.assertEqual(slow.at[STDOUT], count)
            self.assertEqual(len(slow.output[STDOUT]) == count, bool(query), 'all of it only if asked for')
            self.assertEqual(got['exitCode'], 0)

    def test_a_program_that_does_not_read(self):
        self.serve_api()
        path = self.running(['sleep', '1000'], stdin='open')
        attached = self.attach(path + '/attach')
        attached.socket.settimeout(2)
        sent = 0
        with self.assertRaises(TimeoutError):  # some is taken, then nothing more is read
            while sent < 100_000_000:
                attached.send(STDIN, b'x' * 60000)
                sent += 60000
        self.assertGreater(sent, 100_000)
        attached.drop()
        eventually(lambda: self.is_free(path), 'its place is free again')
        self.request('POST', path + '/signal', {'signal': 'SIGKILL'})


    def is_free(self, path):
        try:
            with self.attach(path + '/attach') as attached:
                return attached.status('start')
        except Refused as refused:
            self.assertEqual(refused.code, 'terminal-busy')
            return False


class WhoMayAttach(AttachCase):

    def test_tokens_and_origins(self):
        self.serve_api({'origins': ['https://app.example']})
        path = self.running(['cat'], stdin='open') + '/attach'
        self.refused_socket(401, 'unauthorized', path, who=None)
        self.refused_socket(403, 'forbidden-scope', path, who='read')
        self.attach(path + '?role=viewer', who='read').status('start')
        other = '/api/v1/execs/' + self.exec(['cat'], context='platform', stdin='open', yieldMs=0)['id'] + '/attach'
        self.refused_socket(403, 'forbidden-scope', other, who='only-user')
        self.refused_socket(403, 'forbidden-host', path, headers={'Origin': 'https://evil.example'})
        self.refused_socket(403, 'forbidden-host', path, headers={'Origin': 'null'})
        self.attach(path, headers={'Origin': 'https://app.example'}).status('start')
        # As browsers have to: they cannot set headers.
        coded = base64.urlsafe_b64encode(SECRETS['read'].encode()).decode().rstrip('=')
        bearer = 'base64url.bearer.authorization.k8s.io.' + coded
        browser = self.attach(path + '?role=viewer', who=None, protocols=('airlock.v1', bearer))
        self.assertEqual(browser.protocol, 'airlock.v1', 'the token is not sent back')
        self.refused_socket(401, 'unauthorized', path, who=None, protocols=('airlock.v1', bearer[:-2]))

    def test_what_is_no_websocket(self):
        self.serve_api()
        path = self.running(['cat'], stdin='open') + '/attach'
        self.refused(426, 'upgrade-required', 'GET', path)
        self.refused_socket(400, 'invalid-request', path, protocols=())
        self.refused_socket(400, 'invalid-request', path, protocols=('other.v1',))
        self.refused_socket(400, 'invalid-request', path + '?role=owner')
        self.refused_socket(404, 'exec-not-found', '/api/v1/execs/exec_0/attach')
        # What comes with the request could be taken for a message that nobody has checked.
        self.refused_socket(426, 'upgrade-required', path, headers={'X-More': '\r\n\r\nx'})

    def test_what_clients_do_wrong(self):
        self.serve_api()
        path = self.running(['cat'], stdin='open') + '/attach'
        wrongs = {
            'text': (1003, lambda s: s.frame(TEXT, b'\0hello')),
            'no channel': (1002, lambda s: s.frame(BINARY, b'')),
            'an unknown channel': (1002, lambda s: s.send(9, b'x')),
            'a channel to read': (1002, lambda s: s.send(STDOUT, b'x')),
            'no JSON': (1002, lambda s: s.send(RESIZE, b'{"cols":')),
            'a size that is none': (1002, lambda s: s.send(RESIZE, {'cols': 0, 'rows': 1})),
            'no signal': (1002, lambda s: s.send(SIGNAL, {'signal': 'SIGNOPE'})),
            'too long': (1009, lambda s: s.send(STDIN, b'x' * 300_000)),
            'not masked': (1002, lambda s: s.frame(BINARY, b'\0x', masked=False)),
            'a reserved opcode': (1002, lambda s: s.frame(3, b'x')),
        }
        for name, (code, act) in wrongs.items():
            with self.attach(path) as client:
                client.status('start')
                act(client)
                while client.step():
                    pass
                self.assertEqual(client.closed and client.closed[0], code, name)
        with self.attach(path + '?role=viewer') as viewer:
            viewer.type('x')
            while viewer.step():
                pass
            self.assertEqual(viewer.closed[0], 1008)
        with self.attach(path) as client:  # control: in two pieces, and the program never noticed
            client.frame(BINARY, b'\0right ', final=False)
            client.frame(0, b'and whole\n')
            client.until('right and whole\n')
            self.assertEqual(client.output[STDOUT], b'right and whole\n')


class Kubernetes(AttachCase):

    def kubernetes(self, argv, pod='user', headers=None, **flags):
        words = ''.join('&command=' + quote(word, safe='') for word in argv)
        flags = ''.join(f'&{name}=true' for name in flags)
        return self.attach(f'/api/v1/namespaces/default/pods/{pod}/exec?container=x{words}{flags}',
                           client=WebSocket, protocols=(KUBERNETES,), headers=headers)

    def collect(self, client):
        got = {STDOUT: b'', STDERR: b'', STATUS: b''}
        while (message := client.receive()):
            got[message[0]] += message[1]
        self.assertEqual(client.closed[0], 1000)
        return got[STDOUT], got[STDERR], json.loads(got[STATUS])

    def test_streams_and_status(self):
        self.serve_api()
        client = self.kubernetes(['sh', '-c', 'cat; echo err >&2; exit 3'], stdin=1, stdout=1, stderr=1)
        self.assertEqual(client.protocol, KUBERNETES)
        client.send(STDIN, b'some input')
        client.send(CLOSE, bytes([STDIN]))
        out, err, status = self.collect(client)
        self.assertEqual((out, err, status['status'], status['reason']), (b'some input', b'err\n', 'Failure',
                                                                         'NonZeroExitCode'))
        self.assertEqual(status['details']['causes'], [{'reason': 'ExitCode', 'message': '3'}])
        self.assertEqual(self.collect(self.kubernetes(['true'], stdout=1))[2]['status'], 'Success')
        out, err, _ = self.collect(self.kubernetes(['sh', '-c', 'echo out; echo err >&2'], stdout=1))
        self.assertEqual((out, err), (b'out\n', b''), 'stderr was not asked for')
        self.assertEqual(self.collect(self.kubernetes(['no-such'], stderr=1))[2]['details']['causes'][0]['message'],
                         '127')
        whole = self.collect(self.kubernetes(['head', '-c', '30000000', '/dev/zero'], stdout=1))[0]
        self.assertEqual(len(whole), 30_000_000, 'nothing is left out')

    def test_a_terminal(self):
        self.serve_api()
        client = self.kubernetes(['bash', '--norc'], stdin=1, stdout=1, tty=1)
        client.send(RESIZE, {'Width': 91, 'Height': 21})
        client.send(RESIZE, {'Width': 0, 'Height': 0})
        exec_id = client.headers['x-airlock-exec']
        client.send(STDIN, b'stty size; exit 4\n')
        out, _, status = self.collect(client)
        self.assertIn(b'21 91', out)
        self.assertEqual(status['details']['causes'][0]['message'], '4')
        self.assertEqual(self.expect(200, 'GET', '/api/v1/execs/' + exec_id)['exitCode'], 4)

    def test_refusals(self):
        self.serve_api()
        with self.assertRaises(Refused) as refused:
            self.kubernetes(['true'], pod='nowhere')
        self.assertEqual(refused.exception.code, 'context-not-found')
        with self.assertRaises(Refused) as refused:
            self.kubernetes([])
        self.assertEqual(refused.exception.code, 'invalid-request')


if __name__ == '__main__':
    main()
