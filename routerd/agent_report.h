#pragma once

#include <nlohmann/json_fwd.hpp>

#include "routerd/agent.h"
#include "routerd/enforcement.h"

namespace routerd {

/// What `airlock run` would do with an agent, and why: for `airlock doctor --agent`. `children` is
/// the context its children would run in, `offers` are the mechanisms that work here. Pure.
///
/// {file, runs: [{file, kind: script|dynamic|static}], profile: {name, title, file} or null,
/// mechanism or null, reason (why none), notStopped[], stays: {files[], packages[], copies[],
/// pidHelpers[], servers[{program, action}]}, children: {context, home, share[], hide[], protect[],
/// passEnv[], blockEnv[]}, warnings[]}
nlohmann::json agent_report(const Agent& agent, const contexts::ContextSpec& children,
                            contexts::Enforce wanted, const Offers& offers);

}  // namespace routerd
