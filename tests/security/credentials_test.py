"""What the environment of a routed child has and has not: forty programs that depend on variables behave as bare, forty
credentials do not arrive; and what else a child could learn a credential from."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), 'integration')]

from harness import CANARY, Case, main

PYTHON = '/usr/bin/python3'

# What their makers call them; each has a value of its own.
SECRETS = '''ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY GOOGLE_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
AZURE_CLIENT_SECRET AZURE_OPENAI_API_KEY GOOGLE_APPLICATION_CREDENTIALS GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN BITBUCKET_APP_PASSWORD NPM_TOKEN
NODE_AUTH_TOKEN PYPI_TOKEN TWINE_PASSWORD CARGO_REGISTRY_TOKEN DOCKER_PASSWORD DOCKER_AUTH_CONFIG DATABASE_PASSWORD PGPASSWORD MYSQL_PWD
REDIS_PASSWORD MONGO_PASSWORD SENTRY_AUTH_TOKEN SENTRY_DSN SLACK_BOT_TOKEN STRIPE_SECRET_KEY TWILIO_AUTH_TOKEN CLOUDFLARE_API_TOKEN
DIGITALOCEAN_ACCESS_TOKEN HF_TOKEN HEROKU_API_KEY VAULT_TOKEN KUBECONFIG SSH_AUTH_SOCK GPG_AGENT_INFO DATABASE_URL SESSION_COOKIE JWT_SECRET'''.split()

# Variables and a program whose output or status depends on them.
PROGRAMS = [
    ({'TZ': 'Asia/Tokyo'}, ['date', '-d', '@0', '+%H %Z']),
    ({'LC_ALL': 'C'}, ['sort', '/etc/hostname', '/dev/null']),
    ({'LANG': 'C.UTF-8'}, ['locale']),
    ({'LC_TIME': 'C', 'TZ': 'UTC'}, ['date', '-d', '@0', '+%c']),
    ({'COLUMNS': '40'}, [PYTHON, '-c', 'import shutil; print(shutil.get_terminal_size().columns)']),
    ({'HOME': '/nonexistent'}, ['sh', '-c', 'echo ~']),
    ({'PATH': '/nonexistent:/usr/bin:/bin'}, ['sh', '-c', 'echo $PATH']),
    ({'CDPATH': '/usr'}, ['bash', '-c', 'cd share && pwd']),
    ({'BASH_ENV': '/dev/null', 'X': '1'}, ['bash', '-c', 'echo $X $BASH_ENV']),
    ({'ENV': '/dev/null'}, ['sh', '-c', 'echo $ENV']),
    ({'PS4': '-> '}, ['bash', '-xc', 'true']),
    ({'IFS': ':'}, ['sh', '-c', 'echo a:b']),
    ({'POSIXLY_CORRECT': '1'}, ['bash', '-c', 'shopt -o posix']),
    ({'PYTHONDONTWRITEBYTECODE': '1'}, [PYTHON, '-c', 'import sys; print(sys.dont_write_bytecode)']),
    ({'PYTHONPATH': '/nonexistent/lib'}, [PYTHON, '-c', 'import sys; print("/nonexistent/lib" in sys.path)']),
    ({'PYTHONHASHSEED': '0'}, [PYTHON, '-c', 'print(hash("x"))']),
    ({'PYTHONUNBUFFERED': '1'}, [PYTHON, '-c', 'import sys; print(sys.flags.unbuffered)']),
    ({'PYTHONWARNINGS': 'error'}, [PYTHON, '-c', 'import warnings; warnings.warn("x")']),
    ({'VIRTUAL_ENV': '/x/venv'}, [PYTHON, '-c', 'import os; print(os.environ["VIRTUAL_ENV"])']),
    ({'NODE_ENV': 'production'}, ['node', '-p', 'process.env.NODE_ENV']),
    ({'NODE_OPTIONS': '--max-old-space-size=99'}, ['node', '-p', 'process.env.NODE_OPTIONS']),
    ({'NO_COLOR': '1'}, ['node', '-p', 'process.stdout.hasColors?.() ?? false']),
    ({'FORCE_COLOR': '0'}, ['sh', '-c', 'echo $FORCE_COLOR']),
    ({'CI': 'true'}, ['sh', '-c', 'test "$CI" = true']),
    ({'MAKEFLAGS': '-s'}, ['make', '-f', '/dev/null', '--eval', 'all:; echo x']),
    ({'CPATH': '/nonexistent'}, ['sh', '-c', 'echo "int main;" | cc -xc -E -v - 2>&1 | grep -c "ignoring nonexistent directory./nonexistent"']),
    ({'CFLAGS': '-O2', 'CC': 'cc'}, ['make', '-n', '-f', '/dev/null', 'x.o', '--eval', 'x.o:; $(CC) $(CFLAGS)']),
    ({'SOURCE_DATE_EPOCH': '0'}, ['sh', '-c', 'echo __DATE__ | cc -E -P -xc -']),
    ({'GIT_AUTHOR_NAME': 'A', 'GIT_AUTHOR_EMAIL': 'a@example.org', 'GIT_AUTHOR_DATE': '1 +0000'}, ['git', 'var', 'GIT_AUTHOR_IDENT']),
    ({'GIT_DIR': '/nonexistent/.git'}, ['git', 'status']),
    ({'GIT_CONFIG_COUNT': '1', 'GIT_CONFIG_KEY_0': 'a.b', 'GIT_CONFIG_VALUE_0': 'c'}, ['git', 'config', 'a.b']),
    ({'PAGER': 'cat', 'EDITOR': 'true'}, ['git', 'var', 'GIT_EDITOR']),
    ({'LESS': '-R'}, ['sh', '-c', 'echo $LESS']),
    ({'GREP_COLORS': 'mt=01;34'}, ['sh', '-c', 'echo a | grep --color=always a']),
    ({'LS_COLORS': 'di=1'}, ['ls', '-d', '--color=always', '/usr']),
    ({'TMPDIR': '/var/tmp'}, ['sh', '-c', 'dirname "$(mktemp -u -t XXXX)"']),
    ({'XDG_CONFIG_HOME': '/x'}, ['sh', '-c', 'echo $XDG_CONFIG_HOME']),
    ({'PERL5LIB': '/x/perl'}, ['perl', '-e', 'print grep { $_ eq "/x/perl" } @INC']),
    ({'AWKPATH': '/x'}, ['awk', 'BEGIN { print ENVIRON["AWKPATH"] }']),
    ({'http_proxy': 'http://proxy.example.org:3128'}, ['sh', '-c', 'echo $http_proxy']),
    ({'DEBIAN_FRONTEND': 'noninteractive'}, ['sh', '-c', 'echo $DEBIAN_FRONTEND']),
    ({'CLAUDECODE': '1'}, ['sh', '-c', 'echo $CLAUDECODE']),
]

# An agent: starts each program with its variables, on top of what it has itself.
RUN_ALL = '''
import json, os, subprocess, sys
results = []
for changes, argv in json.loads(sys.stdin.read()):
    done = subprocess.run(argv, env={**os.environ, **changes}, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    results.append([done.returncode, done.stdout, done.stderr])
print(json.dumps(results))
'''


class Credentials(Case):

    def setUp(self):
        super().setUp()
        self.up(f'contexts:\n  platform: {{cwd: {self.work}, child_context: user, route_child: always}}\n  user: {{cwd: {self.work}}}\n')

    def as_agent(self, stdin, *words, is_routed=True, env=None):
        script = [PYTHON, '-S', '-c', RUN_ALL, *words]
        if not is_routed:
            return self.run_program(script, stdin=stdin, env=env)
        options = ['-i'] + [word for name, value in (env or {}).items() for word in ('-e', f'{name}={value}')]
        return self.exec_in('platform', *script, stdin=stdin, options=options)

    def test_programs_that_depend_on_variables(self):
        self.assertGreaterEqual(len(PROGRAMS), 40)
        asked = json.dumps(PROGRAMS).encode()
        bare = self.run_program([PYTHON, '-S', '-c', RUN_ALL], stdin=asked)
        routed = self.as_agent(asked)
        self.assertEqual(routed.status, 0, routed.err)
        for (changes, argv), before, after in zip(PROGRAMS, json.loads(bare.out), json.loads(routed.out)):
            with self.subTest(program=argv, variables=changes):
                self.assertEqual(after, before)
        # They do depend on them: without, most end otherwise.
        without = json.loads(self.run_program([PYTHON, '-S', '-c', RUN_ALL], stdin=json.dumps([({}, argv) for _, argv in PROGRAMS]).encode()).out)
        differing = sum(one != other for one, other in zip(without, json.loads(bare.out)))
        self.assertGreater(differing, 30, 'control')

    def test_secrets(self):
        self.assertGreaterEqual(len(SECRETS), 40)
        values = {name: f'{name.lower()}-{CANARY}' for name in SECRETS}
        values['DATABASE_URL'] = f'postgres://app:{CANARY}@db.example.org/app'
        look = ['sh', '-c', 'env; cat /proc/self/environ /proc/$PPID/environ /proc/1/environ 2>/dev/null; set; ps -e -o args']
        asked = json.dumps([[{}, look], [{'INNOCENT': 'prefix-' + values['OPENAI_API_KEY']}, look]]).encode()
        for after in json.loads(self.as_agent(asked, env=values).out):
            self.assertNotIn(CANARY, after[1] + after[2])
            for name in SECRETS:
                self.assertNotIn(f'\n{name}=', after[1])
        bare = json.loads(self.as_agent(asked, is_routed=False, env=values).out)
        self.assertGreaterEqual(bare[0][1].count(CANARY), len(SECRETS), 'control: bare all arrive')

    def test_locations(self):
        """The files that tools keep credentials in: none is there, now or later."""
        files = '''.aws/credentials .config/gcloud/credentials.db .azure/msal_token_cache.json .config/gh/hosts.yml .git-credentials .netrc
                   .ssh/id_ed25519 .gnupg/secring.gpg .docker/config.json .npmrc .pypirc .cargo/credentials.toml .kube/config .claude/.credentials.json
                   .codex/auth.json .gemini/oauth_creds.json .config/github-copilot/apps.json .local/share/opencode/auth.json .qwen/oauth_creds.json
                   .bash_history .config/op/config .terraform.d/credentials.tfrc.json .vault-token .pgpass .my.cnf'''.split()

        def put(name, how):
            path = f'{self.home}/{name}'
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if how == 'unlink' and os.path.exists(path):
                os.unlink(path)
            self.write(path + '.new' if how == 'rename' else path, CANARY, 0o600)
            if how == 'rename':
                os.rename(path + '.new', path)

        for how in ('new', 'rename', 'unlink'):
            for name in files:
                put(name, how)
            found = self.exec_in('user', 'sh', '-c', 'cd ~ && cat ' + ' '.join(files) + f' 2>/dev/null; grep -rl {CANARY} ~ 2>/dev/null')
            self.assertNotIn(CANARY, found.out, how)
            self.assertNotIn('/', found.out, how)
        self.assertEqual(self.exec_in('platform', 'cat', f'{self.home}/.npmrc').out, CANARY, 'control')


if __name__ == '__main__':
    main()
