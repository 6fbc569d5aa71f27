#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace base {

/// Why something the world was asked for did not happen.
struct Error {
  /// What was being done, on what: "open /etc/airlock/airlock.yaml".
  std::string operation;
  /// errno, or 0 when no system call is to blame.
  int code = 0;
  /// More for a person to read, or empty.
  std::string detail;

  /// "open /x: No such file or directory (detail)".
  std::string message() const {
    std::string text = operation;
    if (code != 0) text += std::string(": ") + std::strerror(code);
    if (!detail.empty()) text += code != 0 ? " (" + detail + ")" : ": " + detail;
    return text;
  }
};

template <class T>
using Result = tl::expected<T, Error>;

/// The error of the system call that just failed; call it on the very next line.
inline tl::unexpected<Error> os_error(std::string operation, std::string detail = {}) {
  const int code = errno;
  return tl::unexpected<Error>(Error{std::move(operation), code, std::move(detail)});
}

inline tl::unexpected<Error> failure(std::string operation, int code, std::string detail = {}) {
  return tl::unexpected<Error>(Error{std::move(operation), code, std::move(detail)});
}

}  // namespace base
