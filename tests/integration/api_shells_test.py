"""Persistent shells, environment, folder, route and ports through the HTTP API."""

import os

from api_client import ApiCase, events
from harness import eventually, main
from network import own_network


def setUpModule():
    own_network()


class Shells(ApiCase):

    def shells(self, context='user'):
        return {each['name']: each for each in self.expect(200, 'GET', f'/api/v1/contexts/{context}/shells')['items']}

    def test_a_persistent_context_keeps_what_commands_leave(self):
        self.serve_api()
        self.assertTrue(self.expect(200, 'GET', '/api/v1/contexts/user')['persistent'])
        first = self.exec('cd /tmp; export MARK=kept; LOCAL=too; f() { echo f; }')
        self.assertEqual((first['shell'], first['cwd'], first['envChanged']), ('default', '/tmp', ['MARK', 'OLDPWD', 'PWD']))
        for _ in range(2):
            self.assertEqual(self.exec('pwd; echo $MARK $LOCAL; f')['stdout'], '/tmp\nkept too\nf\n')
        self.assertEqual(self.exec('exit 3')['shellEvent'], 'recovered')
        self.assertEqual(self.exec('echo $LOCAL')['stdout'], 'too\n')
        # Not in a shell of its own, in another one, as words, or on a terminal.
        self.assertEqual(self.exec('echo "[$MARK]"', shell=False)['stdout'], '[]\n')
        self.assertEqual(self.exec('echo "[$MARK]"', shell='other')['stdout'], '[]\n')
        self.assertFalse(self.exec(['sh', '-c', 'true'])['shell'])
        self.assertFalse(self.exec('true', tty={'cols': 80, 'rows': 24})['shell'])
        self.assertEqual(set(self.shells()), {'default', 'other'})

    def test_persistent_is_said_when_made_and_later(self):
        self.serve_api()
        spec = {'name': 'work', 'cwd': self.work, 'persistent': False}
        self.assertFalse(self.expect(201, 'POST', '/api/v1/contexts', spec)['persistent'])
        self.exec('export MARK=kept', 'work')
        self.assertEqual(self.exec('echo "[$MARK]"', 'work')['stdout'], '[]\n')
        self.assertEqual(self.shells('work'), {})
        self.assertTrue(self.expect(200, 'PATCH', '/api/v1/contexts/work', {'persistent': True})['persistent'])
        self.exec('export MARK=kept', 'work')
        self.assertEqual(self.exec('echo "[$MARK]"', 'work')['stdout'], '[kept]\n')
        self.refused(400, 'invalid-request', 'PATCH', '/api/v1/contexts/work', {'persistent': 'yes'})
        self.refused(404, 'context-not-found', 'POST', '/api/v1/contexts/nobody/exec', {'command': 'true'})

    def test_interrupt(self):
        self.serve_api()
        self.exec('LOCAL=kept')
        running = self.exec('echo begun; sleep 1000', yieldMs=0)
        shell = eventually(lambda: (found := self.shells().get('default')) and found['isBusy'] and found, 'it runs')
        self.assertEqual((shell['exec'], shell['engine'], shell['waiting']), (running['id'], 'bash-builtin', 0))
        path = '/api/v1/contexts/user/shells/'
        eventually(lambda: self.expect(200, 'GET', f'/api/v1/execs/{running["id"]}/output')['stdout'], 'it has begun')
        self.assertEqual(self.expect(200, 'POST', path + 'default:interrupt'), {'interrupted': True})
        ended = self.expect(200, 'GET', f'/api/v1/execs/{running["id"]}?waitMs=60000')
        self.assertEqual(ended['exitStatus'], 130, ended)
        self.assertEqual(self.exec('echo $LOCAL')['stdout'], 'kept\n')
        self.assertEqual(self.expect(200, 'POST', path + 'default:interrupt'), {'interrupted': False})
        self.refused(404, 'shell-not-found', 'POST', path + 'nobody:interrupt')
        self.refused(404, 'shell-not-found', 'POST', path + '..:interrupt')
        self.refused(404, 'context-not-found', 'POST', '/api/v1/contexts/nobody/shells/default:interrupt')
        self.refused(403, 'forbidden-scope', 'POST', path + 'default:interrupt', who='read')

    def test_one_shell(self):
        self.serve_api()
        path = '/api/v1/contexts/user/shells'
        self.refused(404, 'shell-not-found', 'GET', path + '/build')
        made = self.expect(201, 'POST', path, {'name': 'build'})
        self.assertEqual((made['name'], made['isBusy'], made['waiting']), ('build', False, 0))
        self.assertEqual(self.expect(200, 'POST', path, {'name': 'build'})['name'], 'build')
        self.assertEqual(self.expect(201, 'POST', path)['name'], 'default')
        self.exec('LOCAL=kept; cd /tmp', shell='build')
        found = self.expect(200, 'GET', path + '/build')
        self.assertEqual((found['cwd'], found['engine']), ('/tmp', 'bash-builtin'))
        self.assertEqual(found, self.shells()['build'])
        self.assertEqual(self.exec('echo $LOCAL', shell='build')['stdout'], 'kept\n')
        self.exec('sleep 1000 & disown', shell='build')
        ended = self.expect(200, 'DELETE', path + '/build')
        self.assertGreaterEqual(ended['killed'], 1)
        self.assertEqual(ended['survivors'], 0)
        self.refused(404, 'shell-not-found', 'GET', path + '/build')
        self.refused(404, 'shell-not-found', 'DELETE', path + '/build')
        self.assertEqual(self.exec('echo "[$LOCAL]"', shell='build')['stdout'], '[]\n', 'a fresh one')
        for body in ({'name': 'Build'}, {'name': ''}, {'name': 1}, {'other': 'x'}):
            self.refused(400, 'invalid-request', 'POST', path, body)
        self.refused(404, 'context-not-found', 'POST', '/api/v1/contexts/nobody/shells', {})
        self.refused(404, 'context-not-found', 'GET', '/api/v1/contexts/nobody/shells/default')
        self.refused(403, 'forbidden-scope', 'POST', path, {}, who='read')
        self.refused(403, 'forbidden-scope', 'DELETE', path + '/default', who='read')
        self.expect(200, 'GET', path + '/default', who='read')

    def test_reset_and_the_queue(self):
        self.serve_api()
        first = self.exec('LOCAL=gone; setsid sleep 1000 & sleep 1000', yieldMs=0)
        eventually(lambda: self.exec(['ps', 'aux'])['stdout'].count('sleep 1000') >= 2, 'both are there')
        second = self.exec('echo never', yieldMs=0)
        self.assertEqual((first['status'], second['status'], second['pid']), ('running', 'queued', None))
        self.refused(409, 'shell-busy', 'POST', '/api/v1/contexts/user/exec', {'command': 'true', 'onBusy': 'fail'})
        self.assertEqual(self.shells()['default']['waiting'], 1)
        with self.stream('/api/v1/contexts/user/exec', {'command': 'true'}) as response:
            notice = next(events(response))
            self.assertEqual((notice['type'], notice['reason']), ('notice', 'queued'))
            told = self.expect(200, 'POST', '/api/v1/contexts/user/shells/default:reset')
            self.assertGreaterEqual(told['killed'], 2)
            self.assertEqual(told['survivors'], 0)
            self.assertEqual(list(events(response))[-1]['status'], 'failed')
        self.assertEqual(self.expect(200, 'GET', f'/api/v1/execs/{second["id"]}?waitMs=60000')['status'], 'failed')
        self.expect(200, 'GET', f'/api/v1/execs/{first["id"]}?waitMs=60000')
        self.assertEqual(self.exec('echo "[$LOCAL]"')['stdout'], '[]\n')
        eventually(lambda: 'sleep 1000' not in self.exec(['ps', 'aux'])['stdout'], 'all it had started is gone')

    def test_what_waits_can_be_ended(self):
        self.serve_api()
        run = '/api/v1/contexts/user/exec'
        first = self.exec('read line', stdin='open', yieldMs=0)
        second = self.exec(f'touch {self.work}/second', yieldMs=0)
        self.assertEqual(second['status'], 'queued')
        self.expect(204, 'POST', f'/api/v1/execs/{second["id"]}/signal', {'signal': 'SIGTERM'})
        ended = self.expect(200, 'GET', f'/api/v1/execs/{second["id"]}?waitMs=60000')
        self.assertEqual((ended['status'], ended['error']['errno']), ('failed', 'ECANCELED'))
        # By a client that leaves.
        with self.stream(run, {'command': f'touch {self.work}/third'}) as response:
            self.assertEqual(next(events(response))['reason'], 'queued')
        eventually(lambda: self.shells()['default']['waiting'] == 0, 'it waits no more')
        # Positive control: what ends no program lets it wait.
        fourth = self.exec(f'touch {self.work}/fourth', yieldMs=0)
        self.expect(204, 'POST', f'/api/v1/execs/{fourth["id"]}/signal', {'signal': 'SIGWINCH'})
        self.assertEqual(self.shells()['default']['waiting'], 1)
        self.expect(200, 'POST', f'/api/v1/execs/{first["id"]}/stdin?close=true', b'go\n')
        self.assertEqual(self.expect(200, 'GET', f'/api/v1/execs/{fourth["id"]}?waitMs=60000')['exitCode'], 0)
        self.assertEqual([name for name in ('second', 'third', 'fourth') if os.path.exists(f'{self.work}/{name}')], ['fourth'])

    def test_time_in_the_queue_is_told(self):
        self.serve_api()
        first = self.exec('read line', stdin='open', yieldMs=0)
        second = self.exec('echo second', yieldMs=0)
        self.expect(200, 'POST', f'/api/v1/execs/{first["id"]}/stdin?close=true', b'go\n')
        ended = self.expect(200, 'GET', f'/api/v1/execs/{second["id"]}?waitMs=60000')
        self.assertEqual((ended['status'], ended['exitCode']), ('exited', 0))
        self.assertTrue(0 <= ended['queuedMs'] <= ended['durationMs'], ended)


