#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "contexts/mechanism.h"
#include "wire/message.h"

namespace contexts::init {

/// What an agent's process does to itself before its exec. With a farm: a mount namespace of its
/// own, the shim farm over the bin folders, the preload file, Landlock; all memory for that is made
/// ready beforehand, so that enter() may run in a CLONE_VM child. With binfmt or ptrace it is built
/// by build(), which takes more than raw system calls.
class AgentWall {
 public:
  AgentWall() = default;
  /// `fds`: those of `order`, the ruleset and then the program. `farm`: where it is mounted.
  AgentWall(const wire::Confinement& order, const std::string& farm,
            std::vector<base::UniqueFd> fds);

  /// True if build() has something to do. Then the child must have memory of its own.
  bool is_built_apart() const;
  /// First of all steps, while the child has the privileges for it. 0 or -errno. Child only.
  long build(const wire::Credentials& user) const;

  /// Moves its descriptors out of the way of the program's, which end at `highest`. Child only.
  long make_way(int highest);

  /// Raw system calls only; 0 or -errno. Needs CAP_SYS_ADMIN in the user namespace: before the ids
  /// change.
  long enter();

  /// What it holds open. Borrowed.
  std::vector<int> descriptors() const;
  /// The program's O_PATH descriptor, or -1. Borrowed.
  int program() const { return program_number_; }

 private:
  struct Bind {
    std::string source;
    std::string target;
  };

  long cover();
  long restrict_exec() const;

  Mechanism mechanism_ = Mechanism::preload;
  /// For build().
  wire::Confinement order_;
  std::vector<Bind> binds_;
  std::vector<std::string> kept_;
  std::vector<long> kept_mounts_;
  std::string preload_file_;
  base::UniqueFd ruleset_;
  base::UniqueFd program_;
  // What the two are in the child, whose descriptor table is its own.
  int ruleset_number_ = -1;
  int program_number_ = -1;
};

}  // namespace contexts::init
