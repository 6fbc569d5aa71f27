#include "contexts/runtime_dir.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using contexts::RuntimeDir;

namespace {

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0xffffu;
}

bool exists(const std::string& path) { return std::filesystem::exists(path); }

/// AIRLOCK_RUNTIME_PARENT for one scope.
class ParentVariable {
 public:
  explicit ParentVariable(const std::string& value) {
    ::setenv("AIRLOCK_RUNTIME_PARENT", value.c_str(), 1);
  }
  ~ParentVariable() { ::unsetenv("AIRLOCK_RUNTIME_PARENT"); }
};

}  // namespace

TEST_CASE("opening a runtime folder creates it, to be passed through but not listed",
          "[contexts]") {
  const support::FdLeakCheck leaks;
  const support::TempDir parent;
  const mode_t before = ::umask(077);
  {
    const auto runtime = RuntimeDir::open(parent / "r");
    ::umask(before);
    REQUIRE(runtime);
    CHECK(runtime->root() == parent / "r");
    CHECK(runtime->control_socket() == parent / "r/control.sock");
    for (const auto* folder : {"r", "r/view", "r/home", "r/root"}) {
      CAPTURE(folder);
      CHECK(mode_of(parent / folder) == 0711);
    }
  }
  CHECK(exists(parent / "r"));
}

TEST_CASE("a runtime folder needs an absolute path that leaves room for sockets", "[contexts]") {
  CHECK(RuntimeDir::open("").error().code == EINVAL);
  CHECK(RuntimeDir::open("relative").error().code == EINVAL);
  CHECK(RuntimeDir::open("/" + std::string(50, 'x')).error().code == ENAMETOOLONG);
  CHECK(RuntimeDir::open("/does/not/exist").error().code == ENOENT);
}

TEST_CASE("a runtime folder that a daemon serves is refused and left alone", "[contexts]") {
  const support::FdLeakCheck leaks;
  const support::TempDir parent;
  REQUIRE(RuntimeDir::open(parent / "r"));
  {
    const auto daemon = support::listen_at(parent / "r/control.sock");
    const auto second = RuntimeDir::open(parent / "r");
    REQUIRE_FALSE(second);
    CHECK(second.error().code == EADDRINUSE);
    CHECK(exists(parent / "r/control.sock"));
  }
  SECTION("a socket that nobody listens on any more is removed") {
    REQUIRE(exists(parent / "r/control.sock"));
    CHECK(RuntimeDir::open(parent / "r"));
    CHECK_FALSE(exists(parent / "r/control.sock"));
  }
}

