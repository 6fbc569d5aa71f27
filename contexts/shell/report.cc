#include "contexts/shell/report.h"

#include <cstring>

namespace contexts::shell {
namespace {

base::Result<std::string_view> take_string(std::string_view& rest) {
  const auto end = rest.find('\0');
  if (end == std::string_view::npos) return base::failure("shell report", EBADMSG);
  const auto string = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return string;
}

}  // namespace

base::Result<Report> decode_report(std::string_view datagram) {
  Report report;
  const auto bad = base::failure("shell report", EBADMSG);
  if (datagram.size() < sizeof report.head) return bad;
  std::memcpy(&report.head, datagram.data(), sizeof report.head);
  datagram.remove_prefix(sizeof report.head);
  if (report.head.kind != kShellDone) return report;
  const std::size_t pids = report.head.background_count;
  if (pids > kShellMaxBackground || datagram.size() < pids * sizeof(std::int32_t)) return bad;
  report.background.resize(pids);
  std::memcpy(report.background.data(), datagram.data(), pids * sizeof(std::int32_t));
  datagram.remove_prefix(pids * sizeof(std::int32_t));
  auto folder = take_string(datagram);
  if (!folder) return bad;
  report.folder = std::string(*folder);
  for (std::uint32_t i = 0; i < report.head.changed_count; ++i) {
    const auto name = take_string(datagram);
    if (!name) return bad;
    report.changed_names.add(*name);
  }
  return report;
}

EncodedCommand encode_command(const CommandText& text) {
  EncodedCommand encoded;
  for (const auto* list : {&text.set, &text.unset, &text.scoped}) encoded.payload += list->bytes();
  for (const auto* string : {&text.folder, &text.scoped_folder}) {
    if (!string->empty()) encoded.payload.append(*string).push_back('\0');
  }
  encoded.payload.append(text.command).push_back('\0');
  auto& head = encoded.head;
  head.payload_bytes = static_cast<std::uint32_t>(encoded.payload.size());
  head.is_long = encoded.payload.size() > kShellInlineBytes ? 1 : 0;
  head.set_count = text.set.count();
  head.unset_count = text.unset.count();
  head.scoped_count = text.scoped.count();
  head.has_cwd = text.folder.empty() ? 0 : 1;
  head.has_scoped_cwd = text.scoped_folder.empty() ? 0 : 1;
  head.wants_checkpoint = text.wants_checkpoint ? 1 : 0;
  return encoded;
}

}  // namespace contexts::shell
