// Exit codes of the host's programs; docs/commands.md lists them for users.
#ifndef KGRPO_BASE_EXIT_CODE_H
#define KGRPO_BASE_EXIT_CODE_H

#include <kgrpo/abi.h>

namespace kgrpo {

enum ExitCode {
  kFine = 0,
  kFailed = 1,       // the run failed, or stopped early
  kUsage = 2,        // the command line is wrong
  kBadInput = 3,     // a pipeline, problem, model or data file is wrong
  kUnavailable = 4,  // a device, tool or service is missing
  kUnmet = 5,        // a kernel does not meet what the command line requires of it
  kInterrupted = 130,
};

ExitCode ExitCodeOf(kgrpo_error_code code);

}  // namespace kgrpo
#endif
