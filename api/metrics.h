#pragma once

#include <string>

#include "api/app.h"

namespace api {

/// The counters in the text format of Prometheus. Pure.
std::string metrics_text(const Counters& counters, std::size_t running, std::size_t known);

}  // namespace api
