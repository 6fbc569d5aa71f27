"""Files of contexts over the HTTP API, as the context's programs see them."""

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import stat
import struct
import sys
import threading
import urllib.parse

from api_client import PORT, SECRETS, ApiCase
from harness import BIN, CANARY, FIXTURES, PATIENCE, REFUSED, descendants, eventually, main, runs_program
from network import own_network

sys.path.insert(0, FIXTURES)
import wire

MIB = 1 << 20


def setUpModule():
    own_network()


class FilesCase(ApiCase):

    def address(self, path, verb='', context='user', **query):
        query = urllib.parse.urlencode({'path': path, **query})
        return f'/api/v1/contexts/{context}/files{verb}?{query}'

    def put(self, path, contents, status=None, context='user', who='admin', headers=None, **query):
        answer = self.request('PUT', self.address(path, context=context, **query), contents, who=who, headers=headers)
        self.assertIn(answer.status, (status,) if status else (200, 201), answer.body)
        return answer

    def get(self, path, status=200, context='user', headers=None, who='admin'):
        answer = self.request('GET', self.address(path, context=context), headers=headers, who=who)
        self.assertEqual(answer.status, status, answer.body)
        return answer

    def refused_put(self, status, code, path, contents=b'x', **options):
        query = options.pop('query', {})
        return self.refused(status, code, 'PUT', self.address(path, context=options.pop('context', 'user'), **query),
                            contents, **options)

    def here(self, path, mode='rb'):
        with open(f'{self.work}/{path}', mode) as file:
            return file.read()

    def begin_put(self, path, length, sent=b''):
        """A connection on which a PUT has begun, and airlock-files waits for the rest of it."""
        connection = socket.create_connection(('127.0.0.1', PORT), PATIENCE)
        self.addCleanup(connection.close)
        connection.sendall(f'PUT {self.address(path)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer '
                           f'{SECRETS["admin"]}\r\nContent-Length: {length}\r\n\r\n'.encode() + sent)
        eventually(self.tools, 'airlock-files runs')
        return connection

    def tools(self):
        return [pid for pid in descendants(os.getpid()) if runs_program(pid, BIN + '/airlock-files') or
                self.name_of(pid) == 'airlock-files']

    @staticmethod
    def name_of(pid):
        try:
            with open(f'/proc/{pid}/comm') as file:
                return file.read().strip()
        except OSError:
            return ''


