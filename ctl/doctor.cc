#include <iostream>
#include <string>
#include <vector>

#include "ctl/agent_text.h"
#include "ctl/ask.h"
#include "ctl/commands.h"
#include "ctl/daemon_process.h"
#include "ctl/print.h"

namespace ctl {

using nlohmann::json;

namespace {

/// The tiers, what the strongest lacks, and how to get those that do not work; true if one
/// isolates.
bool print_tiers(const json& tiers) {
  const json* strongest = nullptr;
  std::vector<std::vector<std::string>> rows = {{"TIER", "HERE", "WHY NOT"}};
  for (const auto& tier : tiers) {
    const bool works = tier.value("works", false);
    if (works && strongest == nullptr) strongest = &tier;
    rows.push_back({text_of(tier, "tier"), works ? "works" : "no", tier.value("reason", "")});
  }
  std::cout << "\n";
  print_table(rows);
  const std::string name = strongest != nullptr ? text_of(*strongest, "tier") : "none";
  const bool is_isolated = name == "namespaces" || name == "userns";
  std::cout << "\n"
            << (is_isolated ? "Contexts are isolated here. The strongest tier is " + name + "."
                            : "No tier isolates here; the strongest that works is " + name +
                                  ", and it must be asked for by --require-tier " + name + ".")
            << "\n";
  const std::string lacks = strongest != nullptr ? strongest->value("lacks", "") : "";
  if (!lacks.empty()) std::cout << "What it lacks: " << lacks << ".\n";
  for (const auto& tier : tiers) {
    if (&tier == strongest) break;
    std::cout << "\nTo get " << text_of(tier, "tier") << ":\n";
    for (const char* where : {"docker", "podman", "kubernetes", "host"}) {
      std::cout << "  " << where << ": " << tier["options"].value(where, "") << "\n";
    }
  }
  return is_isolated;
}

void print_enforcement(const json& enforcement) {
  std::vector<std::vector<std::string>> rows = {{"ROUTING BY", "HERE", "WHY NOT, OR NOT STOPPED"}};
  for (const auto& offer : enforcement["mechanisms"]) {
    const bool works = offer.value("works", false);
    std::string remark = offer.value("reason", "");
    if (works) {
      for (const auto& way : offer["notStopped"]) {
        remark += (remark.empty() ? "not stopped: " : "; ") + way.get<std::string>();
      }
    }
    rows.push_back({text_of(offer, "mechanism"), works ? "works" : "no", remark});
  }
  std::cout << "\n";
  print_table(rows);
  for (const char* kind : {"dynamic", "static"}) {
    const auto& chosen = enforcement[kind];
    std::cout << (kind == std::string("dynamic") ? "\n" : "") << "A " << kind << " agent: "
              << (chosen.is_string() ? chosen.get<std::string>()
                                     : "refused, its children would not be routed")
              << "\n";
  }
}

void print_limits(const json& limits) {
  std::vector<std::vector<std::string>> rows = {{"LIMIT", "KEPT BY", "WHY NOT"}};
  for (const auto& limit : limits) {
    rows.push_back({text_of(limit, "limit"), limit.value("by", ""), limit.value("reason", "")});
  }
  std::cout << "\n";
  print_table(rows);
}

void print_rootfs(const json& rootfs) {
  if (!rootfs.is_object()) return;
  const auto& overlay = rootfs["overlay"];
  const std::string remark = overlay.value("remark", "");
  const auto& integrity = rootfs["integrity"];
  std::cout << "\nIntegrity of the platform's programs, with 'airlock up': "
            << text_of(integrity, "up")
            << ".\nWith 'airlock run' and no daemon: " << text_of(integrity, "run")
            << ".\n'rootfs: overlay' "
            << (overlay.value("works", false) ? "works" : "does not work") << " here"
            << (remark.empty() ? "" : ": " + remark) << ".\n";
}

}  // namespace

int doctor(const Common& common, const std::vector<std::string>& agent) {
  std::vector<std::string> words = {"--doctor"};
  if (!agent.empty()) {
    words.emplace_back("--");
    words.insert(words.end(), agent.begin(), agent.end());
  }
  const auto text = daemon_output(words);
  const json report = json::parse(text ? *text : "", nullptr, false);
  if (!report.is_object()) return complain("airlock-routerd --doctor gave no report", 1);
  if (!agent.empty()) return explain_agent(common, agent, report["agent"]);
  if (common.json) return print_json(report), 0;
  std::vector<std::vector<std::string>> rows = {{"HERE", "", "WHAT IT COSTS"}};
  for (const auto& fact : report["machine"]) {
    rows.push_back({text_of(fact, "name"), text_of(fact, "value"), fact.value("remark", "")});
  }
  print_table(rows);
  const bool is_isolated = print_tiers(report["tiers"]);
  if (is_isolated) print_enforcement(report["enforcement"]);
  print_limits(report["limits"]);
  print_rootfs(report["rootfs"]);
  return is_isolated ? 0 : 1;
}

}  // namespace ctl
