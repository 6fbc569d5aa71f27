"""A WebSocket client (RFC 6455) of our own, so that tests can also do what libraries would not."""

import base64
import hashlib
import json
import os
import socket
import struct
import time

GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
STDIN, STDOUT, STDERR, STATUS, RESIZE, SIGNAL, CLOSE = 0, 1, 2, 3, 4, 5, 255
TEXT, BINARY, CLOSING, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The answer was not 101."""

    def __init__(self, status, headers, body):
        super().__init__(f'{status}: {body!r}')
        self.status, self.headers, self.body = status, headers, body

    @property
    def code(self):
        return json.loads(self.body)['code']


class WebSocket:
    """One connection. Answers pings; whoever reads gets whole messages."""

    def __init__(self, port, path, headers=(), protocols=('airlock.v1',), patience=20, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(patience)
        self.socket.connect(('127.0.0.1', port))
        self.file = self.socket.makefile('rb')
        self.closed, self.patience = None, patience
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f'GET {path} HTTP/1.1', f'Host: 127.0.0.1:{port}', 'Upgrade: websocket', 'Connection: Upgrade',
                 f'Sec-WebSocket-Key: {key}', 'Sec-WebSocket-Version: 13',
                 *([f'Sec-WebSocket-Protocol: {", ".join(protocols)}'] if protocols else []),
                 *(f'{name}: {value}' for name, value in dict(headers).items())]
        self.socket.sendall('\r\n'.join(lines + ['', '']).encode())
        self.read_answer(key)

    def read_answer(self, key):
        status = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().decode().strip()):
            name, _, value = line.partition(':')
            self.headers[name.lower()] = value.strip()
        if status != 101:
            body = self.file.read(int(self.headers.get('content-length', 0)))
            self.drop()
            raise Refused(status, self.headers, body)
        expected = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        assert self.headers['sec-websocket-accept'] == expected
        self.protocol = self.headers.get('sec-websocket-protocol')

    def frame(self, opcode, payload=b'', final=True, masked=True):
        """Sends one frame, right or wrong."""
        size = len(payload)
        head = bytes([(0x80 if final else 0) | opcode])
        mark = 0x80 if masked else 0
        if size < 126:
            head += bytes([mark | size])
        elif size < 65536:
            head += bytes([mark | 126]) + struct.pack('>H', size)
        else:
            head += bytes([mark | 127]) + struct.pack('>Q', size)
        if masked:
            mask = os.urandom(4)
            block = mask * (size // 4 + 1)
            payload = mask + bytes(a ^ b for a, b in zip(payload, block))
        self.socket.sendall(head + payload)

    def send(self, channel, payload=b''):
        if isinstance(payload, dict):
            payload = json.dumps(payload).encode()
        self.frame(BINARY, bytes([channel]) + payload)

    def type(self, text):
        self.send(STDIN, text.encode())

    def receive(self):
        """(channel, payload) of the next message; None at the end, whose code and reason are in `closed`."""
        message = b''
        deadline = time.monotonic() + self.patience
        while True:
            if time.monotonic() > deadline:
                raise TimeoutError('only pings come')
            head = self.file.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7f
            if size == 126:
                size, = struct.unpack('>H', self.file.read(2))
            elif size == 127:
                size, = struct.unpack('>Q', self.file.read(8))
            payload = self.file.read(size)
            opcode = head[0] & 15
            if opcode == PING:
                self.frame(PONG, payload)
            elif opcode == CLOSING:
                self.closed = (struct.unpack('>H', payload[:2])[0], payload[2:].decode()) if payload else (1005, '')
                try:
                    self.frame(CLOSING, payload[:2])
                except OSError:
                    pass
                return None
            elif opcode != PONG:
                message += payload
                if head[0] & 0x80:
                    return message[0], message[1:]

    def drop(self):
        """Gone without a word, by a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.file.close()
        self.socket.close()

    def close(self):
        if self.socket.fileno() >= 0:
            try:
                self.frame(CLOSING, struct.pack('>H', 1000))
            except OSError:
                pass
            self.file.close()
            self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Attached(WebSocket):
    """A client of airlock.v1: what came, by stream, and how it ended."""

    def __init__(self, *arguments, since=(0, 0), **options):
        super().__init__(*arguments, **options)
        self.output = {STDOUT: b'', STDERR: b''}
        self.at = {STDOUT: since[0], STDERR: since[1]}
        self.statuses = []

    def step(self):
        """Takes one message: False at the end. Every byte has to be where it belongs."""
        message = self.receive()
        if message is None:
            return False
        channel, payload = message
        if channel == STATUS:
            status = json.loads(payload)
            self.statuses.append(status)
            if status['type'] == 'notice':
                self.at[STDOUT if status['stream'] == 'stdout' else STDERR] += status['bytes']
            return True
        offset, = struct.unpack('>Q', payload[:8])
        assert offset == self.at[channel], (offset, self.at)
        self.at[channel] += len(payload) - 8
        self.output[channel] += payload[8:]
        return True

    def until(self, text, channel=STDOUT):
        """Reads until `text` has come; what came before it and with it."""
        while text.encode() not in self.output[channel]:
            assert self.step(), (text, self.output, self.statuses, self.closed)
        return self.output[channel].decode(errors='replace')

    def status(self, kind):
        """The next status of this type; earlier ones are gone."""
        while True:
            while self.statuses:
                status = self.statuses.pop(0)
                if status['type'] == kind:
                    return status
            assert self.step(), (kind, self.closed)

    def state(self, **wanted):
        while True:
            state = self.status('state')
            if all(state[name] == value for name, value in wanted.items()):
                return state

    def exit(self):
        """The result, after which nothing may come."""
        result = self.status('exit')
        assert not self.step() and self.closed[0] == 1000, self.closed
        return result

    @property
    def cursor(self):
        return f'o{self.at[STDOUT]}.e{self.at[STDERR]}'
