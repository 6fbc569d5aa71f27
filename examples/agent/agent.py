#!/usr/bin/env python3
"""A small agent: runs a list of tasks by every way Python starts a program, and shows where each child ran.

Every child tells on its standard output which PID namespace it is in and whether it has PLATFORM_KEY in its
environment. The agent compares that with its own namespace. See README.md.
"""
import argparse
import errno
import json
import multiprocessing
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RUNTIMES = ("python", "node")

# What a shell prints about itself, and how the agent reads it. $$ stays right in a shell that was routed elsewhere.
SHELL_REPORT = (
    """printf '@child ns=%s key=%s mark=%s\\n' """
    """"$(readlink /proc/$$/ns/pid)" "${PLATFORM_KEY+seen}" "${ROUTE_MARK-}"\n"""
)
REPORT_LINE = re.compile(r"^@child ns=(\S*) key=(\S*) mark=(.*)\n?", re.MULTILINE)


def report():
    """What this process prints about itself, in the form of SHELL_REPORT."""
    key = "seen" if "PLATFORM_KEY" in os.environ else ""
    return f"@child ns={own_namespace()} key={key} mark={os.environ.get('ROUTE_MARK', '')}\n"


def own_namespace():
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def fail(message):
    print(f"agent.py: {' '.join(str(message).split())}", file=sys.stderr)
    sys.exit(2)


# ---- the ways of starting a child: each takes (command, stdin) and returns (output, exit status) ----


def argv(command):
    if isinstance(command, str):
        return ["/bin/sh", "-c", SHELL_REPORT + command]
    return [sys.executable, os.path.abspath(__file__), *command[1:]] if command[0] == "{agent}" else command


def script(command):
    return SHELL_REPORT + (command if isinstance(command, str) else shlex.join(argv(command)))


def by_run(command, stdin):
    done = subprocess.run(argv(command), input=stdin, stdout=subprocess.PIPE, text=True, errors="replace")
    return done.stdout, done.returncode


def by_popen(command, stdin):
    pipe = subprocess.PIPE
    with subprocess.Popen(argv(command), stdin=pipe, stdout=pipe, text=True, errors="replace") as child:
        output, _ = child.communicate(stdin)
    return output, child.returncode


def by_shell(command, stdin):
    pipe = subprocess.PIPE
    done = subprocess.run(script(command), shell=True, input=stdin, stdout=pipe, text=True, errors="replace")
    return done.stdout, done.returncode


def by_os_system(command, _):
    with tempfile.NamedTemporaryFile("r", errors="replace") as file:
        status = os.system(f"exec >{shlex.quote(file.name)}\n{script(command)}")
        return file.read(), os.waitstatus_to_exitcode(status)


def by_os_popen(command, _):
    stream = os.popen(script(command))
    output = stream.buffer.read().decode(errors="replace")  # os.popen itself takes no errors=
    return output, (stream.close() or 0) >> 8


