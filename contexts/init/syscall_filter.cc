#include "contexts/init/syscall_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "contexts/init/registers.h"

namespace contexts::init {
namespace {

constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;

// By the names of the native ABI; numbers of i386 from arch/x86/entry/syscalls/syscall_32.tbl.
struct Call {
  int native;
  int i386;
};

constexpr Call kSecure[] = {{SYS_add_key, 286},         {SYS_request_key, 287},
                            {SYS_keyctl, 288},          {SYS_bpf, 357},
                            {SYS_perf_event_open, 336}, {SYS_kexec_load, 283},
#ifdef SYS_kexec_file_load
                            {SYS_kexec_file_load, -1},
#endif
                            {SYS_init_module, 128},     {SYS_finit_module, 350},
                            {SYS_delete_module, 129},   {SYS_open_by_handle_at, 342},
                            {SYS_userfaultfd, 374}};

constexpr Call kStrict[] = {
    {SYS_io_uring_setup, 425}, {SYS_io_uring_enter, 426}, {SYS_io_uring_register, 427},
    {SYS_mount, 21},           {SYS_umount2, 52},         {SYS_pivot_root, 217},
    {SYS_setns, 346},          {SYS_unshare, 310},        {SYS_open_tree, 428},
    {SYS_move_mount, 429},     {SYS_fsopen, 430},         {SYS_fsmount, 432},
    {SYS_fsconfig, 431},       {SYS_fspick, 433},         {SYS_swapon, 87},
    {SYS_swapoff, 115},        {SYS_reboot, 88},          {SYS_acct, 51},
    {SYS_quotactl, 131},       {SYS_settimeofday, 79},    {SYS_clock_settime, 264},
    {SYS_clock_adjtime, 343},  {SYS_adjtimex, 124},       {SYS_syslog, 103},
    {SYS_vhangup, 111},        {SYS_lookup_dcookie, 253}, {SYS_name_to_handle_at, 341}};

#if defined(__x86_64__)
constexpr std::uint32_t kI386Ioctl = 54;
#endif

class Program {
 public:
  explicit Program(SyscallFilter filter) : filter_(filter) {
    load(offsetof(seccomp_data, arch));
    native();
    foreign();
  }

  const std::vector<sock_filter>& instructions() const { return instructions_; }

 private:
  void add(std::uint16_t code, std::uint32_t k, std::uint8_t yes = 0, std::uint8_t no = 0) {
    instructions_.push_back({code, yes, no, k});
  }
  void load(std::uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void answer(std::uint32_t action) { add(BPF_RET | BPF_K, action); }
  /// If the loaded word is `value`, `action`; else on with the next instruction.
  void if_equal(std::uint32_t value, std::uint32_t action) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    answer(action);
  }

  void refuse_calls(bool is_native) {
    const auto refuse = [&](const Call& call) {
      const int number = is_native ? call.native : call.i386;
      if (number >= 0) if_equal(static_cast<std::uint32_t>(number), kRefuse);
    };
    for (const auto& call : kSecure) refuse(call);
    if (filter_ == SyscallFilter::strict) {
      for (const auto& call : kStrict) refuse(call);
    }
  }

  // clone3(2) has its flags in memory, where a filter cannot look; libraries then use clone(2).
  void refuse_user_namespaces() {
    constexpr std::uint32_t kNewUser = 0x10000000;  // CLONE_NEWUSER
    if_equal(SYS_clone3, kUnknown);
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    load(offsetof(seccomp_data, args[0]));
    add(BPF_JMP | BPF_JSET | BPF_K, kNewUser, 0, 1);
    answer(kRefuse);
    answer(SECCOMP_RET_ALLOW);
  }

  // The kernel looks at the lower half of the request only (CVE-2023-1523).
  void refuse_typing(std::uint32_t ioctl_number) {
    add(BPF_JMP | BPF_JEQ | BPF_K, ioctl_number, 0, 5);
    load(offsetof(seccomp_data, args[1]));
    if_equal(TIOCSTI, kRefuse);
    if_equal(kTiocLinux, kRefuse);
  }

  /// Wraps what `body` adds so that it is passed over unless the architecture is `arch`.
  template <class Body>
  void for_arch(std::uint32_t arch, Body body) {
    const std::size_t at = instructions_.size();
    add(BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0);
    add(BPF_JMP | BPF_JA, 0);
    body();
    instructions_[at + 1].k = static_cast<std::uint32_t>(instructions_.size() - at - 2);
  }

  void native() {
    for_arch(kNativeAbi, [this] {
      load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
      add(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1);
      answer(kUnknown);
#endif
      refuse_calls(true);
      if (filter_ == SyscallFilter::strict) refuse_user_namespaces();
      refuse_typing(SYS_ioctl);
      answer(SECCOMP_RET_ALLOW);
    });
  }

  void foreign() {
#if defined(__x86_64__)
    if (filter_ == SyscallFilter::secure) {
      for_arch(kOtherAbi, [this] {
        load(offsetof(seccomp_data, nr));
        refuse_calls(false);
        refuse_typing(kI386Ioctl);
        answer(SECCOMP_RET_ALLOW);
      });
    }
#endif
    answer(kUnknown);
  }

  static constexpr std::uint32_t kTiocLinux = 0x541c;  // asm-generic/ioctls.h

  SyscallFilter filter_;
  std::vector<sock_filter> instructions_;
};

}  // namespace

bool can_filter_syscalls() {
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

base::Result<void> enter(SyscallFilter filter) {
  Program program(filter);
  auto instructions = program.instructions();
  const sock_fprog code{static_cast<unsigned short>(instructions.size()), instructions.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &code) != 0) {
    return base::os_error("enter a seccomp filter");
  }
  return {};
}

}  // namespace contexts::init
