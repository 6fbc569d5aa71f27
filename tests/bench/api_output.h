#pragma once

#include "tests/bench/api_daemon.h"

namespace bench {

/// 2 GiB of output by each kind of stream, beside a direct pipe.
void measure_output(const ApiDaemon& api);
/// A key and its echo, by the API and on a terminal of this process's own.
void measure_terminal();

}  // namespace bench
