#pragma once

#include <sys/types.h>

#include <initializer_list>

#include "base/unique_fd.h"

// A process beside this one that does for it what it cannot do itself: trace it, map its ids. Not a
// child, so that the program we become does not find one; and away from its terminal and groups.
namespace contexts::init {

/// What the other process does: `program` is who asked, `socket` leads to it. It has a copy of this
/// process's memory, privileges and no other descriptors; signals are blocked. Ends when it
/// returns.
using BesideBody = void (*)(pid_t program, int socket, const void* argument);

/// Starts it and returns a socket to it, empty with errno if that fails. This process must be
/// single-threaded.
base::UniqueFd start_beside(BesideBody body, const void* argument);

constexpr int kMostKept = 4;

/// In a process of its own: closes every descriptor but `wanted`, at most kMostKept, which get new
/// numbers in a row, beginning with the result; 0 to 2 become /dev/null.
int keep_only(std::initializer_list<int> wanted);

}  // namespace contexts::init
