"""The HTTP API with tools that everybody has: curl in its many ways, and a parser of Prometheus' text format."""

import json
import os
import re
import shutil
import unittest

from api_client import PORT, SECRETS, ApiCase, events
from harness import eventually, main
from network import own_network
from web_socket import WebSocket

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

URL = f'http://127.0.0.1:{PORT}'
DURATION = 'airlock_api_request_duration_seconds'


def setUpModule():
    own_network()


@unittest.skipUnless(shutil.which('curl'), 'needs curl')
class Curl(ApiCase):

    def setUp(self):
        super().setUp()
        self.serve_api()

    def curl(self, path, *options, body=None, who='admin'):
        """What `curl` prints; with -f an answer of an error is a failure."""
        headers = ['-H', 'Authorization: Bearer ' + SECRETS[who]] if who else []
        if body is not None:
            headers += ['-H', 'Content-Type: application/json', '-d', json.dumps(body)]
        ran = self.run_program(['curl', '-sS', '--noproxy', '*', *headers, *options, URL + path])
        self.assertEqual(ran.status, 0, ran.err)
        return ran.out

    def run_in_user(self, *options, **body):
        return self.curl('/api/v1/contexts/user/exec', *options, body=body)

    def test_as_documented(self):
        """The line of docs/API.md."""
        result = json.loads(self.run_in_user(command='echo hello; exit 3'))
        self.assertEqual((result['exitCode'], result['stdout'], result['signal'], result['timedOut']), (3, 'hello\n', None, False))
        status = self.curl('/api/v1/info', '-o', '/dev/null', '-w', '%{http_code} %{content_type}', who=None)
        self.assertEqual(status, '401 application/problem+json')

    def test_versions_of_http(self):
        for option, version in (('--http1.0', '1'), ('--http1.1', '1.1'), ('--http2', '1.1')):
            told = self.curl('/api/v1/info', option, '-w', '\n%{http_code} %{http_version}').splitlines()
            # Who offers HTTP/2 goes on with what it gets.
            self.assertEqual(told[-1], f'200 {version}', option)
            self.assertIn('tier', json.loads(told[0]))
            streamed = self.run_in_user(option, '-N', '-H', 'Accept: application/x-ndjson', argv=['echo', 'out']).splitlines()
            self.assertEqual([json.loads(line)['type'] for line in streamed], ['start', 'stdout', 'exit'], option)

    def test_head(self):
        head = self.curl('/health', '-I', who=None)
        self.assertRegex(head, r'^HTTP/1\.1 200 OK\r\n')
        length = int(re.search(r'(?mi)^content-length: (\d+)', head).group(1))
        self.assertEqual(length, len(self.curl('/health', who=None)))

    def test_one_connection_for_several_requests(self):
        told = self.curl('/health', '-o', '/dev/null', '-o', '/dev/null', '-w', '%{num_connects} %{http_code}\n', URL + '/ready', who=None)
        self.assertEqual(told, '1 200\n0 200\n')

    def test_server_sent_events(self):
        text = self.run_in_user('-N', '-H', 'Accept: text/event-stream', command='echo one; echo two >&2; exit 4')
        names = re.findall(r'(?m)^event: (.*)$', text)
        self.assertEqual(sorted(names), ['exit', 'start', 'stderr', 'stdout'])
        self.assertEqual((names[0], names[-1]), ('start', 'exit'))
        self.assertIn('"exitCode":4', text)

    def test_upload(self):
        """What curl sends with and without a length; above a megabyte it waits for 100 Continue."""
        blob = os.urandom(3_000_000)
        with open(self.work + '/blob', 'wb') as file:
            file.write(blob)
        for options in (['--data-binary', f'@{self.work}/blob', '-H', 'Expect: 100-continue'],
                        ['-X', 'POST', '-T', f'{self.work}/blob', '-H', 'Transfer-Encoding: chunked'],
                        ['--data-binary', f'@{self.work}/blob', '-H', 'Expect:']):
            running = json.loads(self.run_in_user(argv=['sha256sum'], stdin='open', yieldMs=0))
            path = f'/api/v1/execs/{running["id"]}'
            self.curl(path + '/stdin?close=true', '-f', '-H', 'Content-Type: application/octet-stream', *options)
            ended = json.loads(self.curl(path + '?waitMs=60000'))
            self.assertEqual(ended['exitCode'], 0)
            digest = self.run_program(['sha256sum', self.work + '/blob']).out.split()[0]
            self.assertEqual(json.loads(self.curl(path + '/output'))['stdout'].split()[0], digest, options)

    def test_too_large_is_said_before_it_is_sent(self):
        with open(self.work + '/large', 'wb') as file:
            file.truncate(9 << 20)
        running = json.loads(self.run_in_user(argv=['cat'], stdin='open', yieldMs=0))
        told = self.curl(f'/api/v1/execs/{running["id"]}/stdin', '--data-binary', f'@{self.work}/large', '-H', 'Expect: 100-continue',
                         '-o', '/dev/null', '-w', '%{http_code} %{size_upload}')
        self.assertEqual(told, '413 0')
        self.curl(f'/api/v1/execs/{running["id"]}/signal', '-f', body={'signal': 'SIGKILL'})

    def test_a_download_that_is_stopped_ends_the_program(self):
        curl = self.start(['curl', '-sS', '--noproxy', '*', '-N', '-H', 'Authorization: Bearer ' + SECRETS['admin'],
                           '-H', 'Content-Type: application/json', '-H', 'Accept: application/x-ndjson', '-d',
                           json.dumps({'argv': ['sleep', '1000']}), URL + '/api/v1/contexts/user/exec'])
        started = json.loads(self.line_of(curl))
        self.end(curl)
        ended = json.loads(self.curl(f'/api/v1/execs/{started["id"]}?waitMs=60000'))
        self.assertEqual(ended['signal'], 'SIGKILL')