class Contents(FilesCase):

    def test_exact_bytes(self):
        self.serve_api()
        contents = bytes(range(256)) * 1025 + b'\0\r\n\xff'
        made = self.put('data', contents, 201)
        entry = made.json
        self.assertEqual((entry['name'], entry['type'], entry['size']), ('data', 'file', len(contents)))
        self.assertEqual(made.headers['ETag'], entry['etag'])
        self.assertEqual(self.here('data'), contents)
        got = self.get('data')
        self.assertEqual(got.body, contents)
        self.assertEqual((got.headers['Content-Length'], got.headers['ETag'], got.headers['Content-Type']),
                         (str(len(contents)), entry['etag'], 'application/octet-stream'))
        self.put('data', b'', 200)
        self.assertEqual((self.here('data'), self.get('data').body), (b'', b''))
        head = self.request('HEAD', self.address(self.work + '/data'))
        self.assertEqual((head.status, head.headers['Content-Length'], head.body), (200, '0', b''))
        # What a program has written, and what one reads.
        self.exec(['sh', '-c', 'printf "a\\0b" > program'])
        self.assertEqual(self.get('program').body, b'a\0b')
        self.put('for-program', b'c\0d')
        self.assertEqual(self.exec(['od', '-An', '-c', 'for-program'])['stdout'].split(), ['c', '\\0', 'd'])

    def test_chunked_bodies_and_100_continue(self):
        self.serve_api()
        parts = [b'a' * 100_000, b'\0', b'b' * 70_000]
        with self.connection() as connection:
            connection.request('PUT', self.address('chunked'), iter(parts), self.headers(), encode_chunked=True)
            self.assertEqual(connection.getresponse().read() and 0, 0)
            # The same connection serves the next request.
            connection.request('GET', self.address('chunked'), headers=self.headers())
            self.assertEqual(connection.getresponse().read(), b''.join(parts))
        connection = socket.create_connection(('127.0.0.1', PORT), PATIENCE)
        self.addCleanup(connection.close)
        ask = (f'PUT {{}} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRETS["admin"]}\r\n'
               'Expect: 100-continue\r\nContent-Length: 5\r\n\r\n')
        connection.sendall(ask.format(self.address('expected')).encode())
        self.assertTrue(connection.recv(1000).startswith(b'HTTP/1.1 100 '))
        connection.sendall(b'hello')
        self.assertTrue(connection.recv(1000).startswith(b'HTTP/1.1 201 '))
        self.assertEqual(self.here('expected'), b'hello')
        # A body that cannot be stored is not asked for.
        connection.sendall(ask.format(self.address('/proc/nothing')).encode())
        self.assertRegex(connection.recv(1000), rb'^HTTP/1.1 4\d\d ')

    def test_names_that_are_not_utf8(self):
        self.serve_api()
        name = b'n\xff\xfe \xe2\x98\x83'
        self.put(name, b'contents', 201)
        self.assertEqual(os.listdir(self.work.encode()), [name])
        items = self.expect(200, 'GET', self.address('.', ':list'))['items']
        self.assertEqual([base64.b64decode(each['nameBase64']) for each in items], [name])
        self.assertEqual(self.get(name).body, b'contents')
        coded = {'base64': base64.b64encode(b'folder\xff').decode()}
        self.expect(204, 'POST', '/api/v1/contexts/user/files:mkdir', {'path': coded})
        to = {'base64': base64.b64encode(b'folder\xff/' + name).decode()}
        self.expect(204, 'POST', '/api/v1/contexts/user/files:move', {'from': {'base64': items[0]['nameBase64']}, 'to': to})
        self.assertEqual(os.listdir(self.work.encode() + b'/folder\xff'), [name])
        os.symlink(b'\xff', self.work.encode() + b'/link')
        link = self.expect(200, 'GET', self.address('link', ':stat'))
        self.assertEqual((link['type'], base64.b64decode(link['targetBase64'])), ('symlink', b'\xff'))
        # Text is told as it is.
        self.put('schön', b'')
        self.assertEqual(self.expect(200, 'GET', self.address('schön', ':stat'))['name'], 'schön')
        self.assertNotIn('nameBase64', self.expect(200, 'GET', self.address('schön', ':stat')))

    def test_ranges(self):
        self.serve_api()
        contents = os.urandom(300_000)
        self.put('data', contents)
        for field, begin, end in (('bytes=0-0', 0, 1), ('bytes=10-19', 10, 20), ('bytes=200000-', 200_000, 300_000),
                                  ('bytes=-5', 299_995, 300_000), ('bytes=65530-70000', 65_530, 70_001),
                                  ('bytes=299999-9999999', 299_999, 300_000), ('bytes=-9999999', 0, 300_000)):
            got = self.get('data', 206, headers={'Range': field})
            self.assertEqual(got.body, contents[begin:end], field)
            self.assertEqual(got.headers['Content-Range'], f'bytes {begin}-{end - 1}/300000')
        for field in ('bytes=5-1', 'lines=1-2', 'bytes=0-1,3-4', 'bytes=x-'):
            self.assertEqual(self.get('data', headers={'Range': field}).body, contents, field)
        for field in ('bytes=300000-', 'bytes=-0'):
            answer = self.refused(416, 'range-not-satisfiable', 'GET', self.address('data'), headers={'Range': field})
            self.assertEqual(answer.headers['Content-Range'], 'bytes */300000')
        self.put('small', b'0123456789')
        self.assertEqual(self.get('small', 206, headers={'Range': 'bytes=3-5'}).body, b'345')

    def test_conditions(self):
        self.serve_api()
        first = self.put('f', b'one', 201, headers={'If-None-Match': '*'}).headers['ETag']
        self.refused_put(412, 'precondition-failed', 'f', b'again', headers={'If-None-Match': '*'})
        self.assertEqual(self.get('f', 304, headers={'If-None-Match': 'W/' + first}).body, b'')
        self.assertEqual(self.get('f', headers={'If-Match': f'"x", {first}'}).body, b'one')
        self.refused(412, 'precondition-failed', 'GET', self.address('f'), headers={'If-Match': '"x"'})
        second = self.put('f', b'two', 200, headers={'If-Match': first}).headers['ETag']
        self.assertNotEqual(first, second)
        self.refused_put(412, 'precondition-failed', 'f', b'late', headers={'If-Match': first})
        self.refused_put(412, 'precondition-failed', 'none', b'late', headers={'If-Match': '*'})
        self.refused(412, 'precondition-failed', 'DELETE', self.address('f'), headers={'If-Match': first})
        self.assertEqual(self.here('f'), b'two')
        self.refused_put(400, 'invalid-request', 'f', headers={'If-Match': 'no tag'})
        self.expect(204, 'DELETE', self.address('f'), headers={'If-Match': second})
        self.assertEqual(os.listdir(self.work), [])

    def test_mode_owner_and_folders_above(self):
        self.serve_api()
        mode = lambda path: stat.S_IMODE(os.lstat(f'{self.work}/{path}').st_mode)
        self.assertEqual(self.put('x', b'', mode='0751').json['mode'], '0751')
        self.assertEqual(mode('x'), 0o751)
        self.put('x', b'new')
        self.assertEqual(mode('x'), 0o751, 'kept')
        self.put('y', b'')
        self.assertEqual(mode('y'), 0o644)
        os.chown(self.work + '/y', 1234, 1235)
        self.put('y', b'new')
        self.assertEqual((os.stat(self.work + '/y').st_uid, os.stat(self.work + '/y').st_gid), (1234, 1235))
        self.refused_put(404, 'file-not-found', 'a/b/c')
        self.put('a/b/c', b'deep', 201, mkdirs='true')
        self.assertEqual(self.here('a/b/c'), b'deep')
        self.refused_put(400, 'invalid-request', 'x', query={'mode': '9'})
        self.refused_put(400, 'invalid-request', 'x', query={'mkdirs': 'perhaps'})
        self.refused_put(400, 'invalid-request', 'x', headers={'Content-Range': 'bytes 0-0/1'})
        self.refused(400, 'invalid-request', 'GET', '/api/v1/contexts/user/files')
        self.refused(400, 'invalid-request', 'GET', self.address('a' * 4096))

    def test_through_symlinks(self):
        self.serve_api()
        os.mkdir(self.work + '/folder')
        os.symlink('folder/target', self.work + '/link')
        self.put('link', b'through', 201)
        self.assertEqual((os.readlink(self.work + '/link'), self.here('folder/target')), ('folder/target', b'through'))
        os.symlink('loop', self.work + '/loop')
        self.refused_put(422, 'invalid-path', 'loop')
        self.refused(422, 'invalid-path', 'GET', self.address('loop'))
        self.assertEqual(self.expect(200, 'GET', self.address('link', ':stat', follow='true'))['size'], 7)
        self.assertEqual(self.expect(200, 'GET', self.address('link', ':stat'))['target'], 'folder/target')

    def test_what_the_kernel_makes_up(self):
        self.serve_api()
        got = self.get('/proc/version')
        with open('/proc/version', 'rb') as file:
            self.assertEqual(got.body, file.read())
        self.assertEqual(got.headers['Content-Length'], str(len(got.body)))
        self.assertEqual(self.get('/proc/self/comm').body, b'airlock-files\n')


