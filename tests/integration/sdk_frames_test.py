"""What the SDKs make of WebSocket frames, right and wrong ones (RFC 6455), by a server that sends any bytes. Both SDKs are
shown the same."""

import base64
import hashlib
import json
import os
import shutil
import socket
import struct
import threading

from harness import HERE, Case, main
from network import PYTHON

SDK = os.path.realpath(HERE + '/../../sdk/typescript/lib/unix-web-socket.cjs')
PYTHON_SDK = os.path.realpath(HERE + '/../../sdk/python')
GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
LARGEST = 1 << 20

# Both print what came: was it open, sizes and contents of messages, the code of the end.
NODE = '''
const { UnixWebSocket } = require(process.argv[1]);
const socket = new UnixWebSocket(process.argv[2], '/path?query=1', ['airlock.v1']);
const told = { isOpen: false, messages: [] };
const sha = (bytes) => require('node:crypto').createHash('sha1').update(bytes).digest('hex');
socket.onopen = () => {
  told.isOpen = true;
  for (const size of JSON.parse(process.argv[3])) socket.send(new Uint8Array(size).fill(7));
  if (process.argv[4]) socket.close();
};
socket.onmessage = ({ data }) => told.messages.push([data.byteLength, sha(new Uint8Array(data))]);
socket.onclose = ({ code }) => console.log(JSON.stringify({ ...told, code }));
'''
IN_PYTHON = '''
import hashlib, http.client, json, socket, sys
from airlock_sdk.web_socket import Closed, HandshakeRefused, WebSocket
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
told = {'isOpen': False, 'messages': [], 'code': 1006}
try:
    client = WebSocket(connection, '/path?query=1', 'airlock.v1', {'Host': 'localhost'})
    told['isOpen'] = True
    for size in json.loads(sys.argv[2]):
        client.send(bytes([7]) * size)
    if len(sys.argv) > 3:
        client.close()
    while True:
        message = client.receive()
        told['messages'].append([len(message), hashlib.sha1(message).hexdigest()])
except Closed as closed:
    told['code'] = closed.code
except (HandshakeRefused, http.client.HTTPException):
    pass
print(json.dumps(told))
'''


def frame(opcode, payload=b'', final=True, masked=False, reserved=0, size=None):
    """A frame, right or wrong; `size`: what it says, whatever it has."""
    size = len(payload) if size is None else size
    mark = 0x80 if masked else 0
    head = bytes([(0x80 if final else 0) | reserved | opcode])
    if size < 126:
        head += bytes([mark | size])
    elif size < 65536:
        head += struct.pack('>BH', mark | 126, size)
    else:
        head += struct.pack('>BQ', mark | 127, size)
    return head + (b'\0\0\0\0' if masked else b'') + payload


def closing(code, reason=b''):
    return frame(CLOSE, struct.pack('>H', code) + reason)


def told(*messages):
    return [[len(message), hashlib.sha1(message).hexdigest()] for message in messages]


