#pragma once

#include "base/result.h"
#include "wire/message.h"

namespace contexts::init {

// Landlock domains (contexts/init/domain.h). In the tiers `namespaces` and `userns` one keeps
// programs from abstract sockets, which the network namespace shares. In `uids` and `landlock` two,
// nested, stand in for namespaces and mounts: PID 1's part is played in the outer one, the programs
// run in the inner one. A process of the outer may signal the inner, not the other way round; so
// kill(-1) of the former kills exactly the context, and nothing in the context can reach its init.

/// For the init: what its tier needs before the context stands, and the outer domain. `lacks` gets
/// what this machine cannot do. ENOTSUP: this kernel cannot scope signals and the tier has nothing
/// else. Starts children and waits for them.
base::Result<void> confine_init(const wire::Setup& setup, wire::StringList& lacks);

/// For the spawner: the inner domain. Tried already by confine_init().
base::Result<void> confine_spawner(const wire::Setup& setup);

/// SIGKILL to every process of the context but the caller, its init. Sure against processes that
/// fork meanwhile, except where nothing but descent tells who belongs to the context (tier `none`).
void kill_members(const wire::Setup& setup);

}  // namespace contexts::init
