"""What a program of one context tries against another: probes.py WORLD.json PROBE.

Each probe prints one JSON object, {"reached": bool, "how": text}. The same probes serve as their own
controls: run where they must reach their aim, they do. WORLD.json tells where the victim is; it never
holds the canary itself, only the canary reversed, so that no probe finds its own copy.

`probes.py WORLD.json victim` is the victim: it holds the canary in every place a probe looks at, says
"ready", and ends with its standard input.
"""

import ctypes
import glob
import json
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../fixtures'))
import wire

PTRACE_SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)
world = {}


def canary():
    return world['yranac'][::-1]


def called(result):
    """Result of a libc call, or OSError."""
    if result in (-1, 2**64 - 1):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def pids():
    return [int(name) for name in os.listdir('/proc') if name.isdigit()]


def victim_seen():
    """The victim's pid as this process sees it: by its command line, which is not a secret."""
    for pid in pids():
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
        except OSError:
            continue
        if world['mark'].encode() in words and words[0] == sys.executable.encode():
            return pid  # and not the requester, which has the same words behind its own
    return None


def victim_pid():
    """Its number: as seen, else that of the daemon's namespace if nobody of ours has it."""
    pid = victim_seen()
    if pid:
        return pid
    if os.path.exists(f'/proc/{world["victim"]}'):
        raise ProcessLookupError(f'pid {world["victim"]} is somebody else here')
    return world['victim']


def first_that_works(attempt, candidates):
    """attempt(candidate) of the first that raises no OSError; else all their errors."""
    errors = []
    for candidate in candidates:
        try:
            return attempt(candidate)
        except OSError as error:
            errors.append(str(error))
    raise PermissionError('; '.join(errors) or 'nothing to try')


def opened_for_writing(path):
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    return path


# --- probes: each returns how it reached its aim, or raises OSError

def processes():
    """Another context's processes are listed."""
    pid = victim_seen()
    if not pid:
        raise ProcessLookupError('no such process is listed')
    return f'pid {pid}'


def signal_one():
    os.kill(victim_pid(), signal.SIGUSR1)
    return 'SIGUSR1 was sent'


def signal_each():
    """Signal 0 to every number there may be: who answers and is not one of ours?"""
    own = victim_is_inside = 0
    with open('/proc/sys/kernel/pid_max') as file:
        last = min(int(file.read()), 1 << 16)
    for pid in range(2, last):
        try:
            os.kill(pid, 0)
        except OSError:
            continue
        own += 1
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
                victim_is_inside |= world['mark'].encode() in words and words[0] == sys.executable.encode()
        except OSError:
            pass
    if not own:
        raise RuntimeError('not even this process can be signalled')
    if not victim_is_inside:
        raise PermissionError(f'{own} processes can be signalled, none of the other context')
    return 'the victim can be signalled'


def init():
    """SIGKILL to the init of the own context."""
    pid = 1 if world['has_pid_namespace'] else world['inits'][os.environ['CONTEXT']]
    os.kill(pid, signal.SIGKILL)
    return f'SIGKILL to {pid}'


def kill_all():
    """kill -9 -1. Ends this program, too, where its spawner is not root's."""
    os.kill(-1, signal.SIGKILL)
    return 'sent'


def daemon():
    os.kill(world['daemon'], 0)
    return 'routerd can be signalled'


def environ():
    for pid in pids():
        try:
            with open(f'/proc/{pid}/environ', 'rb') as file:
                if canary().encode() in file.read():
                    return f'in the environment of {pid}'
        except OSError:
            pass
    raise PermissionError('in no environment that can be read')


def trace():
    called(libc.ptrace(PTRACE_SEIZE, victim_pid(), None, None))  # our end detaches
    return 'attached'


def memory():
    with open(f'/proc/{victim_pid()}/mem', 'rb') as file:
        file.seek(0)
    return '/proc/PID/mem was opened'


def links():
    """Root, working folder, program and descriptors of the victim."""
    return first_that_works(lambda name: os.readlink(f'/proc/{victim_pid()}/{name}'), ('cwd', 'root', 'exe', 'fd/0'))


def abstract_socket():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect('\0' + world['mark'])
    return 'connected'


def read_canary(path):
    with open(path) as file:
        text = file.read()
    if canary() not in text:
        raise FileNotFoundError('another file is there')
    return path


def home_file():
    return read_canary(world['home'] + '/token')


def late_file():
    return read_canary(world['home'] + '/late')


def hidden_file():
    return read_canary(world['hidden'] + '/token')


def private_file():
    """Mode 0600, outside HOME."""
    return read_canary(world['work'] + '/private')


def shared_memory_file():
    return read_canary('/dev/shm/' + world['mark'])


def sysv_memory():
    called(libc.shmget(world['key'], 1, 0o600))
    return 'the segment is there'