class Settings(ApiCase):

    def test_environment(self):
        self.serve_api()
        path = '/api/v1/contexts/work/env'
        spec = {'name': 'work', 'cwd': self.work, 'env': {'A': '1', 'B': "it's\n\"two\" $HOME"}}
        self.expect(201, 'POST', '/api/v1/contexts', spec)
        self.assertEqual(self.expect(200, 'GET', path), spec['env'])
        self.exec('true', 'work')  # a living shell
        self.assertEqual(self.expect(200, 'PATCH', path, {'A': None, 'C': 'x y'})['names'], ['B', 'C'])
        self.assertEqual(self.exec('echo "$A,$C"', 'work')['stdout'], ',x y\n')
        self.assertEqual(self.expect(200, 'PUT', path, {'D': '4'}, who='exec')['names'], ['D'])
        self.assertEqual(self.exec('echo "$B,$C,$D"', 'work')['stdout'], ',,4\n')
        self.assertEqual(self.expect(200, 'GET', path), {'D': '4'})
        # Who only looks learns no values.
        self.refused(403, 'forbidden-scope', 'GET', path, who='read')
        self.assertEqual(self.expect(200, 'GET', '/api/v1/contexts/work', who='read')['envNames'], ['D'])
        self.refused(400, 'invalid-request', 'PATCH', path, {'A=B': '1'})
        self.refused(400, 'invalid-request', 'PUT', path, {'A': 1})
        self.refused(404, 'context-not-found', 'GET', '/api/v1/contexts/nobody/env')
        self.assertEqual(self.exec(['ps', 'aux'], 'work')['exitCode'], 0)
        self.assertFalse([each for each in self.expect(200, 'GET', '/api/v1/contexts/work/execs')['items']
                          if each['argv'] == ['env', '-0']], 'what the API runs for itself is not kept')

    def test_folder(self):
        self.serve_api()
        path = '/api/v1/contexts/user/cwd'
        self.assertEqual(self.expect(200, 'GET', path)['cwd'], self.work)
        self.exec('cd /usr')
        self.assertEqual(self.expect(200, 'GET', path)['cwd'], '/usr')
        self.assertEqual(self.expect(200, 'PUT', path, {'cwd': '/tmp/../tmp'})['cwd'], '/tmp')
        self.assertEqual([self.exec(each)['stdout'] for each in ('pwd', ['pwd'])], ['/tmp\n', '/tmp\n'])
        self.refused(422, 'cwd-not-found', 'PUT', path, {'cwd': '/no/such/folder'})
        self.refused(400, 'invalid-request', 'PUT', path, {'cwd': 'tmp'})
        self.assertEqual(self.expect(200, 'GET', path)['cwd'], '/tmp')

    def test_route_and_ports(self):
        self.serve_api()
        path = '/api/v1/contexts/agent/route'
        self.expect(201, 'POST', '/api/v1/contexts', {'name': 'agent', 'cwd': self.work, 'childContext': 'user'})
        route = self.expect(200, 'GET', path)
        self.assertEqual((route['childContext'], route['routeChild']), ('user', 'always'))
        self.assertEqual(self.expect(200, 'PUT', path, {'childContext': 'platform'})['childContext'], 'platform')
        self.refused(422, 'not-supported', 'PUT', '/api/v1/contexts/user/route', {'childContext': 'platform'})
        self.refused(403, 'forbidden-scope', 'PUT', path, {'childContext': 'user'}, who='exec')
        ports = self.expect(200, 'GET', '/api/v1/ports')['items']
        self.assertEqual([(each['port'], each['service'], each['held']) for each in ports],
                         [(8080, 'airlock-api', True)])

    def test_limits(self):
        self.serve_api()
        spec = {'name': 'work', 'cwd': self.work, 'limits': {'openFiles': 100}}
        made = self.expect(201, 'POST', '/api/v1/contexts', spec)
        self.assertEqual([(each['name'], each['limit']) for each in made['limits']], [('open_files', 100)])
        self.assertEqual(self.exec('ulimit -n', 'work')['stdout'], '100\n')
        self.refused(400, 'invalid-request', 'POST', '/api/v1/contexts', {'name': 'other', 'limits': {'files': 1}})


if __name__ == '__main__':
    main()
