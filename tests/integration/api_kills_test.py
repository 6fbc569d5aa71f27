"""airlock-api is killed at random again and again, while programs write: nothing may be lost or doubled.

The seed is printed; AIRLOCK_SEED repeats a run."""

import http.client
import json
import os
import random
import signal
import threading
import time

from api_client import PORT, ApiCase, events
from harness import eventually, main
from network import PYTHON, own_network
from web_socket import STDOUT, Attached, Refused

FULL = 'AIRLOCK_FULL' in os.environ
KILLS = 100 if FULL else 12
EXECS, SHELLS, TERMINALS, FOLLOWED = 20, 5, 3, 4
KEPT = 32 << 20

# Lines with a number each, on both streams, until the file is there; then how many there were.
WRITER = '''
import os, sys, time
number = 0
while not os.path.exists("stop"):
    number += 1
    os.write(1, b"%d\\n" % number)
    os.write(2, b"%d\\n" % number)
    time.sleep(0.005)
os.write(1, b"last %d\\n" % number)
os.write(2, b"last %d\\n" % number)
sys.exit(int(sys.argv[1]))
'''
SHELL_WRITER = 'n=0; while [ ! -e stop ]; do n=$((n+1)); echo $n; sleep 0.05; done; echo last $n; (exit %d)'
# What a client of a server that was killed sees.
CUT_OFF = (ConnectionResetError, BrokenPipeError, http.client.HTTPException, json.JSONDecodeError, OSError)


def setUpModule():
    own_network()


class Kills(ApiCase):

    def setUp(self):
        super().setUp()
        self.failures = []
        self.is_over = threading.Event()

    def ask_again(self, method, path, body=None):
        """The answer's JSON, however often the server is killed meanwhile. Refused connections are failures."""
        while True:
            try:
                return self.expect(200, method, path, body)
            except ConnectionRefusedError:
                raise
            except CUT_OFF:
                continue

    def in_thread(self, act, *arguments):
        def run():
            try:
                act(*arguments)
            except BaseException as error:  # pylint: disable=broad-except
                self.failures.append(f'{act.__name__}{arguments}: {error!r}')
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def start_all(self):
        """Exit codes by exec, and terminals by exec."""
        codes, terminals = {}, {}
        for code in range(EXECS):
            started = self.exec([PYTHON, '-c', WRITER, str(code)], yieldMs=0, output={'maxBytes': KEPT})
            codes[started['id']] = code
        for code in range(EXECS, EXECS + SHELLS):
            started = self.exec(SHELL_WRITER % code, shell=f's{code}', yieldMs=0, output={'maxBytes': KEPT})
            codes[started['id']] = code
        for code in range(EXECS + SHELLS, EXECS + SHELLS + TERMINALS):
            made = self.expect(201, 'POST', '/api/v1/contexts/user/terminals',
                               {'argv': [PYTHON, '-c', WRITER, str(code)], 'scrollbackBytes': KEPT})
            codes[made['exec']['id']] = code
            terminals[made['exec']['id']] = made['id']
        return codes, terminals

    def follow_exec(self, exec_id, seen):
        """Reads on from the last cursor until the end has been told."""
        cursor = ''
        while True:
            try:
                with self.stream(f'/api/v1/execs/{exec_id}/output{cursor}', method='GET') as response:
                    for event in events(response):
                        if event.get('cursor'):
                            cursor = '?since=' + event['cursor']
                        if event['type'] == 'stdout':
                            seen.append(event['text'])
                        self.assertNotIn(event['type'], ('notice', 'error'))
                        if event['type'] == 'exit':
                            return
            except ConnectionRefusedError:
                raise
            except CUT_OFF:
                pass

    def follow_terminal(self, terminal, seen):
        at = 0
        while True:
            try:
                attached = Attached(PORT, f'/api/v1/terminals/{terminal}/attach?role=viewer&since=o{at}.e0',
                                    self.headers(), since=(at, 0))
            except ConnectionRefusedError:
                raise
            except Refused as refused:
                raise AssertionError(refused.body) from refused
            except (IndexError, *CUT_OFF):  # killed before it had answered
                continue
            try:
                while attached.step():
                    pass
            except CUT_OFF:
                pass
            at = attached.at[STDOUT]
            seen.append(attached.output[STDOUT].decode())
            ended = [each for each in attached.statuses if each['type'] == 'exit']
            attached.close()
            if ended:
                return

    def probe(self):
        """No connection is refused."""
        while not self.is_over.is_set():
            self.ask_again('GET', '/health')

    def kill_at_random(self, seed):
        dice = random.Random(seed)
        for _ in range(KILLS):
            pid = eventually(self.pid_or_none, 'the API runs')
            time.sleep(dice.choice((0, 0.01, 0.05, 0.2)) * dice.random())
            os.kill(pid, signal.SIGKILL)
            eventually(lambda gone=pid: self.pid_or_none() not in (None, gone), 'it is started again')

    def pid_or_none(self):
        if not self.service('airlock-api')['pid']:
            return None
        return self.pid_of_service('airlock-api') or None

    def check(self, name, text, code):
        """Lines 1 to N, then 'last N'."""
        lines = text.splitlines()
        count = len(lines) - 1
        self.assertGreater(count, 0, name)
        self.assertEqual(lines, [*(str(i) for i in range(1, count + 1)), f'last {count}'], f'{name}, {code}')

    def test_nothing_is_lost(self):
        seed = int(os.environ.get('AIRLOCK_SEED', time.time_ns() % 1_000_000))
        print(f'AIRLOCK_SEED={seed} ', end='', flush=True)
        self.serve_api()
        contexts = [each['name'] for each in self.expect(200, 'GET', '/api/v1/contexts')['items']]
        codes, terminals = self.start_all()
        seen = {each: [] for each in [*list(codes)[:FOLLOWED], *terminals]}
        followers = [self.in_thread(self.follow_terminal, terminals[each], seen[each]) if each in terminals
                     else self.in_thread(self.follow_exec, each, seen[each]) for each in seen]
        prober = self.in_thread(self.probe)
        self.kill_at_random(seed)
        self.assertGreaterEqual(self.service('airlock-api')['restarts'], KILLS)
        self.write(self.work + '/stop', '')
        for exec_id, code in codes.items():
            ended = self.ask_again('GET', f'/api/v1/execs/{exec_id}?waitMs=60000')
            self.assertEqual((ended['status'], ended['exitCode']), ('exited', code), ended)
        self.is_over.set()
        for thread in [*followers, prober]:
            thread.join(60)
            self.assertFalse(thread.is_alive(), 'it has come to its end')
        self.assertEqual(self.failures, [])
        for exec_id, code in codes.items():
            output = self.expect(200, 'GET', f'/api/v1/execs/{exec_id}/output')
            if exec_id in terminals:
                pairs = output['stdout'].splitlines()
                self.assertEqual(pairs[::2], pairs[1::2])
                self.check('terminal', '\n'.join(pairs[::2]), code)
            else:
                self.check('stdout', output['stdout'], code)
            if code < EXECS:
                self.check('stderr', output['stderr'], code)
            if exec_id in seen:
                self.assertEqual(''.join(seen[exec_id]), output['stdout'], f'what the client of {code} has seen')
        self.assertEqual([each['name'] for each in self.expect(200, 'GET', '/api/v1/contexts')['items']], contexts)
        for code in range(EXECS, EXECS + SHELLS):
            self.assertEqual(self.exec('echo $n', shell=f's{code}')['stdout'].isspace(), False, 'the shell is the same')


if __name__ == '__main__':
    main()
