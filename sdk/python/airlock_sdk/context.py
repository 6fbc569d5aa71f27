"""Execution contexts and their persistent shells."""

import posixpath
import shlex
import urllib.parse

from .files import Files
from .process import Process, Result, until_exit
from .terminal import Terminal, terminal_body

#: `text` as one word of a POSIX shell.
quote = shlex.quote

_OPTIONS = {'env': 'env', 'cwd': 'cwd', 'shell': 'shell', 'on_busy': 'onBusy', 'stdin': 'stdin', 'tty': 'tty',
            'output': 'output', 'on_disconnect': 'onDisconnect', 'slow_reader': 'slowReader'}
_SECONDS = {'timeout': 'timeoutMs', 'grace': 'graceMs', 'yield_after': 'yieldMs'}


def body_of(command, options):
    """The body of an exec request. Unknown options raise TypeError; None is the same as leaving one out."""
    body = {'command': command} if isinstance(command, str) else {'argv': list(command)}
    for name, value in options.items():
        if name not in _OPTIONS and name not in _SECONDS:
            raise TypeError(f'unknown option {name!r}')
        if value is None:
            continue
        if name in _SECONDS:
            body[_SECONDS[name]] = round(value * 1000)
        elif name == 'output':
            body['output'] = {'maxBytes' if key == 'max_bytes' else key: each for key, each in value.items()}
        else:
            body[_OPTIONS[name]] = value
    return body


def key_header(key):
    return {} if key is None else {'Idempotency-Key': key}


