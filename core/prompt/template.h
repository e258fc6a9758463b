// Mustache templates over a PromptState. Text goes in as it is: nothing is escaped for HTML. Used by config/
// (CheckTemplate, at load) and by the loop (PromptTemplate, each round).
#ifndef KGRPO_PROMPT_TEMPLATE_H
#define KGRPO_PROMPT_TEMPLATE_H

#include <kgrpo/support/template_check.h>

#include <memory>
#include <string>
#include <vector>

#include "prompt/state.h"

namespace kgrpo {

// Returns every mistake of a template over a prompt's variables, in order of place. Any thread.
std::vector<TemplateMistake> CheckTemplate(const std::string& text);

// Makes the prompts of a state shorter: leaves out the oldest round of `history`, or the slowest of `best` once no
// round of `history` is left. Returns false if nothing is left.
bool ShortenHistory(PromptState* state);

// A checked template. Rendering is for one thread at a time; instances are independent.
class PromptTemplate {
 public:
  // Throws KGRPO_ERROR_INVALID with every mistake; `what` names the template in it: "prompt.user".
  PromptTemplate(const std::string& text, const std::string& what);
  ~PromptTemplate();
  PromptTemplate(PromptTemplate&&) noexcept;
  PromptTemplate& operator=(PromptTemplate&&) noexcept;

  std::string Render(const PromptState& state) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

// The root: a record of all top-level variables.
const Variable& PromptVariables();

}  // namespace kgrpo
#endif
