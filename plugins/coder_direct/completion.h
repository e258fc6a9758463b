// Reads the kernel that a policy has written in its completion. Used by plugin.cc.
#pragma once

#include <kgrpo/support/coder_answer.h>

#include <string_view>

namespace kgrpo::coder_direct {

struct Completion {
  std::string_view text;
  bool truncated = false;  // it ended at loop.sampling.max_new_tokens
};

// `signature`: the declaration of the function that the kernel must define. `current`: the kernel that the round starts
// from. Pure; any thread. The outcome is KGRPO_CODER_OK, with `current` itself as source if the completion repeats that
// kernel, or KGRPO_CODER_NO_KERNEL, with the reason as message. The summary has the words outside of thoughts and code,
// as one line; it may be empty.
CoderAnswer ReadCompletion(const Completion& completion, std::string_view signature, std::string_view current);

}  // namespace kgrpo::coder_direct
