"""What tests of the HTTP API share: a daemon with an API, and a client made of Python's own HTTP."""

import contextlib
import hashlib
import http.client
import json
import os

from network import ServiceCase

PORT = 8080
SECRETS = {name: f'{name}-secret-0123456789abcdef' for name in ('admin', 'exec', 'read', 'only-user')}


def token(name, scope, contexts=('*',)):
    return {'name': name, 'sha256': hashlib.sha256(SECRETS[name].encode()).hexdigest(), 'scope': scope,
            'contexts': list(contexts)}


TOKENS = [token('admin', 'admin'), token('exec', 'exec'), token('read', 'read'), token('only-user', 'exec', ['user'])]


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)


class ApiCase(ServiceCase):
    """A daemon that serves the API."""

    def serve_api(self, api=None, options=(), extra=None, env=None):
        self.tokens_folder = self.dir + '/etc'
        os.mkdir(self.tokens_folder)
        self.write_tokens(TOKENS)
        config = {'contexts': {'platform': {'cwd': self.work}, 'user': {'cwd': self.work}},
                  'api': {'tokens_file': self.tokens_folder + '/tokens.json', **(api or {})}, **(extra or {})}
        pid = self.up(json.dumps(config), options=options, env=env)
        self.await_service('airlock-api')
        return pid

    def write_tokens(self, tokens):
        new = self.write(self.dir + '/tokens.new', json.dumps({'tokens': tokens}), 0o600)
        os.rename(new, self.tokens_folder + '/tokens.json')

    @contextlib.contextmanager
    def connection(self, timeout=60):
        connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=timeout)
        try:
            yield connection
        finally:
            connection.close()

    def headers(self, who='admin', **more):
        headers = {'Authorization': 'Bearer ' + SECRETS[who]} if who else {}
        return {**headers, **more}

    def request(self, method, path, body=None, who='admin', headers=None):
        """The Answer; `body` is sent as JSON unless it is bytes."""
        sent = self.headers(who, **(headers or {}))
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault('Content-Type', 'application/json')
        with self.connection() as connection:
            connection.request(method, path, body, sent)
            return Answer(connection.getresponse())

    def expect(self, status, method, path, body=None, **options):
        answer = self.request(method, path, body, **options)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json if answer.body else None

    def refused(self, status, code, method, path, body=None, **options):
        """The problem that a request must be answered with."""
        answer = self.request(method, path, body, **options)
        self.assertEqual((answer.status, answer.headers['Content-Type']), (status, 'application/problem+json'),
                         answer.body)
        self.assertEqual(answer.json['code'], code, answer.body)
        self.assertEqual(answer.json['status'], status)
        return answer

    def exec(self, argv_or_command, context='user', who='admin', **fields):
        kind = 'command' if isinstance(argv_or_command, str) else 'argv'
        return self.expect(200, 'POST', f'/api/v1/contexts/{context}/exec', {kind: argv_or_command, **fields}, who=who)

    @contextlib.contextmanager
    def stream(self, path, body=None, accept='application/x-ndjson', who='admin', method='POST', headers=None):
        """The response of a stream, while it is open."""
        sent = self.headers(who, Accept=accept, **(headers or {}))
        if body is not None:
            body = json.dumps(body).encode()
            sent['Content-Type'] = 'application/json'
        with self.connection() as connection:
            connection.request(method, path, body, sent)
            yield connection.getresponse()


def events(response):
    """The objects of an NDJSON stream until its end."""
    for line in response:
        event = json.loads(line)
        if event['type'] != 'ping':
            yield event


def sse_events(response):
    """(event, data, id) of a Server-Sent Events stream, read as its specification says."""
    name, data, last = '', [], ''
    for line in response:
        line = line.decode('utf-8').rstrip('\n')
        if not line:
            if data:
                yield name, json.loads('\n'.join(data)), last
            name, data = '', []
        elif not line.startswith(':'):
            field, _, value = line.partition(':')
            value = value.removeprefix(' ')
            if field == 'event':
                name = value
            elif field == 'data':
                data.append(value)
            elif field == 'id':
                last = value
