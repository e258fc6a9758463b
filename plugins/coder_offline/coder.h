// The offline coder: applies a suggestion in words to a kernel. Pure and deterministic; safe from any thread.
#ifndef KGRPO_PLUGINS_CODER_OFFLINE_CODER_H_
#define KGRPO_PLUGINS_CODER_OFFLINE_CODER_H_

#include <string>
#include <string_view>

namespace kgrpo::coder_offline {

enum class Status {
  kOk,             // a kernel was written
  kNotApplicable,  // the suggestion was understood and does nothing here: the message says why
  kUnclear,        // the suggestion names no technique that the coder knows
};

struct Answer {
  Status status;
  std::string source;   // the new kernel; empty unless kOk
  std::string summary;  // what was done: "shared-memory tiling, tile 32"; and in brackets what was left out of several
                        // techniques, with the reason; empty unless kOk
  std::string message;  // why nothing was done; empty when kOk
};

// Applies `suggestion` to `source`. With several techniques those that apply are applied, in an order of their own that
// does not depend on the text, and the summary names the others; the answer is kNotApplicable when none does. A source
// without a schedule line is an ordinary kernel: techniques apply that need only its tokens (plain/).
Answer Implement(std::string_view source, std::string_view suggestion);

// Writes `source` again from its own schedule. What Implement answers, and every shipped reference.cu, is a fixed
// point. Empty, with the reason in *why, when the source is not understood.
std::string Rewrite(std::string_view source, std::string* why);

}  // namespace kgrpo::coder_offline

#endif  // KGRPO_PLUGINS_CODER_OFFLINE_CODER_H_