class Context:
    """A place where programs run. As a context manager it is destroyed at the end of the block."""

    def __init__(self, http, name, persistent=None):
        self._http = http
        self.name = name
        self.persistent = persistent
        self._base = '/api/v1/contexts/' + urllib.parse.quote(name, safe='')
        self.files = Files(http, self._base)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def exec(self, command, *, idempotency_key=None, **options):
        """Runs a program and returns its Result, whether it fails or not. A string is for the context's shell, a
        list runs as it is. Options: env cwd stdin tty shell on_busy output on_disconnect slow_reader, and in
        seconds timeout grace yield_after (docs/API.md)."""
        return Result(self._http.json('POST', self._base + '/exec', body_of(command, options),
                                      headers=key_header(idempotency_key)))

    def exec_stream(self, command, *, idempotency_key=None, **options):
        """Its events: start, stdout, stderr, notice, and at last exit. Closing the generator ends the program."""
        yield from until_exit(self._http.lines('POST', self._base + '/exec', body_of(command, options),
                                               key_header(idempotency_key)))

    def spawn(self, command, *, idempotency_key=None, **options):
        """Starts a program that goes on by itself; a string in a new shell unless `shell` names one."""
        if isinstance(command, str):
            options.setdefault('shell', False)
        if options.get('tty') is None:
            options.setdefault('stdin', 'open')
        body = body_of(command, {**options, 'yield_after': 0})
        started = self._http.json('POST', self._base + '/exec', body, headers=key_header(idempotency_key))
        return Process(self._http, started['id'], started['pid'])

    def terminal(self, command=None, **options):
        """A program on a terminal (default: a shell), attached. It lives on when this process ends:
        attach_terminal(id). Options: cols rows env cwd scrollback_bytes, and in seconds timeout grace idle_timeout."""
        body = terminal_body(command, options)
        return Terminal(self._http, self._http.json('POST', self._base + '/terminals', body)).attach()

    def attach_terminal(self, terminal_id, takeover=False):
        """A terminal of this context again, with what it showed. `takeover` takes the place of who writes now."""
        found = self._http.json('GET', '/api/v1/terminals/' + urllib.parse.quote(terminal_id, safe=''))
        return Terminal(self._http, found).attach(takeover)

    def terminals(self):
        """Its terminals, as they are now: a list of dicts."""
        return self._http.json('GET', self._base + '/terminals')['items']

    def shell(self, name='default'):
        """A persistent shell by name, made when it is first used."""
        return Shell(self, name)

    def shells(self):
        """Its persistent shells, as they are now: a list of dicts."""
        return self._http.json('GET', self._base + '/shells')['items']

    def start_shell(self, name='default'):
        """A shell that is started ahead of its first command."""
        self._http.json('POST', self._base + '/shells', {'name': name})
        return Shell(self, name)

    def shell_path(self, name):
        return f'{self._base}/shells/{urllib.parse.quote(name, safe="")}'

    def ports(self):
        """TCP ports that its programs listen on: a list of dicts."""
        return self._http.json('GET', self._base + '/ports')['items']

    def wait_for_port(self, port, timeout=30):
        """Returns when one of its programs listens there; TimeoutError after `timeout` seconds."""
        found = self._http.json('GET', f'{self._base}/ports/{int(port)}:wait?timeoutMs={round(timeout * 1000)}')
        if not found['isListening']:
            raise TimeoutError(f'nobody listens on port {port} in context {self.name}')
        return found

    def order_shell(self, name, verb):
        return self._http.json('POST', f'{self.shell_path(name)}:{verb}')

    def describe_shell(self, name):
        return self._http.json('GET', self.shell_path(name))

    def end_shell(self, name):
        return self._http.json('DELETE', self.shell_path(name))

    def processes(self):
        """Programs of this context that run, or ended lately."""
        items = self._http.json('GET', self._base + '/execs')['items']
        return [Process(self._http, each['id'], each['pid']) for each in items]

    def cd(self, folder):
        """Where programs start from now on, in its shells, too. A relative folder counts from pwd()."""
        if not folder.startswith('/'):
            folder = posixpath.normpath(posixpath.join(self.pwd(), folder))
        self._http.json('PUT', self._base + '/cwd', {'cwd': folder})

    def pwd(self):
        """Where the next command runs."""
        return self._http.json('GET', self._base + '/cwd')['cwd']

    def set_env(self, env):
        """None removes a variable. For programs that start from now on, and its shells' next commands."""
        self._http.json('PATCH', self._base + '/env', env)

    def get_env(self):
        """What a program of this context sees."""
        printed = self.exec('env -0', output={'encoding': 'utf-8'}).check().stdout
        return dict(entry.split('=', 1) for entry in printed.split('\0') if '=' in entry)

    def set_child_context(self, child_context):
        """Where the children of this context's programs run from now on."""
        self._http.json('PUT', self._base + '/route', {'childContext': child_context})

    def set_lifespan(self, **seconds):
        """How long it may live from now on: `ttl`, `idle_timeout`, in seconds; None is for ever."""
        self._http.json('PATCH', self._base, lifespan_of(seconds))

    def explain_route(self, argv):
        """Where a program that is started here would run, and why."""
        return self._http.json('POST', self._base + '/route:explain', {'argv': list(argv)})

    def describe(self):
        return self._http.json('GET', self._base)

    def destroy(self):
        """Ends all its programs. {'survivors': how many are left}."""
        return self._http.json('DELETE', self._base)


def lifespan_of(seconds):
    names = {'ttl': 'ttlMs', 'idle_timeout': 'idleTimeoutMs'}
    unknown = set(seconds) - set(names)
    if unknown:
        raise TypeError(f'unknown option {unknown.pop()!r}')
    return {names[name]: None if value is None else round(value * 1000) for name, value in seconds.items()}


class Shell:
    """A persistent shell: what one command leaves (cwd, variables, functions), the next finds."""

    def __init__(self, context, name):
        self.context = context
        self.name = name

    def exec(self, command, **options):
        return self.context.exec(command, shell=self.name, **options)

    def exec_stream(self, command, **options):
        return self.context.exec_stream(command, shell=self.name, **options)

    def interrupt(self):
        """Ctrl-C for the running command; whether there was one."""
        return self.context.order_shell(self.name, 'interrupt')['interrupted']

    def reset(self):
        """Kills all that the shell has started; the next command gets a fresh one."""
        return self.context.order_shell(self.name, 'reset')

    def describe(self):
        """What it is doing: a dict."""
        return self.context.describe_shell(self.name)

    def end(self):
        """Ends it and all it has started. {'killed', 'survivors'}."""
        return self.context.end_shell(self.name)