@unittest.skipUnless(text_string_to_metric_families, 'needs python3-prometheus-client')
class Prometheus(ApiCase):

    def families(self):
        """Name → family, as Prometheus' own parser reads them."""
        answer = self.request('GET', '/metrics', who=None)
        self.assertRegex(answer.headers['Content-Type'], r'^text/plain; version=0\.0\.4(; charset=utf-8)?$')
        text = answer.body.decode()
        self.assertTrue(text.endswith('\n'))
        self.check_headings(text)
        return {family.name: family for family in text_string_to_metric_families(text)}

    def check_headings(self, text):
        """HELP and TYPE once for each family, in this order, and then all its samples and no others."""
        told = [match for match in re.findall(r'(?m)^(?:# (HELP|TYPE) )?([a-zA-Z_:][a-zA-Z0-9_:]*)', text) if match]
        seen, at = [], 0
        while at < len(told):
            self.assertEqual([kind for kind, _ in told[at:at + 2]], ['HELP', 'TYPE'], told[at])
            name = told[at][1]
            self.assertEqual(told[at + 1][1], name)
            self.assertNotIn(name, seen)
            seen.append(name)
            at += 2
            while at < len(told) and told[at][0] == '':
                self.assertIn(told[at][1], [name + suffix for suffix in ('', '_bucket', '_sum', '_count')])
                at += 1

    def sample(self, name, **labels):
        """The value of one sample; 0 if there is none yet."""
        for family in self.families().values():
            for each in family.samples:
                if each.name == name and each.labels == labels:
                    return each.value
        return 0

    def test_conventions(self):
        """prometheus.io/docs/practices/naming: a prefix, base units in plural, _total for what only grows."""
        self.serve_api()
        self.exec(['true'])
        for family in self.families().values():
            with self.subTest(family.name):
                self.assertTrue(family.documentation.strip())
                self.assertIn(family.type, ('counter', 'gauge', 'histogram'))
                self.assertRegex(family.name, r'^airlock(_[a-z]+)+$')
                self.assertNotRegex(family.name, r'_(ms|milliseconds|us|kib|kb|mb|megabytes|percent|minutes|count|counter|gauge)$')
                # The parser takes the suffix off where the type is counter.
                self.assertNotRegex(family.name, '_total$')
                for sample in family.samples:
                    self.assertEqual(sample.name.endswith('_total'), family.type == 'counter')
                    for label, value in sample.labels.items():
                        self.assertRegex(label, '^[a-z]+$')
                        self.assertTrue(value)

    def test_values(self):
        self.serve_api()
        self.assertEqual(self.sample('airlock_execs_total', status='exited'), 0)
        for _ in range(3):
            self.exec(['true'])
        self.exec(['sh', '-c', 'kill -9 $$'])
        self.refused(401, 'unauthorized', 'GET', '/api/v1/info', who=None)
        self.assertEqual(self.sample('airlock_execs_total', status='exited'), 3)
        self.assertEqual(self.sample('airlock_execs_total', status='signaled'), 1)
        self.assertEqual(self.sample('airlock_http_requests_total', operation='exec', status='200'), 4)
        self.assertEqual(self.sample('airlock_http_refused_tokens_total'), 1)
        running = self.exec(['cat'], stdin='open', yieldMs=0)
        self.assertEqual(self.sample('airlock_execs_running'), 1)
        self.expect(200, 'POST', f'/api/v1/execs/{running["id"]}/stdin?close=true', b'')
        self.expect(200, 'GET', f'/api/v1/execs/{running["id"]}?waitMs=60000')
        self.assertEqual(self.sample('airlock_execs_running'), 0)
        self.assertEqual(self.sample('airlock_execs_known'), 5)
        self.assertGreaterEqual(self.sample('airlock_http_connections'), 1)

    def durations(self):
        """(method, route, status) → {limit: how many} of each histogram, with its 'sum' and 'count'."""
        found = {}
        for sample in self.families()[DURATION].samples:
            key = tuple(sample.labels[label] for label in ('method', 'route', 'status'))
            kind = sample.name.removeprefix(DURATION + '_')
            found.setdefault(key, {})[float(sample.labels['le']) if kind == 'bucket' else kind] = sample.value
        return found

    def test_latencies(self):
        self.serve_api()
        for _ in range(3):
            self.exec(['true'])
        self.exec(['sleep', '0.3'])
        self.request('HEAD', '/health')
        self.refused(401, 'unauthorized', 'GET', '/api/v1/info', who=None)
        self.refused(404, 'not-found', 'GET', '/api/v1/canary-path')
        self.refused(404, 'exec-not-found', 'GET', '/api/v1/execs/canary-exec')
        self.refused(405, 'method-not-allowed', 'CANARY', '/api/v1/info')
        durations = self.durations()
        for key, histogram in durations.items():
            limits = sorted(key for key in histogram if isinstance(key, float))
            counts = [histogram[limit] for limit in limits]
            self.assertEqual(counts, sorted(counts), key)
            self.assertEqual((limits[-1], counts[-1]), (float('inf'), histogram['count']), key)
            self.assertGreater(histogram['sum'], 0, key)
        run = durations['POST', '/api/v1/contexts/{context}/exec', '2xx']
        self.assertEqual((run['count'], run[600]), (4, 4))
        self.assertLessEqual(run[0.25], 3, 'the slow one is not below')
        self.assertGreaterEqual(run['sum'], 0.3)
        for key, count in ((('HEAD', '/health', '2xx'), 1), (('GET', '/api/v1/info', '4xx'), 1), (('other', 'other', '4xx'), 2),
                           (('GET', '/api/v1/execs/{exec}', '4xx'), 1)):
            self.assertEqual(durations[key]['count'], count, key)
        # Nothing that a client has chosen.
        templates = set(self.expect(200, 'GET', '/api/v1/openapi.json')['paths'])
        self.assertLessEqual({route for _, route, _ in durations}, templates | {'other'})
        text = self.request('GET', '/metrics', who=None).body
        self.assertNotIn(b'canary', text.lower())

    def test_streams_are_counted_apart(self):
        self.serve_api()
        run = '/api/v1/contexts/user/exec'
        with self.stream(run, {'argv': ['cat'], 'stdin': 'open'}) as response:
            told = events(response)
            started = next(told)
            self.assertEqual(self.sample('airlock_api_streams_open', kind='events'), 1)
            self.assertNotIn(('POST', '/api/v1/contexts/{context}/exec', '2xx'), self.durations())
            with WebSocket(PORT, f'/api/v1/execs/{started["id"]}/attach', self.headers()):
                self.assertEqual(self.sample('airlock_api_streams_open', kind='websocket'), 1)
                self.assertNotIn('/api/v1/execs/{exec}/attach', {route for _, route, _ in self.durations()})
            eventually(lambda: self.sample('airlock_api_streams_open', kind='websocket') == 0, 'it is closed')
            self.expect(200, 'POST', f'/api/v1/execs/{started["id"]}/stdin?close=true', b'')
            self.assertEqual(list(told)[-1]['type'], 'exit')
        eventually(lambda: self.sample('airlock_api_streams_open', kind='events') == 0, 'it has ended')
        # A client that goes away ends its stream, too.
        with self.stream(run, {'argv': ['sleep', '1000']}) as response:
            next(events(response))
        eventually(lambda: self.sample('airlock_api_streams_open', kind='events') == 0, 'the client has gone')
        for kind, count in (('events', 2), ('websocket', 1)):
            self.assertEqual(self.sample('airlock_api_streams_total', kind=kind), count)
        # Positive control: what is no stream is in the histogram.
        self.exec(['true'])
        self.assertEqual(self.durations()['POST', '/api/v1/contexts/{context}/exec', '2xx']['count'], 1)


if __name__ == '__main__':
    main()
