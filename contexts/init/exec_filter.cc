#include "contexts/init/exec_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

#include "base/raw_syscall.h"
#include "contexts/init/registers.h"

namespace contexts::init {

using base::raw::call;

namespace {

constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;

constexpr sock_filter load(std::uint32_t offset) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset};
}
/// If the loaded word is `value`, answers `then` with the next instruction; else skips that.
constexpr sock_filter unless_equal_skip(std::uint32_t value) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value};
}
constexpr sock_filter answer(std::uint32_t action) { return {BPF_RET | BPF_K, 0, 0, action}; }

constexpr sock_filter kFilter[] = {
    load(offsetof(seccomp_data, arch)),
    {BPF_JMP | BPF_JEQ | BPF_K, 6, 0, kNativeAbi},
    // Any other ABI: nothing we start execs by it, and its memory layout is another.
    load(offsetof(seccomp_data, nr)),
    unless_equal_skip(kOtherExecve),
    answer(kRefuse),
    unless_equal_skip(kOtherExecveat),
    answer(kRefuse),
    answer(SECCOMP_RET_ALLOW),
    load(offsetof(seccomp_data, nr)),
    unless_equal_skip(SYS_execve),
    answer(SECCOMP_RET_TRACE),
    unless_equal_skip(SYS_execveat),
    answer(SECCOMP_RET_TRACE),
#if defined(__x86_64__)
    unless_equal_skip(kX32Execve),
    answer(kRefuse),
    unless_equal_skip(kX32Execveat),
    answer(kRefuse),
#endif
    answer(SECCOMP_RET_ALLOW),
};

}  // namespace

long trace_execs() {
  const sock_fprog program{std::size(kFilter), const_cast<sock_filter*>(kFilter)};
  const long result = call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  if (result != -EACCES) return result;
  const long set = call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return set < 0 ? set : call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

}  // namespace contexts::init
