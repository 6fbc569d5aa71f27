#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace ctl {

/// NAME=VALUE words as the field `limits` of a context's spec. The error is for a person.
tl::expected<nlohmann::json, std::string> limits_object(const std::vector<std::string>& words);

}  // namespace ctl
