// Mistakes of mustache templates, found when they are loaded, so that a misspelt variable is an error with a position
// and not an empty place in every prompt. Used by core/prompt/ and by plugins that have templates.
#ifndef KGRPO_SUPPORT_TEMPLATE_CHECK_H
#define KGRPO_SUPPORT_TEMPLATE_CHECK_H

#include <cstddef>
#include <string>
#include <vector>

namespace kgrpo {

struct NamedVariable;

// A variable that templates may use: a tree of names and kinds.
struct Variable {
  enum class Kind {
    kText,     // {{name}}; {{#name}} shows its inside unless the text is empty
    kFlag,     // {{#name}} and {{^name}} only
    kTexts,    // {{#name}}{{.}}{{/name}}: a list of texts
    kRecord,   // {{name.member}}; {{#name}} where it may be absent
    kRecords,  // {{#name}}{{member}}{{/name}}: a list of records
    kNamed,    // {{name.MEMBER}}: texts under names that nobody knows before the run
  };
  Kind kind = Kind::kText;
  std::vector<NamedVariable> members;  // of kRecord and kRecords

  const Variable* Find(const std::string& name) const;  // the member, or null
};

struct NamedVariable {
  std::string name;
  Variable variable;
};

inline const Variable* Variable::Find(const std::string& name) const {
  for (const NamedVariable& member : members) {
    if (member.name == name) return &member.variable;
  }
  return nullptr;
}

// One mistake of a template.
struct TemplateMistake {
  size_t line = 1;    // within the template, from 1
  size_t column = 1;  // in bytes, from 1
  std::string message;
};

// Returns every mistake of a template over `variables`, a record, in order of position; empty if there is none. Any
// thread.
std::vector<TemplateMistake> CheckTemplate(const std::string& text, const Variable& variables);

}  // namespace kgrpo
#endif