def by_posix_spawn(command, _):
    words = argv(command)
    ours, theirs = os.pipe()
    with open(ours, errors="replace") as stream:
        try:
            pid = os.posix_spawnp(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
        finally:
            os.close(theirs)
        return stream.read(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def by_multiprocessing(command, _):
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    child = spawn.Process(target=worker, args=(theirs, script(command)))
    child.start()
    theirs.close()
    try:
        output = ours.recv_bytes().decode(errors="replace")  # bytes: never unpickle what another context sent
    except EOFError:
        output = ""
    child.join()
    return output, child.exitcode


def worker(connection, command):
    """Runs in the multiprocessing child: reports, runs the command, and ends as the command ended."""
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE)
    connection.send_bytes(report().encode() + done.stdout)
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    sys.exit(done.returncode)


FEEDING = {"subprocess.run": by_run, "Popen": by_popen, "shell=True": by_shell}
WAYS = FEEDING | {
    "os.system": by_os_system,
    "os.popen": by_os_popen,
    "os.posix_spawn": by_posix_spawn,
    "multiprocessing": by_multiprocessing,
}


# ---- the tasks ----


def load_tasks(path):
    try:
        with open(path, encoding="utf-8") as file:
            tasks = json.load(file)
        json.dumps(tasks, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (OSError, ValueError, RecursionError) as error:
        fail(f"cannot read tasks from {path}: {getattr(error, 'strerror', None) or error}")
    if not isinstance(tasks, list):
        fail(f"{path}: expected a list of tasks")
    for number, task in enumerate(tasks, 1):
        if problem := problem_of(task):
            fail(f"{path}: task {number}: {problem}")
    if not any(task["ways"].get("python") for task in tasks):
        fail(f"{path}: no task has a way for python")
    return tasks


def problem_of(task):
    """What is wrong with a task, or None."""
    if not isinstance(task, dict):
        return "expected an object"
    if unknown := set(task) - {"name", "command", "ways", "stdin", "expect"}:
        return f'unknown field "{min(unknown)}"'
    if not isinstance(task.get("name"), str):
        return '"name" must be a string'
    command, ways = task.get("command"), task.get("ways")
    if not (isinstance(command, str) or is_strings(command)) or not command or "\0" in "".join(command):
        return '"command" must be a shell command (string) or a program and its arguments (list of strings)'
    if not isinstance(task.get("stdin", ""), str):
        return '"stdin" must be a string'
    if expected_status(task) is None:
        return '"expect" must be an exit status (0 to 255) or a signal name such as "SIGTERM"'
    if not isinstance(ways, dict) or not all(name in RUNTIMES and is_strings(ways[name]) for name in ways):
        return '"ways" must be an object of "python" and "node", each a list of strings'
    for way in ways.get("python", []):
        if way not in WAYS:
            return f'unknown way "{way}" for python (known: {", ".join(WAYS)})'
        if "stdin" in task and way not in FEEDING:
            return f'way "{way}" cannot feed "stdin"'
    return None


def is_strings(value):
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def expected_status(task):
    """The expected exit status as Python reports it (a signal as its negative number), or None if malformed."""
    expect = task.get("expect", 0)
    if isinstance(expect, str):
        number = signal.Signals.__members__.get(expect)
        return -number if number else None
    return expect if type(expect) is int and 0 <= expect <= 255 else None


def run_task(task, way):
    try:
        output, status = WAYS[way](task["command"], task.get("stdin", ""))
    except OSError as error:
        output, status = "", errno.errorcode.get(error.errno, "error")
    return row(way, task["name"], task["command"], status, expected_status(task), output)


# ---- the result ----


def row(way, name, command, status, expected, output):
    told = REPORT_LINE.search(output)
    ns, key, mark = told.groups() if told else ("", "", "")
    return {
        "way": way,
        "name": name,
        "command": shown(command),
        "ran_in": place(ns, mark),
        "exit": status,
        "expected_exit": expected,
        "platform_key": (key or "not seen") if ns else "unknown",
        "output": REPORT_LINE.sub("", output),
    }


def place(ns, mark):
    """The context of a child that told this: the agent's own, the one the launcher marked "user", or another."""
    if not ns:
        return "unknown"
    if ns == own_namespace():
        return "platform"
    return "user" if mark == "user" else "other"


def shown(command):
    if not isinstance(command, str):
        command = shlex.join(["agent.py" if word == "{agent}" else word for word in command])
    return " ".join(command.split())


def print_table(rows):
    lines = [["WAY", "COMMAND", "RAN IN", "EXIT", "PLATFORM_KEY"]]
    for line in rows:
        command = line["command"] if len(line["command"]) <= 40 else line["command"][:37] + "..."
        status = "-" if line["exit"] is None else str(line["exit"])
        if line["exit"] != line["expected_exit"]:
            status += f" (expected {line['expected_exit']})"
        lines.append([line["way"], command, line["ran_in"], status, line["platform_key"]])
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def summary(children):
    places = [child["ran_in"] for child in children]
    keys = [child["platform_key"] for child in children]
    if "user" in places:
        where = f"{places.count('user')} of {len(children)} children ran in the user context"
    else:
        where = f"{places.count('other')} of {len(children)} children ran outside the agent's own context"
    silent = f"; {places.count('unknown')} did not report" if "unknown" in places else ""
    return f"{where}; {keys.count('seen') or 'none'} saw PLATFORM_KEY{silent}."


def broken_expectation(rows, expect):
    """What contradicts --expect, or None. Without a key of the agent's own there would be nothing to hide."""
    agent, *children = rows
    if agent["platform_key"] != "seen":
        return "PLATFORM_KEY is not set for the agent itself, so a child without it proves nothing"
    key, saw = ("seen", "did not see") if expect == "platform" else ("not seen", "saw")
    wrong = sum((child["ran_in"], child["platform_key"]) != (expect, key) for child in children)
    return wrong and f"{wrong} of {len(children)} children ran elsewhere, {saw} PLATFORM_KEY or did not report"


def main():
    parser = argparse.ArgumentParser(prog="agent.py", allow_abbrev=False)
    parser.description = "Runs tasks by every way Python starts a program and shows where each child ran."
    parser.error = fail
    parser.add_argument("tasks", nargs="?", default=os.path.join(HERE, "tasks.json"), help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--expect", choices=["user", "platform"], help="exit 3 unless every child ran there")
    parser.add_argument("--report", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.report:
        print(report(), end="")
        return 0

    tasks = load_tasks(options.tasks)
    agent = row("agent process", "the agent itself", ["{agent}"], None, None, report())
    children = [run_task(task, way) for task in tasks for way in task["ways"].get("python", [])]
    rows = [agent, *children]
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(rows)
        print(f"\n{summary(children)}")
    if problem := options.expect and broken_expectation(rows, options.expect):
        print(f"agent.py: expected {options.expect}: {problem}", file=sys.stderr)
        return 3
    return int(any(child["exit"] != child["expected_exit"] for child in children))


if __name__ == "__main__":
    sys.exit(main())
