"""The dodge table: every way to start a program that an agent could try, past every mechanism that could
enforce its routing. The agent is static and makes raw system calls (tests/dodge/dodge.c), so the interposer
sees none of it. docs/ARCHITECTURE.md has the table for readers.

Each row is run bare first: there the program must run beside the agent and see PLATFORM_KEY, else the row
would prove nothing. Under a mechanism the outcome must be the one that is written here.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import unittest

from harness import AIRLOCK, BIN, CANARY, Case, PATH, main

DODGE, WHERE = BIN + '/airlock-test-dodge', BIN + '/airlock-test-where'

# Kinds of agents and of programs under one mechanism: (what enforces, the agent, where its program lies).
# Without an entry: the static agent, and a program in a folder that is not covered.
VARIANTS = {
    'farm-covered': ('farm', DODGE, 'bin'),              # the program is in a folder of PATH
    'farm-dynamic': ('farm', DODGE + '-dynamic', 'programs'),  # with libc's functions: the interposer sees it
    'farm-raw': ('farm', DODGE + '-raw', 'programs'),          # as the one before, but with raw system calls
}

ROUTED = 'routed'            # it ran in the user context
REFUSED = 'refused'          # the exec failed, or the stub ended with 126
NOT_STOPPED = 'not stopped'  # it ran beside the agent
ENDED = 'routed, refused or killed'  # whichever comes first, but never unrouted
ABSENT = 'absent'            # this machine or this mechanism has no such thing: nothing is run, bare neither

# way: {mechanism: outcome}. `bare` is left out where it is NOT_STOPPED.
WAYS = {
    'execve': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'relative': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'execveat-folder': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'execveat-fd': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    # binfmt: the kernel says ENOENT where an interpreter could not open the program.
    'execveat-cloexec-fd': {'ptrace': ROUTED, 'binfmt': REFUSED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'proc-fd': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'memfd': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': REFUSED, 'farm-raw': REFUSED},
    # No name, and no descriptor that outlives the exec: nothing to tell the router.
    'memfd-cloexec': {'ptrace': REFUSED, 'binfmt': REFUSED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': REFUSED, 'farm-raw': REFUSED},
    'tmpfile': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'copy': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'hard-link': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ABSENT, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'symlink': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'renamed-over': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    # A path that io_uring renames a program to; many containers forbid io_uring.
    'io-uring': {'bare': (NOT_STOPPED, ABSENT), 'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'overwritten': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'script-of-sh': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'script-of-program': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'loader': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': NOT_STOPPED},
    'busybox': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': ROUTED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': ROUTED},
    'stub': {'bare': ABSENT, 'ptrace': REFUSED, 'binfmt': REFUSED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': REFUSED, 'farm-raw': REFUSED},
    'i386': {'ptrace': REFUSED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': REFUSED, 'farm-raw': REFUSED},
    # Debian's kernels have no x32; where there is one it is refused.
    'x32': {'bare': (REFUSED, NOT_STOPPED), 'ptrace': REFUSED, 'binfmt': REFUSED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': REFUSED, 'farm-raw': REFUSED},
    'untraced': {'ptrace': REFUSED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': ROUTED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'user-namespace': {'ptrace': ROUTED, 'binfmt': REFUSED,
        'farm': ABSENT, 'farm-covered': ABSENT, 'farm-dynamic': ABSENT, 'farm-raw': ABSENT},
    'binfmt-mount': {'ptrace': ROUTED, 'binfmt': REFUSED},
    'own-header': {'ptrace': ROUTED, 'binfmt': ROUTED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ROUTED, 'farm-raw': REFUSED},
    'race': {'ptrace': ENDED, 'binfmt': ENDED,
        'farm': REFUSED, 'farm-covered': REFUSED, 'farm-dynamic': ENDED, 'farm-raw': REFUSED},
}


@functools.cache
def mechanisms():
    """{name: why it does not work here, or ''}"""
    told = subprocess.run([AIRLOCK, '-o', 'json', 'doctor'], capture_output=True, check=False).stdout
    return {each['mechanism']: each['reason'] for each in json.loads(told)['enforcement']['mechanisms']}


class Dodges(Case):
    def attempt(self, way, mechanism, program):
        """What came of it, and what it said."""
        enforce, dodge, place = VARIANTS.get(mechanism, (mechanism, DODGE, 'programs'))
        program = self.placed(program, place)
        agent = [dodge, way, program, self.folder(mechanism)]
        if mechanism == 'bare':
            ended = self.run_program(agent)
        else:
            ended = self.routed(*agent, options=('--enforce', enforce))
        told = ended.out + ended.err
        self.assertIn('agent pid:', ended.out, told)
        return self.judge(told), told

    def test_header_of_an_agent_that_runs_itself_again(self):
        # A file of the workspace with the very header of an agent that has a profile, and other code behind it:
        # it is known by its identity, and a header can be copied.
        folder = self.work + '/node_modules/@openai/codex-linux-x64/vendor/x/bin'
        os.makedirs(folder)
        agent = shutil.copy(DODGE, folder + '/codex')
        self.assertEqual(self.judge(self.run_program([agent, 'own-header', WHERE, self.work]).out), NOT_STOPPED)
        for mechanism in ('binfmt', 'ptrace'):
            with self.subTest(mechanism=mechanism):
                if reason := mechanisms()[mechanism]:
                    self.skipTest(f'{mechanism}: {reason}')
                for way, wanted in (('own-header', ROUTED), ('itself', NOT_STOPPED)):
                    ended = self.routed(agent, way, WHERE, self.folder(mechanism), options=('--enforce', mechanism))
                    self.assertEqual(self.judge(ended.out + ended.err), wanted, ended.err)

    def placed(self, program, place):
        """A copy of the program where the platform's own could be; `bin` is in PATH."""
        folder = f'{self.dir}/{place}'
        os.makedirs(folder, exist_ok=True)
        self.env['PATH'] = f'{self.dir}/bin:{PATH}'
        return shutil.copy(program, folder)

    def folder(self, mechanism):
        """Where a way may put files."""
        folder = f'{self.work}/{mechanism}'
        os.makedirs(folder, exist_ok=True)
        return folder

    def judge(self, told):
        agent = re.search(r'^agent (\S+)', told, re.M).group(1)
        where = re.search(r'^where (\S+) key=(\S*) mark=(\S*)', told, re.M)
        if where is None:
            if re.search(r'^impossible', told, re.M):
                return ABSENT
            return REFUSED if re.search(r'^refused|^exited 126', told, re.M) else ENDED
        space, key, mark = where.groups()
        if space == agent and key == CANARY and mark == '':
            return NOT_STOPPED
        if space != agent and key == '' and mark == 'user':
            return ROUTED
        self.fail(f'neither here nor there: {told}')

    def check(self, mechanism):
        for program in (WHERE, WHERE + '-static'):
            for way, outcomes in WAYS.items():
                if program.endswith('static') and way == 'loader':
                    continue  # a loader loads what needs one
                if mechanism not in outcomes:
                    continue
                with self.subTest(way=way, program=os.path.basename(program)):
                    self.check_one(way, mechanism, program, outcomes)

    def check_one(self, way, mechanism, program, outcomes):
        control, told = self.attempt(way, 'bare', program)
        self.assertIn(control, outcomes.get('bare', NOT_STOPPED), told)
        if control == ABSENT and ABSENT not in outcomes.values():
            self.skipTest(f'{way}: not available here: {told}')
        outcome, told = self.attempt(way, mechanism, program)
        wanted = outcomes[mechanism]
        if wanted == ENDED:
            self.assertIn(outcome, (ROUTED, REFUSED, ENDED), told)
        else:
            self.assertEqual(outcome, wanted, told)


def add_test(mechanism):
    def test(self):
        if reason := mechanisms()[VARIANTS.get(mechanism, (mechanism,))[0]]:
            self.skipTest(f'{mechanism}: {reason}')
        self.check(mechanism)
    setattr(Dodges, 'test_' + mechanism.replace('-', '_'), test)


for each in sorted({mechanism for outcomes in WAYS.values() for mechanism in outcomes} - {'bare'}):
    add_test(each)

if __name__ == '__main__':
    main()
