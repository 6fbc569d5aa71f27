#pragma once

// The one architecture-specific file: system calls without errno, and a child on its own stack.
//
// A child made with CLONE_VM shares the parent's memory, the thread-local errno included, while
// the parent runs on. So between clone and exec only these may be used.

#include <sys/syscall.h>

namespace base::raw {

#if defined(__x86_64__)

/// Returns the kernel's value: -errno on failure. errno is not touched.
inline long syscall6(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

/// clone(2) of a child that runs function(argument) on the stack ending at `stack_top` (16-byte
/// aligned) and must not return. The kernel zeroes *child_tid when the child has exec'ed or ended
/// (CLONE_CHILD_CLEARTID). Returns the pid, or -errno.
inline long clone_on_stack(unsigned long flags, void* stack_top, int* child_tid,
                           void (*function)(void*), void* argument) {
  void** stack = static_cast<void**>(stack_top);
  *--stack = argument;
  *--stack = reinterpret_cast<void*>(function);
  long result;
  register int* r10 asm("r10") = child_tid;
  register long r8 asm("r8") = 0;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "pop %%rax\n\t"
      "pop %%rdi\n\t"
      "call *%%rax\n\t"
      "ud2\n"
      "1:"
      : "=a"(result)
      : "a"(static_cast<long>(SYS_clone)), "D"(flags), "S"(stack), "d"(0L), "r"(r10), "r"(r8)
      : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

inline long syscall6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}

inline long clone_on_stack(unsigned long flags, void* stack_top, int* child_tid,
                           void (*function)(void*), void* argument) {
  void** stack = static_cast<void**>(stack_top);
  *--stack = argument;
  *--stack = reinterpret_cast<void*>(function);
  register long x8 asm("x8") = SYS_clone;
  register long x0 asm("x0") = static_cast<long>(flags);
  register void** x1 asm("x1") = stack;
  register long x2 asm("x2") = 0;
  register long x3 asm("x3") = 0;  // tls; arm64 has it before child_tid (clone(2))
  register int* x4 asm("x4") = child_tid;
  asm volatile(
      "svc 0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, 0\n\t"
      "ldp x1, x0, [sp], #16\n\t"
      "blr x1\n\t"
      "brk 0\n"
      "1:"
      : "+r"(x0)
      : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
      : "memory", "x30");
  return x0;
}

#else
#error "airlock knows x86_64 and aarch64"
#endif

/// syscall(NUMBER, up to six arguments), pointers and integers alike.
template <class... Args>
long call(long number, Args... args) {
  static_assert(sizeof...(args) <= 6);
  long values[6] = {};
  [[maybe_unused]] int i = 0;
  ((values[i++] = (long)args), ...);  // NOLINT: pointers and integers alike become registers
  return syscall6(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

}  // namespace base::raw
