#include "policy_qwen/tokenizer/jinja_expressions.h"

#include <cctype>

namespace kgrpo::jinja {

Value ExpressionReader::Lookup(const std::string& name) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
  }
  return Value::Undefined("'" + name + "' is undefined");
}

Value ExpressionReader::Tuple(bool conditional) {
  Values items = {conditional ? Expression() : Or()};
  if (!IsNext(",")) return items[0];
  while (Accept(",")) {
    SkipSpace();
    if (Peek() == ')' || Starts("}}") || Starts("%}") || Starts("-}}") || Starts("-%}")) break;
    items.push_back(conditional ? Expression() : Or());
  }
  Value tuple = live_ ? Value(ListOf(items)) : Value();
  tuple.tuple = live_;
  return tuple;
}

Value ExpressionReader::Expression() {
  const Deeper deeper(*this);
  SkipSpace();
  const size_t start = at_;
  const auto known = notes_.conditions.find(start);
  if (!live_ || first_ != nullptr || known == notes_.conditions.end()) {
    Value value = Or();
    SkipSpace();
    const size_t place = at_;
    if (!(known != notes_.conditions.end() || first_ != nullptr) || !Accept("if")) return value;
    if (first_ != nullptr) first_->conditions[start] = place;
    Or();
    if (Accept("else")) Expression();
    return value;
  }
  at_ = known->second;
  Expect("if");
  const bool condition = Truth(Or());
  const size_t after = at_;
  Value value = Value::Undefined("the inline if has no else");
  if (condition) {
    at_ = start;
    value = Or();
    at_ = after;
  }
  if (Accept("else")) {
    const Dead dead(*this, condition);
    const Value otherwise = Expression();
    if (!condition) value = otherwise;
  }
  return value;
}

// Stops at a part whose truth is `stops`.
template <typename Next>
Value ExpressionReader::Logic(std::string_view word, const Next& next,
                              bool stops) {  // at a part whose truth is `stops`
  Value value = next();
  while (Accept(word)) {
    const Dead dead(*this, Truth(value) == stops);
    Value part = next();
    if (live_) value = part;
  }
  return value;
}

Value ExpressionReader::Or() {
  return Logic(
      "or",
      [this] {
        return Logic(
            "and", [this] { return Not(); }, false);
      },
      true);
}

Value ExpressionReader::Not() {
  const Deeper deeper(*this);
  if (!Accept("not")) return Comparison();
  const Value value = Not();
  return live_ ? Value(!Truth(value)) : Value();
}

Value ExpressionReader::Comparison() {
  Value left = Math(0);
  bool any = false, holds = true;
  while (true) {
    std::string op = AcceptAny({"==", "!=", "<=", ">=", "<", ">", "in"});
    const size_t start = at_;
    if (op.empty() && Accept("not")) Accept("in") ? (void)(op = "not in") : (void)(at_ = start);
    if (op.empty()) return any && live_ ? Value(holds) : left;
    any = true;
    const Dead dead(*this, !holds);
    const Value right = Math(0);
    if (!live_) continue;
    run_.Charge(left), run_.Charge(right);
    holds = Compare(op, left, right);
    left = right;
  }
}

Value ExpressionReader::Math(int level) {
  Value left = level == 3 ? Unary(true) : Math(level + 1);
  while (true) {
    const std::string op = level == 0   ? AcceptAny({"+", "-"})
                           : level == 1 ? AcceptAny({"~"})
                           : level == 2 ? AcceptAny({"*", "//", "/", "%"})
                                        : AcceptAny({"**"});
    if (op.empty()) return left;
    const Value right = level == 3 ? Unary(true) : Math(level + 1);
    if (live_) left = run_.Charge(Operate(op == "//" ? 'f' : op == "**" ? 'p' : op[0], left, right));
  }
}

Value ExpressionReader::Unary(bool filters) {
  const Deeper deeper(*this);
  Value value;
  if (const std::string sign = AcceptAny({"-", "+"}); !sign.empty()) {
    value = Unary(false);
    if (live_) value = Operate(sign[0], 0, value);
  } else {
    value = Primary();
  }
  value = Postfix(std::move(value));
  return filters ? Filters(std::move(value)) : value;
}

