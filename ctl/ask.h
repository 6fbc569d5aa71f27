#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ctl/commands.h"

namespace ctl {

/// Asks the daemon; complains and gives nothing if there is none or it refuses.
std::optional<nlohmann::json> ask(const Common& common, const std::string& verb,
                                  nlohmann::json fields = nlohmann::json::object());

/// `context`, or all there are if it is empty; complains and gives nothing as ask() does.
std::optional<std::vector<std::string>> context_names(const Common& common,
                                                      const std::string& context);

/// A field for people: strings as they are ("-" for an empty one), "" if it is not there.
std::string text_of(const nlohmann::json& object, const char* field);

}  // namespace ctl
