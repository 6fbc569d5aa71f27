// Any bytes as an agent's profile: a profile whose places expand to absolute paths or to nothing,
// or errors that can be shown.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "routerd/agent.h"
#include "routerd/profile.h"

namespace {

void check(const routerd::AgentProfile& profile) {
  const contexts::Environment env = {"HOME=/home/a", "A=/srv/a", "B=relative", "C="};
  for (const auto* places : {&profile.copies, &profile.share, &profile.hide}) {
    for (const auto& place : *places) {
      const auto path = routerd::expand_place(place, env);
      if (!path.empty() && path.front() != '/') std::abort();
      if ((path + "/").find("/../") != std::string::npos) std::abort();
    }
  }
  const auto package = routerd::package_of(profile, "/usr/lib/node_modules/a/b/c", "/home/a");
  if (!package.empty() && package.front() != '/') std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = routerd::parse_profile(text, "fuzz", "fuzz.yaml");
  if (profile) {
    check(*profile);
    return 0;
  }
  if (profile.error().empty()) std::abort();
  for (const auto& error : profile.error()) {
    if (error.render().find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
