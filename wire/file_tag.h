#pragma once

#include <string>
#include <string_view>

#include "wire/message.h"

namespace wire {

/// What tells one state of a file from another: an entity tag of RFC 9110 (8.8.3), with its quotes,
/// made of size, time and inode. Pure.
inline std::string file_tag(const FileEntry& entry) {
  std::string tag = "\"";
  for (const std::uint64_t number :
       {entry.size, static_cast<std::uint64_t>(entry.mtime_ns), entry.inode}) {
    if (tag.size() > 1) tag += '-';
    int shift = 60;
    while (shift > 0 && (number >> shift) == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) tag += "0123456789abcdef"[(number >> shift) & 15];
  }
  return tag + '"';
}

/// Whether `list` names a file, by its tag or by "*". `tag` is empty if there is none.
inline bool is_named(const StringList& list, std::string_view tag) {
  if (tag.empty()) return false;
  for (const auto each : list.views()) {
    if (each == "*" || each == tag) return true;
  }
  return false;
}

/// Whether the conditions of `request` are met by a file of this tag; empty: there is none.
inline bool are_met(const FileRequest& request, std::string_view tag) {
  if (!request.if_match.empty() && !is_named(request.if_match, tag)) return false;
  return request.if_none_match.empty() || !is_named(request.if_none_match, tag);
}

}  // namespace wire
