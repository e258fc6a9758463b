// The words and expressions of a Jinja template: the lower half of its interpreter, of which jinja.cc is the upper.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_EXPRESSIONS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_EXPRESSIONS_H_
#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy_qwen/tokenizer/jinja.h"
#include "policy_qwen/tokenizer/jinja_value.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::jinja {

struct Scope {
  Scope* parent;
  std::map<std::string, Value, std::less<>> names = {};
};

// Reads a template from a place in it, and evaluates what it reads; while live_ is false it only checks, and values are
// undefined.
class ExpressionReader {
 public:
  std::string Line() const { return std::to_string(1 + std::count(source_.begin(), source_.begin() + at_, '\n')); }

 protected:
  // `first` receives what the first reading, in which nothing is live, finds; null later.
  ExpressionReader(std::string_view source, const Template::Notes& notes, Template::Notes* first)
      : source_(source), notes_(notes), first_(first), live_(first == nullptr) {}

  // What is read while one lives is not evaluated (if `dead`).
  struct Dead {
    explicit Dead(ExpressionReader& reader, bool dead = true)
        : in(reader), was(std::exchange(in.live_, in.live_ && !dead)) {}
    ~Dead() { in.live_ = was && in.jump_.empty(); }
    ExpressionReader& in;
    bool was;
  };
  struct Deeper {
    explicit Deeper(ExpressionReader& reader) : depth(reader.depth_) {
      if (++depth > 200) Fail("the template is nested too deeply");
    }
    ~Deeper() { --depth; }
    int& depth;
  };

  char Peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool Starts(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsNamed(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0; }

  void SkipSpace() { at_ = tokenizer::EndOfSpaceAfter(source_, at_); }
  [[noreturn]] void FailHere(const std::string& expected) {
    SkipSpace();
    size_t size = 0;
    while (IsNamed(Peek(size))) ++size;
    const std::string found(source_.substr(at_, std::max<size_t>(size, 1)));
    Fail("expected " + expected + ", found " + (found.empty() ? "the template's end" : "'" + found + "'"));
  }

  // Reads a word or an operator, if it is next and is not the beginning of another one or of a tag's end.
  bool Accept(std::string_view text) {
    SkipSpace();
    const char c = text[0], next = Peek(text.size());
    const bool sign = (c == '-' || c == '+') && (next == '}' || next == '%') && Peek(2) == '}';
    const bool longer = (next == '=' && (c == '=' || c == '<' || c == '>')) || (next == c && (c == '*' || c == '/'));
    const bool other = text.size() == 1 && (sign || longer || (c == '%' && next == '}'));
    if (!Starts(text) || (IsNamed(c) ? IsNamed(next) : other)) return false;
    at_ += text.size();
    return true;
  }
  bool IsNext(std::string_view text) {
    const size_t start = at_;
    return Accept(text) && ((at_ = start), true);
  }
  void Expect(std::string_view text) { Accept(text) ? void() : FailHere("'" + std::string(text) + "'"); }

  std::string Note(std::string word) {
    if (first_ != nullptr) first_->words.insert(word);
    return word;
  }
  std::string Name() {
    SkipSpace();
    const size_t start = at_;
    if (IsDigit(Peek())) FailHere("a name");
    while (IsNamed(Peek())) ++at_;
    if (at_ == start) FailHere("a name");
    return Note(std::string(source_.substr(start, at_ - start)));
  }

  Value Number() {
    const char *start = source_.data() + at_, *end = source_.data() + source_.size();
    int64_t whole = 0;
    double real = 0;
    const char* stop = std::from_chars(start, end, whole).ptr;
    const bool fraction = stop + 1 < end && ((*stop == '.' && IsDigit(stop[1])) || *stop == 'e' || *stop == 'E');
    const auto read = fraction ? std::from_chars(start, end, real) : std::from_chars(start, end, whole);
    at_ += static_cast<size_t>(read.ptr - start);
    if (IsNamed(Peek()) || read.ec != std::errc()) FailHere("a number that is known here");
    return fraction ? Value(real) : Value(whole);
  }

  std::string String() {
    static constexpr std::string_view kLetters = "ntr\\'\"\n", kMeanings = "\n\t\r\\'\"";
    const char quote = source_[at_++];
    std::string text;
    for (; Peek() != quote || at_ == source_.size(); ++at_) {
      if (at_ == source_.size()) Fail("a string has no end");
      const char c = Peek(1);
      const size_t letter = kLetters.find(c), digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
      if (Peek() != '\\' || (letter == kLetters.npos && digits == 0)) {
        text += Peek();
        if (Peek() == '\\' && (IsDigit(c) || (c != '\0' && std::string_view("abfvN").find(c) < 5)))
          Fail(std::string("the escape \\") + c + " is not known here");
      } else if (digits == 0) {
        text += letter < kMeanings.size() ? kMeanings.substr(letter, 1) : "";
        ++at_;
      } else {
        uint32_t code = 0;
        const char* start = source_.data() + at_ + 2;
        const bool good =
            at_ + 2 + digits < source_.size() && std::from_chars(start, start + digits, code, 16).ptr == start + digits;
        if (!good || code > 0x10FFFF || (code >> 11) == 0x1B) Fail("a string has an escape that is no character");
        tokenizer::AppendUtf8(code, text);
        at_ += digits + 1;
      }
    }
    ++at_;
    return Note(text);
  }

  Value Lookup(const std::string& name) const {
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
      if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
    }
    return Undefined("'" + name + "' is undefined");
  }

