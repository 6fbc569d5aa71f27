#pragma once

#include <string>

namespace contexts::init {

/// The spawner's life: takes jobs from routerd on `channel` (SEQPACKET, borrowed), runs them,
/// reports their ends. Returns when routerd has closed the channel. `farm`: the folder in which
/// this context sees its shim farm.
void serve(int channel, const std::string& farm, bool reports_jobs);

}  // namespace contexts::init
