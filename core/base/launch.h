// This process's rank in a run, read from the variables that torchrun, srun and mpirun set. Used by the commands that
// train.
#ifndef KGRPO_BASE_LAUNCH_H
#define KGRPO_BASE_LAUNCH_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kgrpo {

struct Launch {
  std::string by;  // "torchrun", "srun", "mpirun"
  uint32_t rank = 0, size = 1;
  uint32_t local_rank = 0, local_size = 1;  // on this machine
  std::string address;                      // address at which the ranks meet
  uint16_t port = 0;
  bool hosted = false;  // the launcher listens on that port already; otherwise rank 0 does
  std::string run;      // tells apart the runs that meet at one address and port; never empty
};

// Returns the value of an environment variable; empty if it is absent.
using Environment = std::function<std::string(const char* name)>;

// Returns nothing if this process was started alone. Throws KGRPO_ERROR_INVALID with the variable's name if one is
// missing or has an invalid value.
std::optional<Launch> ReadLaunch(const Environment& environment);
std::optional<Launch> ReadLaunch();  // this process's place among the ranks

// The command that continues the run in `folder` with as many ranks as this process's run has. If they are on several
// machines, the user's launcher must start it as it started this one.
std::string ResumeCommand(const std::string& folder);

// The first host of a Slurm list: "node07" of "node[07-12,20],login1".
std::string FirstHost(const std::string& list);

}  // namespace kgrpo
#endif
