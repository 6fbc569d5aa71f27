// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/spawn.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "preload/argv_block.h"
#include "preload/check.h"
#include "preload/raw.h"
#include "preload/resolve.h"

namespace preload {
namespace {

// glibc keeps a reserve of 16 ints in the struct, which posix_spawn_file_actions_init zeroes and a
// copy of the struct carries along. That beats a table beside it, which would need to know when a
// struct dies.
constexpr int kChdirMark = 0x41435744;
constexpr int kMarkIndex = 15;

bool changes_directory(const posix_spawn_file_actions_t* actions) {
  return actions != nullptr && actions->__pad[kMarkIndex] == kChdirMark;
}

/// The file's name says nothing here, only in the child: a relative path after a chdir, or an fd
/// that the actions may make there.
bool means_more_in_child(const SpawnCall& call) {
  if (call.file[0] != '/') return changes_directory(call.actions);
  return call.actions != nullptr && fd_named_by(call.file) >= 0;
}

int find_named(const SpawnCall& call, Scratch& scratch, Target& target) {
  struct stat status;
  if (raw::stat(call.file, &status) == -EFAULT) return EFAULT;
  const bool uncertain = means_more_in_child(call);
  const CheckOptions options = {.cwd_unknown = changes_directory(call.actions)};
  if (!uncertain || call.file[0] == '/') {
    const int error = check_program(call.file, options);
    if (error == 0) return resolve_path(call.file, scratch, target);
    if (!uncertain) return error;
  }
  target.path = call.file;
  return 0;
}

int find_in_path(const SpawnCall& call, Scratch& scratch, Target& target) {
  auto& candidate = reinterpret_cast<char(&)[PATH_MAX]>(scratch.bytes);
  const bool moves = changes_directory(call.actions);
  PathSearch search = {.rest = search_path(), .absolute_only = moves};
  target.path = candidate;
  int error = ENOENT;
  bool denied = false;
  for (;;) {
    const Candidate next = next_candidate(search, call.file, candidate);
    if (next == Candidate::too_long) return ENAMETOOLONG;
    if (next == Candidate::none_left) return denied ? EACCES : error;
    error = check_program(candidate, {.cwd_unknown = moves});
    if (error == 0 || !search_goes_on(error)) return error;
    denied = denied || error == EACCES;
  }
}

int find(const SpawnCall& call, Scratch& scratch, Target& target) {
  const bool search = call.lookup == Lookup::in_path && strchr(call.file, '/') == nullptr;
  if (!search) return find_named(call, scratch, target);
  return call.file[0] == '\0' ? ENOENT : find_in_path(call, scratch, target);
}

int spawn_stub(const SpawnCall& call, const Target& target, Scratch& scratch) {
  const char* stub = stub_path();
  if (stub == nullptr) return EACCES;
  ArgvBlock block;
  if (const int error = block.build(target, call.argv, scratch)) return error;
  const int error =
      call.real(call.id, stub, call.actions, call.attributes, block.words(), call.envp);
  return error == 0 ? 0 : blame_stub(error);
}

}  // namespace

int spawn(const SpawnCall& call) {
  if (call.real == nullptr) return ENOSYS;
  Scratch scratch;
  Target target;
  if (const int error = find(call, scratch, target)) return error;
  if (is_stub(target.path)) {
    return call.real(call.id, target.path, call.actions, call.attributes, call.argv, call.envp);
  }
  const int error = spawn_stub(call, target, scratch);
  if (target.kept_fd >= 0) raw::close(target.kept_fd);
  return error;
}

void remember_chdir(posix_spawn_file_actions_t* actions) {
  actions->__pad[kMarkIndex] = kChdirMark;
}

}  // namespace preload
