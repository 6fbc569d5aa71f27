#pragma once

#include <string>

#include "wire/message.h"

namespace contexts::init {

/// Gives this process a tracer that lives as long as it and its descendants (tracer.h), in a
/// process of its own: not our child, so that the program we become does not find one. Permissions
/// of files are asked as `user`. To be called in a single-threaded process, before it gives up
/// privileges. Returns 0 or -errno, then without a tracer; blocks meanwhile.
long start_tracer(const std::string& stub, const wire::Credentials& user);

/// Starts a program under a tracer, to see whether that works here: seccomp(2) filters and
/// ptrace(2) may be forbidden. Empty if it does, else why not. Blocks for a moment.
std::string why_not_traced();

}  // namespace contexts::init
