#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "api/fields.h"
#include "api/problem.h"
#include "wire/message.h"

// What HTTP and JSON say about files. Pure.
namespace api {

/// The tags of If-Match or If-None-Match (RFC 9110, 13.1), as wire::FileRequest has them.
/// `is_weak`: weak ones count as the same (If-None-Match). Nothing: malformed, or more than
/// kMostTags.
std::optional<wire::StringList> parse_tags(std::string_view field, bool is_weak);
constexpr std::size_t kMostTags = 32;

/// What a Range field asks of a file of `length` bytes.
struct RangeAnswer {
  /// 200: of no account, the whole file; 206: the part below; 416: there is no such part.
  unsigned status = 200;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
RangeAnswer answer_range(std::string_view field, std::uint64_t length);

/// "0644", "755": at most 07777.
std::optional<std::uint32_t> parse_mode(std::string_view text);

/// A path of a request body: a string, or {"base64"} for one that is not UTF-8. Empty after a
/// mistake.
std::string read_path(Fields& fields, const std::string& name);
/// Whether the kernel may be asked for it.
bool is_path(std::string_view path);

nlohmann::json to_json(const wire::FileEntry& entry);
Problem problem_of(const wire::FileFailed& failure);

}  // namespace api
