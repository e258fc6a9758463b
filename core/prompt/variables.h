// The variables that templates may use, as a tree of names and kinds: what CheckTemplate checks against. Used by
// prompt/template_check.cc, and by plugins that have templates.
#ifndef KGRPO_PROMPT_VARIABLES_H
#define KGRPO_PROMPT_VARIABLES_H

#include <string>
#include <vector>

namespace kgrpo {

struct NamedVariable;

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
  for (const auto& [member_name, member] : members) {
    if (member_name == name) return &member;
  }
  return nullptr;
}

// The root: a record of all top-level variables.
const Variable& PromptVariables();

}  // namespace kgrpo
#endif
