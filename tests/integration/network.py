"""A network of the test program's own, so that the ports it uses are free and nobody else's, and what
tests of services share."""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import time
import unittest

from harness import AIRLOCK, Case, eventually

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)
PYTHON = '/usr/bin/python3'
# An address of this machine beside 127.0.0.1.
OTHER_ADDRESS = '10.77.1.1'
# Of the machine at the other end of the wire (Neighbour), and ours there.
NEIGHBOUR, OURS = '10.77.2.2', '10.77.2.1'


def own_network():
    """Moves this process, and all it starts, to new network and mount namespaces. Call it in setUpModule."""
    if os.geteuid() != 0:
        raise unittest.SkipTest('a network namespace needs root')
    if LIBC.unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        raise unittest.SkipTest('a network namespace needs CAP_SYS_ADMIN')
    LIBC.mount(b'none', b'/', None, MS_REC | MS_PRIVATE, None)
    ip('link set lo up')
    ip(f'address add {OTHER_ADDRESS}/32 dev lo')


def ip(arguments):
    subprocess.run(['ip', *arguments.split()], check=True)


class Neighbour:
    """Another machine, as far as the network goes: a namespace at the other end of a wire."""

    def __init__(self):
        self.process = subprocess.Popen(['unshare', '-n', 'sh', '-c', 'ip link set lo up; echo; exec sleep 1000'],
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()
        ip('link add wire0 type veth peer name wire1')
        ip(f'link set wire1 netns {self.process.pid}')
        ip(f'address add {OURS}/24 dev wire0')
        ip('link set wire0 up')
        self.run('ip', 'address', 'add', NEIGHBOUR + '/24', 'dev', 'wire1')
        self.run('ip', 'link', 'set', 'wire1', 'up')

    def run(self, *argv):
        return subprocess.run(['nsenter', '-t', str(self.process.pid), '-n', *argv], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def fetch(self, address, port):
        """What a request of the neighbour's gets: the answer, or the name of the error."""
        return self.run(PYTHON, '-c', FETCH, address, str(port)).strip()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


FETCH = '''
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 1.5) as s:
        s.settimeout(5)
        s.sendall(b"hello\\n")
        print(s.recv(100).decode().strip() or "nothing")
except OSError as error:
    print(type(error).__name__)
'''


def fetch(address, port):
    """The same from here. A filtered port answers nothing: that is a timeout, of 1.5 s."""
    return subprocess.run([PYTHON, '-c', FETCH, address, str(port)], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


# Answers each connection's first bytes with its pid; arguments: address and port.
ECHO = '''
import os, socket, sys
address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
server = socket.socket(family)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((address, port))
server.listen(5)
while True:
    connection, peer = server.accept()
    with connection:
        if connection.recv(100):
            connection.sendall(b"%d\\n" % os.getpid())
'''


class ServiceCase(Case):
    """A daemon with services."""

    def serve(self, services, env=None, extra=None, options=()):
        """Starts a daemon with `services`, a dict as the configuration has it; returns its pid."""
        self.config = {'contexts': {'platform': {'cwd': self.work}, 'user': {'cwd': self.work}},
                       'services': services, **(extra or {})}
        return self.up(json.dumps(self.config), env=env, options=options)

    def refuse(self, services, extra=None):
        """The same where the daemon must not start: how `airlock up` ended."""
        config = {'services': services, **(extra or {})}
        return self.airlock('up', '--config', self.write(self.dir + '/airlock.yaml', json.dumps(config)))

    def change(self, services):
        """Writes another set of services to the configuration file of serve()."""
        self.config['services'] = services
        self.write(self.dir + '/airlock.yaml', json.dumps(self.config))

    def echo(self, port, address='0.0.0.0', **keys):
        """A service that answers on a port with its pid."""
        program = self.write(self.dir + '/echo.py', ECHO)
        return {'command': [PYTHON, '-S', program, address, str(port)], 'ports': [port],
                'restart_delay': '10ms', 'max_restart_delay': '50ms', **keys}

    def script(self, name, text):
        return [PYTHON, '-S', self.write(f'{self.dir}/{name}.py', text)]

    def service(self, name):
        return next(each for each in self.ask('services') if each['name'] == name)

    def await_service(self, name, is_so=lambda service: service['state'] == 'ready', what='ready'):
        def look():
            found = self.service(name)
            return found if is_so(found) else None
        try:
            return eventually(look, f'service {name} is {what}')
        except AssertionError:
            print(self.service(name), self.airlock('logs', name).out)
            raise

    def log(self, name):
        return self.airlock('logs', name).out

    def daemon_log(self):
        with open(self.runtime + '/airlock.log') as file:
            return file.read()

    def pid_of_service(self, name):
        """Its pid as seen from here."""
        space = self.namespace_of('control')
        inner = self.service(name)['pid']
        from harness import pid_of
        return pid_of(inner, space)

    @contextlib.contextmanager
    def stream(self, *arguments):
        """`airlock ARGUMENTS` while it runs."""
        process = self.start([AIRLOCK, *arguments])
        try:
            yield process
        finally:
            self.end(process)


def listens(address, port, patience=0.5):
    try:
        socket.create_connection((address, port), patience).close()
        return True
    except OSError:
        return False


def seconds():
    return time.monotonic()
