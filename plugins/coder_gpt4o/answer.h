// The kernel in a service's answer, or why there is none. Every answer ends in exactly one outcome of kgrpo/coder.h;
// the kernel of the request is never returned as a new one. Used by coder.cc.
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
  std::string source;   // of KGRPO_CODER_OK alone
  std::string message;  // of all others: why not
};

// In this order: a refusal or a content filter is REFUSED; a finish_reason of "length" is TRUNCATED. Then the code
// block that defines the function is the kernel, the last one of several that are not the current kernel; without
// blocks, the code that the text consists of. An answer that is the current kernel but for comments and layout is
// NOT_APPLICABLE: the coder had nothing to change. So is one that says "NOT APPLICABLE: why", and "UNCLEAR: why" is
// UNCLEAR. What was cut off without a word is TRUNCATED, everything else NO_CODE.
ReadAnswer ReadKernel(const AnswerText& answer, const Wanted& wanted);

// Without thoughts that a reasoning model wrote in front of its answer, up to </think>, with or without a <think>
// before.
std::string_view WithoutThoughts(std::string_view text);

// The text as one line of at most `bytes`, for messages; control characters become blanks.
std::string OneLine(std::string_view text, size_t bytes);

}  // namespace kgrpo::coder_gpt4o

#endif
