// The expressions of a Jinja template: the middle part of its interpreter, between jinja_scanner.h and jinja.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_EXPRESSIONS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_EXPRESSIONS_H_
#include <deque>
#include <map>
#include <string>

#include "policy_qwen/tokenizer/jinja_scanner.h"

namespace kgrpo::jinja {

struct Scope {
  Scope* parent;
  std::map<std::string, Value, std::less<>> names;
};

// Reads an expression and evaluates what it reads, except while live_ is false: then it only checks, and values are
// undefined.
class ExpressionReader : public Scanner {
 protected:
  ExpressionReader(std::string_view source, const Template::Notes& notes, Template::Notes* first)
      : Scanner(source, notes, first), live_(first == nullptr) {}

  // What is read while one lives is not evaluated (if `dead`).
  struct Dead {
    explicit Dead(ExpressionReader& reader, bool dead = true) : in(reader), was(reader.live_) {
      in.live_ = was && !dead;
    }
    ~Dead() { in.live_ = was && in.jump_.empty(); }
    ExpressionReader& in;
    bool was;
  };
  struct Deeper {
    explicit Deeper(ExpressionReader& reader) : depth(reader.depth_) {
      if (++depth > 100) Fail("the template is nested too deeply");
    }
    ~Deeper() { --depth; }
    int& depth;
  };

  Value Lookup(const std::string& name) const;
  Value Tuple(bool conditional);
  Value Expression();
  // Filters, and tests, each of which may be called.
  Value Filters(Value value);
  Value OneFilter(const Value& value);
  Value Or();

  bool live_;
  std::string jump_;  // break or continue, until the end of the loop's body
  int depth_ = 0;     // of blocks and parentheses
  Run run_;
  std::deque<Scope> scopes_ = {Scope{nullptr, {}}};
  Scope* scope_ = &scopes_.front();  // the innermost

 private:
  template <typename Next>
  Value Logic(std::string_view word, const Next& next, bool stops);
  Value Not();
  Value Comparison();
  Value Math(int level);
  Value Unary(bool filters);
  Value Primary();
  // .name, [key] and (arguments).
  Value Postfix(Value value);
  Value Attribute(const Value& value, const Value& key, bool item_first);
  Value Subscript(const Value& value);
  Value OneTest(const Value& value);
  Arguments Given();
};

}  // namespace kgrpo::jinja
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_EXPRESSIONS_H_
