#pragma once

#include <map>
#include <string>

namespace support {

/// Fails the test if, at its end, other descriptors are open than at its construction. Declare it
/// first, so that it is destroyed last.
class FdLeakCheck {
 public:
  FdLeakCheck();
  ~FdLeakCheck();
  FdLeakCheck(const FdLeakCheck&) = delete;
  FdLeakCheck& operator=(const FdLeakCheck&) = delete;

 private:
  std::map<int, std::string> before_;
};

/// This process's open descriptors and what /proc/self/fd says they are.
std::map<int, std::string> list_fds();

}  // namespace support
