// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
//
// syscall(3): everything but execve and execveat goes to the kernel exactly as libc's own does it.
// In assembly because the call may be clone or vfork, whose child returns a second time through
// this very frame: there must be none. Neighbour: the two C targets are in interpose.cc.
#include "preload/arch.h"

#include <asm/unistd.h>

#define AIRLOCK_TEXT2(number) #number
#define AIRLOCK_TEXT(number) AIRLOCK_TEXT2(number)

#pragma GCC visibility push(default)
extern "C" [[gnu::naked]] long syscall(long, ...) {
#if defined(__x86_64__)
  // The number is 32 bits wide for the kernel too, so the upper half must not hide an execve.
  asm("endbr64\n\t"
      "cmpl $" AIRLOCK_TEXT(__NR_execve) ", %edi\n\t"
      "je airlock_syscall_execve\n\t"
      "cmpl $" AIRLOCK_TEXT(__NR_execveat) ", %edi\n\t"
      "je airlock_syscall_execveat\n\t"
      "movq %rdi, %rax\n\t"
      "movq %rsi, %rdi\n\t"
      "movq %rdx, %rsi\n\t"
      "movq %rcx, %rdx\n\t"
      "movq %r8, %r10\n\t"
      "movq %r9, %r8\n\t"
      "movq 8(%rsp), %r9\n\t"
      "syscall\n\t"
      "cmpq $-4095, %rax\n\t"  // MAX_ERRNO, include/linux/err.h
      "jae 1f\n\t"
      "ret\n"
      "1:\tnegl %eax\n\t"
      "pushq %rax\n\t"
      ".cfi_adjust_cfa_offset 8\n\t"
      "callq __errno_location@PLT\n\t"
      "popq %rcx\n\t"
      ".cfi_adjust_cfa_offset -8\n\t"
      "movl %ecx, (%rax)\n\t"
      "movq $-1, %rax\n\t"
      "ret");
#elif defined(__aarch64__)
  asm("hint #34\n\t"  // bti c
      "cmp w0, #" AIRLOCK_TEXT(__NR_execve) "\n\t"
      "b.eq airlock_syscall_execve\n\t"
      "cmp w0, #" AIRLOCK_TEXT(__NR_execveat) "\n\t"
      "b.eq airlock_syscall_execveat\n\t"
      "uxtw x8, w0\n\t"
      "mov x0, x1\n\t"
      "mov x1, x2\n\t"
      "mov x2, x3\n\t"
      "mov x3, x4\n\t"
      "mov x4, x5\n\t"
      "mov x5, x6\n\t"
      "mov x6, x7\n\t"
      "svc #0\n\t"
      "cmn x0, #4095\n\t"  // MAX_ERRNO, include/linux/err.h
      "b.cs 1f\n\t"
      "ret\n"
      "1:\tneg w0, w0\n\t"
      "stp x0, x30, [sp, #-16]!\n\t"
      ".cfi_adjust_cfa_offset 16\n\t"
      "bl __errno_location\n\t"
      "ldp x1, x30, [sp], #16\n\t"
      ".cfi_adjust_cfa_offset -16\n\t"
      "str w1, [x0]\n\t"
      "mov x0, #-1\n\t"
      "ret");
#endif
}
#pragma GCC visibility pop
