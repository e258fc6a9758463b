#include "plugin/records.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cmath>

namespace kgrpo {

Completion Completion::FromC(const kgrpo_completion& c) {
  RequireSize(c.struct_size, KGRPO_COMPLETION_SIZE_1, "kgrpo_completion");
  if (c.finish_reason > KGRPO_FINISH_LENGTH) {
    throw Error(KGRPO_ERROR_INTERNAL,
                "the policy delivered a completion with the unknown finish_reason " + std::to_string(c.finish_reason));
  }
  RequireArray(c.ids, c.size, "token ids");
  RequireArray(c.logprobs, c.size, "log-probabilities");
  for (size_t i = 0; i < c.size; ++i) {
    if (!std::isfinite(c.logprobs[i]))
      throw Error(KGRPO_ERROR_INTERNAL,
                  "the policy reported the log-probability " + std::to_string(c.logprobs[i]) + " for a sampled token");
  }
  Completion completion;
  completion.ids.assign(c.ids, c.ids + c.size);
  completion.logprobs.assign(c.logprobs, c.logprobs + c.size);
  completion.text = Copy(c.text);
  completion.finish_reason = static_cast<kgrpo_finish_reason>(c.finish_reason);
  return completion;
}

const char* FinishReasonName(kgrpo_finish_reason reason) { return reason == KGRPO_FINISH_STOP ? "stop" : "length"; }

}  // namespace kgrpo