class Trees(FilesCase):

    def names(self, path='.', **query):
        listed = self.expect(200, 'GET', self.address(path, ':list', **query))
        return [each['name'] for each in listed['items']], listed['isTruncated']

    def test_list(self):
        self.serve_api()
        os.makedirs(self.work + '/a/b')
        self.write(self.home + '/beyond', '')
        os.symlink(self.home, self.work + '/a/away')
        os.symlink('file', self.work + '/a/b/up')
        os.mkfifo(self.work + '/fifo', 0o600)
        self.write('a/b/file', 'contents')
        self.assertEqual(self.names(), (['a', 'fifo'], False))
        self.assertEqual(self.names(recursive='true'), (['a', 'a/away', 'a/b', 'a/b/file', 'a/b/up', 'fifo'], False))
        self.assertEqual(self.names(recursive='true', limit=2)[1], True)
        types = {each['name']: each['type'] for each in
                 self.expect(200, 'GET', self.address(self.work, ':list', recursive='true'))['items']}
        self.assertEqual(types, {'a': 'folder', 'a/b': 'folder', 'a/b/file': 'file', 'a/b/up': 'symlink',
                                 'a/away': 'symlink', 'fifo': 'fifo'})
        self.refused(409, 'not-a-folder', 'GET', self.address('a/b/file', ':list'))
        self.refused(404, 'file-not-found', 'GET', self.address('nothing', ':list'))
        self.refused(400, 'invalid-request', 'GET', self.address('.', ':list', limit='many'))

    def test_a_list_has_an_end(self):
        self.serve_api()
        for i in range(1200):
            self.write(f'{i:05}', '')
        names, is_truncated = self.names()
        self.assertEqual((len(names), names, is_truncated), (1200, sorted(names), False))
        self.assertEqual((len(self.names(limit=1000)[0]), self.names(limit=1000)[1]), (1000, True))
        # Deeper than it goes, by far: it says so.
        deep = self.work
        for _ in range(300):
            deep += '/d'
            os.mkdir(deep)
        self.assertTrue(self.names('d', recursive='true')[1])

    def test_make_move_remove(self):
        self.serve_api()
        mkdir = '/api/v1/contexts/user/files:mkdir'
        move = '/api/v1/contexts/user/files:move'
        self.expect(204, 'POST', mkdir, {'path': 'a', 'mode': '0700'})
        self.assertEqual(stat.S_IMODE(os.stat(self.work + '/a').st_mode), 0o700)
        self.refused(409, 'file-exists', 'POST', mkdir, {'path': 'a'})
        self.expect(204, 'POST', mkdir, {'path': 'a', 'parents': True})
        self.refused(404, 'file-not-found', 'POST', mkdir, {'path': 'x/y/z'})
        self.expect(204, 'POST', mkdir, {'path': 'x/y/z', 'parents': True})
        self.refused(400, 'invalid-request', 'POST', mkdir, {'path': 'b', 'made': 1})
        self.put('f', b'f'), self.put('g', b'g')
        self.refused(409, 'file-exists', 'POST', move, {'from': 'f', 'to': 'g'})
        self.assertEqual((self.here('f'), self.here('g')), (b'f', b'g'))
        self.expect(204, 'POST', move, {'from': 'f', 'to': 'g', 'overwrite': True})
        self.assertEqual(self.here('g'), b'f')
        self.expect(204, 'POST', move, {'from': 'g', 'to': 'new/place', 'parents': True})
        self.assertEqual(self.here('new/place'), b'f')
        self.refused(422, 'invalid-path', 'POST', move, {'from': 'x', 'to': 'x/y/x'})
        self.refused(409, 'folder-not-empty', 'DELETE', self.address('x'))
        os.symlink(self.work + '/new', self.work + '/x/y/link')
        self.expect(204, 'DELETE', self.address('x', recursive='true'))
        self.assertEqual(self.here('new/place'), b'f', 'no symlink was followed')
        self.refused(404, 'file-not-found', 'DELETE', self.address('x'))
        for path in ('/', '.', '..', 'a/..'):
            self.refused(422, 'invalid-path', 'DELETE', self.address(path, recursive='true'))
        self.assertEqual(sorted(os.listdir(self.work)), ['a', 'new'])

    def test_move_to_another_file_system(self):
        self.serve_api()
        move = '/api/v1/contexts/user/files:move'
        self.put('f', b'contents' * 50_000, mode='0640')
        self.expect(204, 'POST', move, {'from': 'f', 'to': '/dev/shm/f'})
        self.assertEqual(os.listdir(self.work), [])
        self.assertEqual(self.get('/dev/shm/f').body, b'contents' * 50_000)
        self.assertEqual(self.expect(200, 'GET', self.address('/dev/shm/f', ':stat'))['mode'], '0640')
        os.mkdir(self.work + '/folder')
        self.refused(422, 'other-file-system', 'POST', move, {'from': 'folder', 'to': '/dev/shm/folder'})
        self.assertEqual(os.listdir(self.work), ['folder'])


