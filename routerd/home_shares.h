#pragma once

#include <string>
#include <vector>

#include "routerd/agent.h"

namespace routerd {

/// What a user context sees of the platform's HOME although HOME is a folder of its own: the
/// working directory, tools that are installed there, their caches, and what each of `agents` and
/// its children hand to each other by path. Absolute paths below `home`. Pure but for the question
/// whether a path exists.
std::vector<std::string> default_shares(const std::string& home, const std::string& cwd,
                                        const std::string& search_path,
                                        const std::vector<Agent>& agents);

/// Creates the folders that `agent` shares with its children below `home`, where it has not yet:
/// they must be there when the context is made. Owned like HOME, 0700.
void create_agent_folders(const std::string& home, const Agent& agent);

/// Makes `spec` a context for the children of `agents`: their packages, and the profiles
/// themselves, can only be read there; what their profiles hide is hidden. Packages below the
/// working directory stay writable: they are the user's.
void adapt_to_agents(contexts::ContextSpec& spec, const std::vector<Agent>& agents,
                     const Profiles& profiles);

}  // namespace routerd
