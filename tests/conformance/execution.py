"""Runs one program of a suite, bare or as the agent of `airlock run`, where it cannot do harm: in a PID
namespace that ends with it, with a deadline."""

import atexit
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field

from sources import TOP

AIRLOCK = (os.environ.get('AIRLOCK_BIN') or TOP + '/build/bin') + '/airlock'
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
# The same for both runs, so that their outputs can be compared; short, because socket paths are.
WORK = tempfile.mkdtemp(prefix='al-', dir='/tmp')
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
HANGS = 'hang'


@dataclass
class Program:
    """One program of a suite. `read` makes {test: verdict} of its Ended; `prepare` fills its folder."""
    name: str
    argv: list
    read: object
    prepare: object = None
    env: dict = field(default_factory=dict)
    timeout: float = 120
    # argv itself calls airlock where ROUTED=1; else all of argv is the agent.
    routes_itself: bool = False


@dataclass
class Ended:
    status: object  # as of subprocess, or HANGS
    out: str
    folder: str


def run(program, routed):
    """The program's end. Both modes have the same folder, environment and HOME, emptied before."""
    for name in os.listdir(WORK):
        shutil.rmtree(f'{WORK}/{name}', ignore_errors=True)
    folder, home = WORK + '/folder', WORK + '/home'
    for each in (folder, home, WORK + '/run'):
        os.makedirs(each)
    if program.prepare:
        program.prepare(folder)
    argv = program.argv
    if routed and not program.routes_itself:
        argv = [AIRLOCK, 'run', '--', *argv]
    env = {'PATH': PATH, 'HOME': home, 'USER': 'root', 'LOGNAME': 'root', 'SHELL': '/bin/bash', 'LANG': 'C.UTF-8',
           'TERM': 'dumb', 'AIRLOCK_RUNTIME_PARENT': WORK + '/run', 'ROUTED': '1' if routed else '0', **program.env}
    contained = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child', 'env', '--default-signal', *argv]
    process = subprocess.Popen(contained, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=program.timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        status = HANGS
    return Ended(status, out.decode(errors='backslashreplace'), folder)
