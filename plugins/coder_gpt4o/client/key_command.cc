#include "coder_gpt4o/client/key_command.h"

#include <kgrpo/sdk/error.h>

#include "coder_gpt4o/client/ascii.h"
#include "process/subprocess.h"

namespace kgrpo::coder_gpt4o {

using process::Subprocess;

std::string KeyOfCommand(const std::string& command) {
  constexpr double kSeconds = 60;
  constexpr size_t kLongest = size_t{64} << 10;
  const Subprocess::Result result =
      Subprocess::Run({.argv = {"/bin/sh", "-c", "exec 2>/dev/null\n" + command}}, kSeconds, kLongest);
  const std::string key(Trimmed(result.output));
  if (result.Succeeded() && !result.output_cut && !key.empty()) return key;
  const char* why = result.timed_out     ? "did not end within a minute"
                    : result.output_cut  ? "wrote more than a key"
                    : result.Succeeded() ? "wrote nothing to its standard output"
                                         : "failed";
  throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("api_key_command ") + why + ": run it in a shell to see why");
}

}  // namespace kgrpo::coder_gpt4o
