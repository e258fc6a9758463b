// pairs.h - training pairs from a JSONL file, as the policy's token ids. Called by sft_trainer.cc when a stage begins.
#pragma once
#include <kgrpo/policy.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo::sft {

struct Pair {
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> completion_ids;  // its end token included
};

// Reads all pairs of a file, in its order. A line is one of
//   {"messages": [{"role": ..., "content": ...}, ...]}   the last message is the assistant's: the completion
//   {"prompt": [message, ...], "completion": [message]}  the same, as `kgrpo-host export` writes it; the completion may
//                                                        be the message's text alone, as in a run's rollouts
//   {"prompt": "...", "completion": "..."}               plain text; the first end token of the policy is appended
// Messages may have the further keys that the policy's chat template reads (reasoning_content, tool_calls), and a line
// of messages the keys of TRL for its arguments: "tools" and "chat_template_kwargs". A key of a message that can't
// reach the template is an error. Other keys of a line are ignored: each line is imitated, whatever its reward. Blank
// lines are skipped. Throws KGRPO_ERROR_NOT_FOUND when there is no such file, and KGRPO_ERROR_INVALID with "FILE:LINE:
// " and what is wrong for the first bad line, or when the file has no pair.
std::vector<Pair> ReadPairs(const kgrpo_policy_interface& api, kgrpo_policy* policy, const std::string& path);

}  // namespace kgrpo::sft
