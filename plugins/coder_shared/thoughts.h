// Sets aside what a model thinks before it answers.
#pragma once

#include <string>

namespace kgrpo::coder_shared {

// The answer without its thoughts: <think>...</think> and its kin, also without the opening tag, which chat templates
// put into the prompt; for gpt-oss all but the final channel. Sets *unfinished if the answer ends within them.
std::string WithoutThoughts(std::string answer, bool* unfinished);

}  // namespace kgrpo::coder_shared
