// Continues an answer that was cut off at its token limit: the service is shown its text so far and asked for the rest.
// Used by coder.cc where the option `continuations` allows it.
#ifndef KGRPO_CODER_GPT4O_CONTINUATION_H
#define KGRPO_CODER_GPT4O_CONTINUATION_H

#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// The message that asks for the rest.
inline constexpr const char* kContinueRequest =
    "Your answer was cut off. Continue it exactly where it stopped, from the middle of the line if need be. Repeat "
    "nothing, and open no new code block.";

// Joins the two parts to one text. Models seldom continue exactly where they stopped, so a repeated opening fence
// within a code block is removed, and so is text that repeats the end of the first part.
std::string JoinAnswer(std::string begun, std::string_view rest);

}  // namespace kgrpo::coder_gpt4o

#endif