def message_queue():
    called(libc.mq_open(('/' + world['mark']).encode(), os.O_RDONLY))
    return 'opened'


def control_socket():
    """The daemon's control socket obeys."""
    connection = wire.connect(world['runtime'] + '/control.sock')
    connection.sendall(wire.control('info'))
    kind, payload = wire.receive(connection)
    if kind != wire.CONTROL_REPLY:
        raise PermissionError(payload[12:].decode(errors='replace'))
    return 'answered'


def run_by_router(path):
    connection = wire.connect(path)
    connection.sendall(wire.frame(wire.EXEC_REQUEST, wire.exec_request([b'/bin/true'])))
    kind, payload = wire.receive(connection)
    if kind == wire.NOT_STARTED:
        raise PermissionError(payload[12:].decode(errors='replace'))
    return 'it ran'


def router_socket():
    """A request through the router socket of another context: to run as its child."""
    return first_that_works(run_by_router, (world['runtime'] + '/view/platform/router.sock',
                                            world['runtime'] + '/router.sock'))


def stub():
    """What an agent's children are replaced by."""
    return first_that_works(opened_for_writing, (world['runtime'] + '/view/platform/airlock-stub',
                                                 world['runtime'] + '/airlock-stub'))


def capabilities():
    """Capabilities beyond the ten of developer work."""
    with open('/proc/self/status') as file:
        effective = int(next(line.split()[1] for line in file if line.startswith('CapEff')), 16)
    if effective & ~0x800404fb:
        return f'{effective:x}'
    raise PermissionError(f'{effective:x}')


def raw_socket():
    """Reads everybody's traffic on loopback."""
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return 'opened'


def kernel_knobs():
    return first_that_works(opened_for_writing, ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger',
                                                 '/proc/sys/kernel/domainname'))


def cgroups():
    """Files by which whole cgroups are frozen, killed or changed."""
    paths = glob.glob('/sys/fs/cgroup/**/cgroup.procs', recursive=True)[:50]
    return first_that_works(opened_for_writing, paths)


# --- what normal work needs: these must reach their aim

def trace_own_child():
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writable)
        os.read(readable, 1)
        os._exit(0)
    called(libc.ptrace(PTRACE_SEIZE, child, None, None))
    os.close(writable)
    while not os.WIFEXITED(os.waitpid(child, 0)[1]):
        pass
    return 'a child was traced to its end'


def signal_own_job():
    """A process that another exec of this context has started."""
    os.kill(world['neighbours'][os.environ['CONTEXT']], signal.SIGUSR1)
    return 'SIGUSR1 was sent'


def own_home():
    path = os.environ['HOME'] + '/own'
    with open(path, 'w') as file:
        file.write('x')
    return path


def root_inside():
    """User id 0 with the right to give files away: apt-get, chown, useradd."""
    path = os.environ['HOME'] + '/given'
    with open(path, 'w'):
        pass
    os.chown(path, 4711, 4711)
    return 'chown works'


def setuid_programs():
    with open('/proc/self/status') as file:
        text = file.read()
    if 'NoNewPrivs:\t1' in text:
        raise PermissionError('no_new_privs is set')
    with open('/proc/self/uid_map') as file:
        if int(file.read().split()[2]) < 2:
            raise PermissionError('one user id is mapped')
    return 'su and sudo have an effect'


def send_to_neighbour():
    signal.signal(signal.SIGUSR1, lambda *_: print('signalled', flush=True))
    print(json.dumps({'pid': os.getpid()}), flush=True)
    sys.stdin.read()


def victim():
    """Holds the canary everywhere. Its argv ends with the mark."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind('\0' + world['mark'])
    listener.listen(100)
    for path in (world['home'] + '/late', world['work'] + '/private', '/dev/shm/' + world['mark']):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), 'w') as file:
            file.write(canary())
    segment = called(libc.shmget(world['key'], 4096, 0o1600))
    small = (ctypes.c_long * 8)(0, 1, 1)  # struct mq_attr: flags, messages, bytes
    called(libc.mq_open(('/' + world['mark']).encode(), os.O_RDWR | os.O_CREAT, 0o600, small))
    signal.signal(signal.SIGUSR1, lambda *_: print('signalled', flush=True))
    print(json.dumps({'ready': os.environ.get('PLATFORM_KEY') == canary()}), flush=True)
    sys.stdin.read()
    libc.shmctl(segment, 0, None)
    libc.mq_unlink(('/' + world['mark']).encode())
    os.unlink('/dev/shm/' + world['mark'])


def main():
    with open(sys.argv[1]) as file:
        world.update(json.load(file))
    name = sys.argv[2]
    if name in ('victim', 'send_to_neighbour'):
        return globals()[name]()
    try:
        answer = {'reached': True, 'how': str(globals()[name]())}
    except OSError as error:
        answer = {'reached': False, 'how': str(error)}
    print(json.dumps(answer), flush=True)


main()
