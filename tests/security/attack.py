"""What hostile code tries, from inside: attack.py NAME [ARGUMENT]. Prints one JSON object {"reached": bool, "how":
text}. The same attacks are run where they must reach their aim, so that a broken one is noticed.

Nothing here changes the machine: files are opened and closed, not written; kernel objects go with the process.
"""

import ctypes
import errno
import fcntl
import glob
import json
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import tempfile

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == 'x86_64'
# x86_64, aarch64 (asm/unistd.h)
NUMBERS = {'bpf': (321, 280), 'perf_event_open': (298, 241), 'add_key': (248, 217), 'request_key': (249, 218),
           'keyctl': (250, 219), 'kexec_load': (246, 104), 'init_module': (175, 105), 'finit_module': (313, 273),
           'name_to_handle_at': (303, 264), 'open_by_handle_at': (304, 265), 'userfaultfd': (323, 282),
           'process_vm_readv': (310, 270), 'kcmp': (312, 272), 'pidfd_open': (434, 434), 'pidfd_getfd': (438, 438),
           'syslog': (103, 116), 'io_uring_setup': (425, 425), 'clone3': (435, 435), 'process_madvise': (440, 440)}
PTRACE_SEIZE, PTRACE_ATTACH = 0x4206, 16
NS_GET_USERNS, NS_GET_PARENT = 0xb701, 0xb702
TIOCSTI, TIOCSCTTY = 0x5412, 0x540e
CLONE_NEWUSER = 0x10000000


def call(name, *arguments):
    number = NUMBERS[name][0 if X86 else 1]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return checked(result, name)


def checked(result, name):
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f'{name}: {os.strerror(number)}')
    return result


def others():
    return [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) not in (os.getpid(), os.getppid())]


def each(attempt, targets):
    """How the first of `targets` was reached, or OSError with what each said."""
    errors = set()
    for target in targets:
        try:
            return attempt(target)
        except OSError as error:
            errors.add(str(error))
    raise PermissionError('; '.join(sorted(errors)[:3]) or 'nothing to try')


# ---- P1 visibility, signals, memory

def see(mark):
    """A process with `mark` in its command line or environment."""
    for pid in others():
        for name in ('cmdline', 'environ'):
            try:
                with open(f'/proc/{pid}/{name}', 'rb') as file:
                    words = file.read().split(b'\0')
            except OSError:
                continue
            if any(word[::-1].decode(errors='replace').startswith(mark) for word in words):
                return f'{name} of {pid}'
    raise ProcessLookupError('nobody')


def parent_namespace(_):
    def ask(path):
        with open(path) as file:
            os.close(fcntl.ioctl(file.fileno(), NS_GET_PARENT))
        return path
    return each(ask, glob.glob('/proc/[0-9]*/ns/pid'))


def trace_init(_):
    return each(lambda request: checked(libc.ptrace(request, 1, None, None), 'ptrace') and '' or 'attached', (PTRACE_SEIZE,))


