#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace routerd {

struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
};

/// A name of passwd(5), or a uid in digits, which needs no entry there (its gid is then the same
/// number). ENOENT for anything else, and for the uid that is none (-1).
base::Result<UserIds> find_user(const std::string& text);

}  // namespace routerd
