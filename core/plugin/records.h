// Owning copies of what crosses the plugin ABI by value: coder answers, completions; evaluations are those of
// kgrpo/support/evaluation.h. Used wherever the host keeps a result beyond the call that delivered it (loop/, store/,
// cli/).
//
// FromC copies what a plugin pushed and throws kgrpo::Error when the plugin broke the contract. View structs lend a C
// struct that points into the owning one: they must not outlive it, nor survive a change to it.
#ifndef KGRPO_PLUGIN_RECORDS_H
#define KGRPO_PLUGIN_RECORDS_H

#include <kgrpo/coder.h>
#include <kgrpo/evaluator.h>
#include <kgrpo/policy.h>
#include <kgrpo/support/evaluation.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

// What became of a request to a coder; kgrpo_coder_answer says what each field means.
struct CoderAnswer {
  kgrpo_coder_outcome outcome = KGRPO_CODER_FAILED;
  std::string source;
  std::string summary;
  std::string message;
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;
  double cost = 0;
  double lost_cost = 0;  // of it: for attempts that gave no answer
  double seconds = 0;
  uint32_t attempts = 0;
  std::string text;        // what a model answered, word for word; mostly empty
  bool reused = false;     // from a recording, a cache or another request: nothing was asked and paid for it
  bool estimated = false;  // some of the tokens or of the cost is an estimate; not kept in a run's database

  static CoderAnswer FromC(const kgrpo_coder_answer& c);
  kgrpo_coder_answer ToC() const;  // borrows from this
};

// kgrpo_coder_spending.
struct CoderSpending {
  double cost = 0;
  double lost_cost = 0;  // of it: for attempts that gave no answer
};

// "ok", "not_applicable", "unclear", "refused", "truncated", "no_code", "failed": as logs, stores and reports name
// them.
const char* CoderOutcomeName(kgrpo_coder_outcome outcome);

// A finished completion.
struct Completion {
  size_t request = 0;  // index into the requests
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  std::string text;
  kgrpo_finish_reason finish_reason = KGRPO_FINISH_STOP;

  static Completion FromC(const kgrpo_completion& c);
};

// "stop" or "length".
const char* FinishReasonName(kgrpo_finish_reason reason);

// One message of a chat.
struct ChatMessage {
  std::string role;
  std::string content;
};

// How a chat is written; kgrpo_chat_options.
struct ChatOptions {
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;  // unset: as the template or the policy's options have it
};

}  // namespace kgrpo
#endif
