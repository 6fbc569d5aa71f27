"""From where a request comes: each context's own door to the API, and tokens that are bound to places."""

import json
import os
import signal
import unittest

from api_client import PORT, SECRETS, TOKENS, ApiCase, token
from harness import AIRLOCK, eventually, main
from network import OURS, PYTHON, Neighbour, own_network

# Sends requests over api.sock, one argument each: {"method", "path", "body", "token"}; prints [status, body] of each.
CLIENT = '''
import http.client, json, socket, sys

class Door(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(sys.argv[1])

for text in sys.argv[2:]:
    wanted = json.loads(text)
    connection = Door('localhost')
    headers = {'Content-Type': 'application/json'}
    if wanted.get('token'):
        headers['Authorization'] = 'Bearer ' + wanted['token']
    try:
        connection.request(wanted['method'], wanted['path'], json.dumps(wanted.get('body', {})), headers)
        answer = connection.getresponse()
        print(json.dumps([answer.status, answer.read().decode()]))
    except (OSError, http.client.HTTPException) as error:
        print(json.dumps([type(error).__name__, '']))
'''

# The same by TCP, one request; argv: token, address. "via PATH" passes the connection on before anything is sent.
ASK = '''
import array, http.client, os, socket, sys

def ask(connection, secret):
    connection.sendall(b"GET /api/v1/info HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n"
                       b"Authorization: Bearer " + secret.encode() + b"\\r\\n\\r\\n")
    connection.settimeout(60)
    answer = b""
    while block := connection.recv(65536):
        answer += block
    print(answer.split()[1].decode(), flush=True)

address = (sys.argv[2], int(sys.argv[3]))
role = sys.argv[4] if len(sys.argv) > 4 else "alone"
if role == "alone":
    ask(socket.create_connection(address, 60), sys.argv[1])
elif role == "child":
    connection = socket.create_connection(address, 60)
    ready, go = os.pipe()
    if os.fork() == 0:
        os.close(go)
        os.read(ready, 1)  # the end of the parent
        ask(connection, sys.argv[1])
        os._exit(0)
    os._exit(0)
elif role in ("give", "share"):
    connection = socket.create_connection(address, 60)
    way = socket.socket(socket.AF_UNIX)
    way.connect(sys.argv[5])
    way.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [connection.fileno()]))])
    if role == "share":
        way.recv(1)  # the end of the other's work
elif role == "take":
    way = socket.socket(socket.AF_UNIX)
    way.bind(sys.argv[5])
    way.listen(1)
    print("ready", flush=True)
    giver, _ = way.accept()
    _, control, _, _ = giver.recvmsg(1, socket.CMSG_SPACE(4))
    number = array.array("i", control[0][2])[0]
    connection = socket.socket(fileno=number)
    if len(sys.argv) > 6:
        giver.recv(1)  # the giver's end
    ask(connection, sys.argv[1])
'''


def setUpModule():
    own_network()


def bound(name, places, local=None, scope='admin'):
    SECRETS.setdefault(name, f'{name}-secret-0123456789abcdef')
    made = {**token(name, scope), 'from': places}
    return made if local is None else {**made, 'local': local}


def get(path, **more):
    return {'method': 'GET', 'path': path, **more}


def post(path, body, **more):
    return {'method': 'POST', 'path': path, 'body': body, **more}


def run_in(context, *argv):
    return post(f'/api/v1/contexts/{context}/exec', {'argv': list(argv)})


