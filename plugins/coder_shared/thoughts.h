// Sets aside what a model thinks before it answers.
#pragma once

#include <string>
#include <string_view>

namespace kgrpo::coder_shared {

// True if a name in lower case, as of a tag or a fenced block, is one of thoughts: it contains "think", "reason" or the
// like.
bool IsThoughtful(std::string_view name);

// The answer without its thoughts, which are known by the names of the marks around them: any tag, special token,
// bracket or <details>, also without the opening one, which chat templates put into the prompt; for gpt-oss all but the
// final channel. Sets *unfinished if the answer ends within them.
std::string WithoutThoughts(std::string answer, bool* unfinished);

}  // namespace kgrpo::coder_shared
