// A problem's data for templates. Filled by the loop from the pipeline and by coders from the ABI.
#ifndef KGRPO_SUPPORT_PROMPT_PROBLEM_H
#define KGRPO_SUPPORT_PROMPT_PROBLEM_H

#include <string>
#include <vector>

namespace kgrpo {

struct PromptProblem {
  std::string name, title, family, task, signature;
  std::vector<std::string> traits;
};

}  // namespace kgrpo
#endif
