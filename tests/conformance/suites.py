"""The suites: each a function that fetches, builds what must be built, and returns its programs.
NotAvailable where something is missing; what does not compile alone is named in `not_built`."""

import concurrent.futures
import glob
import os
import shutil
import subprocess

import sources
from execution import AIRLOCK, Program
from reading import KSFT_SKIP, NOT_SUPPORTED, by_expected, by_json, by_status, by_tap
from sources import BUILD, NotAvailable, TOP, quietly, source

HERE = os.path.dirname(os.path.realpath(__file__))
PYTHON = '/usr/bin/python3'
not_built = []


def built(name):
    folder = f'{BUILD}/built/{name}'
    os.makedirs(folder, exist_ok=True)
    return folder


def compile_c(files, output, *flags):
    """True if it compiled; results of earlier runs are kept."""
    if os.path.exists(output):
        return True
    command = ['gcc', '-O1', '-w', '-D_GNU_SOURCE', *files, '-o', output, *flags]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


# ---- glibc: its own tests of exec, spawn, vfork, system, popen, wordexp and wait

GLIBC_TESTS = '''
posix/tst-exec posix/tst-execl1 posix/tst-execl2 posix/tst-execle1 posix/tst-execle2 posix/tst-execlp1
posix/tst-execlp2 posix/tst-execv1 posix/tst-execv2 posix/tst-execve1 posix/tst-execve2 posix/tst-execveat
posix/tst-execvp1 posix/tst-execvp2 posix/tst-execvp3 posix/tst-execvp4 posix/tst-execvpe1 posix/tst-execvpe2
posix/tst-execvpe3 posix/tst-execvpe4 posix/tst-execvpe5 posix/tst-execvpe6 posix/tst-fexecve
posix/tst-posix_spawn-fd posix/tst-posix_spawn-setsid posix/tst-spawn posix/tst-spawn2 posix/tst-spawn3
posix/tst-spawn4 posix/tst-spawn5 posix/tst-spawn6 posix/tst-spawn-chdir posix/tst-vfork1 posix/tst-vfork2
posix/tst-vfork3 posix/tst-fork posix/tst-waitid posix/tst-wait3 posix/tst-wait4 posix/wordexp-test
posix/tst-wordexp-nocmd stdlib/tst-system libio/tst-popen1 stdio-common/test-popen stdio-common/tst-popen
stdio-common/tst-popen2'''.split()
# Those that exec themselves get their own command line (the *-ARGS of glibc's posix/Makefile).
GLIBC_REEXEC = {'tst-exec', 'tst-execvpe5', 'tst-spawn', 'tst-spawn5', 'tst-spawn6'}


def glibc_support(glibc):
    """libsupport.a of the files that compile without glibc's build. Returns the flags of a test."""
    folder = built('glibc')
    shim = folder + '/shim'
    os.makedirs(shim, exist_ok=True)
    open(shim + '/config.h', 'w').close()
    flags = ['-I', glibc, '-I', glibc + '/support', '-I', shim, '-idirafter', glibc + '/include', '-idirafter',
             glibc + '/sysdeps/generic', '-include', HERE + '/glibc_shim.h']
    library = folder + '/libsupport.a'
    if not os.path.exists(library):
        names = [os.path.basename(name) for name in glob.glob(glibc + '/support/*.c')]
        names = [name for name in names if 'test-' not in name and '_main' not in name and 'container' not in name]
        names = [name for name in names if not name.startswith(('tst-', 'shell-', 'echo-', 'links-', 'true-'))]
        names.append('support_test_main.c')
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            objects = [(folder + '/' + name[:-2] + '.o', name) for name in names]
            done = list(pool.map(lambda each: compile_c([f'{glibc}/support/{each[1]}'], each[0], '-c', *flags), objects))
        quietly(['ar', 'rcs', library, *[each[0] for each, good in zip(objects, done) if good]], 'libsupport.a')
    return [*flags, library, '-lpthread']


def glibc():
    tree = source('glibc', 'posix/*', 'stdlib/*', 'libio/*', 'stdio-common/*', 'support/*', 'include/*',
                  'sysdeps/generic/*', 'test-skeleton.c')
    flags = glibc_support(tree)
    programs = []
    for test in GLIBC_TESTS:
        name, program = os.path.basename(test), built('glibc') + '/' + os.path.basename(test)
        extra = ['-I', f'{tree}/{os.path.dirname(test)}']
        if not compile_c([f'{tree}/{test}.c'], program, *extra, *flags):
            not_built.append(f'glibc {name}: does not compile outside of glibc')
            continue
        argv = [program, '--', program] if name in GLIBC_REEXEC else [program]
        programs.append(Program(name, argv, by_status(name)))
    return programs