def read_init(_):
    def read(pid):
        buffer = ctypes.create_string_buffer(8)
        local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
        with open(f'/proc/{pid}/maps') as file:
            start = int(file.readline().split('-')[0], 16)
        remote = (ctypes.c_void_p * 2)(start, 8)
        call('process_vm_readv', pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        return f'memory of {pid}'
    return each(read, [1])


def open_init(_):
    """Its memory, environment, descriptors."""
    def attempt(name):
        path = f'/proc/1/{name}'
        if name in ('fd', 'map_files'):
            os.readlink(f'{path}/{os.listdir(path)[0]}')  # the numbers alone are no secret
        else:
            os.close(os.open(path, os.O_RDONLY))
        return path
    return each(attempt, ('environ', 'mem', 'fd', 'map_files', 'root/etc', 'cwd/.'))


def steal_fd(_):
    pidfd = call('pidfd_open', 1, 0)
    return each(lambda number: f'descriptor {call("pidfd_getfd", pidfd, number, 0)}', range(8))


def compare_init(_):
    call('kcmp', os.getpid(), 1, 0, 0, 0)
    return 'kcmp'


def kernel_objects(kind):
    if kind == 'bpf':
        attributes = struct.pack('IIIII', 2, 4, 4, 1, 0) + bytes(100)  # BPF_MAP_TYPE_ARRAY
        os.close(call('bpf', 0, attributes, len(attributes)))
    elif kind == 'perf':
        attributes = struct.pack('IIQQQQQ', 1, 112, 0, 0, 0, 0, 0) + bytes(64)  # PERF_COUNT_SW_CPU_CLOCK
        os.close(call('perf_event_open', attributes, -1, 0, -1, 0))
    elif kind == 'syslog':
        call('syslog', 3, ctypes.create_string_buffer(100), 100)
    elif kind == 'kmsg':
        os.close(os.open('/dev/kmsg', os.O_RDONLY))
    elif kind == 'handle':
        handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
        mount = ctypes.c_int()
        call('name_to_handle_at', -100, b'/etc/passwd', handle, ctypes.byref(mount), 0)
        root = os.open('/', os.O_RDONLY)
        os.close(call('open_by_handle_at', root, handle, 0))
    elif kind == 'mknod':
        path = tempfile.mktemp()
        os.mknod(path, 0o600 | 0o060000, os.makedev(7, 0))
        os.unlink(path)
    elif kind == 'mount':
        folder = tempfile.mkdtemp()
        try:
            checked(libc.mount(b'none', folder.encode(), b'tmpfs', 0, None), 'mount')
            libc.umount2(folder.encode(), 2)
        finally:
            os.rmdir(folder)
    elif kind == 'userfaultfd':
        os.close(call('userfaultfd', 0))
    elif kind == 'packets':
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    elif kind == 'raw':
        socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()
    elif kind == 'module':
        try:
            call('finit_module', -1, b'', 0)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
    elif kind == 'io_uring':
        os.close(call('io_uring_setup', 1, ctypes.create_string_buffer(120)))
    else:
        raise ValueError(kind)
    return kind


def i386(kind):
    """The same by the 32-bit entry, which has numbers of its own: int 0x80 on a page of ours."""
    import mmap
    numbers = {'keyctl': 288, 'bpf': 357, 'perf_event_open': 336, 'getpid': 20}
    code = b'\x53\xb8' + struct.pack('I', numbers[kind]) + b'\x31\xdb\x31\xc9\x31\xd2\xcd\x80\x5b\xc3'
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    if result in (-errno.EPERM, -errno.ENOSYS):
        raise OSError(-result, f'{kind} by the i386 entry')
    return f'{kind}: {result}'


def nested_proc(_):
    """A fresh /proc in a user namespace of its own: whom does it show, and can knobs be turned there?"""
    knob = 'true >>/proc/sys/kernel/core_pattern && echo KNOB; '  # opened, never written
    script = f'ps -e -o pid= | wc -l; {knob} umount /proc 2>/dev/null; ls /proc | grep -c "^[0-9]"; {knob}'
    done = subprocess.run(['unshare', '-Urpfm', '--mount-proc', 'sh', '-c', script], capture_output=True, text=True)
    lines = done.stdout.split()
    if done.returncode not in (0, 1, 2) or not lines:
        raise PermissionError(done.stderr.strip() or 'refused')
    if 'KNOB' in lines:
        return 'core_pattern was opened'
    raise PermissionError('shows: ' + ' '.join(lines))


def knobs(_):
    def attempt(path):
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        return path
    return each(attempt, ['/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/kernel/modprobe',
                          '/proc/sys/vm/panic_on_oom', '/proc/irq/default_smp_affinity', '/sys/power/state']
                + glob.glob('/sys/fs/cgroup/**/cgroup.procs', recursive=True)[:20])


def kernel_secrets(_):
    def attempt(path):
        with open(path, 'rb') as file:
            if not file.read(16):
                raise OSError('empty')
        return path
    return each(attempt, ('/proc/kcore', '/dev/mem', '/proc/keys'))


def unmount_proc(mark):
    """Uncovers what lies below /proc."""
    script = 'for i in 1 2 3; do umount -l /proc 2>/dev/null; cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"; done'
    done = subprocess.run(['sh', '-c', script], capture_output=True, text=True)
    words = [word for word in done.stdout.split('\n') if word[::-1].startswith(mark)]
    if words:
        return 'the platform is seen'
    raise PermissionError('nobody of the platform is seen')


# ---- P3 credentials

def key(name):
    """A key in the user keyring."""
    return str(call('keyctl', 10, -4, b'user', name.encode(), 0))  # KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING


def find_text(mark):
    """Files where a secret could have been left that can be read here."""
    for folder in ('/tmp', '/var/tmp', '/run', '/dev/shm', os.getcwd(), os.environ.get('HOME', '/root')):
        for base, folders, names in os.walk(folder):
            folders[:] = [each for each in folders if not os.path.islink(f'{base}/{each}')][:200]
            for name in names[:500]:
                path = f'{base}/{name}'
                try:
                    if not os.path.isfile(path) or os.path.getsize(path) > 1 << 20:
                        continue
                    with open(path, 'rb') as file:
                        if mark[::-1].encode() in file.read():
                            return path
                except OSError:
                    pass
    raise PermissionError('in no file')


def environment(mark):
    for name, value in os.environ.items():
        if mark[::-1] in value or name in ('LD_PRELOAD', 'AIRLOCK_LAUNCH'):
            return name
    raise PermissionError('in no variable')


def read_file(path):
    with open(path, 'rb') as file:
        file.read(1)
    return path


def connect(path):
    """A Unix socket, by path or (with '@') abstract."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect('\0' + path[1:] if path.startswith('@') else path)
    return path


# ---- P4, P5

def spoof(pid):
    """SCM_CREDENTIALS with another's pid."""
    left, right = socket.socketpair()
    right.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    left.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack('3i', int(pid), os.getuid(), os.getgid()))])
    return 'sent'


