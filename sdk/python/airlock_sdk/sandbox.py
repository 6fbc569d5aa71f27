"""A daemon."""

import os

from .context import Context, key_header, lifespan_of
from .errors import ContextExistsError, error_of
from .http import Http
from .process import Process

_SPEC = {'env': 'env', 'cwd': 'cwd', 'child_context': 'childContext', 'route_child': 'routeChild', 'enforce': 'enforce',
         'isolation': 'isolation', 'rootfs': 'rootfs', 'user': 'user', 'share': 'share', 'hide': 'hide', 'api_socket': 'apiSocket',
         'persistent': 'persistent', 'limits': 'limits'}


def connect(url=None, token=None):
    """Connects to the API at `url` (AIRLOCK_URL, http://127.0.0.1:8080) with `token` (AIRLOCK_TOKEN). Raises AuthError
    or UnreachableError if it cannot be used."""
    sandbox = Sandbox(Http(url or os.environ.get('AIRLOCK_URL') or 'http://127.0.0.1:8080',
                           token or os.environ.get('AIRLOCK_TOKEN')))
    sandbox.info()
    return sandbox


class Sandbox:

    def __init__(self, http):
        self._http = http

    def create_context(self, name, *, if_exists='error', ttl=None, idle_timeout=None, idempotency_key=None, **spec):
        """Spec: env cwd child_context route_child enforce isolation rootfs user share hide persistent api_socket limits
        (docs/API.md); `ttl` and `idle_timeout` are seconds. `if_exists='reuse'` takes one that is there."""
        unknown = set(spec) - set(_SPEC)
        if unknown:
            raise TypeError(f'unknown option {unknown.pop()!r}')
        body = {'name': name, **lifespan_of({'ttl': ttl, 'idle_timeout': idle_timeout})}
        body.update({_SPEC[key]: value for key, value in spec.items() if value is not None})
        try:
            made = self._http.json('POST', '/api/v1/contexts', body, headers=key_header(idempotency_key))
        except ContextExistsError:
            if if_exists != 'reuse':
                raise
            return self.get_context(name)
        return Context(self._http, name, made['persistent'])

    def get_context(self, name):
        found = Context(self._http, name)
        found.persistent = found.describe()['persistent']
        return found

    def list_contexts(self):
        """A list of dicts."""
        return self._http.json('GET', '/api/v1/contexts')['items']

    def exec(self, command, **options):
        """Runs in the context `user`."""
        return Context(self._http, 'user').exec(command, **options)

    def get_process(self, exec_id):
        """A program by its id, also one that somebody else has started."""
        found = Process(self._http, exec_id)
        found.pid = found.status().pid
        return found

    def route_events(self, from_context=None, to_context=None):
        """Every routing decision as it is made: dicts, until the generator is closed."""
        for event in self._http.lines('GET', '/api/v1/routes/events'):
            if event['type'] == 'error':
                raise error_of(event)
            if event['type'] == 'route' and from_context in (None, event['from']) and to_context in (None, event['to']):
                yield event

    def ports(self):
        """Ports that the daemon holds for its services: a list of dicts."""
        return self._http.json('GET', '/api/v1/ports')['items']

    def health(self):
        return self._http.json('GET', '/health')

    def info(self):
        return self._http.json('GET', '/api/v1/info')
