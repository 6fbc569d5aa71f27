#include "contexts/init/groups.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/raw_syscall.h"

namespace contexts::init {

using base::raw::call;

namespace {

/// A lender's whole life: in this process's memory, so by raw system calls only. Its signals are
/// blocked since the clone.
void wait_for_ever(void*) {
  call(SYS_prctl, PR_SET_NAME, "airlock-group", 0, 0, 0);
  call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  const timespec* no_end = nullptr;
  for (;;) call(SYS_ppoll, 0, 0, no_end, 0, 0);
}

}  // namespace

ProcessGroups::~ProcessGroups() {
  for (const auto& lender : lenders_) ::kill(lender.pid, SIGKILL);
}

ProcessGroups::Lender* ProcessGroups::find(int pid) {
  const auto found = std::find_if(lenders_.begin(), lenders_.end(),
                                  [pid](const Lender& each) { return each.pid == pid; });
  return found == lenders_.end() ? nullptr : &*found;
}

int ProcessGroups::take() {
  for (auto& lender : lenders_) {
    if (!lender.is_free || ::setpgid(lender.pid, lender.pid) != 0) continue;
    lender.is_free = false;
    return lender.pid;
  }
  auto stack = std::make_unique<Stack>();
  const auto top = reinterpret_cast<std::uintptr_t>(stack.get() + 1) & ~std::uintptr_t{15};
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  const long pid =
      base::raw::clone_on_stack(CLONE_VM | CLONE_FILES | SIGCHLD, reinterpret_cast<void*>(top),
                                nullptr, wait_for_ever, nullptr);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
  if (pid < 0) return 0;
  lenders_.push_back({static_cast<int>(pid), false, std::move(stack)});
  if (::setpgid(static_cast<int>(pid), static_cast<int>(pid)) == 0) return static_cast<int>(pid);
  dismiss(static_cast<int>(pid));
  return 0;
}

void ProcessGroups::settle(int group) { ::setpgid(group, ::getpgrp()); }

void ProcessGroups::give_back(int group) {
  Lender* lender = find(group);
  if (lender == nullptr) return;
  settle(group);
  const bool is_empty = ::kill(-group, 0) != 0 && errno == ESRCH;
  const auto free = std::count_if(lenders_.begin(), lenders_.end(),
                                  [](const Lender& each) { return each.is_free; });
  if (is_empty && static_cast<std::size_t>(free) < kKept) {
    lender->is_free = true;
  } else {
    dismiss(group);
  }
}

// The memory stays until the kernel says that nobody runs on it: forget().
void ProcessGroups::dismiss(int pid) {
  find(pid)->is_free = false;
  ::kill(pid, SIGKILL);
}

void ProcessGroups::forget(int pid) {
  lenders_.erase(std::remove_if(lenders_.begin(), lenders_.end(),
                                [pid](const Lender& each) { return each.pid == pid; }),
                 lenders_.end());
}

}  // namespace contexts::init
