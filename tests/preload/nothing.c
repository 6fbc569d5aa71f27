// What LD_PRELOAD names in the bare runs, so that both runs have the same environment.
extern const int airlock_preload_nothing;
const int airlock_preload_nothing = 0;
