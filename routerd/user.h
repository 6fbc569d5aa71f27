#pragma once

#include <string>

#include "base/result.h"
#include "contexts/spec.h"

namespace routerd {

using contexts::UserIds;

/// A name of passwd(5), or a uid in digits, which needs no entry there (its gid is then the same
/// number). ENOENT for anything else, and for the uid that is none (-1).
base::Result<UserIds> find_user(const std::string& text);

}  // namespace routerd
