// Mustache templates over a PromptState. Text goes in as it is: nothing is escaped for HTML. Templates are checked when
// they are loaded, so that a misspelt variable is an error with a position and not an empty place in every prompt.
//
// Used by config/ (CheckTemplate, at load), by the loop (PromptTemplate, each round), and by plugins with templates of
// their own variables (CheckTemplate).
#ifndef KGRPO_PROMPT_TEMPLATE_H
#define KGRPO_PROMPT_TEMPLATE_H

#include "prompt/state.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kgrpo {

struct Variable;

// One mistake of a template.
struct TemplateMistake {
  size_t line = 1;    // within the template, from 1
  size_t column = 1;  // in bytes, from 1
  std::string message;
};

// Every mistake of a template, in order of place; empty when it is fine. Any thread.
std::vector<TemplateMistake> CheckTemplate(const std::string& text);
// The same for a template over other variables than a prompt's: a record of them, as prompt/variables.h has it.
std::vector<TemplateMistake> CheckTemplate(const std::string& text, const Variable& variables);

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

// A duration as prompts and tables show it: "812 ns", "12.3 us", "4.56 ms", "1.2 s".
std::string FormatSeconds(double seconds);

}  // namespace kgrpo
#endif
