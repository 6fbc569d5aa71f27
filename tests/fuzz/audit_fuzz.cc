// Any text as the files of an audit log, cut at each RS (0x1e): whatever it is, the check ends with
// an opinion. And any text as records: what is written is intact, and one byte less is not.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "routerd/audit/chain.h"

namespace {

using routerd::audit::ChainCheck;
using routerd::audit::Head;

template <class Take>
void split(std::string_view text, char separator, Take take) {
  for (bool more = true; more;) {
    const auto end = text.find(separator);
    more = end != std::string_view::npos;
    take(text.substr(0, end));
    if (more) text.remove_prefix(end + 1);
  }
}

void check_any(std::string_view text) {
  ChainCheck check;
  split(text, '\x1e', [&check](std::string_view file) { check.add_file("file", file); });
  check.expect({1, std::string(64, '0')});
  if (check.problems().empty() && check.lines() == 0) std::abort();
}

void check_own(std::string_view text) {
  Head head;
  std::string log = append_to_chain(head, {{"event", "audit.opened"}, {"previous", head.hash}});
  split(text, '\x1e', [&](std::string_view program) {
    log += append_to_chain(head, {{"event", "exec"}, {"program", std::string(program)}});
  });
  ChainCheck intact;
  intact.add_file("log", log);
  intact.expect(head);
  if (!intact.problems().empty()) std::abort();
  const std::size_t at = text.size() * 7919 % log.size();
  if (log[at] == '\n') return;
  ChainCheck damaged;
  damaged.add_file("log", log.erase(at, 1));
  damaged.expect(head);
  if (damaged.problems().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_any(text);
  check_own(text);
  return 0;
}
