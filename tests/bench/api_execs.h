#pragma once

namespace bench {

/// Tables of execs by the API that runs: latency of one client, beside direct spawns in turn; and
/// how many in a second, of 1 and 16 clients.
void measure_execs();

}  // namespace bench