  // One expression, or a list of several.
  Value Tuple(bool conditional) {
    Values items = {conditional ? Expression() : Binary(0)};
    if (!IsNext(",")) return items[0];
    while (Accept(",") && !IsNext(")") && !IsNext("}}") && !IsNext("%}"))
      items.push_back(conditional ? Expression() : Binary(0));
    return live_ ? Value(ListOf(items)) : Value();
  }

  // a if b else c: the first reading notes where b is, which is evaluated before a.
  Value Expression() {
    const Deeper deeper(*this);
    SkipSpace();
    const size_t start = at_;
    const auto condition = notes_.conditions.find(start);
    if (!live_ || condition == notes_.conditions.end()) {
      Value value = Binary(0);
      if (!Accept("if")) return value;
      if (first_ != nullptr) first_->conditions[start] = at_;
      Binary(0);
      return Accept("else") ? Expression() : Value();
    }
    at_ = condition->second;
    const bool yes = Truth(Binary(0));
    const size_t after = at_;
    at_ = yes ? start : after;
    Value value = yes ? Binary(0) : Undefined("the inline if has no else");
    at_ = after;
    if (!Accept("else")) return value;
    const Dead dead(*this, yes);
    const Value otherwise = Expression();
    return yes ? value : otherwise;
  }

  // The operators by their level: those of a later one bind more tightly. `not` is that of `not in`.
  Value Binary(size_t level) {
    static const std::vector<std::vector<std::string>> kOperators = {
        {"or"}, {"and"}, {"==", "!=", "<=", ">=", "<", ">", "in", "not"}, {"+", "-"}, {"~"}, {"*", "//", "/", "%"},
        {"**"}};
    if (level == kOperators.size()) return Unary(true);
    if (level == 2 && Accept("not")) {
      const Deeper deeper(*this);
      const Value value = Binary(2);
      return live_ ? Value(!Truth(value)) : Value();
    }
    const auto next = [&] {
      const auto& all = kOperators[level];
      return std::find_if(all.begin(), all.end(), [&](const std::string& op) { return Accept(op); }) - all.begin();
    };
    Value left = Binary(level + 1), result = left;
    bool compared = false;
    const auto count = static_cast<ptrdiff_t>(kOperators[level].size());
    for (ptrdiff_t i = next(); i < count; i = next()) {
      const std::string& op = kOperators[level][static_cast<size_t>(i)];
      if (op == "not") Expect("in");
      // Stops at a part that decides, and at a comparison that does not hold: a < b < c.
      const bool decided =
          level < 2 ? Truth(result) == (level == 0) : level == 2 && result.boolean() && compared && !Truth(result);
      const Dead dead(*this, decided);
      const Value right = Binary(level + 1);
      compared = true;
      if (!live_) continue;
      result = level < 2 ? right : Operated(op, level == 2 ? left : result, right);
      left = right;
    }
    return result;
  }
  Value Operated(const std::string& op, const Value& left, const Value& right) {
    const bool walks = std::string_view("=!<>in").find(op[0]) != std::string_view::npos;
    run_.Touch(left, walks), run_.Touch(right, walks);
    return run_.Charge(Operate(op, left, right));
  }

  Value Unary(bool filters) {
    const Deeper deeper(*this);
    const bool minus = Accept("-");
    if (!minus && !Accept("+")) return Steps(Primary(), filters);
    const Value value = Unary(false);
    if (live_ && !value.number()) Fail("a sign is not for " + TypeName(value));
    return Steps(live_ ? minus ? Operate("*", -1, value) : Operate("+", 0, value) : Value(), filters);
  }

