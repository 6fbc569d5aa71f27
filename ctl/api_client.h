#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "ctl/commands.h"
#include "ctl/http.h"

namespace ctl {

/// Asks the HTTP API by a connection that the daemon gives: no port, no token. Complains and gives
/// nothing if there is none.
std::optional<HttpAnswer> ask_api(const Common& common, const HttpRequest& request);

/// The same for JSON. An error that the API answers is complained about, too.
std::optional<nlohmann::json> ask_api_for_json(const Common& common, const HttpRequest& request);

/// Says what a problem+json body says.
void complain_about(HttpAnswer& answer);

/// Whether `word` is the id of an exec of the API's, not a name or a number.
bool is_exec_id(const std::string& word);

}  // namespace ctl
