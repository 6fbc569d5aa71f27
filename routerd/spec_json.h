#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "contexts/spec.h"

namespace routerd {

/// A context as clients see it; values of variables are left out.
nlohmann::json to_json(const contexts::ContextSpec& spec);

/// EINVAL naming the field and what was expected; ENOTSUP for what this version cannot do.
base::Result<contexts::ContextSpec> spec_from_json(const nlohmann::json& body);

/// Applies {"env": {NAME: value or null}, "cwd": …, "childContext": …} to a living context.
base::Result<void> change_spec(contexts::ContextSpec& spec, const nlohmann::json& changes);

}  // namespace routerd
