// Reads a problem file's identifiers and expressions, and checks the expressions at every size once the sizes are
// known. A base of the parsers of problem.yaml.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "judge/problem/problem.h"
#include "judge/problem/yaml_reader.h"

namespace kgrpo::evaluator {

class ExpressionReader : public YamlReader {
 public:
  ExpressionReader(std::string file, Problem& problem) : YamlReader(std::move(file)), problem_(problem) {}

 protected:
  // Says what is wrong with an expression's value, or "".
  using Check = std::function<std::string(int64_t)>;

  bool Identifier(const YamlNode& node, const std::string& path, std::string& out);
  bool ParseExpression(const YamlNode& node, const std::string& path, Expression& out);

  // Has the expression evaluated at every size later: as a whole number that passes `check`, or as a finite real.
  void CheckLater(const YamlNode& node, const std::string& path, const Expression& expression, bool whole,
                  Check check = nullptr);
  void CheckExpressions();

  // "sizes.visible[0]" and so on, each with what it binds.
  std::vector<std::pair<std::string, const Bindings*>> NamedSizes() const;

  Problem& problem_;

 private:
  struct Pending {
    YamlNode node;
    std::string path;
    Expression expression;
    bool whole;
    Check check;
  };
  std::vector<Pending> pending_;
};

// True if `text` could be a C identifier.
bool IsIdentifier(const std::string& text);

}  // namespace kgrpo::evaluator
