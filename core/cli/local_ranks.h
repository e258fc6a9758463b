// `--ranks N`: several ranks on this machine, without a launcher of anybody's.
#ifndef KGRPO_CLI_LOCAL_RANKS_H
#define KGRPO_CLI_LOCAL_RANKS_H

namespace kgrpo::cli {

// True if this process is to start so many ranks: not where it was started as one of them.
bool StartsRanks(unsigned ranks);

// Starts this program again, with its own arguments, as each of the ranks; hands signals on; returns the exit code of
// the first rank once all have ended. Throws KGRPO_ERROR_UNAVAILABLE where none can be started. Of a program with one
// thread.
int RunLocalRanks(unsigned ranks);

}  // namespace kgrpo::cli
#endif
