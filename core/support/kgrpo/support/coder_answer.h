// An owning copy of kgrpo_coder_answer, and the names of outcomes. Used by
// the host wherever it keeps one, and by plugins that make or name one.
#ifndef KGRPO_SUPPORT_CODER_ANSWER_H
#define KGRPO_SUPPORT_CODER_ANSWER_H

#include <kgrpo/coder_answer.h>

#include <cstdint>
#include <string>

namespace kgrpo {

// A coder's answer to a request; kgrpo_coder_answer documents each field.
struct CoderAnswer {
  kgrpo_coder_outcome outcome = KGRPO_CODER_FAILED;
  std::string source;
  std::string summary;
  std::string message;
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;
  double cost = 0;
  double seconds = 0;
  uint32_t attempts = 0;
  std::string text;        // a model's answer, word for word; mostly empty
  bool reused = false;     // from a recording, a cache or another request: no call was made and nothing paid
  bool estimated = false;  // some of the tokens or of the cost is an estimate

  static CoderAnswer FromC(const kgrpo_coder_answer& c);
  kgrpo_coder_answer ToC() const;  // borrows from this
};

// "ok", "not_applicable", "unclear", "refused", "truncated", "no_code", "failed", "no_kernel": as logs, stores and
// reports name them.
const char* CoderOutcomeName(kgrpo_coder_outcome outcome);

}  // namespace kgrpo
#endif
