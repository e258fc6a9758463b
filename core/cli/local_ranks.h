// `--ranks N`: starts several ranks on this machine, without an external launcher.
#ifndef KGRPO_CLI_LOCAL_RANKS_H
#define KGRPO_CLI_LOCAL_RANKS_H

namespace kgrpo::cli {

// True if this process must start the ranks: `ranks` > 1, and it was not started as a rank itself.
bool ShouldStartRanks(unsigned ranks);

// Starts this program again with the same arguments, once for each rank, and forwards signals to them. Returns the exit
// code of rank 0 once all have ended. Throws KGRPO_ERROR_UNAVAILABLE where a rank cannot be started. Call it while the
// program has one thread.
int RunLocalRanks(unsigned ranks);

}  // namespace kgrpo::cli
#endif
