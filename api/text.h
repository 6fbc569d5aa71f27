#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// Bytes as text for JSON. Pure.
namespace api {

/// Whether `bytes` is UTF-8 (no overlong forms, no surrogates: RFC 3629).
bool is_utf8(std::string_view bytes);

/// How many bytes at the end of `bytes` are the beginning of a character whose rest is missing: 0
/// to 3.
std::size_t incomplete_tail(std::string_view bytes);

/// How many bytes at the beginning of `bytes` are the rest of a character: 0 to 3.
std::size_t orphaned_head(std::string_view bytes);

/// RFC 4648, section 4, with padding.
std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

/// `text`, which must be UTF-8, as a JSON string with its quotes.
void append_json_string(std::string& target, std::string_view text);

/// Whether objects and lists in `json` are nested deeper than `limit`. Looks at brackets only.
bool is_deeper_than(std::string_view json, std::size_t limit);

}  // namespace api
