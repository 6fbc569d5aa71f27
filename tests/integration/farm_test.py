"""The shim farm with Landlock: what an agent starts is routed whatever it is written in, and the agent does
not notice. Each check runs bare first, where the same probe must find the platform's key.

The agents are bash, node and Python, and `airlock-test-dodge`, static with raw system calls. Shell builtins
decide where a shell ran (PLATFORM_KEY, ROUTE_MARK), not programs it starts.
"""

import json
import os
import shutil
import subprocess
import unittest

from harness import AIRLOCK, BIN, CANARY, Case, PATH, main

DODGE, WHERE = BIN + '/airlock-test-dodge', BIN + '/airlock-test-where'
NODE = shutil.which('node', path=PATH)
TIERS = ('namespaces', 'userns')
TELL = 'echo "key=[$PLATFORM_KEY] mark=[$ROUTE_MARK]"'
HERE, THERE = f'key=[{CANARY}] mark=[]', 'key=[] mark=[user]'


class Farm(Case):
    def setUp(self):
        super().setUp()
        self.log = self.dir + '/routes'

    def farmed(self, *agent, options=(), **run_options):
        return self.routed(*agent, options=('--enforce', 'farm', '--route-log', self.log, *options), **run_options)

    def routes(self):
        with open(self.log) as file:
            return [json.loads(line) for line in file]

    def bash(self, script, bare=HERE, **options):
        """The script's lines when its children are routed; `bare` must be among those it prints bare."""
        control = self.run_program(['bash', '-c', script], **options)
        self.assertIn(bare, control.out)
        ended = self.farmed('bash', '-c', script, **options)
        self.assertEqual((ended.status, ended.err), (0, ''), ended)
        return ended.out.splitlines()

    def folder_in_path(self):
        """A folder of programs as the system's: covered, since it lies in PATH and not below HOME."""
        folder = self.dir + '/bin'
        os.makedirs(folder, exist_ok=True)
        self.env['PATH'] = f'{folder}:{PATH}'
        return folder


class Routed(Farm):
    def test_static_agent_in_both_tiers(self):
        program = shutil.copy(WHERE, self.folder_in_path() + '/where')
        bare = self.run_program([DODGE, 'execve', program])
        self.assertIn(f'key={CANARY} mark= ', bare.out)
        for tier in TIERS:
            with self.subTest(tier=tier):
                ended = self.farmed(DODGE, 'execve', program, options=('--tier', tier))
                self.assertIn('key= mark=user ', ended.out, ended)
                self.assertIn('exited 7', ended.out)
                route = self.routes()[-1]
                self.assertEqual((route['caughtBy'], route['enforce'], route['outcome'], route['program']),
                                 ('farm', 'farm', 'run_in', program))

    def test_it_is_the_default(self):
        ended = self.routed('bash', '-c', f"sh -c '{TELL}'", options=('--route-log', self.log))
        self.assertEqual(ended.out, THERE + '\n', ended)
        self.assertEqual({route['enforce'] for route in self.routes()}, {'farm'})

    def test_what_is_not_covered_is_refused_to_a_static_agent(self):
        program = shutil.copy(WHERE, self.work)
        self.assertIn(f'key={CANARY}', self.run_program([DODGE, 'execve', program]).out)
        ended = self.farmed(DODGE, 'execve', program)
        self.assertIn('refused Permission denied', ended.out, ended)
        self.assertNotIn('where', ended.out)

    def test_interpreter_of_a_script(self):
        # The kernel starts the shim of /bin/sh for it: names and words arrive as they were.
        self.write('tell', f'#!/bin/sh\n{TELL} "$0" "$@"\n', 0o755)
        lines = self.bash(f'{self.work}/tell "a b" c; cd {self.work}; ./tell d',
                          bare=f'{HERE} {self.work}/tell a b c')
        self.assertEqual(lines, [f'{THERE} {self.work}/tell a b c', f'{THERE} ./tell d'])

    def test_installed_while_the_agent_runs(self):
        folder = self.folder_in_path()
        # The agent waits for the shim with builtins, at most as long as patience allows.
        script = (f'printf "#!/bin/sh\\n%s\\n" \'{TELL}\' >new; chmod +x new; sh -c "mv new {folder}/new-tool";'
                  f'for i in {{1..60000}}; do [ -x {folder}/new-tool ] && break; read -t 0.001 <> <(:); done;'
                  f'new-tool; sh -c "rm {folder}/new-tool";'
                  f'for i in {{1..60000}}; do [ -e {folder}/new-tool ] || break; read -t 0.001 <> <(:); done;'
                  f'[ -e {folder}/new-tool ] || echo gone')
        self.assertEqual(self.bash(script), [THERE, 'gone'])

    def test_replaced_by_rename(self):
        # As dpkg upgrades a program: a mount over the single file would be gone with it.
        folder = self.folder_in_path()
        old, new = folder + '/tool', folder + '/new'
        for file in (old, new):
            shutil.copy(WHERE, file)
        script = f'sh -c "mv {new} {old}"; {old}'
        control = self.run_program(['bash', '-c', script])
        self.assertIn(f'key={CANARY}', control.out)
        shutil.copy(WHERE, new)
        ended = self.farmed('bash', '-c', script)
        self.assertIn('key= mark=user', ended.out, ended)

    def test_names_are_real(self):
        script = ('which git; command -v git; realpath /usr/bin/awk; git --exec-path; readlink -f /bin/sh;'
                  'stat -c %s /usr/bin/git; type -p ls')
        bare = self.run_program(['bash', '-c', script])
        routed = self.farmed('bash', '-c', script)
        self.assertEqual((routed.out, routed.err, routed.status), (bare.out, bare.err, 0))

    def test_descriptors_that_meet_those_of_the_wall(self):
        # 40 descriptors of the agent's own: whatever numbers the ruleset and the program have, they
        # are among these.
        opened = ' '.join(f'{number}</etc/passwd' for number in range(3, 43))
        script = f'exec {AIRLOCK} run --enforce farm --user-env ROUTE_MARK=user -- bash -c "$1" {opened}'
        ended = self.run_program(['bash', '-c', script, 'bash', f"sh -c '{TELL}'"])
        self.assertEqual(ended.out, THERE + '\n', ended)