Value ExpressionReader::Primary() {
  run_.Spend(1);
  SkipSpace();
  if (std::isdigit(static_cast<unsigned char>(Peek()))) return Number();
  if (Peek() == '\'' || Peek() == '"') {
    std::string text = String();
    for (SkipSpace(); Peek() == '\'' || Peek() == '"'; SkipSpace()) text += String();
    return live_ ? Value(text) : Value();
  }
  if (Accept("(")) {
    Value inside = Json::array();
    inside.tuple = true;
    if (!IsNext(")")) inside = Tuple(true);
    Expect(")");
    return inside;
  }
  if (Accept("[")) {
    Values items;
    while (!Accept("]")) {
      items.push_back(Expression());
      if (!IsNext("]")) Expect(",");
    }
    return live_ ? run_.Charge(ListOf(items)) : Value();
  }
  if (Accept("{")) {
    Json dict = Json::object();
    while (!Accept("}")) {
      const Value key = Expression();
      Expect(":");
      const Value value = Expression();
      if (live_) dict[KeyOf(key)] = JsonOf(value);
      if (!IsNext("}")) Expect(",");
    }
    return live_ ? run_.Charge(std::move(dict)) : Value();
  }
  if (!IsNameCharacter(Peek())) FailHere("an expression");
  const std::string name = Name();
  if (name == "true" || name == "True" || name == "false" || name == "False") return (name[0] | 0x20) == 't';
  return name == "none" || name == "None" ? Value(nullptr) : live_ ? Lookup(name) : Value();
}

Value ExpressionReader::Postfix(Value value) {
  while (true) {
    if (Accept(".")) {
      const Value key = std::isdigit(static_cast<unsigned char>(Peek())) ? Number() : Value(Name());
      if (live_) value = Attribute(value, key, false);
    } else if (Accept("[")) {
      value = Subscript(value);
    } else if (IsNext("(")) {
      const Arguments given = Given();
      if (!live_) continue;
      if (value.undefined()) value.json();
      if (value.object == nullptr || !value.object->call) Fail("a " + TypeName(value) + " is no function");
      value = run_.Charge(value.object->call(given));
    } else {
      return value;
    }
  }
}

Value ExpressionReader::Attribute(const Value& value, const Value& key, bool item_first) {
  run_.Spend(1 + (value.dict() ? static_cast<int64_t>(value.data->size()) : 0));
  if (value.undefined()) value.json();
  if (value.object != nullptr && key.text()) {
    const auto found = value.object->members.find(key.str());
    if (found != value.object->members.end()) return found->second;
  }
  Value item = Item(value, key);
  const bool method = key.text() && IsKnown('.', value, key.str());
  if (!method || (item_first && !item.undefined())) return item;
  return run_.Function(
      [this, value, name = key.str()](const Arguments& given) { return Call(run_, '.', name, value, given); });
}

Value ExpressionReader::Subscript(const Value& value) {
  Values parts;
  bool slice = false;
  while (!Accept("]")) {
    if (parts.size() == 3 || (!slice && !parts.empty())) FailHere("']'");
    parts.push_back(IsNext(":") || IsNext("]") ? Value(nullptr) : Expression());
    if (Accept(":"))
      slice = true;
    else if (!IsNext("]"))
      FailHere("']'");
  }
  if (parts.empty()) FailHere("a key");
  if (!live_) return Value();
  if (!slice) return Attribute(value, parts[0], true);
  parts.resize(3, Value(nullptr));
  run_.Charge(value).undefined() ? value.json() : Json();  // its error
  return Slice(value, parts[0], parts[1], parts[2]);
}

Value ExpressionReader::Filters(Value value) {
  while (true) {
    if (Accept("|")) {
      value = OneFilter(value);
    } else if (Accept("is")) {
      value = OneTest(value);
    } else {
      return value;
    }
  }
}

Value ExpressionReader::OneFilter(const Value& value) {
  const std::string name = Name();
  if (!IsKnown('|', value, name)) Fail("the filter '" + name + "' is not known here");
  const Arguments given = IsNext("(") ? Given() : Arguments();
  return live_ ? Call(run_, '|', name, value, given) : Value();
}

Value ExpressionReader::OneTest(const Value& value) {
  const bool negated = Accept("not");
  const std::string name = Name();
  if (!IsKnown('i', value, name)) Fail("the test '" + name + "' is not known here");
  if (IsNext("is")) FailHere("one test");
  Arguments given;
  SkipSpace();
  const bool none = IsNext("else") || IsNext("or") || IsNext("and") || IsNext("if") || IsNext("not") || IsNext("in");
  if (IsNext("(")) {
    given = Given();
  } else if (!none && (IsNameCharacter(Peek()) || std::string_view("'\"[{").find(Peek()) != std::string_view::npos)) {
    given.list = {Postfix(Primary())};
  }
  return live_ ? Value(Truth(Call(run_, 'i', name, value, given)) != negated) : Value();
}

Arguments ExpressionReader::Given() {
  const Deeper deeper(*this);
  Arguments given;
  Expect("(");
  while (!Accept(")")) {
    SkipSpace();
    const size_t start = at_;
    std::string name = IsNameCharacter(Peek()) && !std::isdigit(static_cast<unsigned char>(Peek())) ? Name() : "";
    if (!name.empty() && Accept("=")) {
      given.named.emplace_back(std::move(name), Expression());
    } else {
      at_ = start;
      if (!given.named.empty()) FailHere("a named argument");
      given.list.push_back(Expression());
    }
    if (!IsNext(")")) Expect(",");
  }
  return given;
}

}  // namespace kgrpo::jinja