  Value Primary() {
    run_.Spend(1);
    SkipSpace();
    if (IsDigit(Peek())) return Number();
    if (Peek() == '\'' || Peek() == '"') {
      std::string text = String();
      for (SkipSpace(); Peek() == '\'' || Peek() == '"'; SkipSpace()) text += String();
      return text;
    }
    if (Accept("(")) {
      const Value inside = IsNext(")") ? Value(Json::array()) : Tuple(true);
      Expect(")");
      return inside;
    }
    Values items;
    Json dict = Json::object();
    for (const char* end : {"]", "}"}) {
      if (!Accept(*end == ']' ? "[" : "{")) continue;
      while (!Accept(end)) {
        items.push_back(Expression());
        if (*end == '}') {
          Expect(":");
          const Value value = Expression();
          run_.Spend(1 + dict.size() / 16);
          if (live_) dict[MemberKey(items.back())] = JsonOf(value);
        }
        if (!IsNext(end)) Expect(",");
      }
      return !live_ ? Value() : run_.Charge(*end == ']' ? ListOf(items) : dict);
    }
    const std::string name = IsNamed(Peek()) ? Name() : (FailHere("an expression"), "");
    if (name == "true" || name == "True" || name == "false" || name == "False") return (name[0] | 0x20) == 't';
    return name == "none" || name == "None" ? Value(nullptr) : live_ ? Lookup(name) : Value();
  }

  // .name, [key], (arguments) and, if `filters`, |filter and is test.
  Value Steps(Value value, bool filters) {
    while (true) {
      if (Accept(".")) {
        value = Attribute(value, IsDigit(Peek()) ? Number() : Value(Name()), false);
      } else if (Accept("[")) {
        Values keys;
        bool slice = false;
        while (!Accept("]")) {
          keys.push_back(IsNext(":") ? Value(nullptr) : Expression());
          if (!Accept(":") && !IsNext("]")) FailHere("']'");
          slice = slice || source_[at_ - 1] == ':';
        }
        if (keys.empty() || keys.size() > (slice ? 3 : 1)) FailHere("a key");
        if (live_ && slice)
          run_.Touch(value), (value.undefined() ? void(value.json()) : keys.resize(3, Value(nullptr)));
        value = !slice ? Attribute(value, keys[0], true) : live_ ? Slice(value, keys) : Value();
      } else if (IsNext("(")) {
        const Arguments given = Given();
        if (live_ && value.undefined()) value.json();
        if (live_ && (value.object == nullptr || !value.object->call)) Fail("a " + TypeName(value) + " is no function");
        if (live_) value = run_.Charge(value.object->call(given));
      } else if (filters && Accept("|")) {
        value = Named('|', value);
      } else if (filters && Accept("is")) {
        const bool negated = Accept("not");
        value = Named('i', value);
        if (live_) value = Truth(value) != negated;
      } else {
        return value;
      }
    }
  }

  Value Attribute(const Value& value, const Value& key, bool item_first) {
    if (!live_) return Value();
    run_.Touch(value.list() ? Value() : value);
    if (value.undefined()) value.json();
    if (value.object != nullptr && key.text()) {
      const auto found = value.object->members.find(key.str());
      if (found != value.object->members.end()) return found->second;
    }
    Value item = Item(value, key);
    if (!key.text() || !IsKnown('.', value, key.str()) || (item_first && !item.undefined())) return item;
    return &run_.Make({"function", {}, [this, value, key](const Arguments& given) {
                         return Call(run_, '.', key.str(), value, given);
                       }});
  }

  // A filter, or a test, whose one argument may stand without parentheses.
  Value Named(char kind, const Value& value) {
    const std::string name = Name();
    if (!IsKnown(kind, value, name))
      Fail(std::string(kind == '|' ? "the filter '" : "the test '") + name + "' is not known here");
    Arguments given;
    if (IsNext("(")) {
      given = Given();
    } else if (kind == 'i' && !IsNext("else") && !IsNext("or") && !IsNext("and") && !IsNext("if") && !IsNext("in")) {
      if (IsNext("is")) FailHere("one test");
      if (IsNamed(Peek()) || Peek() == '\'' || Peek() == '"' || Peek() == '[') given.list = {Steps(Primary(), false)};
    }
    return live_ ? Call(run_, kind, name, value, given) : Value();
  }

  Arguments Given() {
    const Deeper deeper(*this);
    Arguments given;
    Expect("(");
    while (!Accept(")")) {
      SkipSpace();
      const size_t start = at_;
      const std::string name = IsNamed(Peek()) && !IsDigit(Peek()) ? Name() : "";
      const bool named = !name.empty() && Accept("=");
      if (!named) at_ = start;
      if (!named && !given.named.empty()) FailHere("a named argument");
      named ? (void)given.named.emplace_back(name, Expression()) : given.list.push_back(Expression());
      if (!IsNext(")")) Expect(",");
    }
    return given;
  }

  std::string_view source_;
  const Template::Notes& notes_;
  Template::Notes* first_;
  bool live_;
  size_t at_ = 0;
  int depth_ = 0;     // of blocks and parentheses
  std::string jump_;  // break or continue, until the end of the loop's body
  Run run_;
  std::deque<Scope> scopes_ = {Scope{nullptr}};
  Scope* scope_ = &scopes_.front();  // the innermost
};

}  // namespace kgrpo::jinja
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_EXPRESSIONS_H_
