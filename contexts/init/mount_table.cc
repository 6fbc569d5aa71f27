#include "contexts/init/mount_table.h"

#include <algorithm>

#include "base/file.h"

namespace contexts::init {
namespace {

using std::string_view;

string_view take_until(string_view& text, char end) {
  const auto at = std::min(text.find(end), text.size());
  const string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

/// Octal escapes undone.
std::string unescaped(string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) {
      plain.push_back(text[i]);
      continue;
    }
    plain.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0')));
    i += 3;
  }
  return plain;
}

}  // namespace

std::vector<MountEntry> parse_mounts(string_view mountinfo) {
  std::vector<MountEntry> mounts;
  while (!mountinfo.empty()) {
    string_view line = take_until(mountinfo, '\n');
    const auto optional_end = line.find(" - ");
    string_view rest = optional_end == string_view::npos ? "" : line.substr(optional_end + 3);
    string_view fields[5];
    for (auto& field : fields) field = take_until(line, ' ');
    mounts.push_back({std::string(fields[0]), std::string(fields[1]), std::string(fields[2]),
                      unescaped(fields[4]), std::string(take_until(rest, ' '))});
  }
  return mounts;
}

base::Result<std::vector<MountEntry>> own_mounts() {
  const auto mountinfo = base::read_file("/proc/self/mountinfo");
  if (!mountinfo) return tl::unexpected<base::Error>(mountinfo.error());
  return parse_mounts(*mountinfo);
}

}  // namespace contexts::init
