"""A code interpreter: python3 interpreter.py FILE… runs files one after the other in a context of their own, without
the caller's environment. What one leaves (files, an exported variable of the shell) the next finds."""

import os
import sys

from airlock_sdk import connect

with connect().create_context(f'interpreter-{os.getpid()}', cwd='/tmp', idle_timeout=3600) as context:
    status = 0
    for path in sys.argv[1:]:
        with open(path, encoding='utf-8') as file:
            code = file.read()
        for event in context.exec_stream('python3 -', stdin={'text': code}, timeout=60):
            if event.type in ('stdout', 'stderr'):
                os.write(1 if event.type == 'stdout' else 2, event.data)
            elif event.type == 'exit':
                status = event.result.exit_status or 0
sys.exit(status)
