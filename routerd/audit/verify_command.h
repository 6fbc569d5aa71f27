#pragma once

#include <string>

namespace routerd::audit {

/// `airlock audit verify`: checks the log in `folder` and says what it found. `known` is the text
/// of a Head that must be in it, or empty. 0: intact; 1: not; 2: `known` is none.
int verify_command(const std::string& folder, const std::string& known, bool as_json);

}  // namespace routerd::audit
