#pragma once

#include <string>
#include <string_view>

namespace ctl {

/// RFC 4648, section 4, with padding.
std::string to_base64(std::string_view bytes);

/// What of `text` is base64, up to the first character that is none.
std::string from_base64(std::string_view text);

}  // namespace ctl