class Refusals(FilesCase):

    def test_what_is_no_regular_file(self):
        self.serve_api()
        os.mkfifo(self.work + '/fifo')
        for path in ('fifo', '/dev/null', '/dev/zero', '/dev/tty'):
            self.refused(409, 'not-a-file', 'GET', self.address(path))
            self.refused_put(409, 'not-a-file', path)
        self.refused(409, 'is-a-folder', 'GET', self.address('.'))
        self.refused_put(409, 'is-a-folder', '/tmp')
        self.refused_put(409, 'is-a-folder', 'name/')
        self.refused_put(409, 'not-a-folder', 'fifo/x')
        self.refused(404, 'file-not-found', 'GET', self.address('nothing'))
        self.refused(404, 'context-not-found', 'GET', self.address('x', context='nobody'))
        self.assertEqual(os.listdir(self.work), ['fifo'])

    def test_the_kernel_decides(self):
        self.serve_api()
        self.expect(201, 'POST', '/api/v1/contexts', {'name': 'plain', 'user': 'nobody', 'cwd': self.work})
        self.write('secret', 'text', 0o600)
        self.write('readable', 'text')
        self.refused(403, 'file-forbidden', 'GET', self.address('secret', context='plain'))
        self.assertEqual(self.get('readable', context='plain').body, b'text', 'control')
        self.refused_put(403, 'file-forbidden', 'new', context='plain')
        self.refused(403, 'file-forbidden', 'DELETE', self.address('secret', context='plain'))
        os.mkdir(self.work + '/open')
        os.chmod(self.work + '/open', 0o777)
        self.write('open/theirs', 'text')
        self.refused_put(403, 'file-forbidden', 'open/theirs', context='plain')
        entry = self.put('open/new', b'x', 201, context='plain').json
        self.assertEqual(entry['uid'], os.stat(self.work + '/open/new').st_uid)
        self.assertNotEqual(entry['uid'], 0)
        self.refused(403, 'file-forbidden', 'POST', '/api/v1/contexts/plain/files:mkdir', {'path': 'folder'})

    def test_scopes(self):
        self.serve_api()
        self.write('f', 'text')
        self.expect(200, 'GET', self.address('f', ':stat'), who='read')
        self.expect(200, 'GET', self.address('.', ':list'), who='read')
        self.refused(403, 'forbidden-scope', 'GET', self.address('f'), who='read')
        self.refused_put(403, 'forbidden-scope', 'f', who='read')
        self.refused(403, 'forbidden-scope', 'DELETE', self.address('f'), who='read')
        self.refused(403, 'forbidden-scope', 'GET', self.address('f', context='platform'), who='only-user')
        self.assertEqual(self.get('f', who='only-user').body, b'text')
        self.assertEqual(self.here('f'), b'text')

    def test_what_the_context_does_not_see_is_not_there(self):
        self.serve_api()
        self.write(self.home + '/.credentials', CANARY)
        self.assertEqual(self.get(self.home + '/.credentials', context='platform').body, CANARY.encode(), 'control')
        self.refused(404, 'file-not-found', 'GET', self.address(self.home + '/.credentials'))
        self.refused(404, 'file-not-found', 'GET', self.address('../' * 20 + self.home + '/.credentials'))
        # Pid 1 is the context's own init, which nobody there may look into; exec cannot either.
        self.refused(403, 'file-forbidden', 'GET', self.address('/proc/1/environ'))
        self.assertNotEqual(self.exec(['cat', '/proc/1/environ'])['exitCode'], 0)
        names = {each['name'] for each in self.expect(200, 'GET', self.address('/proc', ':list'))['items']}
        pids = {name for name in names if name.isdigit()}
        self.assertIn('1', pids)
        self.assertNotIn(str(self.pid_of_service('airlock-api')), pids)
        self.assertNotIn(str(os.getpid()), pids)
        for path in (self.runtime + '/control.sock', self.tokens_folder + '/tokens.json'):
            self.assertTrue(os.path.exists(path), 'control')
            self.refused(404, 'file-not-found', 'GET', self.address(path, ':stat'))
            self.assertNotEqual(self.exec(['ls', path])['exitCode'], 0)
        # Its own folder of airlock's is read-only.
        self.refused_put(403, 'file-forbidden', self.runtime + '/airlock-files')

    def test_no_space_left(self):
        self.serve_api()
        self.expect(201, 'POST', '/api/v1/contexts',
                    {'name': 'small', 'cwd': '/', 'isolation': 'strict', 'limits': {'tmpfs': 2 * MIB}})
        for folder in ('/dev/shm', '/tmp'):
            self.put(folder + '/old', b'old', 201, context='small')
            self.refused_put(507, 'no-space', folder + '/old', b'x' * (8 * MIB), context='small')
            self.assertEqual(self.get(folder + '/old', context='small').body, b'old')
            self.put(folder + '/old', b'x' * MIB, 200, context='small')
            items = self.expect(200, 'GET', self.address(folder, ':list', context='small'))['items']
            # What is shared with it lies in its /tmp, too.
            names = {each['name'] for each in items} - {os.path.basename(self.dir)}
            self.assertEqual(names, {'old'})

    def test_too_large(self):
        self.serve_api()
        with self.connection() as connection:
            connection.putrequest('PUT', self.address('huge'))
            for name, value in self.headers(**{'Content-Length': str(1 << 40)}).items():
                connection.putheader(name, value)
            connection.endheaders()
            self.assertEqual(connection.getresponse().status, 413)
        self.assertEqual(os.listdir(self.work), [])

    def test_a_working_folder_that_is_gone(self):
        self.serve_api()
        self.expect(201, 'POST', '/api/v1/contexts', {'name': 'gone', 'cwd': self.work + '/gone'})
        with contextlib.suppress(OSError):
            os.rmdir(self.work + '/gone')
        self.refused(422, 'cwd-not-found', 'GET', self.address('relative', context='gone'))
        self.expect(204, 'POST', '/api/v1/contexts/gone/files:mkdir', {'path': self.work + '/gone'})
        self.put('relative', b'x', 201, context='gone')


