"""Requests with a token, and streams of JSON lines."""

import contextlib
import http.client
import json
import socket
import urllib.parse

from .errors import UnreachableError, error_of
from .web_socket import HandshakeRefused, WebSocket


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def __init__(self, path, _):
        super().__init__('localhost')
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Http:
    """One connection per request, so that threads may share it. `url` may be unix:/path/of/api.sock."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        self._token = token
        if parts.scheme == 'unix' and parts.path:
            self._connect, self._place, self._base = _UnixConnection, (parts.path, None), ''
            return
        if parts.scheme not in ('http', 'https') or not parts.hostname:
            raise ValueError(f'expected a URL such as http://127.0.0.1:8080, got {url!r}')
        self._connect = http.client.HTTPSConnection if parts.scheme == 'https' else http.client.HTTPConnection
        self._place = (parts.hostname, parts.port)
        self._base = parts.path.rstrip('/')

    @contextlib.contextmanager
    def _response(self, method, path, body, headers):
        connection = self._connect(*self._place)
        try:
            if self._token:
                headers = {'Authorization': f'Bearer {self._token}', **headers}
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                # A body that is refused half way: the answer says why.
                connection.request(method, self._base + path, body, headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise error_of(_problem(response.status, response.read()))
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f'{method} {path}: {error}') from error
        finally:
            connection.close()

    def json(self, method, path, value=None, *, body=None, headers=None):
        """The answer's JSON; None if it has no body. `value` is sent as JSON, or `body` as it is."""
        sent = {'Accept': 'application/json', **(headers or {})}
        if value is not None:
            body = json.dumps(value).encode()
            sent['Content-Type'] = 'application/json'
        with self._response(method, path, body, sent) as response:
            text = response.read()
            return json.loads(text) if text else None

    def blocks(self, method, path, headers):
        """The answer's bytes as they come. Closing the generator closes it."""
        with self._response(method, path, None, {'Accept': '*/*', **headers}) as response:
            got, length = 0, response.length
            while block := response.read1(1 << 16):
                got += len(block)
                yield block
            # read1() takes the end of the connection for the end of the body.
            if length is not None and got < length:
                raise http.client.IncompleteRead(b'', length - got)

    def web_socket(self, path, protocol):
        """A WebSocket that is open. Raises the API's error if it refuses."""
        connection = self._connect(*self._place)
        headers = {'Host': connection.host if isinstance(connection, _UnixConnection) else f'{connection.host}:{connection.port}'}
        if self._token:
            headers['Authorization'] = f'Bearer {self._token}'
        try:
            connection.connect()
            return WebSocket(connection.sock, self._base + path, protocol, headers)
        except HandshakeRefused as refused:
            connection.close()
            raise error_of(_problem(refused.status, refused.body)) from None
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise UnreachableError(f'GET {path}: {error}') from error

    def lines(self, method, path, value=None, headers=None):
        """The objects of a stream, until it ends for whatever reason. Closing the generator closes it."""
        sent = {'Accept': 'application/x-ndjson', **(headers or {})}
        body = None
        if value is not None:
            body = json.dumps(value).encode()
            sent['Content-Type'] = 'application/json'
        with self._response(method, path, body, sent) as response:
            for line in response:
                if not line.endswith(b'\n'):
                    return  # cut off
                yield json.loads(line)


def _problem(status, text):
    try:
        problem = json.loads(text)
    except ValueError:
        problem = None
    if isinstance(problem, dict):
        return problem
    return {'status': status, 'code': 'internal', 'title': f'HTTP {status}'}