class Refused(Farm):
    def test_static_agent_without_a_mechanism(self):
        ended = self.routed(DODGE, 'execve', WHERE, options=('--enforce', 'preload'))
        self.expect_error(ended, 126, 'statically linked', 'preload')
        ended = self.routed(DODGE, 'execve', WHERE, options=('--tier', 'none', '--development', '--enforce', 'farm'))
        self.assertIn('DEVELOPMENT: what ' + os.path.realpath(DODGE) + ' starts is not routed', ended.err)
        self.assertIn('exited 7', ended.out)

    def test_farm_without_mounts(self):
        self.up(f'contexts: {{platform: {{cwd: {self.work}, child_context: user, isolation: none, enforce: farm}}, '
                f'user: {{cwd: {self.work}}}}}\n')
        ended = self.airlock('run', '--', 'true')
        self.expect_error(ended, 126, 'enforce: farm', 'mount namespaces')

    def test_the_wall_cannot_be_taken_down(self):
        # With all capabilities of the platform: Landlock forbids changes of mounts.
        self.assertEqual(os.geteuid(), 0)
        script = ('import ctypes, os, sys\n'
                  'libc = ctypes.CDLL(None, use_errno=True)\n'
                  'def tell(name, result): print(name, result, os.strerror(ctypes.get_errno()) if result else "ok")\n'
                  'tell("umount", libc.umount2(b"/usr/bin", 2))\n'
                  'tell("mount", libc.mount(b"none", b"/mnt", b"tmpfs", 0, None))\n'
                  'tell("unlink", libc.unlink(b"/usr/bin/true"))\n'
                  'tell("rename", libc.rename(b"/usr/bin", b"/usr/bin.old"))\n')
        ended = self.farmed('/usr/bin/python3', '-c', script)
        self.assertEqual(ended.out.splitlines(),
                         ['umount -1 Operation not permitted', 'mount -1 Operation not permitted',
                          'unlink -1 Read-only file system', 'rename -1 Device or resource busy'], ended)

    def test_the_stub_is_no_target(self):
        script = 'stub=${LD_PRELOAD%%:*}; stub=${stub%/*}/airlock-stub; "$stub" exec1 "$stub" x; echo $?'
        ended = self.farmed('bash', '-c', script)
        self.assertEqual(ended.out, '126\n')
        self.assertIn('stub cannot be routed', ended.err)