class BadOrders(FilesCase):
    """FileJob and FileRequest by hand (docs/PROTOCOL.md, 15)."""

    JOB, REQUEST, FAILED = 80, 81, 88

    def order(self, payload, fds=1):
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE)
        self.addCleanup(ours.close)
        control = wire.connect(self.runtime + '/control.sock')
        self.addCleanup(control.close)
        wire.send_with_fds(control, wire.frame(self.JOB, payload, fds), [theirs.fileno()] * fds)
        theirs.close()
        return control, ours

    def job(self, context=b'user', cwd=b'/'):
        return wire.string(context) + wire.string(cwd) + struct.pack('<IB', 0o022, 0)

    def test_orders(self):
        pid = self.up()
        for payload, fds in ((b'', 1), (self.job()[:-1], 1), (self.job() + b'x', 1), (self.job(), 0), (self.job(), 2),
                             (self.job(b'nobody'), 1), (self.job(cwd=b'relative'), 1), (self.job(cwd=b'/nothing'), 1)):
            control, _ = self.order(payload, fds)
            kinds = [kind for kind, _ in wire.answers(control)]
            self.assertEqual(kinds[-1], wire.NOT_STARTED, payload)
        self.assertEqual(self.ask('info')['pid'], pid)
        self.assertEqual(self.exec_in('nobody', 'true').status, REFUSED, 'control')

    def test_requests(self):
        self.up()
        for sent in (b'junk', wire.frame(self.REQUEST, b'\xff' * 40), wire.frame(999), wire.header(9 << 20, self.REQUEST),
                     wire.header(10, self.REQUEST, version=2), b''):
            control, ours = self.order(self.job())
            ours.sendall(sent)
            ours.shutdown(socket.SHUT_WR)
            self.assertEqual(ours.recv(1000), b'', sent)
            kind, payload = wire.answers(control)[-1]
            self.assertEqual((kind, struct.unpack_from('<i', payload)), (wire.EXITED, (0,)), sent)
        # Control: what is a request is answered.
        control, ours = self.order(self.job())
        stat_nothing = (b'\3' + wire.string(b'/nothing') + wire.string(b'') + b'\0' + struct.pack('<I', 0) + b'\0' * 4 +
                        struct.pack('<I', 0) + wire.string_list([]) * 2)
        ours.sendall(wire.frame(self.REQUEST, stat_nothing) * 2)
        for _ in range(2):
            self.assertEqual(wire.receive(ours), (self.FAILED, b'\0' + struct.pack('<i', 2)))


