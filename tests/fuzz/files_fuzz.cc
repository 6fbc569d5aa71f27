// Any bytes as fields of requests about files, and as what a context's program says of its files.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/file_answers.h"
#include "wire/codec.h"

namespace {

void check_tags(std::string_view text) {
  for (const bool is_weak : {false, true}) {
    const auto tags = api::parse_tags(text, is_weak);
    if (tags && (tags->empty() || tags->count() > api::kMostTags)) std::abort();
  }
}

/// A part of the file, whatever was asked for.
void check_range(std::string_view text) {
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{10}, ~std::uint64_t{0}}) {
    const auto range = api::answer_range(text, length);
    const bool is_part = range.offset <= length && range.length <= length - range.offset;
    const bool is_empty = range.length == 0 && range.status == 206;
    if (!is_part || is_empty) std::abort();
  }
}

void check_path(std::string_view text) {
  const auto body = nlohmann::json::parse(text, nullptr, false);
  if (!body.is_object()) return;
  api::Fields fields(body);
  const auto path = api::read_path(fields, "path");
  if (!fields.done() && !api::is_path(path)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_tags(text);
  check_range(text);
  check_path(text);
  (void)api::parse_mode(text);
  if (const auto entry = wire::decode<wire::FileEntry>(text))
    (void)api::to_json(*entry).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (const auto failure = wire::decode<wire::FileFailed>(text)) (void)api::problem_of(*failure);
  return 0;
}
