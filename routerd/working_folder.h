#pragma once

#include "contexts/context.h"

namespace routerd {

/// Creates the folder a context's programs start in where it is missing; true if it has.
base::Result<bool> make_working_folder(const contexts::ContextSpec& spec);

/// Gives a new working folder to the context's user; of one that was there it only says so when the
/// user has no right to write in it.
base::Result<void> settle_working_folder(contexts::Context& context, bool is_new);

}  // namespace routerd
