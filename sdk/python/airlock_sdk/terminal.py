"""Programs on terminals."""

import json
import struct
import time
import urllib.parse

from .errors import AirlockError, UnreachableError
from .process import Result
from .web_socket import Closed

_STDIN, _STDOUT, _STATUS, _RESIZE = 0, 1, 3, 4
_TAKEN_OVER = 4001
_LARGEST_INPUT = 1 << 16
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between attempts to attach again

_OPTIONS = {'cols': 'cols', 'rows': 'rows', 'env': 'env', 'cwd': 'cwd', 'scrollback_bytes': 'scrollbackBytes'}
_SECONDS = {'timeout': 'timeoutMs', 'grace': 'graceMs', 'idle_timeout': 'idleTimeoutMs'}


def terminal_body(command, options):
    """The body of a terminal's request. Unknown options raise TypeError; None is the same as leaving one out."""
    body = {}
    if command is not None:
        body = {'command': command} if isinstance(command, str) else {'argv': list(command)}
    for name, value in options.items():
        if name not in _OPTIONS and name not in _SECONDS:
            raise TypeError(f'unknown option {name!r}')
        if value is not None:
            body[_OPTIONS.get(name) or _SECONDS[name]] = round(value * 1000) if name in _SECONDS else value
    return body


class Terminal:
    """A program on a terminal. It outlives connections: after a loss read() attaches again, and goes on with the byte
    after the last it has got. One thread reads, others may write. As a context manager it is left at the end."""

    def __init__(self, http, described):
        self._http = http
        self.id = described['id']
        self.exec_id = described['exec']['id']
        #: 'connecting', 'connected', 'reconnecting', 'taken-over', 'closed' or 'ended'.
        self.state = 'connecting'
        #: What the API told about it last: who is attached, and its timers.
        self.info = described
        #: How the program ended, once it has.
        self.result = None
        self._path = '/api/v1/terminals/' + urllib.parse.quote(self.id, safe='')
        self._since = 0
        self._size = None
        self._socket = None
        self._pause = _FIRST_PAUSE

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __iter__(self):
        """What it shows, until its program has ended."""
        while data := self.read():
            yield data

    def attach(self, takeover=False):
        query = f'?since=o{self._since}.e0' + ('&takeover=1' if takeover else '')
        self._socket = self._http.web_socket(f'{self._path}/attach{query}', 'airlock.v1')
        self._pause = _FIRST_PAUSE
        self.state = 'connected'
        if self._size:
            self._send(_RESIZE, self._size)
        return self

    def read(self, timeout=None):
        """What it shows next: bytes, b'' when its program has ended. TimeoutError after so many seconds. Raises
        AirlockError if another client has taken over, or the terminal is gone."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.state in ('connected', 'reconnecting'):
            if self.state == 'reconnecting':
                self._attach_again(deadline)
                continue
            try:
                left = None if deadline is None else max(0, deadline - time.monotonic())
                data = self._take(self._socket.receive(left))
            except Closed as closed:
                self._lose(closed.code)
                continue
            if data:
                return data
        if self.state == 'ended':
            return b''
        raise AirlockError(f'the terminal is not attached: {self.state}', code='terminal-' + self.state)

    def wait(self, timeout=None):
        """Its Result, when the program has ended; what it shows meanwhile is dropped."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.read(None if deadline is None else max(0, deadline - time.monotonic())):
            pass
        return self.result

    def write(self, data):
        """Types: text or bytes. UnreachableError: it is not connected, and what was typed may not have arrived."""
        data = data.encode() if isinstance(data, str) else bytes(data)
        for start in range(0, len(data), _LARGEST_INPUT):
            self._send(_STDIN, data[start:start + _LARGEST_INPUT])

    def resize(self, cols, rows):
        self._size = json.dumps({'cols': cols, 'rows': rows}).encode()
        if self.state == 'connected':
            self._send(_RESIZE, self._size)

    def reset(self):
        """Starts the program anew, with an empty screen."""
        self.info = self._http.json('POST', self._path + '/reset')

    def close(self):
        """Leaves; the program goes on."""
        self._leave('ended' if self.state == 'ended' else 'closed')

    def kill(self):
        """Hangs up: the program gets SIGHUP, and SIGKILL 5 s later."""
        self._http.json('DELETE', self._path)

    def _send(self, channel, payload):
        socket = self._socket
        if self.state != 'connected' or socket is None:
            raise UnreachableError(f'the terminal is not attached: {self.state}')
        try:
            socket.send(bytes([channel]) + payload)
        except OSError as error:
            raise UnreachableError(f'the terminal: {error}') from error

    def _take(self, message):
        """What a message shows, if it shows something."""
        payload = message[1:]
        if message[:1] == bytes([_STDOUT]):
            offset, = struct.unpack_from('>Q', payload)
            self._since = offset + len(payload) - 8
            return payload[8:]
        if message[:1] == bytes([_STATUS]):
            self._obey(json.loads(payload))
        return b''

    def _obey(self, status):
        if status['type'] == 'state':
            self.info = {**self.info, **status}
        if status['type'] == 'start':
            self._follow(status['id'])
        if status['type'] == 'exit':
            self.result = Result(status)
            self._leave('ended')

    def _follow(self, exec_id):
        """After a reset another program's output begins."""
        if exec_id != self.exec_id:
            self._since = 0
        self.exec_id = exec_id

    def _lose(self, code):
        if self.state == 'connected':
            self._leave('taken-over' if code == _TAKEN_OVER else 'reconnecting')

    def _attach_again(self, deadline):
        """The place of the lost connection may still be taken by it."""
        try:
            self.info = self._http.json('GET', self._path)
            self._follow(self.info['exec']['id'])
            self.attach(takeover=True)
            return
        except AirlockError as error:
            if not isinstance(error, UnreachableError) and not error.retryable and 400 <= error.status < 500:
                self._leave('closed')
                raise
        if deadline is not None and time.monotonic() + self._pause > deadline:
            raise TimeoutError('the terminal could not be attached again yet')
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _leave(self, state):
        self.state = state
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()