class StillWorks(Farm):
    def test_renames_between_folders(self):
        script = 'import os; os.makedirs("a/b"); os.mkdir("c"); os.rename("a/b", "c/d"); os.link(__file__, "c/e"); print(sorted(os.listdir("c")))'
        self.write('agent.py', '#!/usr/bin/env python3\n' + script, 0o755)
        ended = self.farmed(self.work + '/agent.py')
        self.assertEqual(ended.out, "['d', 'e']\n", ended)

    def test_memory_made_executable(self):
        # As a JIT does it: anonymous memory, and two views of one memfd.
        script = ('import mmap, os, ctypes\n'
                  'code = b"\\xb8\\x2a\\x00\\x00\\x00\\xc3"\n'
                  'def call(view): return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(view)))()\n'
                  'anonymous = mmap.mmap(-1, 4096, prot=7); anonymous.write(code)\n'
                  'fd = os.memfd_create("jit"); os.write(fd, code.ljust(4096, b"\\0"))\n'
                  'shared = mmap.mmap(fd, 4096, prot=7)\n'
                  'print(call(anonymous), call(shared))\n')
        if os.uname().machine != 'x86_64':
            self.skipTest('the code is for x86_64')
        bare = self.run_program(['/usr/bin/python3', '-c', script])
        ended = self.farmed('/usr/bin/python3', '-c', script)
        self.assertEqual((bare.out, ended.out), ('42 42\n', '42 42\n'), ended)

    @unittest.skipUnless(NODE, 'node is not installed')
    def test_node_agent_behind_a_link_in_path(self):
        # As npm installs one; it starts its own node once more, and that a script of somebody else.
        folder = self.folder_in_path()
        package = self.dir + '/lib/node_modules/an-agent'
        os.makedirs(package)
        self.write(self.work + '/other.js', 'console.log("other", process.env.ROUTE_MARK, process.env.PLATFORM_KEY)')
        self.write(package + '/part.js', 'exports.name = "part"')
        self.write(package + '/agent.js', f'''#!/usr/bin/env node
const {{ spawnSync }} = require('child_process');
console.log(require('./part.js').name, process.execPath, process.env.PLATFORM_KEY !== undefined);
if (process.argv[2] !== 'again') {{
  const run = (...words) => process.stdout.write(spawnSync(process.execPath, words).stdout);
  run(process.argv[1], 'again');
  run('{self.work}/other.js');
  process.stdout.write(spawnSync('sh', ['-c', 'echo {TELL.replace('"', "").replace("echo ", "")}']).stdout);
}}''', 0o755)
        os.symlink('../lib/node_modules/an-agent/agent.js', folder + '/an-agent')
        bare = self.run_program(['an-agent'])
        self.assertEqual(len(bare.out.splitlines()), 4, bare)
        self.assertIn(f'other undefined {CANARY}', bare.out)
        ended = self.farmed('an-agent')
        own, again, other, shell = ended.out.splitlines()
        self.assertEqual([own, again], bare.out.splitlines()[:2])
        self.assertEqual(other, 'other user undefined')
        self.assertEqual(shell, THERE)

    def test_venv(self):
        subprocess.run(['/usr/bin/python3', '-m', 'venv', '--without-pip', self.work + '/v'], check=True)
        script = f'{self.work}/v/bin/python -c "import sys; print(sys.prefix)"'
        bare = self.run_program(['bash', '-c', script])
        self.assertEqual(bare.out, self.work + '/v\n')
        self.assertEqual(self.farmed('bash', '-c', script).out, bare.out)
        # Also for an agent whose exec nobody sees: the shim is asked by the link's name.
        program = f'{self.work}/v/bin/where'
        target = shutil.copy(WHERE, self.folder_in_path() + '/where')
        os.symlink(target, program)
        ended = self.farmed(DODGE, 'execve', program)
        self.assertIn('mark=user', ended.out, ended)
        self.assertEqual(self.routes()[-1]['program'], program)


class PreloadFile(Farm):
    """/etc/ld.so.preload, where there is one: in a mount namespace whose /etc has it."""

    def in_machine_with_file(self, *command):
        setup = (f'mount -t tmpfs none {self.work} && mkdir {self.work}/u {self.work}/w && '
                 f'mount -t overlay none -o lowerdir=/etc,upperdir={self.work}/u,workdir={self.work}/w /etc && '
                 ': >/etc/ld.so.preload && cd / && exec "$@"')
        return self.run_program(['unshare', '-m', 'sh', '-c', setup, 'sh', *command])

    def test_it_is_private_to_the_agent(self):
        script = ('cat /etc/ld.so.preload; sh -c "echo routed \\$ROUTE_MARK; cat /etc/ld.so.preload";'
                  '[[ $(</etc/ld.so.preload) == *libairlock-preload.so ]] && echo agent;'
                  '[[ $(</proc/$$/maps) == *libairlock-preload.so* ]] && echo loaded; echo "[$LD_PRELOAD]"')
        ended = self.in_machine_with_file(AIRLOCK, 'run', '--user-env', 'ROUTE_MARK=user', '--', 'bash', '-c', script)
        # cat is routed: the user's file is the machine's, and empty.
        self.assertEqual((ended.out, ended.err), ('routed user\nagent\nloaded\n[]\n', ''), ended)

    def test_it_can_be_neither_removed_nor_replaced(self):
        script = 'sh -c "rm /etc/ld.so.preload; : >/etc/new; mv /etc/new /etc/ld.so.preload"'
        control = self.in_machine_with_file('bash', '-c', script)
        self.assertEqual((control.status, control.err), (0, ''))
        ended = self.in_machine_with_file(AIRLOCK, 'run', '--', 'bash', '-c', script)
        self.assertEqual(ended.err.count('Device or resource busy'), 2, ended)


class Reported(Farm):
    def test_by_doctor_context_and_daemon(self):
        self.up(f'contexts: {{platform: {{cwd: {self.work}, child_context: user}}, user: {{cwd: {self.work}}}}}\n')
        told = self.ask('ctx', 'inspect', 'platform')['enforcement']
        self.assertEqual((told['wanted'], told['dynamic']), ('auto', 'farm'))
        farm = [each for each in told['mechanisms'] if each['mechanism'] == 'farm'][0]
        self.assertTrue(farm['works'])
        self.assertTrue(any('ld.so' in way for way in farm['notStopped']))
        self.assertEqual(self.ask('info')['enforcement']['platform']['dynamic'], 'farm')
        self.assertEqual(self.ask('doctor')['enforcement']['dynamic'], 'farm')
        self.assertIn('not stopped', self.airlock('doctor').out)


if __name__ == '__main__':
    main()
