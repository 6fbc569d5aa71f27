"""What the HTTP API promises about time and repetition: lifespans of contexts, idempotency keys, rates, the audit log."""

import json
import os
import signal

from api_client import SECRETS, ApiCase, events
from harness import eventually, main
from network import own_network


def setUpModule():
    own_network()


class Lifespans(ApiCase):

    def create(self, name, **fields):
        return self.expect(201, 'POST', '/api/v1/contexts', {'name': name, 'cwd': self.work, **fields})

    def is_gone(self, name):
        return self.request('GET', '/api/v1/contexts/' + name).status == 404

    def test_time_to_live(self):
        self.serve_api()
        made = self.create('brief', ttlMs=1500)
        self.assertEqual((made['ttlMs'], made['idleTimeoutMs'], made['idleRemainingMs']), (1500, None, None))
        self.assertTrue(0 < made['ttlRemainingMs'] <= 1500, made)
        self.create('lasting')
        # It ends whatever runs in it, and also if the API dies meanwhile: the daemon counts.
        running = self.exec(['sleep', '1000'], 'brief', yieldMs=0)
        os.kill(self.pid_of_service('airlock-api'), signal.SIGKILL)
        eventually(lambda: self.is_gone('brief'), 'its time is over')
        self.assertEqual(self.expect(200, 'GET', '/api/v1/execs/' + running['id'] + '?waitMs=60000')['status'], 'lost')
        self.assertFalse(self.is_gone('lasting'), 'control')

    def test_idle_timeout(self):
        self.serve_api()
        self.create('idle', idleTimeoutMs=800)
        job = self.exec(['cat'], 'idle', stdin='open', yieldMs=0)
        self.create('other', idleTimeoutMs=800)
        shell = self.exec('read line', 'other', stdin='open', yieldMs=0)
        self.create('unused', idleTimeoutMs=800)
        eventually(lambda: self.is_gone('unused'), 'nothing runs in it')
        for name in ('idle', 'other'):
            self.assertFalse(self.is_gone(name), 'something runs in ' + name)
        for each in (job, shell):
            self.expect(200, 'POST', f'/api/v1/execs/{each["id"]}/stdin?close=true', b'')
        for name in ('idle', 'other'):
            eventually(lambda name=name: self.is_gone(name), name + ' is idle, its shell does not count')

    def test_they_can_be_changed(self):
        self.serve_api()
        self.create('work', ttlMs=60_000, idleTimeoutMs=60_000)
        path = '/api/v1/contexts/work'
        changed = self.expect(200, 'PATCH', path, {'ttlMs': None})
        self.assertEqual((changed['ttlMs'], changed['ttlRemainingMs'], changed['idleTimeoutMs']), (None, None, 60_000))
        self.assertLessEqual(changed['idleRemainingMs'], 60_000)
        for wrong in (0, -1, 'soon', 1.5, 1 << 60):
            self.refused(400, 'invalid-request', 'PATCH', path, {'ttlMs': wrong})
        self.expect(200, 'PATCH', path, {'ttlMs': 100})
        eventually(lambda: self.is_gone('work'), 'its time is over')


class Repetition(ApiCase):
    RUN = '/api/v1/contexts/user/exec'

    def again(self, body, key, **options):
        return self.request('POST', self.RUN, body, headers={'Idempotency-Key': key}, **options)

    def test_an_exec_is_started_once(self):
        self.serve_api()
        count = {'command': f'echo x >> {self.work}/count; wc -l < {self.work}/count'}
        first = self.again(count, 'key-1').json
        second = self.again(count, 'key-1').json
        self.assertEqual((first['id'], first['stdout']), (second['id'], '1\n'))
        self.assertEqual(second['stdout'], '1\n')
        self.assertEqual(self.again(count, 'key-2').json['stdout'], '2\n', 'control: another key')
        # The key is the token's own.
        self.assertEqual(self.again(count, 'key-1', who='exec').json['stdout'], '3\n')
        self.refused(422, 'idempotency-key-reused', 'POST', self.RUN, {'command': 'true'},
                     headers={'Idempotency-Key': 'key-1'})
        self.refused(400, 'invalid-request', 'POST', self.RUN, count, headers={'Idempotency-Key': 'x' * 256})
        with self.stream(self.RUN, count, headers={'Idempotency-Key': 'key-1'}) as response:
            told = list(events(response))
        self.assertEqual([each['type'] for each in told], ['start', 'stdout', 'exit'])
        self.assertEqual((told[0]['id'], told[1]['text']), (first['id'], '1\n'))
        self.expect(200, 'GET', '/api/v1/execs/' + first['id'])
        self.request('DELETE', '/api/v1/execs/' + first['id'])
        self.refused(410, 'exec-forgotten', 'POST', self.RUN, count, headers={'Idempotency-Key': 'key-1'})

    def test_one_that_runs_is_joined_also_after_the_api_died(self):
        self.serve_api()
        body = {'argv': ['sh', '-c', 'echo begun; read line; echo $line'], 'stdin': 'open', 'yieldMs': 0}
        running = self.again(body, 'key').json
        self.assertEqual(running['status'], 'running')
        os.kill(self.pid_of_service('airlock-api'), signal.SIGKILL)
        self.assertEqual(self.again(body, 'key').json['id'], running['id'])
        self.expect(200, 'POST', f'/api/v1/execs/{running["id"]}/stdin?close=true', b'done\n')
        self.expect(200, 'GET', f'/api/v1/execs/{running["id"]}?waitMs=60000')
        self.assertEqual(self.again(body, 'key').json['stdout'], 'begun\ndone\n')

    def test_what_did_not_run_may_be_tried_again(self):
        self.serve_api()
        headers = {'Idempotency-Key': 'key'}
        run = ('POST', '/api/v1/contexts/later/exec', {'argv': ['true']})
        self.refused(404, 'context-not-found', *run, headers=headers)
        spec = {'name': 'later', 'cwd': self.work}
        first = self.request('POST', '/api/v1/contexts', spec, headers=headers)
        second = self.request('POST', '/api/v1/contexts', spec, headers=headers)
        self.assertEqual([each.status for each in (first, second)], [201, 201])
        self.assertEqual(first.body, second.body)
        self.assertEqual([each.headers['Idempotency-Replayed'] for each in (first, second)], [None, 'true'])
        self.refused(409, 'context-exists', 'POST', '/api/v1/contexts', spec)
        self.refused(422, 'idempotency-key-reused', 'POST', '/api/v1/contexts', {**spec, 'env': {'A': '1'}},
                     headers=headers)
        self.assertTrue(self.expect(200, *run, headers=headers)['success'])
        # A shell that was busy, for a stream as well.
        running = self.exec('read line', stdin='open', yieldMs=0)
        body = {'command': 'echo ran', 'onBusy': 'fail'}
        with self.stream(self.RUN, body, headers=headers) as response:
            self.assertEqual(list(events(response))[-1]['status'], 'failed')
        self.expect(200, 'POST', f'/api/v1/execs/{running["id"]}/stdin?close=true', b'')
        self.expect(200, 'GET', f'/api/v1/execs/{running["id"]}?waitMs=60000')
        self.assertEqual(self.again(body, 'key').json['stdout'], 'ran\n')


