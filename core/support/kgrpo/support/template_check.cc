// CheckTemplate: every variable that a template names must exist and be used according to its kind.
#include <kgrpo/support/closest.h>
#include <kgrpo/support/template_check.h>

#include <algorithm>
#include <kainjow/mustache.hpp>
#include <sstream>
#include <utility>

namespace kgrpo {
namespace {

namespace mustache = kainjow::mustache;
using Component = mustache::component<std::string>;
using Kind = Variable::Kind;

std::vector<std::string> SplitAtDots(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream stream(name);
  for (std::string part; std::getline(stream, part, '.');) parts.push_back(part);
  if (!name.empty() && name.back() == '.') parts.emplace_back();
  return parts;
}

class Checker {
 public:
  Checker(const std::string& text, const Variable& root) : text_(text), root_(root) {}

  std::vector<TemplateMistake> Run() {
    mustache::context<std::string> no_data;
    mustache::context_internal<std::string> context(no_data);
    Component root;
    std::string error;
    mustache::parser<std::string> parse(text_, context, root, error);
    if (!error.empty()) {
      // The parser ends its messages with " at OFFSET".
      const size_t at = error.rfind(" at ");
      Add(std::stoull(error.substr(at + 4)), error.substr(0, at));
      return std::move(mistakes_);
    }
    scopes_.push_back(&root_);
    Visit(root.children);
    return std::move(mistakes_);
  }

 private:
  void Visit(const std::vector<Component>& components) {
    for (const Component& component : components) {
      const std::string& name = component.tag.name;
      switch (component.tag.type) {
        case mustache::tag_type::variable:
        case mustache::tag_type::unescaped_variable: Use(component.position, name, false); break;
        case mustache::tag_type::section_begin:
        case mustache::tag_type::section_begin_inverted: {
          const Variable* variable = Use(component.position, name, true);
          if (variable == nullptr) break;  // reported; its inside would only repeat the mistake
          const bool inside = component.tag.type == mustache::tag_type::section_begin;
          if (inside) scopes_.push_back(variable->kind == Kind::kTexts ? &kElement : variable);
          Visit(component.children);
          if (inside) scopes_.pop_back();
          break;
        }
        case mustache::tag_type::partial:
          Add(component.position, "partials ({{>" + name + "}}) are not available in prompts");
          break;
        default: break;
      }
    }
  }

  // Returns the variable `name` as seen from the innermost section; null after reporting why it cannot be used here.
  const Variable* Use(size_t position, const std::string& name, bool as_section) {
    const Variable* variable = nullptr;
    if (name == ".") {
      variable = scopes_.back();
      if (variable->kind != Kind::kText) {
        Add(position, "{{.}} stands for an element of a list of texts, or for the text of a section around it");
        return nullptr;
      }
      return variable;
    }
    const std::vector<std::string> parts = SplitAtDots(name);
    for (size_t i = scopes_.size(); i-- > 0 && variable == nullptr;) {
      variable = scopes_[i];
      for (const std::string& part : parts) {
        if (variable->kind == Kind::kNamed && variable != scopes_[i]) {
          variable = part.empty() ? nullptr : &kElement;
          break;
        }
        // The members of a list's elements are visible only inside its section, which pushed the list as a scope.
        const bool open = variable->kind == Kind::kRecord || variable == scopes_[i];
        variable = open ? variable->Find(part) : nullptr;
        if (variable == nullptr) break;
      }
    }
    if (variable == nullptr) {
      Add(position, Unknown(name));
      return nullptr;
    }
    if (as_section || variable->kind == Kind::kText) return variable;
    switch (variable->kind) {
      case Kind::kFlag:
        Add(position, "\"" + name + "\" is yes or no, not text: write {{#" + name + "}}...{{/" + name + "}}");
        break;
      case Kind::kTexts:
        Add(position,
            "\"" + name + "\" is a list: write {{#" + name + "}}{{.}} {{/" + name + "}}, or {{" + name + "_joined}}");
        break;
      case Kind::kRecords:
        Add(position, "\"" + name + "\" is a list: write {{#" + name + "}}{{" + variable->members.front().name +
                          "}}{{/" + name + "}}");
        break;
      case Kind::kNamed:
        Add(position, "\"" + name + "\" has members, named as the evaluator names them: write {{" + name + ".NAME}}");
        break;
      default:
        Add(position, "\"" + name + "\" has members: write {{" + name + "." + variable->members.front().name + "}}");
    }
    return nullptr;
  }

  // Every name that is valid at this place, those of the innermost section first.
  std::vector<std::string> Known() const {
    std::vector<std::string> names;
    for (size_t i = scopes_.size(); i-- > 0;) {
      for (const auto& [name, variable] : scopes_[i]->members) {
        if (variable.kind == Kind::kRecord) {
          for (const auto& member : variable.members) {
            names.push_back(name + "." + member.name + (member.variable.kind == Kind::kNamed ? ".NAME" : ""));
          }
        } else {
          names.push_back(name);
        }
      }
    }
    return names;
  }

  std::string Unknown(const std::string& name) const {
    const std::vector<std::string> known = Known();
    if (const std::string closest = Closest(name, known); !closest.empty())
      return "unknown variable \"" + name + "\"; did you mean \"" + closest + "\"?";
    return "unknown variable \"" + name + "\" (known here: " + JoinedText(known) + ")";
  }

  void Add(size_t position, const std::string& message) {
    const size_t offset = std::min(position, text_.size());
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(offset);
    const size_t line = 1 + static_cast<size_t>(std::count(text_.begin(), end, '\n'));
    const size_t line_start = offset == 0 ? std::string::npos : text_.rfind('\n', offset - 1);
    mistakes_.push_back({line, line_start == std::string::npos ? offset + 1 : offset - line_start, message});
  }

  inline static const Variable kElement{Kind::kText, {}};
  const std::string& text_;
  const Variable& root_;
  std::vector<const Variable*> scopes_;
  std::vector<TemplateMistake> mistakes_;
};

}  // namespace

std::vector<TemplateMistake> CheckTemplate(const std::string& text, const Variable& variables) {
  return Checker(text, variables).Run();
}

}  // namespace kgrpo