class Door(ApiCase):
    """api.sock of a context."""

    def contexts(self, **more):
        return {'contexts': {'platform': {'cwd': self.work, 'child_context': 'user'}, 'user': {'cwd': self.work},
                             'other': {'cwd': self.work}, **more}}

    def door_of(self, context):
        return self.expect(200, 'GET', '/api/v1/contexts/' + context)['apiSocket']

    def by_door(self, context, *requests, door=None, command=()):
        """What a program of `context` gets: (status, body or text) each."""
        program = self.write(self.work + '/client.py', CLIENT)
        texts = [json.dumps(request) for request in requests]
        ended = self.exec_in(context, *command, PYTHON, program, door or self.runtime + '/api.sock', *texts)
        self.assertEqual(ended.status, 0, ended.err)
        answers = [json.loads(line) for line in ended.out.splitlines()]
        return [(status, json.loads(text) if text[:1] in '{[' and text else text) for status, text in answers]

    def test_programs_in_its_own_context_and_nothing_else(self):
        self.serve_api(extra=self.contexts())
        self.assertEqual(self.door_of('user'), self.runtime + '/api.sock')
        [(status, result)] = self.by_door('user', run_in('user', 'sh', '-c', 'echo $HOME; exit 3'))
        self.assertEqual((status, result['exitCode']), (200, 3))
        allowed = [get('/api/v1/contexts/user'), get('/api/v1/contexts/user/execs'), get('/api/v1/info'), get('/health'),
                   get('/api/v1/contexts/user/shells'), get('/api/v1/execs/' + result['id'] + '/output')]
        self.assertEqual([status for status, _ in self.by_door('user', *allowed)], [200] * len(allowed))
        theirs = self.exec(['echo', 'secret'], context='other')['id']
        refused = [run_in('other', 'true'), run_in('platform', 'true'), get('/api/v1/contexts/other'),
                   get('/api/v1/execs/' + theirs), get('/api/v1/ports'), get('/api/v1/routes/events'),
                   post('/api/v1/contexts', {'name': 'new'}), {'method': 'DELETE', 'path': '/api/v1/contexts/user'},
                   {'method': 'PATCH', 'path': '/api/v1/contexts/user/env', 'body': {'A': 'b'}},
                   {'method': 'PUT', 'path': '/api/v1/contexts/user/cwd', 'body': {'cwd': '/'}}]
        answers = self.by_door('user', *refused)
        self.assertEqual([(status, body['code']) for status, body in answers],
                         [(403, 'forbidden-scope')] * len(refused))
        [(_, listed)] = self.by_door('user', get('/api/v1/contexts'))
        self.assertEqual([each['name'] for each in listed['items']], ['user'])
        # With a token, the token decides.
        with_token = get('/api/v1/contexts/other', token=SECRETS['admin'])
        self.assertEqual(self.by_door('user', with_token)[0][0], 200)
        self.assertEqual(self.by_door('user', get('/api/v1/info', token='wrong'))[0][0], 401)
        # Nobody needs one there, and everybody by TCP.
        self.refused(401, 'unauthorized', 'GET', '/api/v1/info', who=None)

    def test_which_contexts_have_one(self):
        self.serve_api(extra=self.contexts(closed={'cwd': self.work, 'api_socket': False},
                                           routed={'cwd': self.work, 'child_context': 'user', 'api_socket': True}))
        self.assertEqual([self.door_of(name) for name in ('platform', 'closed')], [None, None])
        self.assertEqual(self.by_door('closed', get('/health'))[0][0], 'FileNotFoundError')
        self.assertEqual(self.by_door('routed', run_in('routed', 'true'))[0][0], 200)
        self.assertEqual(self.by_door('routed', run_in('user', 'true'))[0][0], 403)
        made = self.expect(201, 'POST', '/api/v1/contexts', {'name': 'late', 'cwd': self.work, 'apiSocket': False})
        self.assertIsNone(made['apiSocket'])
        made = self.expect(201, 'POST', '/api/v1/contexts', {'name': 'later', 'cwd': self.work})
        self.assertEqual(self.by_door('later', run_in('later', 'true'))[0][0], 200)

    def test_nothing_takes_its_place(self):
        self.serve_api()
        door = self.runtime + '/api.sock'
        text = (f'rm -f {door}; mv {door} {door}.old; ln -sf /tmp/x {door}; mv {self.runtime} /tmp/gone; '
                f'rm -rf {self.runtime}; mkdir {self.runtime}/x; true')
        said = self.exec(['sh', '-c', text])['stderr']
        self.assertIn('Read-only file system', said)
        self.assertEqual(self.by_door('user', run_in('user', 'true'))[0][0], 200)

    def test_another_user_stays_out(self):
        self.serve_api()
        as_other = ('setpriv', '--reuid=1234', '--regid=1234', '--clear-groups')
        self.assertEqual(self.by_door('user', run_in('user', 'id'), command=as_other)[0][0], 'PermissionError')
        self.assertEqual(self.by_door('user', run_in('user', 'id'))[0][0], 200, 'control')

    def test_another_context_with_the_path_in_its_hands(self):
        self.serve_api(extra={**self.contexts(), 'audit': {'folder': self.dir + '/audit'}})
        # A descriptor of the socket file, of another mount namespace: the path no longer keeps anybody out.
        way = self.work + '/way.sock'
        take = ('import array, os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(1)\n'
                'print("ready", flush=True); c, _ = s.accept(); _, m, _, _ = c.recvmsg(1, socket.CMSG_SPACE(4))\n'
                'fd = array.array("i", m[0][2])[0]; d = socket.socket(socket.AF_UNIX); d.settimeout(60)\n'
                'd.connect(f"/proc/self/fd/{fd}")\n'
                'try:\n    d.sendall(b"GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"); print(len(d.recv(100)))\n'
                'except OSError as error:\n    print(0)\n')
        give = ('import array, os, socket, sys; fd = os.open(sys.argv[2], os.O_PATH)\n'
                's = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n'
                's.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]); s.recv(1)\n')
        for context, gets in (('other', '0'), ('user', '100')):
            taker = self.start([AIRLOCK, 'exec', context, '--', PYTHON, '-c', take, way])
            self.assertEqual(self.line_of(taker), b'ready\n')
            giver = self.exec_in('user', PYTHON, '-c', give, way, self.runtime + '/api.sock')
            self.assertEqual(giver.status, 0, giver.err)
            self.assertEqual(self.finish(taker).out.split()[-1], gets, context)
            os.unlink(way)
        with open(self.dir + '/audit/audit.jsonl') as file:
            refused = [json.loads(line) for line in file if 'client.refused' in line]
        self.assertEqual(len(refused), 1, refused)
        self.assertIn("api.sock of context 'user'", refused[0]['reason'])

    def test_it_waits_for_an_api_that_was_killed(self):
        self.serve_api()
        for _ in range(5):
            os.kill(self.pid_of_service('airlock-api'), signal.SIGKILL)
            self.assertEqual(self.by_door('user', run_in('user', 'true'))[0][0], 200)

    def test_many_connections_of_one_context(self):
        self.serve_api(extra=self.contexts())
        text = ('import socket, sys\n'
                'def open_one():\n    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(60)\n'
                '    try: s.sendall(b"GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")\n'
                '    except BrokenPipeError: pass  # who is one too many is told so at once\n'
                '    return s, s.recv(12)[9:]\n'
                'all = [open_one() for _ in range(70)]\nprint(b" ".join(answer for _, answer in all).decode(), flush=True)\n'
                'sys.stdin.read()\n')
        process = self.start([AIRLOCK, 'exec', 'user', '-i', '--', PYTHON, '-c', text, self.runtime + '/api.sock'],
                             stdin=-1)
        self.assertEqual(self.line_of(process).split(), [b'200'] * 64 + [b'429'] * 6)
        self.assertEqual(self.by_door('other', run_in('other', 'true'))[0][0], 200, 'others are not concerned')
        self.finish(process)
        self.assertEqual(self.by_door('user', run_in('user', 'true'))[0][0], 200)

    def test_without_mounts(self):
        self.serve_api(options=('--tier', 'uids', '--require-tier', 'uids'), extra=self.contexts())
        os.chmod(self.work, 0o777)
        door = {name: self.door_of(name) for name in ('user', 'other')}
        self.assertNotEqual(door['user'], door['other'])
        self.assertEqual(self.by_door('user', run_in('user', 'true'), door=door['user'])[0][0], 200)
        self.assertEqual(self.by_door('other', run_in('user', 'true'), door=door['user'])[0][0], 'PermissionError')


