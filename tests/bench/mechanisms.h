#pragma once

#include <string>

namespace bench {

/// A table of what each mechanism that works here costs: per spawn of /bin/true, past the
/// interposer except for `preload`, and at the start of an agent, with a daemon that runs already
/// and with one of its own. Bare runs between. `bench` is this program.
void measure_mechanisms(const std::string& airlock, const std::string& bench, int rounds);

}  // namespace bench
