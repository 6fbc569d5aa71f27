#pragma once

namespace contexts::init {

/// The spawner's life: takes jobs from routerd on `channel` (SEQPACKET, borrowed), runs them,
/// reports their ends. Returns when routerd has closed the channel.
void serve(int channel);

}  // namespace contexts::init
