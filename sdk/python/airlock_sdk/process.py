"""Programs that run, or have run."""

import base64
import re
import urllib.parse

from .errors import ExecError, StreamInterruptedError, UnreachableError, error_of


def _snake(name):
    return re.sub('[A-Z]', lambda match: '_' + match.group().lower(), name)


class Result:
    """How a program ended: `exit_code signal timed_out success stdout stderr duration_ms status …`, the fields of
    docs/API.md in Python's spelling. A failing program is a result, not an exception."""

    def __init__(self, fields):
        self.raw = fields
        for name, value in fields.items():
            setattr(self, _snake(name), value)

    def check(self):
        """This result, if the program ended with 0; else raises ExecError."""
        if not self.success:
            raise ExecError(self)
        return self

    def bytes(self, stream='stdout'):
        """What is kept of a stream, byte for byte."""
        text = self.raw[stream]
        return base64.b64decode(text) if self.raw[stream + 'Encoding'] == 'base64' else text.encode()

    def __repr__(self):
        shown = {name: self.raw.get(name) for name in ('status', 'exitCode', 'signal', 'stdout', 'stderr')}
        return f'Result({shown})'


class Event:
    """One of a stream: `type` is start, stdout, stderr, notice or, at last, exit, which has `result`. Output has
    `data`, bytes, and `text` if these are UTF-8, else None."""

    def __init__(self, fields):
        self.type = fields['type']
        self.cursor = fields.get('cursor')
        self.raw = fields
        self.text = fields.get('text')
        self.data = None
        if self.type in ('stdout', 'stderr'):
            self.data = base64.b64decode(fields['base64']) if 'base64' in fields else self.text.encode()
        self.result = Result(fields) if self.type == 'exit' else None

    def __repr__(self):
        return f'Event({self.raw})'


def until_exit(lines, exec_id=None, cursor=None):
    """Events of a stream until its `exit`, which is the last. Raises StreamInterruptedError if the stream ends
    without, and the API's error if it tells one."""
    try:
        for fields in lines:
            cursor = fields.get('cursor') or cursor
            if fields['type'] == 'start':
                exec_id = fields['id']
            if fields['type'] == 'error':
                raise error_of(fields)
            if fields['type'] != 'ping':
                yield Event(fields)
            if fields['type'] == 'exit':
                return
    except (UnreachableError, ValueError) as error:
        if exec_id is None:
            raise
        raise StreamInterruptedError(exec_id, cursor) from error
    finally:
        lines.close()
    raise StreamInterruptedError(exec_id, cursor)


class Process:
    """Found again by its id: sandbox.get_process(id)."""

    def __init__(self, http, exec_id, pid=None):
        self._http = http
        self.id = exec_id
        self.pid = pid

    def _path(self, rest=''):
        return f'/api/v1/execs/{urllib.parse.quote(self.id, safe="")}{rest}'

    def status(self):
        """What is known about it now."""
        return Result(self._http.json('GET', self._path()))

    def wait(self):
        """Its result when it has ended; output comes from logs() or output()."""
        while True:
            now = self._http.json('GET', self._path('?waitMs=30000'))
            if now['status'] not in ('running', 'queued'):
                return Result(now)

    def output(self):
        """Its output so far, as far as it is kept, and its status."""
        return Result(self._http.json('GET', self._path('/output')))

    def logs(self, since=None):
        """Its events from a cursor on, to its end."""
        query = '?since=' + urllib.parse.quote(since, safe='') if since else ''
        yield from until_exit(self._http.lines('GET', self._path('/output' + query)), self.id, since)

    def write(self, data):
        """Writes to its input: bytes, or text as UTF-8. Returns when its pipe has taken all."""
        self._http.json('POST', self._path('/stdin'), body=data.encode() if isinstance(data, str) else data)

    def close_stdin(self):
        self._http.json('POST', self._path('/stdin?close=true'), body=b'')

    def kill(self, signal='SIGTERM', scope='group', escalate_after=None, escalate_signal='SIGKILL'):
        """Sends a signal to its process group, or to another scope: `leader`, `exec`, `context`. After `escalate_after`
        seconds those that are left get a second one. {'delivered', 'survivors'} of a wide scope or an escalation."""
        body = {'signal': signal, 'scope': scope}
        if escalate_after is not None:
            body['escalate'] = {'afterMs': round(escalate_after * 1000), 'signal': escalate_signal}
        return self._http.json('POST', self._path('/signal'), body)

    def resize(self, cols, rows):
        """Of its terminal."""
        self._http.json('POST', self._path('/resize'), {'cols': cols, 'rows': rows})
