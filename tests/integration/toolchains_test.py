"""Agents in Go and Rust: each starts a program by its language's own library, which calls the kernel directly (Go) or
libc (Rust). Label full: the toolchains are large, and what is not installed is told as not run. As root, Go is
installed with `apt-get install golang-go`, Rust with `apt-get install rustc`.
"""

import os
import shutil
import subprocess
import tempfile

from dodge_test import NOT_STOPPED, ROUTED, WHERE, Dodges, mechanisms
from harness import main

GO = '''
package main

import ("fmt"; "os"; "os/exec"; "os/user")

func main() {
	space, _ := os.Readlink("/proc/self/ns/pid")
	fmt.Println("agent", space)
	user.Current() // by libc, where cgo is
	done := make(chan error)
	for i := 0; i < 4; i++ {
		go func() {
			command := exec.Command(os.Args[1])
			command.Stdout, command.Stderr = os.Stdout, os.Stderr
			done <- command.Run()
		}()
	}
	for i := 0; i < 4; i++ { fmt.Println("exited", <-done) }
}
'''
RUST = '''
use std::process::Command;
fn main() {
    println!("agent {}", std::fs::read_link("/proc/self/ns/pid").unwrap().display());
    let program = std::env::args().nth(1).unwrap();
    for _ in 0..4 { println!("exited {:?}", Command::new(&program).status().unwrap().code()); }
}
'''

STATIC, DYNAMIC = ('binfmt', 'ptrace', 'farm'), ('farm', 'ptrace')

# name: (what compiles it, the suffix of its source, the source, environment, mechanisms that see it)
KINDS = {
    'go-static': (['go', 'build', '-o'], '.go', GO, {'CGO_ENABLED': '0'}, STATIC),
    # Go calls the kernel itself, with cgo too: the interposer sees nothing of that.
    'go-cgo': (['go', 'build', '-o'], '.go', GO, {'CGO_ENABLED': '1'}, DYNAMIC),
    'rust': (['rustc', '-O', '-o'], '.rs', RUST, {}, (*DYNAMIC, 'preload')),
    'rust-musl': (['rustc', '-O', '--target', 'x86_64-unknown-linux-musl', '-o'], '.rs', RUST, {}, STATIC),
}


class Toolchains(Dodges):
    def compiled(self, kind):
        command, suffix, source, env, _ = KINDS[kind]
        folder = tempfile.mkdtemp(dir=self.dir)
        self.write(folder + '/agent' + suffix, source)
        env = {**os.environ, 'HOME': os.environ.get('HOME', '/root'), 'GOCACHE': folder + '/cache',
               'GOFLAGS': '-mod=mod', 'GO111MODULE': 'off', **env}
        done = subprocess.run([*command, folder + '/agent', folder + '/agent' + suffix], env=env, cwd=folder,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest(f'{kind}: does not compile here: {done.stderr.strip().splitlines()[0]}')
        return folder + '/agent'

    def check_kind(self, kind):
        if shutil.which(KINDS[kind][0][0]) is None:
            self.skipTest(f'{kind}: {KINDS[kind][0][0]} is not installed')
        agent = self.compiled(kind)
        program = self.placed(WHERE, 'bin')  # a farm covers it
        bare = self.run_program([agent, program])
        self.assertEqual((self.judge(bare.out), bare.out.count('where ')), (NOT_STOPPED, 4), bare)
        for mechanism in KINDS[kind][-1]:
            with self.subTest(mechanism=mechanism):
                if reason := mechanisms()[mechanism]:
                    self.skipTest(f'{mechanism}: {reason}')
                ended = self.routed(agent, program, options=('--enforce', mechanism))
                self.assertEqual((self.judge(ended.out + ended.err), ended.out.count('where ')), (ROUTED, 4), ended)


def add_test(kind):
    setattr(Toolchains, 'test_' + kind.replace('-', '_'), lambda self: self.check_kind(kind))


for name in [name for name in dir(Dodges) if name.startswith('test_')]:
    setattr(Toolchains, name, None)  # not once more
for each in KINDS:
    add_test(each)
del Dodges

if __name__ == '__main__':
    main()
