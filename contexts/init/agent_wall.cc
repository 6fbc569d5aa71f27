#include "contexts/init/agent_wall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "base/raw_syscall.h"
#include "contexts/init/binfmt.h"
#include "contexts/init/exec_filter.h"
#include "contexts/init/mount_calls.h"
#include "contexts/init/start_tracer.h"

namespace contexts::init {

using base::raw::call;

namespace {

constexpr const char* kPreloadFile = "/etc/ld.so.preload";

long bind_mount(const std::string& source, const std::string& target) {
  return call(SYS_mount, source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr);
}

}  // namespace

AgentWall::AgentWall(const wire::Confinement& order, const std::string& farm,
                     std::vector<base::UniqueFd> fds)
    : mechanism_(static_cast<Mechanism>(order.mechanism)),
      kept_(order.kept.strings()),
      preload_file_(order.preload_file) {
  if (is_built_apart()) order_ = order;
  if (order.has_program) {
    program_ = std::move(fds.back());
    fds.pop_back();
  }
  if (order.has_ruleset) ruleset_ = std::move(fds.back());
  program_number_ = program_.borrow();
  ruleset_number_ = ruleset_.borrow();
  const auto folders = order.covered.strings();
  const auto shims = order.shims.strings();
  for (std::size_t i = 0; i < folders.size() && i < shims.size(); ++i) {
    binds_.push_back({farm + "/" + shims[i], folders[i]});
  }
  kept_mounts_.resize(kept_.size());
}

std::vector<int> AgentWall::descriptors() const {
  std::vector<int> all;
  for (const auto* fd : {&ruleset_, &program_}) {
    if (*fd) all.push_back(fd->borrow());
  }
  return all;
}

bool AgentWall::is_built_apart() const {
  return mechanism_ == Mechanism::binfmt || mechanism_ == Mechanism::ptrace;
}

long AgentWall::build(const wire::Credentials& user) const {
  if (mechanism_ == Mechanism::binfmt) {
    const auto entered = enter_binfmt(order_);
    return entered ? 0 : -(entered.error().code != 0 ? entered.error().code : EIO);
  }
  if (mechanism_ != Mechanism::ptrace) return 0;
  const long started = start_tracer(order_.stub, user);
  return started < 0 ? started : trace_execs();
}

long AgentWall::make_way(int highest) {
  for (int* number : {&program_number_, &ruleset_number_}) {
    if (*number < 0 || *number > highest) continue;
    const long moved = call(SYS_fcntl, *number, F_DUPFD_CLOEXEC, highest + 1);
    if (moved < 0) return moved;
    *number = static_cast<int>(moved);
  }
  return 0;
}

long AgentWall::enter() {
  if (mechanism_ != Mechanism::farm) return 0;
  if (const long left = call(SYS_unshare, CLONE_NEWNS); left < 0) return left;
  if (const long covered = cover(); covered < 0) return covered;
  if (!preload_file_.empty()) {
    if (const long bound = bind_mount(preload_file_, kPreloadFile); bound < 0) return bound;
  }
  return ruleset_number_ >= 0 ? restrict_exec() : 0;
}

// A folder that is not there in this context has no programs either. The files that are kept are
// taken before their folder is covered, and mounted on their shims: only routerd writes there, so
// nobody can rename over one and so detach the mount.
long AgentWall::cover() {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    kept_mounts_[i] = open_tree(AT_FDCWD, kept_[i].c_str(), kCloneTree);
    if (kept_mounts_[i] < 0) return kept_mounts_[i];
  }
  for (const auto& [shims, folder] : binds_) {
    const long bound = bind_mount(shims, folder);
    if (bound < 0 && bound != -ENOENT && bound != -ENOTDIR) return bound;
  }
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const long moved = move_mount(static_cast<int>(kept_mounts_[i]), AT_FDCWD, kept_[i].c_str());
    if (moved < 0) return moved;
    call(SYS_close, kept_mounts_[i]);
  }
  return 0;
}

// routerd has put the files that may be executed into the ruleset. The right to move files between
// folders is granted on everything, else Landlock refuses it with EXDEV (landlock(7)); the root is
// this context's, which routerd cannot name.
long AgentWall::restrict_exec() const {
  const long root = call(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC);
  if (root < 0) return root;
  landlock_path_beneath_attr everything{};
  everything.allowed_access = LANDLOCK_ACCESS_FS_REFER;
  everything.parent_fd = static_cast<int>(root);
  const int ruleset = ruleset_number_;
  const long added =
      call(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &everything, 0);
  call(SYS_close, root);
  return added < 0 ? added : call(SYS_landlock_restrict_self, ruleset, 0);
}

}  // namespace contexts::init
