"""Makes {test: verdict} of what a program of a suite left. Verdicts: ok, skipped, FAILED, HANGS."""

import json
import re

from execution import HANGS

OK, SKIPPED, FAILED, HUNG = 'ok', 'skipped', 'FAILED', 'HANGS'
NOT_SUPPORTED = 77  # of automake and glibc
KSFT_SKIP = 4


def by_status(name, skip=(NOT_SUPPORTED,)):
    """One test, judged by the exit status."""
    def read(ended):
        if ended.status == HANGS:
            return {name: HUNG}
        return {name: OK if ended.status == 0 else SKIPPED if ended.status in skip else FAILED}
    return read


def by_tap(name):
    """`ok 1 - text`, one per line. The program itself is a test, too: its end and its plan."""
    def read(ended):
        verdicts, plan = {}, None
        for line in ended.out.splitlines():
            if found := re.match(r'1\.\.(\d+)', line):
                plan = int(found.group(1))
            found = re.match(r'(not )?ok +(\d+)(.*)', line)
            if not found:
                continue
            wrong, number, rest = found.groups()
            excused = '# SKIP' in rest or '# skip' in rest or '# TODO' in rest
            verdicts[f'{name} {number}'] = SKIPPED if excused else FAILED if wrong else OK
        complete = ended.status == 0 and (plan is None or len(verdicts) >= plan)
        # Where all was skipped nothing has passed, the program neither.
        done = SKIPPED if all(each == SKIPPED for each in verdicts.values()) else OK
        verdicts[name] = HUNG if ended.status == HANGS else done if complete else FAILED
        return verdicts
    return read


def by_json(name):
    """results.json of python_runner.py."""
    def read(ended):
        try:
            with open(ended.folder + '/results.json') as file:
                verdicts = json.load(file)
        except (OSError, ValueError):
            verdicts = {}
        verdicts[name] = HUNG if ended.status == HANGS else OK if verdicts and ended.status == 0 else FAILED
        return verdicts
    return read


def by_expected(name, expected_file):
    """The output is that of a file of the suite."""
    def read(ended):
        with open(expected_file, errors='backslashreplace') as file:
            expected = file.read()
        if ended.status == HANGS:
            return {name: HUNG}
        return {name: OK if ended.out == expected else FAILED}
    return read