# ---- CPython

PYTHON_TESTS = {
    'test_subprocess': ['test.test_subprocess'],
    'test_popen': ['test.test_popen'],
    'test_pty': ['test.test_pty'],
    'test_os': ['test.test_os.ExecTests', 'test.test_os.SpawnTests', 'test.test_os.PidTests',
                'test.test_os.FDInheritanceTests', 'test.test_os.ForkTests'],
    'test_posix': ['test.test_posix.PosixTester', 'test.test_posix.TestPosixSpawn', 'test.test_posix.TestPosixSpawnP'],
}


def cpython():
    version = quietly([PYTHON, '-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], PYTHON).strip()
    tests = sources.package(f'libpython{version}-testsuite') + f'/usr/lib/python{version}/test'
    tree = built('python')
    if not os.path.exists(tree + '/complete'):  # a part of the package "test" comes with Python itself
        for part in (f'/usr/lib/python{version}/test', tests):
            shutil.copytree(part, tree + '/test', dirs_exist_ok=True)
        open(tree + '/complete', 'w').close()
    env = {'PYTHONPATH': tree, 'PYTHONDONTWRITEBYTECODE': '1'}
    return [Program(name, [PYTHON, HERE + '/python_runner.py', *tests], by_json(name), env=env, timeout=600)
            for name, tests in PYTHON_TESTS.items()]


# ---- the kernel's selftests of exec

def kernel():
    tree = source('linux', 'tools/testing/selftests/exec/*', 'tools/testing/selftests/*.h')
    folder = f'{tree}/tools/testing/selftests/exec'
    programs = []

    def fill(work):
        for name in os.listdir(built('kernel')):
            shutil.copy(f'{built("kernel")}/{name}', work)
        shutil.copy(folder + '/Makefile', work)
        os.mkdir(work + '/subdir')
        with open(work + '/script', 'w') as file:
            file.write('#!/bin/sh\nexit $*\n')
        os.chmod(work + '/script', 0o755)
        os.symlink('execveat', work + '/execveat.symlink')
        shutil.copy(work + '/execveat', work + '/execveat.denatured')
        os.chmod(work + '/execveat.denatured', 0o644)

    for name in ('execveat', 'non-regular', 'recursion-depth', 'null-argv'):
        if not compile_c([f'{folder}/{name}.c'], f'{built("kernel")}/{name}', '-Wno-nonnull'):
            not_built.append(f'kernel {name}: does not compile')
            continue
        read = by_tap(name) if name in ('execveat', 'null-argv') else by_status(name, (KSFT_SKIP,))
        programs.append(Program(name, ['./' + name], read, prepare=fill))
    programs.append(Program('binfmt_script', [PYTHON, folder + '/binfmt_script.py'], by_tap('binfmt_script'), prepare=fill))
    return programs


# ---- Node: child_process. The tests of Debian's version, run by the Node that is installed.

def node():
    sources.require('node')
    tree = source('nodejs', 'test/common/*', 'test/fixtures/*', 'test/parallel/test-child-process-*')
    tests = sorted(glob.glob(tree + '/test/parallel/test-child-process-*.*js'))
    env = {'NODE_TEST_DIR': '/tmp'}
    return [Program(os.path.basename(test), ['node', '--expose-internals', '--no-warnings', test],
                    by_status(os.path.basename(test)), env=env, timeout=60) for test in tests]


# ---- Perl

PERL_TESTS = ('op/exec.t', 'io/pipe.t', 'op/fork.t', 'io/fs.t', 'op/magic.t', 'op/die_exit.t', 'op/kill0.t',
              'op/alarm.t', 'io/inplace.t', 'io/dup.t', 'io/open.t')


def perl():
    tree = source('perl', 't/*')
    if not os.path.exists(tree + '/t/perl'):
        # The tests look for ../lib and ./perl of a build tree.
        os.makedirs(tree + '/lib', exist_ok=True)
        for folder in quietly(['perl', '-e', 'print join "\n", grep { m{/5\\.|/share/perl/|lib/.*/perl} } @INC'], 'perl').split():
            if os.path.isdir(folder):
                subprocess.run(['cp', '-rsn', folder + '/.', tree + '/lib/'], stderr=subprocess.DEVNULL)
        os.symlink(shutil.which('perl'), tree + '/t/perl')
    wrapper = 'cd "$1" && exec ./perl "$2"'
    return [Program(test, ['sh', '-c', wrapper, 'sh', tree + '/t', test], by_tap(test),
                    env={'PERL_CORE': '1'}) for test in PERL_TESTS]


# ---- bash's own tests

# Bare, vredir fails without a terminal, and exec as root.
BASH_TESTS = {'jobs': 'jobs.tests', 'trap': 'trap.tests', 'redir': 'redir.tests', 'vredir': 'vredir.tests',
              'exec': 'execscript', 'procsub': 'procsub.tests', 'comsub': 'comsub.tests', 'coproc': 'coproc.tests',
              'lastpipe': 'lastpipe.tests', 'heredoc': 'heredoc.tests'}


def bash():
    tree = source('bash', 'tests/*', 'support/*.c', 'include/*', 'bashansi.h')
    tools = built('bash')
    for tool in ('recho', 'zecho', 'xcase', 'printenv'):
        if not compile_c([f'{tree}/support/{tool}.c'], f'{tools}/{tool}', '-I', tree, '-I', tree + '/include',
                         '-DHAVE_STRING_H', '-DHAVE_STDLIB_H', '-DHAVE_UNISTD_H'):
            raise NotAvailable(f'its tool {tool} does not compile')
    env = {'PATH': f'{tools}:/usr/local/bin:/usr/bin:/bin', 'THIS_SH': '/bin/bash', 'BASH_TSTOUT': '/tmp/bashtst',
           'TMPDIR': '/tmp', 'LC_ALL': 'C', 'BUILD_DIR': '..'}

    def fill(work):
        subprocess.run(['cp', '-r', tree + '/tests/.', work], check=True)
        # heredoc copies some large texts of a build.
        for name in ('y.tab.c', 'config.h', 'version.h'):
            with open(f'{work}/../{name}', 'w') as file:
                file.writelines(f'/* line {number} of {name} */\n' for number in range(5000))

    return [Program(name, ['/bin/bash', './' + script], by_expected(name, f'{tree}/tests/{name}.right'),
                    prepare=fill, env=env) for name, script in BASH_TESTS.items()]


# ---- git: each git that a test starts is an agent, whose hooks, aliases and pagers are routed

GIT_TESTS = ('t0014-alias', 't1350-config-hooks-path', 't1416-ref-transaction-hooks', 't1800-hook', 't5401-update-hooks',
             't5402-post-merge-hook', 't5403-post-checkout-hook', 't5407-post-rewrite-hook', 't5571-pre-push-hook',
             't7006-pager', 't7503-pre-commit-and-pre-merge-commit-hooks', 't7504-commit-msg-hook',
             't7505-prepare-commit-msg-hook', 't7520-ignored-hook-warning')

GIT_BUILD_OPTIONS = '''
SHELL_PATH=/bin/sh
TEST_SHELL_PATH=/bin/sh
PERL_PATH=/usr/bin/perl
DIFF=diff
TAR=tar
NO_CURL=1
NO_EXPAT=1
NO_PYTHON=1
NO_GETTEXT=1
X=
'''

GIT_WRAPPER = '''#!/bin/sh
[ "$ROUTED" = 1 ] || exec /usr/bin/git "$@"
exec {airlock} run -- /usr/bin/git "$@"
'''

GIT_RUN = '''cd "$1"
export AIRLOCK_RUNTIME_DIR="$HOME/../run/d"
[ "$ROUTED" = 0 ] || {airlock} up >&2 || exit 1
/bin/sh ./"$2".sh --root="$HOME/../folder"; status=$?
[ "$ROUTED" = 0 ] || {airlock} down >&2
exit $status
'''


def git():
    sources.require('git')
    tree = source('git', 't/*')
    with open(tree + '/GIT-BUILD-OPTIONS', 'w') as file:
        file.write(GIT_BUILD_OPTIONS)
    shutil.copytree('/usr/share/git-core/templates', tree + '/templates/blt', dirs_exist_ok=True)
    # A few tests want git's own test-tool, which only a build of git has: they fail bare, too.
    os.makedirs(tree + '/t/helper', exist_ok=True)
    with open(tree + '/t/helper/test-tool', 'w') as file:
        file.write('#!/bin/sh\nexit 1\n')
    os.chmod(tree + '/t/helper/test-tool', 0o755)
    wrappers = built('git')
    with open(wrappers + '/git', 'w') as file:
        file.write(GIT_WRAPPER.format(airlock=AIRLOCK))
    os.chmod(wrappers + '/git', 0o755)
    return [Program(test, ['sh', '-c', GIT_RUN.format(airlock=AIRLOCK), 'sh', tree + '/t', test], by_tap(test),
                    env={'GIT_TEST_INSTALLED': wrappers, 'GIT_TEST_DEFAULT_HASH': 'sha1'}, timeout=300,
                    routes_itself=True) for test in GIT_TESTS]


SUITES = {'glibc': glibc, 'cpython': cpython, 'kernel': kernel, 'node': node, 'perl': perl, 'bash': bash, 'git': git}
