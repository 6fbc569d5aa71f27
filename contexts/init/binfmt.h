#pragma once

#include <string>

#include "base/result.h"
#include "wire/message.h"

namespace contexts::init {

/// Puts this process into a user namespace whose own binfmt_misc (Linux 6.7) makes every ELF file
/// that is exec'ed there an exec of the stub, beginning after this process's next exec. Ids stay
/// what they are, as far as the outer namespace has them; no further user namespaces can be made,
/// and CAP_SYS_ADMIN and its like are gone from the bounding set, so the entries can be neither
/// changed nor left behind.
///
/// In the new mount namespace the stub at `confinement.stub` has the mark that exempts it; it
/// cannot be read. To be called in a single-threaded process, before it gives up privileges;
/// blocks. The error says which step failed; the process can only end then.
base::Result<void> enter_binfmt(const wire::Confinement& confinement);

/// Tries it. Empty if it works here, else why not. Blocks for a few ms.
std::string why_not_binfmt(const std::string& stub);

}  // namespace contexts::init
