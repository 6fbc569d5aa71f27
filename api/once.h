#pragma once

#include <optional>
#include <string>

#include "api/http.h"

namespace api {

struct App;

/// A request that may carry an Idempotency-Key.
struct Once {
  /// Under which App::idempotency is to be told what was done; empty without a key.
  std::string name;
  std::string hash;  ///< of the body
  std::string exec;  ///< that the same request has started; empty: nothing yet
};

/// Nothing: the exchange has been answered as the same request was before, or refused.
std::optional<Once> begin_once(App& app, Exchange& exchange);

}  // namespace api