class Server:
    """Answers one client: the head, then `sent`, in pieces of `step` bytes; reads its frames until its end. All that it has
    sent is in `frames`: (opcode, payload), each checked to be masked."""

    def __init__(self, path, sent, step=None, head=None, stays=True):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        self.sent, self.step, self.head, self.stays = sent, step, head or {}, stays
        self.frames, self.error, self.request = [], None, ''
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            self.serve()
        except Exception as error:  # the test tells
            self.error = error

    def serve(self):
        connection, _ = self.listener.accept()
        connection.settimeout(30)
        with connection, connection.makefile('rb') as file:
            while (line := file.readline()) not in (b'\r\n', b''):
                self.request += line.decode()
            key = self.field('Sec-WebSocket-Key')
            fields = {'Upgrade': 'websocket', 'Connection': 'Upgrade', 'Sec-WebSocket-Protocol': 'airlock.v1',
                      'Sec-WebSocket-Accept': base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode(), **self.head}
            status = fields.pop('status', '101 Switching Protocols')
            answer = f'HTTP/1.1 {status}\r\n' + ''.join(f'{name}: {value}\r\n' for name, value in fields.items()) + '\r\n'
            data = answer.encode() + self.sent
            try:
                for at in range(0, len(data), self.step or len(data)):
                    connection.sendall(data[at:at + (self.step or len(data))])
                if not self.stays:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has seen enough
            try:
                while self.read_frame(file):
                    pass
            except ConnectionError:
                pass

    def field(self, name):
        return next(line.split(': ', 1)[1].strip() for line in self.request.splitlines() if line.startswith(name + ': '))

    def read_frame(self, file):
        head = file.read(2)
        if len(head) < 2:
            return False
        assert head[0] & 0xf0 == 0x80 and head[1] & 0x80, f'not final or not masked: {head!r}'
        size = head[1] & 127
        if size == 126:
            size, = struct.unpack('>H', file.read(2))
            assert size >= 126
        elif size == 127:
            size, = struct.unpack('>Q', file.read(8))
            assert size > 65535
        mask, payload = file.read(4), file.read(size)
        block = mask * (size // 4 + 1)
        self.frames.append((head[0] & 15, bytes(a ^ b for a, b in zip(payload, block))))
        return self.frames[-1][0] != CLOSE

    def end(self):
        self.thread.join()
        self.listener.close()
        if self.error:
            raise self.error


class Frames(Case):

    def clients(self):
        node = shutil.which('node')
        if node:
            yield 'node', lambda path, *rest: [node, '-e', NODE, SDK, path, *rest]
        yield 'python', lambda path, *rest: [PYTHON, '-B', '-W', 'error::DeprecationWarning', '-c', IN_PYTHON, path, *rest]

    def check(self, sent, messages=(), code=1006, said=None, pongs=(), is_open=True, sizes=(), closes=False, **server):
        """What both make of it: the messages, the code they see, and what they say in a close frame (None: nothing)."""
        for name, argv in self.clients():
            with self.subTest(name, sent=sent[:40]):
                path = self.dir + '/server.sock'
                peer = Server(path, sent, **server)
                ran = self.run_program(argv(path, json.dumps(sizes), *(['close'] if closes else [])), env={'PATH': self.env['PATH'], 'PYTHONPATH': PYTHON_SDK})
                peer.end()
                os.unlink(path)
                self.assertEqual(ran.status, 0, ran.err)
                seen = json.loads(ran.out)
                self.assertEqual((seen['isOpen'], seen['messages']), (is_open, told(*messages)))
                if not closes:
                    self.assertEqual(seen['code'], code)
                closed = [payload for opcode, payload in peer.frames if opcode == CLOSE]
                self.assertEqual(closed, [] if said is None else [b'' if said == 1005 else struct.pack('>H', said)])
                self.assertEqual([payload for opcode, payload in peer.frames if opcode == PONG], list(pongs))
                self.assertEqual([payload for opcode, payload in peer.frames if opcode == BINARY], [bytes([7]) * size for size in sizes])
                self.assertEqual(peer.request.splitlines()[0], 'GET /path?query=1 HTTP/1.1')

    def test_whole_messages(self):
        parts = [b'x' * size for size in (0, 1, 125, 126, 65535, 65536, LARGEST)]
        self.check(b''.join(frame(BINARY, part) for part in parts) + closing(1000), parts, 1000, 1000)

    def test_messages_in_parts(self):
        sent = (frame(BINARY, b'ab', final=False) + frame(PING, b'you?') + frame(CONT, b'', final=False) + frame(PONG, b'unasked')
                + frame(CONT, b'cd') + frame(BINARY, b'next') + frame(PING) + closing(4001, 'schön'.encode()))
        for step in (None, 1, 3):
            self.check(sent, [b'abcd', b'next'], 4001, 4001, [b'you?', b''], step=step)

    def test_what_it_sends(self):
        self.check(closing(1000), code=1000, said=1000, sizes=(0, 1, 125, 126, 65535, 65536, 200_000))

    def test_it_closes(self):
        self.check(b'', said=1000, closes=True)

    def test_closes_of_the_server(self):
        self.check(frame(CLOSE), code=1005, said=1005)
        self.check(closing(3000), code=3000, said=3000)
        self.check(frame(BINARY, b'x'), [b'x'], stays=False)
        self.check(frame(BINARY, b'cut off')[:5], stays=False)

    def test_what_is_wrong(self):
        for sent, said in ((frame(BINARY, b'x', masked=True), 1002), (frame(BINARY, b'x', reserved=0x40), 1002),
                           (frame(3, b'x'), 1002), (frame(11), 1002), (frame(TEXT, b'x'), 1003), (frame(CONT, b'x'), 1002),
                           (frame(BINARY, b'x', final=False) + frame(BINARY, b'y'), 1002), (frame(PING, final=False), 1002),
                           (frame(PING, b'x' * 126), 1002), (frame(BINARY, size=LARGEST + 1), 1009), (frame(BINARY, size=(1 << 63) + 1), 1009),
                           (frame(BINARY, b'x' * LARGEST, final=False) + frame(CONT, b'x'), 1009), (frame(CLOSE, b'x'), 1002),
                           (closing(1006), 1002), (closing(999), 1002), (closing(2999), 1002), (closing(5000), 1002),
                           (closing(1000, b'\xff'), 1007)):
            self.check(frame(BINARY, b'before') + sent + frame(BINARY, b'after'), [b'before'], 1006, said)

    def test_answers_that_are_none(self):
        for head in ({'Sec-WebSocket-Accept': 'x'}, {'Sec-WebSocket-Protocol': 'other'}, {'Sec-WebSocket-Extensions': 'permessage-deflate'},
                     {'status': '404 Not Found', 'Content-Length': '0'}, {'status': '200 OK', 'Content-Length': '0'}):
            self.check(b'', is_open=False, head=head)


if __name__ == '__main__':
    main()
