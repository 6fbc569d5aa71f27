#pragma once

#include <functional>

namespace api {

struct App;

/// Takes up the jobs that an earlier process has left with the daemon, then calls `then`. What
/// cannot be taken up is given up.
void adopt_kept_jobs(App& app, std::function<void()> then);

}  // namespace api
