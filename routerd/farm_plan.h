#pragma once

#include <string>
#include <utility>
#include <vector>

#include "contexts/spec.h"
#include "routerd/agent.h"

namespace routerd {

/// What a shim farm and Landlock are to be for one agent.
struct FarmPlan {
  /// Folders whose programs the agent finds as shims; resolved paths.
  std::vector<std::string> covered;
  /// Files in covered folders that it needs as they are: its own script or self-contained
  /// executable.
  std::vector<std::string> kept;
  /// Symlinks in covered folders that it needs as they are: folder and name.
  std::vector<std::pair<std::string, std::string>> kept_links;
  /// What it may execute itself: files, and folders with all that is beneath.
  std::vector<std::string> executable;
};

/// Where the plan is made for.
struct FarmSite {
  const contexts::ContextSpec& spec;
  /// PATH, HOME and the working folder of the agent.
  std::string search_path;
  std::string home;
  std::string cwd;
  /// Folders of copies that the agent may execute (AgentIdentity).
  std::vector<std::string> copies = {};
};

/// Looks at the file system, in this process's own view. Covered are the system's bin folders, that
/// of the agent's interpreter (so that another script for it is a decision), and the folders of
/// PATH; those below HOME only for a static agent, since a dynamic one has the interposer there and
/// may install programs itself; none below `cwd`, where the agent writes. Executable are the
/// agent's own files and what else its profile and the context's rules let run here.
FarmPlan plan_farm(const Agent& agent, const FarmSite& site);

/// The system's bin folders that there are, resolved, each once.
std::vector<std::string> system_bin_folders();

}  // namespace routerd
