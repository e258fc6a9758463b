#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/coder_answer.h>
#include <kgrpo/support/evaluation.h>

namespace kgrpo {

CoderAnswer CoderAnswer::FromC(const kgrpo_coder_answer& c) {
  RequireSize(c.struct_size, KGRPO_CODER_ANSWER_SIZE_1, "kgrpo_coder_answer");
  if (c.outcome > KGRPO_CODER_NO_KERNEL) {
    throw Error(KGRPO_ERROR_INTERNAL, "the coder delivered the unknown outcome " + std::to_string(c.outcome));
  }
  CoderAnswer answer;
  answer.outcome = static_cast<kgrpo_coder_outcome>(c.outcome);
  answer.source = Copy(c.source);
  answer.summary = Copy(c.summary);
  answer.message = Copy(c.message);
  answer.prompt_tokens = c.prompt_tokens;
  answer.completion_tokens = c.completion_tokens;
  answer.cost = c.cost;
  answer.seconds = c.seconds;
  answer.attempts = c.attempts;
  answer.text = Copy(c.text);
  answer.reused = c.reused != 0;
  answer.estimated = c.estimated != 0;
  if ((answer.outcome == KGRPO_CODER_OK) == answer.source.empty()) {
    throw Error(KGRPO_ERROR_INTERNAL, std::string("the coder delivered outcome \"") + CoderOutcomeName(answer.outcome) +
                                          (answer.source.empty() ? "\" without a kernel" : "\" with a kernel"));
  }
  return answer;
}

kgrpo_coder_answer CoderAnswer::ToC() const {
  kgrpo_coder_answer c{};
  c.struct_size = sizeof(c);
  c.outcome = outcome;
  c.source = Str(source);
  c.summary = Str(summary);
  c.message = Str(message);
  c.prompt_tokens = prompt_tokens;
  c.completion_tokens = completion_tokens;
  c.cost = cost;
  c.seconds = seconds;
  c.attempts = attempts;
  c.text = Str(text);
  c.reused = reused ? 1 : 0;
  c.estimated = estimated ? 1 : 0;
  return c;
}

const char* CoderOutcomeName(kgrpo_coder_outcome outcome) {
  switch (outcome) {
    case KGRPO_CODER_OK: return "ok";
    case KGRPO_CODER_NOT_APPLICABLE: return "not_applicable";
    case KGRPO_CODER_UNCLEAR: return "unclear";
    case KGRPO_CODER_REFUSED: return "refused";
    case KGRPO_CODER_TRUNCATED: return "truncated";
    case KGRPO_CODER_NO_CODE: return "no_code";
    case KGRPO_CODER_FAILED: return "failed";
    case KGRPO_CODER_NO_KERNEL: return "no_kernel";
  }
  return "unknown";
}

}  // namespace kgrpo