class Streams(FilesCase):

    def peak(self, pid, reset=False):
        if reset:
            with open(f'/proc/{pid}/clear_refs', 'w') as file:
                file.write('5')
        with open(f'/proc/{pid}/status') as file:
            return int(re.search(r'VmHWM:\s+(\d+)', file.read()).group(1)) << 10

    def test_large_ones_in_little_memory(self):
        self.serve_api()
        pid = self.pid_of_service('airlock-api')
        before = self.peak(pid, reset=True)
        block, count = os.urandom(MIB), 300
        answer = self.request_stream(self.address('large'), (block for _ in range(count)))
        self.assertEqual(answer, 201)
        self.assertEqual(os.stat(self.work + '/large').st_size, count * MIB)
        with self.connection() as connection:
            connection.request('GET', self.address('large'), headers=self.headers())
            response = connection.getresponse()
            self.assertEqual(response.length, count * MIB)
            self.assertTrue(all(response.read(MIB) == block for _ in range(count)))
            self.assertEqual(response.read(), b'')
        self.assertLess(self.peak(pid) - before, 16 * MIB)

    def request_stream(self, path, parts):
        with self.connection() as connection:
            connection.request('PUT', path, parts, self.headers(), encode_chunked=True)
            response = connection.getresponse()
            response.read()
            return response.status

    def test_a_slow_client_holds_nothing_but_itself(self):
        self.serve_api()
        self.put('large', bytes(64 * MIB))
        pid = self.pid_of_service('airlock-api')
        before = self.peak(pid, reset=True)
        with self.connection() as slow:
            slow.request('GET', self.address('large'), headers=self.headers())
            response = slow.getresponse()
            self.assertEqual(response.read(1000), bytes(1000))
            # It does not read on; others are served meanwhile.
            half = self.begin_put('slow', 10, b'12345')
            for _ in range(20):
                self.assertEqual(self.get('large', 206, headers={'Range': 'bytes=-3'}).body, bytes(3))
            self.assertLess(self.peak(pid) - before, 16 * MIB)
            half.sendall(b'67890')
            self.assertTrue(half.recv(1000).startswith(b'HTTP/1.1 201 '))
            self.assertEqual(len(response.read()), 64 * MIB - 1000)
        self.assertEqual(self.here('slow'), b'1234567890')

    def expect_untouched(self):
        eventually(lambda: not self.tools(), 'airlock-files has ended')
        self.assertEqual((os.listdir(self.work), self.here('f')), (['f'], b'old'))

    def test_a_client_that_goes_away_half_way(self):
        self.serve_api()
        self.put('f', b'old')
        connection = self.begin_put('f', 10 * MIB, bytes(2 * MIB))
        connection.close()
        self.expect_untouched()
        connection = self.begin_put('f', 10 * MIB, bytes(2 * MIB))
        connection.shutdown(socket.SHUT_WR)
        self.expect_untouched()
        # So with an API that is killed.
        self.begin_put('f', 10 * MIB, bytes(2 * MIB))
        os.kill(self.pid_of_service('airlock-api'), signal.SIGKILL)
        self.expect_untouched()
        # Control: one that stays.
        connection = self.begin_put('f', 2 * MIB, bytes(MIB))
        connection.sendall(bytes(MIB))
        self.assertTrue(connection.recv(1000).startswith(b'HTTP/1.1 200 '))
        self.assertEqual(self.here('f'), bytes(2 * MIB))

    def test_an_answer_that_is_cut_off_does_not_look_whole(self):
        self.serve_api()
        self.put('large', bytes(64 * MIB))
        with self.connection() as connection:
            connection.request('GET', self.address('large'), headers=self.headers())
            response = connection.getresponse()
            self.assertEqual(response.read(10), bytes(10))
            self.assertEqual(self.exec(['pkill', '-9', 'airlock-files'])['exitCode'], 0)
            with self.assertRaises(http.client.IncompleteRead):
                response.read()
        # A file that becomes shorter meanwhile, likewise.
        with self.connection() as connection:
            connection.request('GET', self.address('large'), headers=self.headers())
            response = connection.getresponse()
            self.assertEqual(response.read(10), bytes(10))
            os.truncate(self.work + '/large', 0)
            with self.assertRaises(http.client.IncompleteRead):
                response.read()

    def test_one_of_many_writers_wins(self):
        self.serve_api()
        contents = [bytes([65 + i]) * (3 * MIB + i) for i in range(8)]
        statuses = []

        def write(each):
            statuses.append(self.request('PUT', self.address('f'), each).status)
        threads = [threading.Thread(target=write, args=(each,)) for each in contents]
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE)
        self.assertEqual(len([each for each in statuses if each in (200, 201)]), 8, statuses)
        self.assertIn(self.here('f'), contents)
        self.assertEqual(os.listdir(self.work), ['f'])

    def test_only_one_of_many_may_be_the_first(self):
        self.serve_api()
        tag = self.put('f', b'old').headers['ETag']
        for headers, path in (({'If-None-Match': '*'}, 'new'), ({'If-Match': tag}, 'f')):
            statuses = []

            def write(number):
                statuses.append(self.request('PUT', self.address(path), b'%d' % number, headers=headers).status)
            threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
            for each in threads:
                each.start()
            for each in threads:
                each.join(PATIENCE)
            self.assertEqual(sorted(statuses)[1:], [412] * 7, statuses)

    def test_as_an_agent_s_context_would(self):
        """Where all children are routed, airlock-files is none of them."""
        self.serve_api(extra={'contexts': {'platform': {'cwd': self.work, 'child_context': 'user'},
                                           'user': {'cwd': self.work}}})
        self.put('f', b'x', 201, context='platform')
        self.assertEqual(self.get('f', context='platform').body, b'x')
        self.assertEqual(self.get('/proc/self/comm', context='platform').body, b'airlock-files\n')
        routes = [json.loads(line) for line in self.airlock('-o', 'json', 'routes').out.splitlines()]
        told = {(each['program'], each['outcome']) for each in routes if each['rule'] == 'files'}
        self.assertEqual(told, {('(files)', 'run_in')})


if __name__ == '__main__':
    main()
