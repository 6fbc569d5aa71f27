#pragma once

#include "base/result.h"

namespace stub {

/// Enters the namespaces that come over `socket`, the router's connection, from the context's init:
/// there the next exec is the program itself and not this stub again
/// (contexts/init/binfmt_again.h). The working folder and the bounding set stay what they are.
/// Blocks for some ms.
base::Result<void> enter_own_namespaces(int socket);

}  // namespace stub
