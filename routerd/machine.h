#pragma once

#include <nlohmann/json_fwd.hpp>

namespace routerd {

/// What of this machine or container decides about isolation, for `airlock doctor`: a list of
/// {"name", "value", "remark"}; the remark is empty where nothing is missing.
nlohmann::json machine_facts();

}  // namespace routerd
