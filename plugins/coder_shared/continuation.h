// Continues an answer that was cut off at its token limit: the model is shown its text so far and asked for the rest.
#pragma once

#include <string>
#include <string_view>

namespace kgrpo::coder_shared {

// The message that asks for the rest.
inline constexpr const char* kContinueRequest =
    "Your answer was cut off. Continue it exactly where it stopped, from the middle of the line if need be. Repeat "
    "nothing, and open no new code block.";

// Joins the two parts to one text. Models seldom continue exactly where they stopped: prose and an opening fence before
// the rest of the code are removed, and so is text that repeats the end of the first part, down to one word. A rest
// that begins the code again replaces it.
std::string JoinAnswer(std::string begun, std::string_view rest);

}  // namespace kgrpo::coder_shared
