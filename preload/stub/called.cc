#include "preload/stub/called.h"

#include <sys/auxv.h>
#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "base/file.h"
#include "wire/called.h"
#include "wire/stub_folder.h"

namespace stub {
namespace {

constexpr std::string_view kProtocol = "exec1";
constexpr std::string_view kName = "/airlock-stub";
constexpr int kTarget = 2;

// Filled in when the file is put into a shim farm; volatile, so that the compiler does not know it.
[[gnu::used]] const volatile wire::StubFolder kOwnPlace = {"airlock-stub's folder:\n", {}};

std::string written_folder() {
  std::string folder;
  for (const volatile char& c : kOwnPlace.folder) {
    if (c == '\0') break;
    folder.push_back(c);
  }
  return folder;
}

std::string_view exec_name() {
  const auto* name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return name != nullptr ? name : "";
}

/// The folder this program was exec'ed from: the interposer names it in full. Called by another
/// name (a link), the kernel knows the file.
std::string own_folder() {
  const auto name = exec_name();
  if (name.starts_with('/') && name.ends_with(kName)) {
    return std::string(name.substr(0, name.size() - kName.size()));
  }
  auto path = base::read_link("/proc/self/exe");
  if (!path) return {};
  return path->substr(0, path->rfind('/'));
}

bool is_this_file(const struct stat& file) {
  struct stat own {};
  return ::stat("/proc/self/exe", &own) == 0 && own.st_ino == file.st_ino &&
         own.st_dev == file.st_dev;
}

/// "/dev/fd/5/NAME", which execveat(2) makes of a folder's descriptor, as a path that means the
/// same elsewhere. Without a NAME, or if the exec has closed the descriptor, the kernel knows which
/// shim it was.
std::string without_descriptor(const std::string& path) {
  const auto digits = path.find_first_of("0123456789");
  const auto rest = path.find('/', digits);
  if (path.starts_with("/dev/fd/") && rest != std::string::npos) {
    const auto folder = base::read_link("/proc/self/fd/" + path.substr(digits, rest - digits));
    if (folder && folder->starts_with('/')) return *folder + path.substr(rest);
  }
  auto file = base::read_link("/proc/self/exe");
  return file ? *file : path;
}

Called as_shim(char** argv, std::string folder) {
  Called called{wire::CaughtBy::farm, std::string(exec_name()), {}, argv, std::move(folder)};
  std::string& target = called.target;
  struct stat named {};
  const bool is_there = ::stat(target.c_str(), &named) == 0;
  if (is_there && !is_this_file(named) && argv[0] != nullptr) {
    called.script = std::exchange(target, argv[0]);
  } else if (target.starts_with("/dev/fd/") || target.starts_with("/proc/")) {
    target = without_descriptor(target);
  }
  return called;
}

/// AT_FLAGS of a program that is an interpreter with binfmt_misc's flag P (Linux 5.12).
constexpr unsigned long kPreservesArgv0 = 1;

bool leads_through_process(std::string_view path) {
  return path.starts_with("/proc/") || path.starts_with("/dev/fd/") || path.starts_with("/dev/std");
}

/// A name for the file open at `fd` that means the same after an exec: its path, or, where there is
/// none, the descriptor, which stays open.
std::string name_of(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  struct stat opened {};
  struct stat named {};
  auto path = base::read_link(link);
  const bool is_there = path && ::fstat(fd, &opened) == 0 && ::stat(path->c_str(), &named) == 0 &&
                        opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
  return is_there ? *path : link;
}

/// argv: STUB PROGRAM ARGV0 [ARG…], where STUB is its path as it was registered.
Called as_interpreter(char** argv) {
  const std::string_view stub = argv[0];
  const auto fd = static_cast<int>(::getauxval(AT_EXECFD));
  return {wire::CaughtBy::binfmt,
          leads_through_process(argv[1]) ? name_of(fd) : argv[1],
          {},
          argv + 2,
          std::string(stub.substr(0, stub.rfind('/'))),
          fd};
}

}  // namespace

std::optional<Called> how_called(int argc, char** argv) {
  if ((::getauxval(AT_FLAGS) & kPreservesArgv0) != 0 && argc >= 2) return as_interpreter(argv);
  if (const auto* target = reinterpret_cast<const char*>(::getauxval(wire::kTracedTarget))) {
    return Called{wire::CaughtBy::ptrace, target, {}, argv, own_folder()};
  }
  auto written = written_folder();
  const bool is_by_name = exec_name().ends_with(kName);
  if (argc > kTarget && argv[1] == kProtocol && (is_by_name || written.empty())) {
    return Called{wire::CaughtBy::interposer,
                  argv[kTarget],
                  {},
                  argv + kTarget + 1,
                  written.empty() ? own_folder() : std::move(written)};
  }
  if (written.empty() || is_by_name) return std::nullopt;
  return as_shim(argv, std::move(written));
}

}  // namespace stub