class Rates(ApiCase):

    def statuses(self, count, **options):
        with self.connection() as connection:
            for _ in range(count):
                connection.request('GET', '/api/v1/info', headers=self.headers(**options))
                answer = connection.getresponse()
                body = answer.read()
                yield answer.status, answer.headers['Retry-After'], body

    def test_a_token_has_its_rate(self):
        self.serve_api(api={'requests_per_second': 1})
        told = list(self.statuses(20, who='read'))
        refused = [each for each in told if each[0] == 429]
        self.assertEqual(told[0][0], 200)
        self.assertTrue(refused)
        self.assertEqual(refused[0][1], '1')
        self.assertEqual(json.loads(refused[0][2])['code'], 'too-many-requests')
        self.assertEqual(self.request('GET', '/api/v1/info').status, 200, 'another token has its own')
        eventually(lambda: self.request('GET', '/api/v1/info', who='read').status == 200, 'it may ask again')

    def test_guessing_is_slow_and_keeps_nobody_out(self):
        self.serve_api(extra={'audit': {'folder': self.dir + '/audit'}})
        wrong = {'Authorization': 'Bearer guess'}
        with self.connection() as connection:
            statuses = []
            for _ in range(200):
                connection.request('GET', '/api/v1/info', headers=wrong)
                answer = connection.getresponse()
                answer.read()
                statuses.append(answer.status)
        self.assertEqual(statuses[0], 401)
        self.assertIn(429, statuses)
        self.assertEqual(set(statuses), {401, 429})
        self.assertEqual(self.request('GET', '/api/v1/info').status, 200, 'the right ones are served')
        self.assertEqual(self.request('GET', '/health', who=None).status, 200)


class Audit(ApiCase):

    def records(self):
        with open(self.dir + '/audit/audit.jsonl') as file:
            return [json.loads(line) for line in file]

    def test_who_was_not_let_in(self):
        self.serve_api(extra={'audit': {'folder': self.dir + '/audit'}})
        for _ in range(5):
            self.refused(401, 'unauthorized', 'GET', '/api/v1/info', who=None, headers={'Authorization': 'Bearer guess'})
        self.refused(403, 'forbidden-scope', 'POST', '/api/v1/contexts', {'name': 'x'}, who='read')

        def refusals(code):
            return [each for each in self.records() if each['event'] == 'api.refused' and each['code'] == code]

        eventually(lambda: sum(each['times'] for each in refusals('unauthorized')) == 5, 'all are recorded')
        eventually(lambda: refusals('forbidden-scope'), 'who had a token, too')
        known = refusals('forbidden-scope')[0]
        self.assertEqual((known['token'], known['operation'], known['client']), ('read', 'createContext', '127.0.0.1'))
        self.assertLess(len(refusals('unauthorized')), 5, 'together, after the first')
        with open(self.dir + '/audit/audit.jsonl') as file:
            text = file.read()
        self.assertNotIn('guess', text)
        self.assertNotIn(SECRETS['read'], text)

    def test_events(self):
        self.serve_api(extra={'audit': {'folder': self.dir + '/audit'}})
        with self.stream('/api/v1/audit/events', method='GET') as response:
            stream = events(response)
            self.assertEqual(response.status, 200)
            eventually(lambda: self.request('DELETE', '/api/v1/contexts/work').status == 404, 'not there')
            self.expect(201, 'POST', '/api/v1/contexts', {'name': 'work', 'cwd': self.work, 'ttlMs': 200})
            seen = []
            while 'context.destroyed' not in seen:
                event = next(stream)
                if event.get('context') == 'work':
                    seen.append(event['event'])
                    if event['event'] == 'context.expired':
                        self.assertEqual(event['reason'], 'ttl')
        self.assertEqual(seen, ['context.created', 'context.expired', 'context.destroyed'])
        self.refused(403, 'forbidden-scope', 'GET', '/api/v1/audit/events', who='read')

    def test_there_is_none(self):
        self.serve_api()
        self.refused(422, 'not-supported', 'GET', '/api/v1/audit/events', headers={'Accept': 'application/x-ndjson'})


if __name__ == '__main__':
    main()
