// Extracts the kernel from a service's answer, or the reason why there is none. Every answer gives exactly one outcome
// of kgrpo/coder.h; the kernel of the request is never returned as a new one. Used by job.cc;
// difference.cc uses OneLine.
#ifndef KGRPO_CODER_GPT4O_ANSWER_H
#define KGRPO_CODER_GPT4O_ANSWER_H

#include <kgrpo/coder.h>

#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// The service's answer.
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
  std::string source;   // set for KGRPO_CODER_OK only
  std::string message;  // the reason, for every other outcome
};

// Reads the kernel or the outcome from an answer. The checks run in this order:
// 1. A refusal or a content filter is REFUSED; a finish_reason of "length" is TRUNCATED.
// 2. The kernel is the last code block that defines the function and differs from the current kernel. Without code
//    blocks, the code in the text is used. Code that ends in the middle is TRUNCATED.
// 3. If all such code equals the current kernel but for comments and layout, the answer is NOT_APPLICABLE.
// 4. An answer "NOT APPLICABLE: why" is NOT_APPLICABLE, and "UNCLEAR: why" is UNCLEAR.
// 5. A text that begins with an apology or "I cannot" is REFUSED. Everything else is NO_CODE.
ReadAnswer ReadKernel(const AnswerText& answer, const Wanted& wanted);

// The text without the reasoning before the answer: everything up to the last </think>, with or without a <think>.
std::string_view WithoutThoughts(std::string_view text);

// The text as one line of at most `bytes`, for messages; control characters become blanks.
std::string OneLine(std::string_view text, size_t bytes);

}  // namespace kgrpo::coder_gpt4o

#endif
