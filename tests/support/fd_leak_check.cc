#include "tests/support/fd_leak_check.h"

#include <catch2/catch.hpp>
#include <filesystem>

namespace support {

// Independent of base::open_fds(), which is under test itself.
std::map<int, std::string> list_fds() {
  std::map<int, std::string> fds;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    fds.emplace(std::stoi(entry.path().filename().string()), std::move(target));
  }
  // The listing's own descriptor is closed again by now.
  std::erase_if(fds, [](const auto& fd) {
    return !std::filesystem::is_symlink("/proc/self/fd/" + std::to_string(fd.first));
  });
  return fds;
}

FdLeakCheck::FdLeakCheck() : before_(list_fds()) {}

FdLeakCheck::~FdLeakCheck() { CHECK(list_fds() == before_); }

}  // namespace support