TEST_CASE("a runtime folder somebody else serves is refused too", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir parent;
  REQUIRE(RuntimeDir::open(parent / "r"));
  REQUIRE(::chmod((parent / "r").c_str(), 0777) == 0);
  auto ready = support::make_pipe();
  support::Child other([&] {
    if (::setresuid(1000, 1000, 1000) != 0) return 1;
    const auto daemon = support::listen_at(parent / "r/control.sock");
    (void)base::write_all(ready.write.borrow(), "r");
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(support::read_byte(ready.read.borrow()) == 'r');
  CHECK(RuntimeDir::open(parent / "r").error().code == EADDRINUSE);
}

TEST_CASE("a runtime folder where one may not write is refused", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir parent;
  CHECK(support::text_of_child_as(1000,
                                  [&] {
                                    const auto opened = RuntimeDir::open(parent / "r");
                                    return opened ? "opened" : opened.error().message();
                                  }) ==
        "create the runtime folder " + (parent / "r") +
            ": Permission denied (choose a folder that can be written by --runtime-dir or "
            "AIRLOCK_RUNTIME_DIR)");
}

TEST_CASE("a private runtime folder is removed with everything in it", "[contexts]") {
  const support::FdLeakCheck leaks;
  const support::TempDir parent;
  const ParentVariable variable(parent.path());
  std::string root;
  {
    auto runtime = RuntimeDir::make_private();
    REQUIRE(runtime);
    root = runtime->root();
    CHECK(root.starts_with(parent.path() + "/airlock-"));
    CHECK(root.size() <= 50);
    CHECK(mode_of(root) == 0711);
    CHECK(exists(root + "/view"));
    REQUIRE(base::write_file(root + "/view/file", "x", 0600));

    SECTION("also after it was moved, and only once") {
      const RuntimeDir moved(std::move(*runtime));
      CHECK(moved.root() == root);
      CHECK(exists(root));
    }
  }
  CHECK_FALSE(exists(root));
  CHECK(std::filesystem::is_empty(parent.path()));
}

TEST_CASE("two private runtime folders are two", "[contexts]") {
  const auto one = RuntimeDir::make_private();
  const auto two = RuntimeDir::make_private();
  REQUIRE((one && two));
  CHECK(one->root() != two->root());
}

TEST_CASE("a chosen parent that is missing or too long is an error", "[contexts]") {
  const std::string parent = GENERATE("/does/not/exist", "/a/path/of/more/than/thirty/bytes");
  const ParentVariable variable(parent);
  const auto made = RuntimeDir::make_private();
  REQUIRE_FALSE(made);
  CHECK(made.error().code == EACCES);
  CHECK(made.error().operation == "AIRLOCK_RUNTIME_PARENT=" + parent);
}

TEST_CASE("a chosen parent is never replaced by another", "[contexts]") {
  const ParentVariable variable("/etc/passwd");
  const auto made = RuntimeDir::make_private();
  CHECK_FALSE(made);
}

TEST_CASE("an unprivileged user's private folder is where that user may write",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK(support::text_of_child_as(1000, [] {
          ::unsetenv("XDG_RUNTIME_DIR");
          const auto made = RuntimeDir::make_private();
          if (!made) return made.error().message();
          return made->root().starts_with("/tmp/airlock-") ? std::string("in /tmp") : made->root();
        }) == "in /tmp");
}

TEST_CASE("a view has stub and interposer only with a router", "[contexts]") {
  const support::FdLeakCheck leaks;
  const support::TempDir parent;
  const auto runtime = RuntimeDir::open(parent / "r");
  REQUIRE(runtime);
  const std::string programs = support::programs_folder();
  REQUIRE(runtime->make_view("plain", programs, false));
  CHECK(mode_of(runtime->view("plain")) == 0755);
  CHECK(std::filesystem::is_empty(runtime->view("plain")));
  REQUIRE(runtime->make_view("routed", programs, true));
  for (const auto* file : {"/airlock-stub", "/libairlock-preload.so"}) {
    CHECK(mode_of(runtime->view("routed") + file) == 0755);
    CHECK(std::filesystem::file_size(runtime->view("routed") + file) ==
          std::filesystem::file_size(programs + file));
  }
  CHECK(runtime->make_view("routed", programs, true));
  CHECK(runtime->make_view("broken", "/does/not/exist", true).error().code == ENOENT);
}

TEST_CASE("a view's shell needs its host, and its libraries only as far as they are there",
          "[contexts]") {
  const support::TempDir parent;
  const auto runtime = RuntimeDir::open(parent / "r");
  REQUIRE(runtime);
  const std::string programs = parent / "programs";
  std::filesystem::create_directory(programs);
  REQUIRE(runtime->make_view("user", programs, false));
  const auto missing = runtime->add_shell("user", programs);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ENOENT);
  REQUIRE(base::write_file(programs + "/airlock-shell", "host", 0755));
  CHECK(runtime->add_shell("user", programs));
  CHECK_FALSE(exists(runtime->view("user") + "/airlock-shell.so"));
  CHECK(runtime->add_shell("user", support::programs_folder()));
  for (const auto* name : {"/airlock-shell", "/airlock-shell.so", "/airlock-shell-receiver.so"}) {
    CAPTURE(name);
    CHECK(mode_of(runtime->view("user") + name) == 0755);
  }
}

TEST_CASE("a home is private to its owner and removed with its context", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir parent;
  const auto runtime = RuntimeDir::open(parent / "r");
  REQUIRE(runtime);
  REQUIRE(runtime->make_view("user", support::programs_folder(), true));
  REQUIRE(runtime->make_home("user", 1000, 1001));
  struct stat info {};
  REQUIRE(::stat(runtime->home("user").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0700);
  CHECK(info.st_uid == 1000);
  CHECK(info.st_gid == 1001);
  REQUIRE(base::write_file(runtime->home("user") + "/file", "x", 0600));
  REQUIRE(runtime->make_home("other", 0, 0));
  runtime->remove("user");
  CHECK_FALSE(exists(runtime->home("user")));
  CHECK_FALSE(exists(runtime->view("user")));
  CHECK(exists(runtime->home("other")));
  runtime->remove("never was");
}

namespace {

/// AIRLOCK_STATE_DIR for one scope.
class StateVariable {
 public:
  explicit StateVariable(const std::string& value) {
    ::setenv("AIRLOCK_STATE_DIR", value.c_str(), 1);
  }
  ~StateVariable() { ::unsetenv("AIRLOCK_STATE_DIR"); }
};

/// In memory, as /run often is.
constexpr const char* kMemory = "/dev/shm";

}  // namespace

TEST_CASE("what contexts change is kept on the runtime folder's disk", "[contexts]") {
  const support::TempDir parent;
  const StateVariable state(parent / "state");
  const auto runtime = RuntimeDir::open(parent / "r");
  REQUIRE(runtime);
  CHECK(runtime->upper("user") == parent / "r/upper/user");
  CHECK(runtime->has_disk_for_uppers());
  CHECK_FALSE(exists(parent / "state"));
}

TEST_CASE("without a disk there, in the state folder, and removed with the daemon",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir disk;
  const support::TempDir memory(kMemory);
  const StateVariable state(disk / "state");
  std::string upper;
  {
    const auto runtime = RuntimeDir::open(memory.path() + "/r-1");
    REQUIRE(runtime);
    upper = runtime->upper("user");
    CHECK(upper.starts_with(disk / "state/dev-shm-airlock--"));
    CHECK(upper.ends_with("-r--1/user"));
    CHECK(runtime->has_disk_for_uppers());
    CHECK(mode_of(disk / "state") == 0700);
    REQUIRE(runtime->make_upper("user"));
    CHECK(exists(upper));
    runtime->remove("user");
    CHECK_FALSE(exists(upper));
    REQUIRE(runtime->make_upper("user"));
  }
  CHECK(exists(disk / "state"));
  CHECK(std::filesystem::is_empty(disk / "state"));
}

TEST_CASE("what a killed daemon left is removed by the next one", "[contexts]") {
  const support::TempDir parent;
  std::filesystem::create_directories(parent / "r/upper/old/usr/upper");
  {
    const auto runtime = RuntimeDir::open(parent / "r");
    REQUIRE(runtime);
    CHECK_FALSE(exists(parent / "r/upper/old"));
  }
  CHECK_FALSE(exists(parent / "r/upper"));
}

TEST_CASE("without any disk contexts change nothing of their own by themselves",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir memory(kMemory);
  const StateVariable state(memory.path() + "/state");
  const auto runtime = RuntimeDir::open(memory.path() + "/r");
  REQUIRE(runtime);
  CHECK_FALSE(runtime->has_disk_for_uppers());
}

TEST_CASE("a state folder that cannot be airlock's own is refused", "[contexts]") {
  const support::TempDir parent;
  for (const std::string given : {"state", "/", "//", "/usr/.."}) {
    const StateVariable state(given);
    const auto refused = RuntimeDir::open(parent / "r");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message() ==
          "AIRLOCK_STATE_DIR=" + given +
              ": Invalid argument (expected the absolute path of a folder of airlock's own)");
  }
}
