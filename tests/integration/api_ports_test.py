"""Ports that programs of contexts listen on, and how requests are told apart in the audit log."""

import glob
import json
import threading

from api_client import ApiCase
from harness import eventually, main
from network import PYTHON, own_network

LISTEN = '''
import socket, sys, time
for text in sys.argv[1:]:
    address, port = text.rsplit(',', 1)
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
    s.bind((address, int(port)))
    s.listen()
    globals()['s' + port] = s
time.sleep(1000)
'''


def setUpModule():
    own_network()


class Ports(ApiCase):

    def listen(self, context, *places):
        return self.exec([PYTHON, '-S', '-c', LISTEN, *places], context=context, yieldMs=0)

    def ports(self, context='user'):
        return self.expect(200, 'GET', f'/api/v1/contexts/{context}/ports')['items']

    def wait(self, port, context='user', timeout=60000):
        return self.expect(200, 'GET', f'/api/v1/contexts/{context}/ports/{port}:wait?timeoutMs={timeout}')

    def test_what_a_context_listens_on(self):
        self.serve_api()
        self.assertEqual(self.ports(), [])
        running = self.listen('user', '127.0.0.1,3000', '::,3001', '0.0.0.0,3002')
        other = self.listen('platform', '127.0.0.1,4000')
        self.assertTrue(self.wait(3002)['isListening'])
        self.assertTrue(self.wait(4000, 'platform')['isListening'])
        found = [(each['port'], each['address'], each['pid']) for each in self.ports()]
        self.assertEqual(found, [(3000, '127.0.0.1', running['pid']), (3001, '::', running['pid']),
                                 (3002, '0.0.0.0', running['pid'])])
        self.assertTrue(self.ports()[0]['program'].startswith('python3'))
        self.assertEqual([(each['port'], each['pid']) for each in self.ports('platform')], [(4000, other['pid'])])
        # What only the other has is not there.
        self.assertEqual(self.wait(4000, timeout=0), {'port': 4000, 'isListening': False})
        self.assertIn(8080, [each['port'] for each in self.ports('control')])
        self.expect(204, 'POST', f'/api/v1/execs/{running["id"]}/signal', {'signal': 'SIGKILL'})
        eventually(lambda: not self.ports(), 'it is gone')

    def test_the_wait_ends_when_somebody_listens(self):
        self.serve_api()
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(self.wait(3456)))
        waiting.start()
        # A socket that is bound and does not listen is no answer.
        text = ('import socket, sys; s = socket.socket(); s.bind(("", 3456)); print("bound", flush=True)\n'
                'sys.stdin.readline(); s.listen(); sys.stdin.readline()')
        running = self.exec([PYTHON, '-S', '-c', text], stdin='open', yieldMs=0)
        path = f'/api/v1/execs/{running["id"]}'
        eventually(lambda: self.expect(200, 'GET', path + '/output')['stdout'], 'it is bound')
        self.assertFalse(self.wait(3456, timeout=100)['isListening'])
        self.assertEqual(answers, [])
        self.expect(200, 'POST', path + '/stdin', b'\n')
        waiting.join(60)
        self.assertEqual((answers[0]['isListening'], answers[0]['pid']), (True, running['pid']))

    def test_what_is_refused(self):
        self.serve_api()
        path = '/api/v1/contexts/user/ports/'
        for rest in ('0:wait', '65536:wait', 'x:wait', '80:wait?timeoutMs=x', '80:wait?timeoutMs=600001'):
            self.refused(400, 'invalid-request', 'GET', path + rest)
        self.refused(404, 'context-not-found', 'GET', '/api/v1/contexts/nobody/ports')
        self.refused(404, 'context-not-found', 'GET', '/api/v1/contexts/nobody/ports/80:wait')
        self.refused(403, 'forbidden-scope', 'GET', '/api/v1/contexts/platform/ports', who='only-user')


class RequestIds(ApiCase):

    def test_they_are_sent_back(self):
        self.serve_api()
        for method, path, status in (('GET', '/health', 200), ('GET', '/api/v1/nothing', 404)):
            answer = self.request(method, path, headers={'X-Request-Id': 'mine-1.2:3_4'})
            self.assertEqual((answer.status, answer.headers['X-Request-Id']), (status, 'mine-1.2:3_4'))
        self.assertEqual(answer.json['requestId'], 'mine-1.2:3_4')
        made = {self.request('GET', '/health', headers=headers).headers['X-Request-Id']
                for headers in ({}, {}, {'X-Request-Id': 'with space'}, {'X-Request-Id': 'x' * 129}, {'X-Request-Id': ''})}
        self.assertEqual(len(made), 5, made)
        self.assertTrue(all(each.startswith('req_') for each in made), made)

    def test_the_audit_log_has_them(self):
        self.serve_api(extra={'audit': {'folder': self.dir + '/audit'}})
        trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

        def records(event):
            found = []
            for path in glob.glob(self.dir + '/audit/audit.jsonl*'):
                with open(path) as file:
                    found += [record for record in map(json.loads, file) if record['event'] == event]
            return found
        for name, headers in (('first', {'traceparent': trace}), ('second', {'traceparent': 'nonsense'})):
            answer = self.request('POST', '/api/v1/contexts/user/exec', {'argv': ['true']},
                                  headers={**headers, 'X-Request-Id': name})
            self.assertEqual(answer.status, 200)
        eventually(lambda: len(records('api.exec')) == 2, 'both are recorded')
        first, second = records('api.exec')
        self.assertEqual((first['requestId'], first['traceparent'], first['token'], first['context']),
                         ('first', trace, 'admin', 'user'))
        self.assertNotIn('traceparent', second)
        # The job is the one that the log says has run.
        self.assertIn(first['job'], [record['job'] for record in records('exec')])


if __name__ == '__main__':
    main()
