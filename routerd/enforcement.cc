#include "routerd/enforcement.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "contexts/landlock.h"

namespace routerd {

using contexts::Mechanism;
using json = nlohmann::json;

namespace {

constexpr Mechanism kForDynamic[] = {Mechanism::farm, Mechanism::preload};
constexpr Mechanism kForStatic[] = {Mechanism::binfmt, Mechanism::farm, Mechanism::ptrace};

Offer preload_offer(const contexts::Context&) {
  return {Mechanism::preload,
          {},
          {"raw system calls of a dynamic agent",
           "everything a static "
           "agent starts"}};
}

Offer farm_offer(const contexts::Context& context) {
  Offer offer{Mechanism::farm, context.farm_error(), {}};
  if (!offer.works()) return offer;
  if (contexts::landlock_abi() < contexts::kLandlockExecAbi) {
    offer.not_stopped.push_back(
        "programs outside the covered folders (Landlock ABI 2, Linux 5.19, "
        "is missing)");
  }
  if (!context.memfd_error().empty()) {
    offer.not_stopped.push_back("programs in a memfd (" + context.memfd_error() + ")");
  }
  offer.not_stopped.push_back("a dynamic agent that executes ld.so itself, by a raw system call");
  offer.not_stopped.push_back("what is written into the agent's own executable files");
  return offer;
}

Offer ptrace_offer(const contexts::Context& context) {
  return {Mechanism::ptrace,
          context.ptrace_error(),
          {"what the agent's own interpreter runs from a file"}};
}

Offer binfmt_offer(const contexts::Context& context) {
  return {
      Mechanism::binfmt,
      context.binfmt_error(),
      {"code in the agent's own process that talks to the router as the stub does, or that makes a "
       "user namespace in the moment in which the agent runs itself again"}};
}

/// How each mechanism finds out whether it works in a context.
constexpr Offer (*kOffers[])(const contexts::Context&) = {
    preload_offer,
    farm_offer,
    binfmt_offer,
    ptrace_offer,
};

const Offer* find(const Offers& offers, Mechanism mechanism) {
  const auto found = std::find_if(offers.begin(), offers.end(), [mechanism](const Offer& offer) {
    return offer.mechanism == mechanism;
  });
  return found == offers.end() ? nullptr : &*found;
}

std::string reasons(const Offers& offers, std::span<const Mechanism> tried) {
  std::string text;
  for (const Mechanism mechanism : tried) {
    const Offer* offer = find(offers, mechanism);
    text += (text.empty() ? "" : "; ") + std::string(contexts::name_of(mechanism)) + ": " +
            (offer != nullptr ? offer->why_not : "unknown");
  }
  return text;
}

}  // namespace

Offers offers_of(const contexts::Context& context) {
  Offers offers;
  for (const auto offer : kOffers) offers.push_back(offer(context));
  return offers;
}

Offers probe_offers(contexts::Tier tier, const contexts::RuntimeDir& runtime,
                    const std::string& programs) {
  contexts::ContextSpec spec;
  spec.name = "probe";
  spec.child_context = "user";
  auto context = contexts::Context::create(spec, {runtime, programs, tier});
  auto offers = context && (*context)->await_walls() ? offers_of(**context) : Offers{};
  runtime.remove(spec.name);
  return offers;
}

base::Result<Offer> choose_mechanism(contexts::Enforce wanted, const Offers& offers, bool is_static,
                                     bool development) {
  std::span<const Mechanism> candidates = kForDynamic;
  if (is_static) candidates = kForStatic;
  if (wanted) candidates = std::span(&*wanted, 1);
  for (const Mechanism mechanism : candidates) {
    const Offer* offer = find(offers, mechanism);
    const bool sees_it = !is_static || mechanism != Mechanism::preload;
    if (offer != nullptr && offer->works() && sees_it) return *offer;
  }
  const Offer* preload = find(offers, Mechanism::preload);
  if (development && preload != nullptr) return *preload;
  if (wanted == Mechanism::preload) {
    return base::failure("enforce: preload", ENOTSUP,
                         "the agent is statically linked or made for musl, and the interposer "
                         "cannot see what such a program starts");
  }
  return base::failure("enforce: " + std::string(contexts::name_of(wanted)), ENOTSUP,
                       "not available here: " + reasons(offers, candidates));
}

json to_json(const Offers& offers) {
  json list = json::array();
  for (const Offer& offer : offers) {
    list.push_back({{"mechanism", contexts::name_of(offer.mechanism)},
                    {"works", offer.works()},
                    {"reason", offer.why_not},
                    {"notStopped", offer.not_stopped}});
  }
  return list;
}

json enforcement_json(contexts::Enforce wanted, const Offers& offers) {
  json described = {{"wanted", contexts::name_of(wanted)}, {"mechanisms", to_json(offers)}};
  for (const bool is_static : {false, true}) {
    const auto chosen = choose_mechanism(wanted, offers, is_static, false);
    described[is_static ? "static" : "dynamic"] =
        chosen ? json(contexts::name_of(chosen->mechanism)) : json();
  }
  return described;
}

}  // namespace routerd
