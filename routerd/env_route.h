#pragma once

#include <string>
#include <vector>

#include "contexts/environment.h"
#include "wire/string_list.h"

namespace routerd {

/// From the environment that one agent gives its children to that of programs in one context. The
/// last answer is kept, because most children of an agent get the same environment as the one
/// before: comparing costs a hundredth of composing.
class EnvRoute {
 public:
  /// Copies of everything: policies may change, then a new EnvRoute is made.
  struct From {
    contexts::Environment invoker_env;
    contexts::Environment agent_start_env;
    contexts::EnvPolicy::Base base = contexts::EnvPolicy::Base::clean;
  };
  struct Answer {
    wire::StringList env;
    /// "NAME: reason" of each variable that was kept out; for the route log, without values.
    std::vector<std::string> blocked;
  };

  /// `policy` is the target context's.
  EnvRoute(From from, const contexts::EnvPolicy& policy);

  /// The environment for a child that was given `child_env`. Valid until the next call.
  const Answer& translate(const wire::StringList& child_env);

 private:
  From from_;
  contexts::Environment pinned_;
  contexts::EnvFilter filter_;
  wire::StringList last_child_env_;
  Answer answer_;
  bool has_answer_ = false;
};

}  // namespace routerd
