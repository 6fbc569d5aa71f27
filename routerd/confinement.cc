#include "routerd/confinement.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "contexts/landlock.h"

namespace routerd {

base::UniqueFd open_program(const std::string& path) {
  char head[SELFMAG] = {};
  auto content = base::open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  const bool is_read = content.has_value();
  if (is_read && (::pread(content->borrow(), head, sizeof head, 0) != sizeof head ||
                  std::memcmp(head, ELFMAG, SELFMAG) != 0)) {
    return {};
  }
  auto program = base::open_file(path, O_PATH);
  struct stat info {};
  if (!program || ::fstat(program->borrow(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return std::move(*program);
}

base::Result<Confined> confine_by_farm(HostedContext& context, const Agent& agent,
                                       const FarmSite& site) {
  auto plan = plan_farm(agent, site);
  auto& keeper = *context.farm;
  Confined confined;
  confined.order.mechanism = static_cast<std::uint8_t>(contexts::Mechanism::farm);
  for (const auto& folder : plan.covered) {
    auto shims = keeper.cover(folder);
    if (!shims) return tl::unexpected<base::Error>(shims.error());
    confined.order.covered.add(folder);
    confined.order.shims.add(*shims);
  }
  for (const auto& [folder, name] : plan.kept_links) keeper.farm().keep_link(folder, name);
  for (const auto& file : plan.kept) confined.order.kept.add(file);
  confined.kept = std::move(plan.kept);
  if (context.context->has_preload_file()) {
    confined.order.preload_file = context.context->airlock_folder() + "/ld.so.preload";
  }
  if (contexts::landlock_abi() >= contexts::kLandlockExecAbi) {
    plan.executable.push_back(keeper.farm().stub_path());
    plan.executable.push_back(context.stub_path);
    auto ruleset = contexts::exec_ruleset(plan.executable);
    if (!ruleset) return tl::unexpected<base::Error>(ruleset.error());
    confined.order.has_ruleset = true;
    confined.fds.push_back(std::move(*ruleset));
  }
  // A script is executed by name: its interpreter will ask for it.
  if (!agent.program.script.empty()) return confined;
  if (auto program = open_program(agent.program.executable)) {
    confined.order.has_program = true;
    confined.fds.push_back(std::move(program));
  }
  return confined;
}

}  // namespace routerd