class BoundTokens(ApiCase):
    """Tokens with `from`."""

    def serve(self, *tokens, **options):
        self.serve_api(**options)
        self.write_tokens([*TOKENS, *tokens])
        name = tokens[-1]['name']
        eventually(lambda: self.request('GET', '/api/v1/info', who=name).status != 401, 'the tokens are read')

    def asker(self):
        return self.write(self.work + '/ask.py', ASK)

    def status(self, context, who, *role):
        """What a program of `context` gets by TCP."""
        ended = self.exec_in(context, PYTHON, self.asker(), SECRETS[who], '127.0.0.1', str(PORT), *role)
        self.assertEqual(ended.status, 0, ended.err)
        return ended.out.split()[-1]

    def needs_cgroups(self):
        if not os.access('/sys/fs/cgroup/unified', os.W_OK) and not os.access('/sys/fs/cgroup/cgroup.procs', os.W_OK):
            raise unittest.SkipTest('no writable cgroup of version 2')

    def test_from_contexts(self):
        self.needs_cgroups()
        self.serve(bound('of-user', ['user']), bound('of-platform', ['plat*']))
        self.assertEqual([self.status('user', who) for who in ('of-user', 'of-platform', 'admin')], ['200', '403', '200'])
        self.assertEqual([self.status('platform', who) for who in ('of-user', 'of-platform')], ['403', '200'])
        problem = self.refused(403, 'forbidden-place', 'GET', '/api/v1/info', who='of-user').json
        self.assertNotIn('user', json.dumps(problem))

    def test_from_beside_all_contexts(self):
        self.serve(bound('anywhere', ['*', 'outside']), bound('local', ['outside'], True), bound('far', ['outside'], False))
        statuses = [self.request('GET', '/api/v1/info', who=who).status for who in ('anywhere', 'local', 'far')]
        self.assertEqual(statuses, [403, 200, 403])

    def test_from_other_machines(self):
        neighbour = Neighbour()
        self.addCleanup(neighbour.end)
        self.serve(bound('of-user', ['user'], True), bound('far', ['outside']), api={'expose': 'all'})

        def from_there(who):
            return neighbour.run(PYTHON, self.asker(), SECRETS[who], OURS, str(PORT)).strip()
        self.assertEqual([from_there(who) for who in ('far', 'of-user', 'admin')], ['200', '403', '200'])
        # By the address that the neighbour uses, and yet from here.
        ended = self.exec_in('user', PYTHON, self.asker(), SECRETS['far'], OURS, str(PORT))
        self.assertEqual(ended.out.strip(), '403')

    def pass_on(self, role, *more):
        """What the platform gets over a connection of `user`."""
        way = f'{self.work}/{role}.sock'
        common = (SECRETS['both'], '127.0.0.1', str(PORT))
        taker = self.start([AIRLOCK, 'exec', 'platform', '--', PYTHON, self.asker(), *common, 'take', way, *more])
        self.assertEqual(self.line_of(taker), b'ready\n')
        giver = self.start([AIRLOCK, 'exec', 'user', '--', PYTHON, self.asker(), *common, role, way])
        ended = self.finish(taker)
        self.finish(giver)
        return ended.out.split()[-1]

    def test_a_connection_that_is_passed_on_is_nobodys(self):
        self.needs_cgroups()
        self.serve(bound('both', ['user', 'platform']))
        self.assertEqual([self.status(context, 'both') for context in ('user', 'platform')], ['200', '200'], 'control')
        self.assertEqual(self.pass_on('share'), '403')
        # Its maker has ended, and another context has it.
        self.assertEqual(self.pass_on('give', 'after its end'), '403')

    def test_a_maker_that_is_gone(self):
        self.needs_cgroups()
        self.serve(bound('of-user', ['user']), bound('of-platform', ['platform']))
        # What is left of it in its own context is still that context's, and nobody else's.
        self.assertEqual(self.status('user', 'of-user', 'child'), '200')
        self.assertEqual(self.status('user', 'of-platform', 'child'), '403')

    def test_a_connection_that_nobody_holds(self):
        self.needs_cgroups()
        self.serve(bound('of-user', ['user']))
        # All is sent before it is closed, so that the API reads it; nobody is there to be found.
        text = ('import socket, sys, time; s = socket.create_connection(("127.0.0.1", %d), 60)\n'
                's.sendall(b"POST /api/v1/contexts/user/exec HTTP/1.1\\r\\nHost: localhost\\r\\n"\n'
                'b"Content-Type: application/json\\r\\nAuthorization: Bearer " + sys.argv[1].encode() + \n'
                'b"\\r\\nContent-Length: %%d\\r\\n\\r\\n%%s" %% (len(sys.argv[2]), sys.argv[2].encode()))\n' % PORT)
        mark = self.work + '/mark'
        body = json.dumps({'argv': ['touch', mark]})
        for close in ('s.recv(1)', 's.close()',
                      's.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0"); s.close()'):
            # Stopped, the API answers late.
            api = self.pid_of_service('airlock-api')
            waits = close == 's.recv(1)'
            if not waits:
                os.kill(api, signal.SIGSTOP)
            try:
                ended = self.exec_in('user', PYTHON, '-c', text + close, SECRETS['of-user'], body)
            finally:
                os.kill(api, signal.SIGCONT)
            self.assertEqual(ended.status, 0, ended.err)
            # One that comes later is answered later.
            self.expect(200, 'GET', '/health')
            self.assertEqual(self.status('user', 'of-user'), '200')
            self.assertEqual(os.path.exists(mark), waits, close)
            if waits:
                os.unlink(mark)

    def test_a_door_is_a_place(self):
        self.serve(bound('of-user', ['user']), bound('of-other', ['other']))
        program = self.write(self.work + '/client.py', CLIENT)
        ended = self.exec_in('user', PYTHON, program, self.runtime + '/api.sock',
                             json.dumps(get('/api/v1/contexts/platform', token=SECRETS['of-user'])),
                             json.dumps(get('/api/v1/contexts/platform', token=SECRETS['of-other'])))
        self.assertEqual([json.loads(line)[0] for line in ended.out.splitlines()], [200, 403], ended.err)

    def test_a_file_with_a_wrong_place_changes_nothing(self):
        self.serve(bound('of-user', ['user']))
        self.write_tokens([{**token('admin', 'read'), 'from': []}])
        eventually(lambda: 'stay as they were' in self.log('airlock-api'), 'the mistake is told')
        self.expect(201, 'POST', '/api/v1/contexts', {'name': 'new', 'cwd': self.work})


if __name__ == '__main__':
    main()
