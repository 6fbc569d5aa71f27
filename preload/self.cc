// Self-location. Runs before main() in every process of an agent, so: no output, errno kept, and
// nothing taken from the environment (it survives `env -i`).
#include "preload/self.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <atomic>

#include "preload/access.h"
#include "preload/raw.h"

namespace preload {
namespace {

constexpr char kStubName[] = "/airlock-stub";

enum State { unknown, located, lost };

std::atomic<State> state = unknown;
char stub_file[PATH_MAX];
RealFunctions real_functions;

/// Writes the absolute form of `file` to `out`; LD_PRELOAD=./x.so gives a relative name.
bool make_absolute(const char* file, char (&out)[PATH_MAX]) {
  size_t used = 0;
  if (file[0] != '/') {
    const long length = raw::getcwd(out, sizeof(out));  // counts the NUL
    if (length < 2 || out[0] != '/') return false;      // "(unreachable)/..." is no path
    used = static_cast<size_t>(length) - 1;
    if (used >= sizeof(out) - 1) return false;
    out[used++] = '/';
  }
  const size_t length = strlen(file);
  if (used + length >= sizeof(out)) return false;
  memcpy(out + used, file, length + 1);
  return true;
}

bool locate_stub() {
  Dl_info library;
  if (dladdr(&stub_file, &library) == 0 || library.dli_fname == nullptr) return false;
  if (!make_absolute(library.dli_fname, stub_file)) return false;
  char* slash = strrchr(stub_file, '/');
  if (slash == nullptr || slash + sizeof(kStubName) > stub_file + sizeof(stub_file)) return false;
  memcpy(slash, kStubName, sizeof(kStubName));
  return true;
}

template <typename Function>
void find_next(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  // A miss must not stay behind as the program's own dlerror().
  if (function == nullptr) dlerror();
}

/// Idempotent: two threads that both come before the constructor write the same bytes.
[[gnu::constructor]] void locate() {
  if (state.load(std::memory_order_acquire) != unknown) return;
  const int saved = errno;
  find_next("posix_spawn", real_functions.posix_spawn);
  find_next("posix_spawn_file_actions_addchdir_np", real_functions.add_chdir);
  find_next("posix_spawn_file_actions_addfchdir_np", real_functions.add_fchdir);
  find_next("pclose", real_functions.pclose);
  find_next("wordexp", real_functions.wordexp);
  find_next("pidfd_spawn", real_functions.pidfd_spawn);
  state.store(locate_stub() ? located : lost, std::memory_order_release);
  errno = saved;
}

}  // namespace

const char* stub_path() {
  // Another library's constructor may exec before ours has run, and some runtimes run none.
  locate();
  return state.load(std::memory_order_acquire) == located ? stub_file : nullptr;
}

bool is_stub(const char* path) {
  const char* stub = stub_path();
  return stub != nullptr && strcmp(path, stub) == 0;
}

int blame_stub(int error) {
  return stub_path() == nullptr || check_access(stub_file) != 0 ? EACCES : error;
}

const RealFunctions& real() {
  locate();
  return real_functions;
}

}  // namespace preload
