// For programs that may load the interposer: syscall() without libc's function of that name.
#pragma once

#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

static inline long raw_syscall6(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  if (result >= -4095 && result < 0) {
    errno = (int)-result;
    return -1;
  }
  return result;
}

#elif defined(__aarch64__)

static inline long raw_syscall6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  if (x0 >= -4095 && x0 < 0) {
    errno = (int)-x0;
    return -1;
  }
  return x0;
}

#endif

#define RAW_PAD(number, a, b, c, d, e, f, ...) \
  raw_syscall6((long)(number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define syscall(...) RAW_PAD(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
