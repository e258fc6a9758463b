// Extracts the kernel from a model's answer, or the reason why there is none, by one table of forms that an answer may
// have (answer.cc). The kernel of the request is never returned as a new one. For the coders that read a model's text.
#pragma once

#include <kgrpo/coder.h>

#include <string>
#include <string_view>

namespace kgrpo::coder_shared {

struct AnswerText {
  std::string_view text;
  std::string_view refusal;        // the service's own words; mostly empty
  std::string_view finish_reason;  // "stop", "length", "content_filter", ...; may be empty
};

// The required content of an answer.
struct Wanted {
  std::string_view signature;  // the declaration of the function that the kernel must define; empty: any code will do
  std::string_view current;    // the kernel that was to be improved
};

struct ReadAnswer {
  kgrpo_coder_outcome outcome = KGRPO_CODER_NO_CODE;
  std::string source;         // set for KGRPO_CODER_OK only
  std::string message;        // the reason, for every other outcome
  const char* form = "none";  // the row of the table that applied; static
  std::string doubt;          // of KGRPO_CODER_OK: a sign that parts are left out; if the kernel is wrong, they are
};

// The form of an answer that repeats the given kernel.
inline constexpr const char* kUnchanged = "unchanged";

// True if the model stopped at the limit of its tokens.
bool IsCutOff(std::string_view finish_reason);

// Reads the kernel or the outcome from an answer. docs/coder_gpt4o.md lists the forms in their order.
ReadAnswer ReadKernel(const AnswerText& answer, const Wanted& wanted);

}  // namespace kgrpo::coder_shared
