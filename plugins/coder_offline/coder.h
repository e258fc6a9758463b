// The offline coder: applies a suggestion in words to a kernel. Pure and deterministic; safe from any thread.
#pragma once

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
  std::string summary;  // the applied techniques: "shared-memory tiling, tile 32"; then, in parentheses, those that did
                        // not apply, with the reasons; empty unless kOk
  std::string message;  // why nothing was done; empty when kOk
};

// Applies `suggestion` to `source`. If it names several techniques, those that are applicable are applied, in an order
// that does not depend on the text; the summary names the others. The answer is kNotApplicable if none is applicable. A
// source without a schedule line is an ordinary kernel, for which only the techniques of plain/ exist.
Answer Implement(std::string_view source, std::string_view suggestion);

// Writes `source` again from its own schedule. The kernels that Implement writes and every shipped reference.cu come
// back unchanged. Returns an empty text and sets *why if the source is not understood.
std::string Rewrite(std::string_view source, std::string* why);

}  // namespace kgrpo::coder_offline
