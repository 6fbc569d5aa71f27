#pragma once

#include <cerrno>
#include <tl/expected.hpp>

#include "wire/message.h"

namespace contexts::files {

/// What an operation gives, or what the client is told instead.
template <class T>
using Outcome = tl::expected<T, wire::FileFailed>;

inline tl::unexpected<wire::FileFailed> failed(int error) {
  return tl::unexpected<wire::FileFailed>(wire::FileFailed{wire::FileFailed::Why::os, error});
}

/// Of the system call that just failed.
inline tl::unexpected<wire::FileFailed> os_failed() { return failed(errno); }

inline tl::unexpected<wire::FileFailed> failed(wire::FileFailed::Why why) {
  return tl::unexpected<wire::FileFailed>(wire::FileFailed{why, 0});
}

}  // namespace contexts::files