def type_into_terminal(_):
    """TIOCSTI into the own terminal, with and without high bits in the request (CVE-2023-1523)."""
    def attempt(request):
        ctypes.set_errno(0)
        character = ctypes.c_char(b'x')
        checked(libc.syscall(ctypes.c_long(16 if X86 else 29), ctypes.c_long(0), ctypes.c_ulong(request), ctypes.byref(character)),
                f'ioctl {request:#x}')
        return f'{request:#x}'
    return each(attempt, (TIOCSTI, TIOCSTI | 1 << 32))


def x32(_):
    result = libc.syscall(ctypes.c_long(0x40000000 | 39))  # getpid
    return f'pid {checked(result, "x32 getpid")}'


def write_everywhere(_):
    """Garbage into every descriptor there is, but for standard output."""
    count = 0
    for name in os.listdir('/proc/self/fd'):
        if name in ('0', '1'):
            continue
        try:
            count += os.write(int(name), b'\x08\0\0\0\x05\0\x01\0\0\0\0\0' + bytes(64)) > 0
        except OSError:
            pass
    return f'{count} descriptors took it'


def zombies(count):
    for _ in range(int(count)):
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.wait()
    return count


def replace_mounts(paths):
    """Unlinks, renames over and renames away: where a program of the context could take a place."""
    def attempt(path):
        if os.path.isdir(path):
            os.rename(path, path + '.away')
            os.rename(path + '.away', path)
        else:
            with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as file:
                pass
            try:
                os.rename(file.name, path)
            finally:
                if os.path.exists(file.name):
                    os.unlink(file.name)
        return path
    return each(attempt, paths.split(':'))


def main():
    try:
        how = globals()[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else None)
        answer = {'reached': True, 'how': str(how)}
    except OSError as error:
        answer = {'reached': False, 'how': str(error)}
    print(json.dumps(answer), flush=True)


main()
