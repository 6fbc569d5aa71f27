#pragma once

#include <elf.h>
#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <cerrno>
#include <cstdint>

// What differs between machines for a tracer: which registers a system call is made of (syscall(2),
// "Architecture calling conventions"). Everything else of tracing is the same.
namespace contexts::init {

#if defined(__x86_64__)
/// The ABI of this machine, as seccomp(2) filters see it.
constexpr std::uint32_t kNativeAbi = AUDIT_ARCH_X86_64;
/// Its 32-bit one, and what exec(2) is called there (arch/x86/entry/syscalls/syscall_32.tbl).
constexpr std::uint32_t kOtherAbi = AUDIT_ARCH_I386;
constexpr std::uint32_t kOtherExecve = 11;
constexpr std::uint32_t kOtherExecveat = 358;
/// x32: a bit in the number, with numbers of its own for these two.
constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr std::uint32_t kX32Execve = kX32Bit | 520;
constexpr std::uint32_t kX32Execveat = kX32Bit | 545;
#elif defined(__aarch64__)
constexpr std::uint32_t kNativeAbi = AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kOtherAbi = AUDIT_ARCH_ARM;
constexpr std::uint32_t kOtherExecve = 11;
constexpr std::uint32_t kOtherExecveat = 387;
#else
#error "airlock knows x86_64 and aarch64"
#endif

/// The registers of a stopped tracee, at a system call or at the start of a program.
class Registers {
 public:
  /// False if the tracee has gone (ptrace(2), ESRCH).
  bool read_from(pid_t tracee) {
    iovec area{&user_, sizeof user_};
    return ::ptrace(PTRACE_GETREGSET, tracee, kGeneral, &area) == 0 && read_number(tracee);
  }
  bool write_to(pid_t tracee) const {
    user_regs_struct copy = user_;
    iovec area{&copy, sizeof copy};
    return ::ptrace(PTRACE_SETREGSET, tracee, kGeneral, &area) == 0 && write_number(tracee);
  }

#if defined(__x86_64__)
  long number() const { return static_cast<long>(user_.orig_rax); }
  void set_number(long number) { user_.orig_rax = static_cast<unsigned long>(number); }
  /// The system call's value; a tracee that is about to make one gets it if its number is -1.
  void set_result(long result) { user_.rax = static_cast<unsigned long>(result); }
  std::uintptr_t argument(int index) const { return user_.*kArguments[index]; }
  void set_argument(int index, std::uintptr_t value) { user_.*kArguments[index] = value; }
  std::uintptr_t stack() const { return user_.rsp; }
  void set_stack(std::uintptr_t stack) { user_.rsp = stack; }
  /// The arguments of `other`; the result of the call is kept.
  void take_arguments(const Registers& other) {
    for (int i = 0; i < 6; ++i) set_argument(i, other.argument(i));
  }

 private:
  using Register = decltype(user_regs_struct::rdi);
  static constexpr Register user_regs_struct::*kArguments[] = {
      &user_regs_struct::rdi, &user_regs_struct::rsi, &user_regs_struct::rdx,
      &user_regs_struct::r10, &user_regs_struct::r8,  &user_regs_struct::r9};
  bool read_number(pid_t) { return true; }
  bool write_number(pid_t) const { return true; }
#else
  long number() const { return number_; }
  void set_number(long number) { number_ = static_cast<int>(number); }
  void set_result(long result) { user_.regs[0] = static_cast<unsigned long>(result); }
  std::uintptr_t argument(int index) const { return user_.regs[index]; }
  void set_argument(int index, std::uintptr_t value) { user_.regs[index] = value; }
  std::uintptr_t stack() const { return user_.sp; }
  void set_stack(std::uintptr_t stack) { user_.sp = stack; }
  /// x0 is both the first argument and the result, so it is the result's.
  void take_arguments(const Registers& other) {
    for (int i = 1; i < 6; ++i) set_argument(i, other.argument(i));
  }

 private:
  static constexpr int kSystemCall = 0x404;  // NT_ARM_SYSTEM_CALL, linux/elf.h
  bool read_number(pid_t tracee) {
    iovec area{&number_, sizeof number_};
    return ::ptrace(PTRACE_GETREGSET, tracee, kSystemCall, &area) == 0;
  }
  bool write_number(pid_t tracee) const {
    int copy = number_;
    iovec area{&copy, sizeof copy};
    return ::ptrace(PTRACE_SETREGSET, tracee, kSystemCall, &area) == 0;
  }
  int number_ = -1;
#endif

 private:
  static constexpr int kGeneral = NT_PRSTATUS;
  user_regs_struct user_{};
};

}  // namespace contexts::init
