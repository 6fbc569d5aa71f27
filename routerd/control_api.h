#pragma once

#include <string_view>

#include "routerd/control_ask.h"

namespace routerd {

/// A verb about the API and the audit log, most of them for the API's program; null if `name` is
/// none of these.
Verb find_api_verb(const std::string& name);

/// What the API does not need it may not do.
bool is_for_api(std::string_view verb);

}  // namespace routerd
