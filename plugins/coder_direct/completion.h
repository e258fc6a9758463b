// Reads the kernel that a policy has written in its completion. Used by plugin.cc.
#ifndef KGRPO_CODER_DIRECT_COMPLETION_H
#define KGRPO_CODER_DIRECT_COMPLETION_H

#include <kgrpo/coder.h>

#include <string>
#include <string_view>

namespace kgrpo::coder_direct {

struct Completion {
  std::string_view text;
  bool truncated = false;  // it ended at loop.sampling.max_new_tokens
};

struct Written {
  kgrpo_coder_outcome outcome = KGRPO_CODER_NO_KERNEL;  // or KGRPO_CODER_OK
  std::string source;   // for KGRPO_CODER_OK; `current` itself if the completion repeats that kernel
  std::string summary;  // the words outside of thoughts and code, as one line; may be empty
  std::string message;  // why there is no kernel
};

// `signature`: the declaration of the function that the kernel must define. `current`: the kernel that the round starts
// from. Pure; any thread.
Written ReadCompletion(const Completion& completion, std::string_view signature, std::string_view current);

}  // namespace kgrpo::coder_direct

#endif
