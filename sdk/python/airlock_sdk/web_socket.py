"""The client's side of a WebSocket (RFC 6455) with binary messages."""

import base64
import hashlib
import http.client
import io
import os
import select
import socket
import struct
import threading
import time

_GUID = b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_LARGEST_MESSAGE = 1 << 20  # the API's have 64 KiB and what tells about them
_LARGEST_CONTROL = 125
_BLOCK = 1 << 16


class HandshakeRefused(Exception):
    """The answer was an ordinary one: its status, and its body."""

    def __init__(self, status, body):
        super().__init__(f'HTTP {status}')
        self.status = status
        self.body = body


class Closed(Exception):
    """There will be no more messages: by the other side's `code`, 1006 if it told none."""

    def __init__(self, code=1006):
        super().__init__(f'the WebSocket was closed: {code}')
        self.code = code


class _Late(Exception):
    """The deadline is over."""


class WebSocket:
    """An open one, over a socket that is connected and becomes its own. One thread reads, any may send."""

    def __init__(self, sock, path, protocol, headers):
        self._socket = sock
        self._buffer = bytearray()
        self._message = None  # what has come of one, while it comes in parts
        self._sending = threading.Lock()
        self._is_closing = False
        self._shake_hands(path, protocol, headers)

    def _shake_hands(self, path, protocol, headers):
        key = base64.b64encode(os.urandom(16))
        headers = {**headers, 'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13',
                   'Sec-WebSocket-Key': key.decode(), 'Sec-WebSocket-Protocol': protocol}
        lines = [f'GET {path} HTTP/1.1', *(f'{name}: {value}' for name, value in headers.items())]
        self._socket.sendall(('\r\n'.join(lines) + '\r\n\r\n').encode('latin-1'))
        status, told = self._read_head()
        if status != 101:
            length = told.get('Content-Length', '0')
            self._await(int(length) if length.isdecimal() else 0, None)
            raise HandshakeRefused(status, bytes(self._buffer))
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()
        wanted = [('Sec-WebSocket-Accept', accept), ('Sec-WebSocket-Protocol', protocol), ('Sec-WebSocket-Extensions', None)]
        if any(told.get(name) != value for name, value in wanted):
            raise http.client.HTTPException('that is no answer to a WebSocket')

    def _read_head(self):
        while (end := self._buffer.find(b'\r\n\r\n')) < 0:
            if len(self._buffer) > _BLOCK or not self._fill():
                raise http.client.HTTPException('that is no answer of HTTP')
        first, _, rest = bytes(self._buffer[:end + 4]).partition(b'\r\n')
        del self._buffer[:end + 4]
        words = first.decode('latin-1').split(' ', 2)
        if len(words) < 2 or words[0] != 'HTTP/1.1' or not words[1].isdecimal():
            raise http.client.HTTPException('that is no answer of HTTP')
        return int(words[1]), http.client.parse_headers(io.BytesIO(rest))

    def send(self, message):
        """OSError: it may not have arrived."""
        self._send(_BINARY, message)

    def receive(self, timeout=None):
        """The next message. Closed at the end; TimeoutError after so many seconds, and nothing is lost."""
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while True:
                frame = self._next_frame(deadline)
                message = self._obey(*frame)
                if message is not None:
                    return message
        except _Late:
            raise TimeoutError('nothing has come') from None
        except (OSError, ValueError) as error:  # ValueError: a socket that was closed meanwhile
            raise Closed from error

    def close(self, code=1000):
        """Says so, and waits for nothing."""
        self._send_close(code)
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # whoever reads wakes up
        except OSError:
            pass  # it has gone already
        self._socket.close()

    def _fill(self):
        block = self._socket.recv(_BLOCK)
        self._buffer += block
        return len(block) > 0

    def _is_readable(self, deadline):
        waiting = select.poll()  # select() knows no descriptor above 1023
        waiting.register(self._socket, select.POLLIN)
        return waiting.poll(None if deadline is None else max(0, deadline - time.monotonic()) * 1000)

    def _await(self, size, deadline):
        """Returns when so many bytes are there."""
        while len(self._buffer) < size:
            has_pending = getattr(self._socket, 'pending', lambda: 0)()
            if not has_pending and not self._is_readable(deadline):
                raise _Late
            if not self._fill():
                raise Closed

    def _next_frame(self, deadline):
        """(opcode, is it the last of its message, payload)."""
        self._await(2, deadline)
        first, second = self._buffer[:2]
        opcode, size = first & 15, second & 127
        if first & 0x70 or second & 0x80 or opcode not in (_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG):
            self._give_up(1002)
        if opcode >= _CLOSE and (size > _LARGEST_CONTROL or not first & 0x80):
            self._give_up(1002)
        head = {126: 4, 127: 10}.get(size, 2)
        self._await(head, deadline)
        if head > 2:
            size, = struct.unpack_from('>H' if head == 4 else '>Q', self._buffer, 2)
        if size > _LARGEST_MESSAGE:
            self._give_up(1009)
        self._await(head + size, deadline)
        payload = bytes(self._buffer[head:head + size])
        del self._buffer[:head + size]
        return opcode, bool(first & 0x80), payload

    def _obey(self, opcode, is_final, payload):
        """The message that ends with this frame, if one does."""
        if opcode == _PING:
            self._send(_PONG, payload)
        elif opcode == _CLOSE:
            self._take_close(payload)
        elif opcode != _PONG:
            return self._add(opcode, is_final, payload)
        return None

    def _add(self, opcode, is_final, payload):
        if (opcode == _CONTINUATION) != (self._message is not None):
            self._give_up(1002)
        if opcode == _TEXT:
            self._give_up(1003)
        whole = (self._message or b'') + payload
        if len(whole) > _LARGEST_MESSAGE:
            self._give_up(1009)
        self._message = None if is_final else whole
        return whole if is_final else None

    def _take_close(self, payload):
        if not payload:
            self._send_close(None)
            raise Closed(1005)
        if len(payload) == 1 or not _is_close_code(struct.unpack('>H', payload[:2])[0]):
            self._give_up(1002)
        try:
            payload[2:].decode()
        except UnicodeDecodeError:
            self._give_up(1007)
        code, = struct.unpack('>H', payload[:2])
        self._send_close(code)
        raise Closed(code)

    def _give_up(self, code):
        """The other side does not speak as it should."""
        self._send_close(code)
        raise Closed

    def _send_close(self, code):
        try:
            self._send(_CLOSE, b'' if code is None else struct.pack('>H', code))
        except OSError:
            pass  # it has gone already
        self._is_closing = True

    def _send(self, opcode, payload):
        size = len(payload)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += struct.pack('>BH', 0x80 | 126, size)
        else:
            head += struct.pack('>BQ', 0x80 | 127, size)
        mask = os.urandom(4)
        with self._sending:
            if not self._is_closing:
                self._socket.sendall(head + mask + _masked(payload, mask))


def _masked(payload, mask):
    """Each byte exclusive-or that of the mask (5.3): as one large number, which Python does fast."""
    size = len(payload)
    repeated = mask * (size // 4 + 1)
    number = int.from_bytes(payload, 'big') ^ int.from_bytes(repeated[:size], 'big')
    return number.to_bytes(size, 'big')


def _is_close_code(code):
    """May be sent in a close frame (7.4)."""
    return (1000 <= code <= 1014 and code not in (1004, 1005, 1006)) or 3000 <= code <= 4999
