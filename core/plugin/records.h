// Owning copies of what crosses the plugin ABI by value: completions; answers of coders and evaluations are those of
// kgrpo/support. Used wherever the host keeps a result beyond the call that delivered it (loop/, store/, cli/).
//
// FromC copies a pushed struct and throws kgrpo::Error if it breaks the contract. A view's C struct points into the
// owning struct: it is valid until the owning struct is changed or destroyed.
#ifndef KGRPO_PLUGIN_RECORDS_H
#define KGRPO_PLUGIN_RECORDS_H

#include <kgrpo/coder.h>
#include <kgrpo/evaluator.h>
#include <kgrpo/policy.h>
#include <kgrpo/support/coder_answer.h>
#include <kgrpo/support/evaluation.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

// kgrpo_coder_spending.
struct CoderSpending {
  double cost = 0;
  double lost_cost = 0;  // the part of cost for attempts that gave no answer
};

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
  std::string members = {};  // as kgrpo_message has them: a JSON object, or empty
};

// How a chat is written; kgrpo_chat_options.
struct ChatOptions {
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;  // unset: as set by the template or the policy's options
  std::string arguments;                // as kgrpo_chat_options has them: a JSON object, or empty
};

}  // namespace kgrpo
#endif
