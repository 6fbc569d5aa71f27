"""Tools that take credentials from where they run: awscli, psql, git and curl, as Debian has them. In each context
a tool has that context's credentials, and what a platform's agent starts has the user's."""

import base64
import contextlib
import glob
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import unittest

from api_client import ApiCase
from example_services import ExampleCase
from harness import main
from network import PYTHON, own_network

AWS = '/usr/bin/aws'
PSQL = '/usr/lib/postgresql/*/bin/psql'
HTTP_BACKEND = '/usr/lib/git-core/git-http-backend'

# The mock agent: runs its arguments as a child, after saying what it has itself.
AGENT = '''
import os, subprocess, sys
print("agent:", ",".join(os.environ.get(name, "") for name in sys.argv[1].split(",")), flush=True)
sys.exit(subprocess.run(sys.argv[2:]).returncode)
'''


def setUpModule():
    own_network()


class Server(http.server.ThreadingHTTPServer):
    """A server of the test's own, on a port of its own, while it is used as a context."""
    daemon_threads = False  # none is left when it is closed

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_port}'


class Handler(http.server.BaseHTTPRequestHandler):

    def log_message(self, *_):
        pass

    def reply(self, status, body=b'', **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def basic(self):
        """USER:PASSWORD that the request has."""
        kind, _, code = self.headers.get('Authorization', '').partition(' ')
        return base64.b64decode(code).decode() if kind == 'Basic' else None


class Sts(Handler):
    """Of AWS's STS so much that `aws sts get-caller-identity` is content; notes who has signed."""

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        key = re.match(r'AWS4-HMAC-SHA256 Credential=([^/]*)/.*Signature=[0-9a-f]{64}$', self.headers.get('Authorization', ''))
        self.server.signers.append(key and key.group(1))
        self.reply(200, b'<GetCallerIdentityResponse><GetCallerIdentityResult><Account>' + self.server.signers[-1].encode() +
                   b'</Account></GetCallerIdentityResult></GetCallerIdentityResponse>', Content_Type='text/xml')


class Repository(Handler):
    """`git http-backend` for who has the right password; notes who came with which."""

    def do_GET(self):
        self.server.seen.append(self.basic())
        if self.basic() not in self.server.passwords:
            return self.reply(401, WWW_Authenticate='Basic realm="git"')
        path, _, query = self.path.partition('?')
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        env = {'PATH': '/usr/bin:/bin', 'GIT_PROJECT_ROOT': self.server.root, 'GIT_HTTP_EXPORT_ALL': '1', 'PATH_INFO': path,
               'QUERY_STRING': query, 'REQUEST_METHOD': self.command, 'CONTENT_LENGTH': str(len(body)),
               'CONTENT_TYPE': self.headers.get('Content-Type', ''), 'REMOTE_USER': self.basic().split(':')[0],
               'HTTP_CONTENT_ENCODING': self.headers.get('Content-Encoding', ''),
               'GIT_PROTOCOL': self.headers.get('Git-Protocol', '')}
        done = subprocess.run([HTTP_BACKEND], env=env, input=body, stdout=subprocess.PIPE, check=True)
        head, _, content = done.stdout.partition(b'\r\n\r\n')
        fields = dict(line.split(': ', 1) for line in head.decode().split('\r\n'))
        status = int(fields.pop('Status', '200').split()[0])
        self.reply(status, content, **fields)

    do_POST = do_GET


class Page(Handler):
    """A page for who has the right password; notes who came with which."""

    def do_GET(self):
        self.server.seen.append(self.basic())
        self.reply(200 if self.basic() in self.server.passwords else 401, (self.basic() or 'nobody').encode() + b'\n')


class Agents(ExampleCase):
    """Tools below a mock agent, and directly in each context."""

    def contexts(self, platform_env, user_env, **platform):
        return {'platform': {'cwd': self.work, 'child_context': 'user', 'env': platform_env, **platform},
                'user': {'cwd': self.work, 'env': user_env}}

    def serve_contexts(self, platform_env, user_env):
        self.up(json.dumps({'contexts': self.contexts(platform_env, user_env)}))

    def by_agent(self, names, *argv):
        """How `argv` ends as a child of an agent in `platform`, and the agent's own values of `names`."""
        agent = self.write(self.work + '/agent.py', AGENT)
        ran = self.exec_in('platform', PYTHON, '-S', agent, names, *argv)
        said, _, ran.out = ran.out.partition('\n')
        return ran, said.removeprefix('agent: ')

    @unittest.skipUnless(os.path.exists(AWS), 'needs awscli')
    def test_awscli(self):
        keys = lambda name: {'AWS_ACCESS_KEY_ID': 'AKIA-' + name, 'AWS_SECRET_ACCESS_KEY': f'secret-of-{name}'}
        self.env.update(AWS_DEFAULT_REGION='us-east-1', AWS_EC2_METADATA_DISABLED='true')
        self.serve_contexts(keys('platform'), {**keys('user'), 'AWS_DEFAULT_REGION': 'us-east-1'})
        with Server(('127.0.0.1', 0), Sts) as endpoint:
            endpoint.signers = []
            aws = [AWS, '--endpoint-url', endpoint.url, '--region', 'us-east-1', '--output', 'text', 'sts', 'get-caller-identity']
            for context in ('platform', 'user'):
                ran = self.exec_in(context, *aws)
                self.assertEqual((ran.status, endpoint.signers), (0, ['AKIA-' + context]), ran.err)
                self.assertIn('AKIA-' + context, ran.out)
                endpoint.signers.clear()
            child, own = self.by_agent('AWS_ACCESS_KEY_ID', *aws)
            self.assertEqual((child.status, own, endpoint.signers), (0, 'AKIA-platform', ['AKIA-user']), child.err)

    @unittest.skipUnless(os.path.exists(AWS), 'needs awscli')
    def test_awscli_finds_no_file_of_the_platform(self):
        """Credentials in the platform's HOME instead of its environment."""
        os.mkdir(self.home + '/.aws')
        self.write(self.home + '/.aws/credentials', '[default]\naws_access_key_id = AKIA-file\naws_secret_access_key = secret-of-file\n', 0o600)
        self.serve_contexts({}, {'AWS_EC2_METADATA_DISABLED': 'true'})
        with Server(('127.0.0.1', 0), Sts) as endpoint:
            endpoint.signers = []
            aws = [AWS, '--endpoint-url', endpoint.url, '--region', 'us-east-1', 'sts', 'get-caller-identity']
            self.assertEqual(self.exec_in('platform', *aws).status, 0)
            self.assertEqual(endpoint.signers, ['AKIA-file'], 'control')
            for ran in (self.exec_in('user', *aws), self.by_agent('PATH', *aws)[0]):
                self.assertIn('Unable to locate credentials', ran.err)
            self.assertEqual(endpoint.signers, ['AKIA-file'], 'nothing else came')

    @unittest.skipUnless(glob.glob(PSQL) and shutil.which('psql'), 'needs postgresql')
    def test_psql(self):
        self.serve_example('database', contexts=json.dumps(self.contexts({}, {'PGPASSWORD': 'DATABASE_PASSWORD'})))
        # Not Debian's `psql`: a script that execs this one, and what a platform's program execs is routed.
        psql = [sorted(glob.glob(PSQL))[-1], '--no-password', '-h', '127.0.0.1', '-U', 'postgres', '-AtXc']
        ran = self.exec_in('user', *psql, 'create table t (x int); insert into t values (6), (7); select sum(x) from t')
        self.assertEqual((ran.status, ran.out.split()[-1]), (0, '13'), ran.err)
        without = self.exec_in('platform', *psql, 'select 1')
        self.assertEqual((without.status, without.out), (2, ''))
        self.assertIn('no password supplied', without.err)
        for client in (psql, ['psql', *psql[1:]]):
            child, own = self.by_agent('PGPASSWORD', *client, 'select count(*) from t')
            self.assertEqual((child.status, child.out, own), (0, '2\n', ''), child.err)

    @contextlib.contextmanager
    def repository(self):
        """A remote with one commit that knows two users."""
        git = lambda *words: self.assertEqual(self.run_program(['git', '-c', 'safe.directory=*', *words]).status, 0, words)
        git('init', '-q', '--bare', '-b', 'main', self.dir + '/remote/project.git')
        git('-C', self.dir + '/remote/project.git', 'config', 'http.receivepack', 'true')
        self.write(self.home + '/.gitconfig', '[user]\nname = A\nemail = a@example.org\n[credential]\nhelper = store\n')
        git('init', '-q', '-b', 'main', self.dir + '/first')
        git('-C', self.dir + '/first', 'commit', '-q', '--allow-empty', '-m', 'first')
        git('-C', self.dir + '/first', 'push', '-q', self.dir + '/remote/project.git', 'main')
        with Server(('127.0.0.1', 0), Repository) as server:
            server.root, server.seen = self.dir + '/remote', []
            server.passwords = {'platform:of-the-platform', 'user:of-the-user'}
            yield server

    @unittest.skipUnless(os.path.exists(HTTP_BACKEND), 'needs git')
    def test_git(self):
        """The user context has a helper; the platform has the file that `helper = store` reads."""
        with self.repository() as remote:
            helper = '!f() { echo username=user; echo password=of-the-user; }; f'
            user = {'GIT_CONFIG_COUNT': '1', 'GIT_CONFIG_KEY_0': 'credential.helper', 'GIT_CONFIG_VALUE_0': helper}
            self.write(self.home + '/.git-credentials', remote.url.replace('//', '//platform:of-the-platform@') + '\n', 0o600)
            self.env['GIT_TERMINAL_PROMPT'] = '0'
            contexts = self.contexts({}, user)
            contexts['bare'] = {'cwd': self.work, 'env': {'GIT_TERMINAL_PROMPT': '0'}}
            self.up(json.dumps({'contexts': contexts}))
            url = remote.url + '/project.git'
            self.clone_as(remote, 'platform:of-the-platform', lambda to: self.run_program(['git', 'clone', '-q', url, to]))
            self.clone_as(remote, 'user:of-the-user', lambda to: self.exec_in('user', 'git', 'clone', '-q', url, to))
            self.clone_as(remote, 'user:of-the-user', lambda to: self.by_agent('PATH', 'git', 'clone', '-q', url, to)[0])
            refused = self.exec_in('bare', 'git', 'clone', '-q', url, self.work + '/none')
            self.assertEqual((refused.status, remote.seen), (128, [None]))
            self.assertIn('could not read Username', refused.err)
            self.push_by_agent(remote, self.work + '/clone-3')

    def clone_as(self, remote, who, clone):
        """`clone` must end well, by the credential `who` and no other."""
        self.clones = getattr(self, 'clones', 0) + 1
        cloned = clone(f'{self.work}/clone-{self.clones}')
        self.assertEqual((cloned.status, set(remote.seen)), (0, {None, who}), cloned.err)
        remote.seen.clear()

    def push_by_agent(self, remote, folder):
        remote.seen.clear()
        script = 'git commit -q --allow-empty -m second && git push -q origin main'
        pushed, _ = self.by_agent('PATH', 'sh', '-c', f'cd {folder} && {script}')
        self.assertEqual((pushed.status, set(remote.seen)), (0, {None, 'user:of-the-user'}), pushed.err)
        log = self.run_program(['git', '-c', 'safe.directory=*', '-C', remote.root + '/project.git', 'log', '--format=%s', 'main'])
        self.assertEqual(log.out, 'second\nfirst\n')

    @unittest.skipUnless(shutil.which('curl'), 'needs curl')
    def test_curl(self):
        """.netrc of each context's own HOME."""
        self.write(self.home + '/.netrc', 'machine 127.0.0.1 login platform password of-the-platform\n', 0o600)
        self.serve_contexts({}, {})
        own = 'umask 77; echo machine 127.0.0.1 login user password of-the-user >~/.netrc'
        with Server(('127.0.0.1', 0), Page) as page:
            page.seen, page.passwords = [], {'platform:of-the-platform', 'user:of-the-user'}
            curl = ['curl', '-sS', '--netrc-optional', page.url]
            self.assertEqual(self.exec_in('platform', *curl).out, 'platform:of-the-platform\n')
            self.assertEqual(self.exec_in('user', *curl).out, 'nobody\n')
            self.assertEqual(self.exec_in('user', 'sh', '-c', own).status, 0)
            self.assertEqual(self.by_agent('PATH', *curl)[0].out, 'user:of-the-user\n')
            self.assertEqual(self.exec_in('platform', *curl).out, 'platform:of-the-platform\n', 'still its own')
            self.assertEqual(page.seen, ['platform:of-the-platform', None, 'user:of-the-user', 'platform:of-the-platform'])


class Contexts(ApiCase):
    """Contexts made by the API, each with its own cloud."""

    @unittest.skipUnless(os.path.exists(AWS), 'needs awscli')
    def test_awscli(self):
        self.serve_api()
        keys = lambda name: {'AWS_ACCESS_KEY_ID': 'AKIA-' + name, 'AWS_SECRET_ACCESS_KEY': f'secret-of-{name}'}
        for name, env in (('aws', keys('first')), ('aws-2', keys('second')), ('azure', {'AZURE_CLIENT_ID': 'azure-id'})):
            env['AWS_EC2_METADATA_DISABLED'] = 'true'
            self.expect(201, 'POST', '/api/v1/contexts', {'name': name, 'cwd': self.work, 'env': env})
        with Server(('127.0.0.1', 0), Sts) as endpoint:
            endpoint.signers = []
            command = f'{AWS} --endpoint-url {endpoint.url} --region us-east-1 sts get-caller-identity'
            for context, expected in (('aws', 'AKIA-first'), ('aws-2', 'AKIA-second')):
                self.assertTrue(self.exec(command, context)['success'])
                self.assertEqual(endpoint.signers, [expected])
                endpoint.signers.clear()
            without = self.exec(command, 'azure')
            self.assertEqual((without['success'], endpoint.signers), (False, []))
            self.assertIn('Unable to locate credentials', without['stderr'])


if __name__ == '__main__':
    main()
