#pragma once

#include <string>
#include <vector>

#include "routerd/program.h"

namespace routerd {

/// What a user context sees of the platform's HOME although HOME is a folder of its own: the
/// working directory, tools that are installed there, their caches, and what `agent` and its
/// children hand to each other by path. Absolute paths below `home`. Pure but for the question
/// whether a path exists.
std::vector<std::string> default_shares(const std::string& home, const std::string& cwd,
                                        const std::string& search_path, const Program* agent);

/// Creates the folders that `agent` shares with its children, where it has not yet: they must be
/// there when the context is made. Owned like HOME, 0700.
void create_agent_folders(const std::string& home, const Program& agent);

}  // namespace routerd
