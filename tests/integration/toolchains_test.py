"""Agents in Go and Rust, and for musl: each starts a program by its language's own library, which calls the kernel
directly (Go) or libc (Rust, C). Label full: the toolchains are large, and what is not installed is told as not run. As root, Go is
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
# No standard library for musl comes with Debian's rustc; the calls are the same.
RUST_MUSL = '''
#![no_std]
#![no_main]
extern "C" {
    fn posix_spawn(pid: *mut i32, path: *const u8, actions: *const u8, attributes: *const u8, argv: *const *const u8,
                   env: *const *const u8) -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn readlink(path: *const u8, text: *mut u8, size: usize) -> isize;
    fn printf(format: *const u8, ...) -> i32;
    fn fflush(file: *const u8) -> i32;
    static environ: *const *const u8;
}
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
#[no_mangle]
pub unsafe extern "C" fn main(_count: i32, argv: *const *const u8) -> i32 {
    let none = core::ptr::null();
    let mut space = [0u8; 64];
    readlink(b"/proc/self/ns/pid\\0".as_ptr(), space.as_mut_ptr(), 63);
    printf(b"agent %s\\n\\0".as_ptr(), space.as_ptr());
    for _ in 0..4 {
        let (mut pid, mut status) = (0, 0);
        let error = posix_spawn(&mut pid, *argv.add(1), none, none, argv.add(1), environ);
        if error == 0 { waitpid(pid, &mut status, 0); }
        printf(b"exited %d %d\\n\\0".as_ptr(), error, status);
    }
    fflush(none);
    0
}
'''

C = '''
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **argv) {
  char space[64] = {0};
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) return 1;
  printf("agent %s\\n", space);
  for (int i = 0; i < 4; ++i) {
    pid_t pid = 0;
    int status = 0, error = posix_spawn(&pid, argv[1], 0, 0, argv + 1, environ);
    if (error == 0) waitpid(pid, &status, 0);
    printf("exited %d %d\\n", error, status);
  }
  return count < 2;
}
'''
MUSL = ['rustc', '-O', '-C', 'panic=abort', '-C', 'linker=musl-gcc', '-C', 'relocation-model=static']

STATIC, DYNAMIC = ('binfmt', 'ptrace', 'farm'), ('farm', 'ptrace')

# name: (what compiles it, the suffix of its source, the source, environment, mechanisms that see it)
KINDS = {
    'go-static': (['go', 'build', '-o'], '.go', GO, {'CGO_ENABLED': '0'}, STATIC),
    # Go calls the kernel itself, with cgo too: the interposer sees nothing of that.
    'go-cgo': (['go', 'build', '-o'], '.go', GO, {'CGO_ENABLED': '1'}, DYNAMIC),
    'rust': (['rustc', '-O', '-o'], '.rs', RUST, {}, (*DYNAMIC, 'preload')),
    'rust-musl': ([*MUSL, '-C', 'link-args=-Wl,-static -lc', '-o'], '.rs', RUST_MUSL, {}, STATIC),
    'rust-musl-dynamic': ([*MUSL, '-C', 'link-args=-lc', '-o'], '.rs', RUST_MUSL, {}, STATIC),
    'c-musl-dynamic': (['musl-gcc', '-o'], '.c', C, {}, STATIC),
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
