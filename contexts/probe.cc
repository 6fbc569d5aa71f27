#include "contexts/probe.h"

#include <utility>

namespace contexts {
namespace {

using base::Result;

constexpr const char* kName = "probe";

Result<std::unique_ptr<Context>> make(ContextSpec spec, Tier tier, const RuntimeDir& runtime,
                                      const std::string& programs) {
  spec.name = kName;
  auto context = Context::create(std::move(spec), {runtime, programs, tier});
  runtime.remove(kName);
  return context;
}

}  // namespace

Result<ProbedTier> probe_one(Tier tier, const RuntimeDir& runtime, const std::string& programs) {
  auto context = make({}, tier, runtime, programs);
  if (!context) return tl::unexpected<base::Error>(context.error());
  (*context)->begin_destroy();
  return ProbedTier{tier, std::move(*context)};
}

std::vector<LimitOffer> probe_limits(Tier tier, const RuntimeDir& runtime,
                                     const std::string& programs) {
  const std::pair<const char*, Limits> each[] = {
      {"pids", {.pids = 1000}},          {"memory", {.memory = 1 << 30}},
      {"cpu", {.cpu_hundredths = 100}},  {"open_files", {.open_files = 256}},
      {"tmpfs", {.tmpfs = kLeastTmpfs}}, {"exec_time", {.exec_time_ms = 1000}}};
  std::vector<LimitOffer> offers;
  for (const auto& [name, limits] : each) {
    ContextSpec spec;
    spec.limits = limits;
    auto context = make(std::move(spec), tier, runtime, programs);
    if (context) {
      offers.push_back({name, (*context)->kept_limits().front().by, {}});
    } else {
      offers.push_back({name, {}, context.error().message()});
    }
  }
  return offers;
}

ProbedTier probe_tier(const RuntimeDir& runtime, const std::string& programs,
                      std::vector<std::string>& reasons) {
  for (const Tier tier : {Tier::namespaces, Tier::userns, Tier::uids, Tier::landlock}) {
    auto probed = probe_one(tier, runtime, programs);
    if (probed) return std::move(*probed);
    reasons.push_back(std::string(name_of(tier)) + ": " + probed.error().message());
  }
  return {};
}

OverlayOffer probe_overlay(Tier tier, const RuntimeDir& runtime, const std::string& programs) {
  ContextSpec spec;
  spec.rootfs = Rootfs::overlay;
  auto context = make(std::move(spec), tier, runtime, programs);
  if (!context) return {false, context.error().message()};
  std::string remark;
  for (const auto& lack : (*context)->lacks()) remark += (remark.empty() ? "" : "; ") + lack;
  return {true, remark};
}

}  // namespace contexts
