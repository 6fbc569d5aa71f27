#include "api/file_answers.h"

#include <charconv>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "api/text.h"
#include "wire/file_tag.h"
#include "wire/limits.h"

namespace api {

using nlohmann::json;

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The tag that `text` begins with, taken off it; empty: none.
std::string take_tag(std::string_view& text, bool is_weak) {
  const bool has_prefix = text.starts_with("W/");
  const std::size_t open = has_prefix ? 2 : 0;
  const auto close =
      text.size() > open && text[open] == '"' ? text.find('"', open + 1) : std::string_view::npos;
  if (close == std::string_view::npos) return {};
  const auto from = has_prefix && is_weak ? open : 0;
  std::string tag(text.substr(from, close + 1 - from));
  text.remove_prefix(close + 1);
  return tag;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Bytes as text: U+FFFD for what is not UTF-8, and then exactly, too.
void add_name(json& object, const std::string& name, const std::string& bytes) {
  object[name] = bytes;
  if (!is_utf8(bytes)) object[name + "Base64"] = to_base64(bytes);
}

}  // namespace

std::optional<wire::StringList> parse_tags(std::string_view field, bool is_weak) {
  wire::StringList tags;
  field = trimmed(field);
  if (field == "*") {
    tags.add("*");
    return tags;
  }
  for (;;) {
    const std::string tag = take_tag(field, is_weak);
    if (tag.empty() || tags.count() == kMostTags) return std::nullopt;
    tags.add(tag);
    field = trimmed(field);
    if (field.empty()) return tags;
    if (field.front() != ',') return std::nullopt;
    field = trimmed(field.substr(1));
  }
}

// Several parts at once are of no account, as a server may have it (RFC 9110, 14.2).
RangeAnswer answer_range(std::string_view field, std::uint64_t length) {
  const RangeAnswer whole{200, 0, length};
  constexpr std::string_view kUnit = "bytes=";
  if (!field.starts_with(kUnit)) return whole;
  field = trimmed(field.substr(kUnit.size()));
  const auto dash = field.find('-');
  if (dash == std::string_view::npos) return whole;
  const auto first = parse_number(field.substr(0, dash));
  const auto last = parse_number(field.substr(dash + 1));
  if (dash == 0) {  // the last ones
    if (!last) return whole;
    if (*last == 0 || length == 0) return {416, 0, 0};
    const auto count = std::min(*last, length);
    return {206, length - count, count};
  }
  if (!first || (!last && dash + 1 < field.size()) || (last && *last < *first)) return whole;
  if (*first >= length) return {416, 0, 0};
  const auto end = last && *last < length - 1 ? *last + 1 : length;
  return {206, *first, end - *first};
}

std::optional<std::uint32_t> parse_mode(std::string_view text) {
  std::uint32_t mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || mode > 07777) return std::nullopt;
  return mode;
}

bool is_path(std::string_view path) {
  return !path.empty() && path.size() < wire::kMaxPath && path.find('\0') == std::string_view::npos;
}

std::string read_path(Fields& fields, const std::string& name) {
  const json* field = fields.find(name);
  std::optional<std::string> path;
  if (field != nullptr && field->is_string()) path = field->get<std::string>();
  if (field != nullptr && field->is_object()) {
    Fields part(*field, "/" + name);
    if (const auto coded = part.text("base64", 2 * wire::kMaxPath)) path = from_base64(*coded);
    fields.take_errors(part);
  }
  if (path && is_path(*path)) return std::move(*path);
  fields.fail(name, R"(expected a path of at most 4095 bytes without NUL, or {"base64"} of one)");
  return {};
}

json to_json(const wire::FileEntry& entry) {
  constexpr const char* kTypes[] = {"file",   "folder", "symlink", "fifo",
                                    "socket", "device", "other"};
  json told = {{"type", kTypes[static_cast<std::size_t>(entry.type)]},
               {"size", entry.size},
               {"uid", entry.uid},
               {"gid", entry.gid},
               // Of more digits than a JavaScript number has.
               {"mtimeNs", std::to_string(entry.mtime_ns)}};
  add_name(told, "name", entry.name);
  std::string mode = "0000";
  for (int i = 0; i < 4; ++i) mode[3 - i] = static_cast<char>('0' + ((entry.mode >> (3 * i)) & 7));
  told["mode"] = std::move(mode);
  if (entry.type == wire::FileType::symlink) add_name(told, "target", entry.target);
  if (entry.type == wire::FileType::file) told["etag"] = wire::file_tag(entry);
  return told;
}

Problem problem_of(const wire::FileFailed& failure) {
  using Why = wire::FileFailed::Why;
  if (failure.why == Why::condition) return problem("precondition-failed");
  if (failure.why == Why::not_a_file) return problem("not-a-file");
  static const std::map<int, const char*> codes = {
      {ENOENT, "file-not-found"},     {EACCES, "file-forbidden"},
      {EPERM, "file-forbidden"},      {EROFS, "file-forbidden"},
      {EEXIST, "file-exists"},        {EISDIR, "is-a-folder"},
      {ENOTDIR, "not-a-folder"},      {ENOTEMPTY, "folder-not-empty"},
      {EBUSY, "file-busy"},           {ETXTBSY, "file-busy"},
      {EAGAIN, "file-busy"},          {EINVAL, "invalid-path"},
      {ENAMETOOLONG, "invalid-path"}, {ELOOP, "invalid-path"},
      {EXDEV, "other-file-system"},   {ENOSPC, "no-space"},
      {EDQUOT, "no-space"},           {EFBIG, "no-space"},
      {EMFILE, "overloaded"},         {ENFILE, "overloaded"},
      {ENOMEM, "overloaded"},         {ENXIO, "not-a-file"},
      {ENODEV, "not-a-file"}};
  const auto known = codes.find(failure.error);
  if (known != codes.end()) return problem(known->second);
  // The program is the context's own: it may say any number.
  return problem("io-error",
                 failure.error > 0 && failure.error < 200 ? std::strerror(failure.error) : "");
}

}  // namespace api
