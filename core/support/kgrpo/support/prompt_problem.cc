#include <kgrpo/support/prompt_problem.h>

#include <kgrpo/sdk/text.h>  // Copy

namespace kgrpo {

PromptProblem MakePromptProblem(const kgrpo_problem_info& info) {
  PromptProblem prompt;
  prompt.name = Copy(info.name);
  prompt.title = Copy(info.title);
  prompt.family = Copy(info.family);
  prompt.task = Copy(info.task);
  prompt.signature = Copy(info.signature);
  for (size_t i = 0; i < info.trait_count; ++i) prompt.traits.push_back(Copy(info.traits[i]));
  return prompt;
}

}  // namespace kgrpo
