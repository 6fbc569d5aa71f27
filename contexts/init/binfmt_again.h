#pragma once

#include "base/unique_fd.h"
#include "wire/message.h"

namespace contexts::init {

/// Under binfmt (binfmt.h) every exec becomes the stub, and no file can be left out by its header,
/// which anybody could copy. So an agent's own program, run again, gets what its first start had: a
/// user namespace, below the one it is in, with entries that are turned on between its exec and its
/// first instruction. `connection` leads to the stub that is to become the program; the stub gets
/// the namespaces and enters them (preload/stub/own_namespaces.h), a process of ours traces it, and
/// kills it if it becomes another file than `order` says. An agent can so run itself within itself
/// about 30 times (EUSERS: 32 levels of user namespaces, user_namespaces(7)).
///
/// Starts that process, a child to be reaped, and returns; the stub hears of any error.
void run_again(const wire::RunAgain& order, base::UniqueFd connection);

}  // namespace contexts::init
