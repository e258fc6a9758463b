#include "policy_qwen/tokenizer/jinja.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <initializer_list>

#include "policy_qwen/tokenizer/jinja_expressions.h"

namespace kgrpo::jinja {
namespace {

using Names = std::vector<std::string>;

constexpr ptrdiff_t kLargestStack = 1 << 20;  // bytes, of macros that call macros

// Reads the statements of a template and runs what it reads. A loop's body or a macro is read again each time.
class Interpreter : public ExpressionReader {
 public:
  // The first reading, which fills `notes`.
  Interpreter(std::string_view source, Template::Notes* notes) : ExpressionReader(source, *notes, notes) {}
  Interpreter(std::string_view source, const Template::Notes& notes, const Json& variables, std::time_t now)
      : ExpressionReader(source, notes, nullptr) {
    run_.now = now;
    AddFunctions(run_, scope_->names);
    const Value all = run_.Charge(Value(variables));
    for (const auto& [name, value] : all.json().items()) scope_->names[name] = Value(all, value);
  }
  std::string Read() {
    Body({});
    return std::move(out_);
  }

 private:
  // Names that are set while one lives hide those outside. A macro keeps the scopes around it.
  struct Inner {
    Inner(Interpreter& reader, Scope* parent) : in(reader), outer(reader.scope_), macros(reader.macros_) {
      in.run_.Spend(40);
      in.scope_ = &in.scopes_.emplace_back(Scope{parent, {}});
    }
    explicit Inner(Interpreter& reader) : Inner(reader, reader.scope_) {}
    ~Inner() {
      in.scope_ = outer;
      if (macros == in.macros_) in.scopes_.pop_back();
    }
    Interpreter& in;
    Scope* outer;
    size_t macros;
  };

  // Reads up to a statement whose name is one of `ends`, and returns it; without ends, up to the template's end.
  std::string Body(Words ends) {
    const Deeper deeper(*this);
    const size_t start = at_;
    const auto end = notes_.ends.find(start);
    if (!live_ && first_ == nullptr && end != notes_.ends.end()) at_ = end->second;
    for (size_t before = at_;;) {
      std::string text;
      const size_t tag = PlainText(&text);
      run_.Spend(1 + static_cast<int64_t>((tag - before) / 8));
      before = tag;
      if (live_) out_ += text;
      if (at_ = tag; tag == source_.size()) {
        if (ends.size() > 0) Fail("the template ends before its {% " + std::string(*(ends.end() - 1)) + " %}");
        return "";
      }
      const char kind = source_[tag + 1];
      at_ += 2;
      if (Peek() == '-' || Peek() == '+') ++at_;
      if (kind == '#') {
        Comment();
      } else if (kind == '{') {
        const Value value = Tuple(true);
        Write(value);
        Close("}}");
      } else {
        const std::string name = Name();
        if (std::find(ends.begin(), ends.end(), name) != ends.end()) {
          if (first_ != nullptr) first_->ends[start] = tag;
          return name;
        }
        Statement(name);
      }
    }
  }

  std::string Block(Words ends) {
    Close("%}");
    return Body(ends);
  }

  void Write(const Value& value) {
    if (!live_) return;
    const std::string text = Str(value);
    run_.Spend(1 + static_cast<int64_t>(text.size() / 8));
    out_ += text;
  }

  // What a body writes, in a scope of its own.
  std::string Capture(std::string_view end) {
    const Inner scope(*this);
    std::string outer = std::exchange(out_, "");
    Block({end});
    return std::exchange(out_, std::move(outer));
  }

  void Statement(const std::string& name) {
    run_.Spend(1);
    if (name == "if") {
      If();
    } else if (name == "for") {
      For();
    } else if (name == "set") {
      Set();
    } else if (name == "macro") {
      Macro();
    } else if (name == "filter" || name == "generation") {  // generation: transformers' tag around an assistant's text
      const size_t filters = at_;
      if (const Dead dead(*this); name == "filter") Filters(OneFilter(Value()));
      Value value = Capture("end" + name);
      const size_t end = std::exchange(at_, filters);
      if (name == "filter") value = Filters(OneFilter(value));
      at_ = end;
      Write(value);
    } else if ((name == "break" || name == "continue") && loops_ > 0) {
      if (live_) jump_ = name;
      live_ = live_ && jump_.empty();
    } else {
      Fail("the statement '" + name + "' is not known here");
    }
    Close("%}");
  }

  void If() {
    bool done = false;
    std::string end;
    do {
      Value condition;
      {
        const Dead dead(*this, done);
        condition = Tuple(false);
      }
      const bool taken = !done && live_ && Truth(condition);
      const Dead dead(*this, !taken);
      end = Block({"elif", "else", "endif"});
      done = done || taken;
    } while (end == "elif");
    const Dead dead(*this, done);
    if (end == "else") Block({"endif"});
  }

  void For() {
    const Names names = Targets();
    Expect("in");
    Values items = live_ ? Elements(Tuple(false)) : (Tuple(false), Values());
    const size_t test = Accept("if") ? at_ : 0;
    if (const Dead dead(*this); test != 0) Expression();
    const size_t body = at_;
    for (size_t i = 0; test != 0 && i < items.size();) {
      const Inner scope(*this);
      Assign(names, items[i]);
      at_ = test;
      Truth(Expression()) ? (void)++i : (void)items.erase(items.begin() + static_cast<ptrdiff_t>(i));
    }
    const auto size = static_cast<int64_t>(items.size());
    Object* loop = size == 0 ? nullptr : &run_.Make("loop");
    std::string end;
    ++loops_;
    for (int64_t i = 0; i < size && jump_ != "break"; ++i) {
      const Inner scope(*this);
      const auto item = [&](int64_t at) {
        return at < 0 || at >= size ? Value::Undefined("there is no such item in the loop")
                                    : items[static_cast<size_t>(at)];
      };
      loop->members = {
          {"index", i + 1},         {"index0", i},           {"revindex", size - i}, {"revindex0", size - i - 1},
          {"first", i == 0},        {"last", i + 1 == size}, {"length", size},       {"previtem", item(i - 1)},
          {"nextitem", item(i + 1)}};
      scope_->names["loop"] = loop;
      Assign(names, item(i));
      at_ = body;
      end = Block({"else", "endfor"});
      if (jump_ == "continue") jump_ = "";
      live_ = true;
    }
    jump_ = size > 0 ? "" : jump_;
    at_ = size > 0 ? at_ : body;
    if (const Dead dead(*this); size == 0) end = Block({"else", "endfor"});
    --loops_;
    const Dead dead(*this, size > 0);
    const Inner scope(*this);
    if (end == "else") Block({"endfor"});
  }

  void Set() {
    const Names names = Targets();
    if (Accept("=")) return Assign(names, Tuple(true));
    const size_t filters = at_;
    if (const Dead dead(*this); true) Filters(Value());
    const Value value = Capture("endset");
    const size_t end = std::exchange(at_, filters);
    Assign(names, Filters(value));
    at_ = end;
  }

  // a, b or (a, b); of `set`, one may be namespace.member.
  Names Targets() {
    Names names;
    const bool bracket = Accept("(");
    do {
      names.push_back(Name());
      if (Accept(".")) names.back() += "." + Name();
    } while (Accept(","));
    if (bracket) Expect(")");
    return names;
  }

  void Assign(const Names& names, const Value& value) {
    if (!live_) return;
    const Values parts = names.size() == 1 ? Values{value} : Elements(value);
    if (parts.size() != names.size())
      Fail("expected " + std::to_string(names.size()) + " values, found " + std::to_string(parts.size()));
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t dot = names[i].find('.');
      if (dot == std::string::npos) {
        scope_->names.insert_or_assign(names[i], parts[i]);
      } else if (Object* object = Lookup(names[i].substr(0, dot)).object; object != nullptr && object->type[0] == 'n') {
        object->members.insert_or_assign(names[i].substr(dot + 1), parts[i]);
      } else {
        Fail(names[i].substr(0, dot) + " is not a namespace, so " + names[i] + " can't be set");
      }
    }
  }

  void Macro() {
    const std::string name = Name();
    const size_t signature = at_;
    {
      const Dead dead(*this);
      Parameters({});
      const int loops = std::exchange(loops_, 0);
      Block({"endmacro"});
      loops_ = loops;
    }
    if (!live_) return;
    ++macros_;
    scope_->names[name] = run_.Function([this, signature, around = scope_](const Arguments& given) -> Value {
      if (stack_ - static_cast<const char*>(__builtin_frame_address(0)) > kLargestStack)
        Fail("macros call each other too deeply");
      const size_t back = std::exchange(at_, signature);
      const int depth = std::exchange(depth_, 0);
      const Inner scope(*this, around);
      Parameters(given);
      std::string text = Capture("endmacro");
      at_ = back;
      depth_ = depth;
      return text;
    });
  }

  // Reads a macro's (a, b=default), and sets them from a call's arguments.
  void Parameters(const Arguments& given) {
    auto named = given.named;
    size_t count = 0;
    for (Expect("("); !Accept(")"); ++count) {
      if (count > 0) Expect(",");
      const std::string name = Name();
      Value value =
          count < given.list.size() ? given.list[count] : Value::Undefined("parameter '" + name + "' was not provided");
      const size_t found = named.size();
      std::erase_if(named, [&](const auto& item) { return item.first == name && ((value = item.second), true); });
      const bool missing = count >= given.list.size() && found == named.size();
      if (const bool otherwise = Accept("="); otherwise) {
        const Dead dead(*this, !missing);
        const Value ours = Expression();
        if (missing) value = ours;
      }
      if (live_) scope_->names[name] = value;
    }
    if (live_ && (!named.empty() || given.list.size() > count))
      Fail("the macro has no parameter for one of the arguments");
  }

  int loops_ = 0;  // around the current place, within its macro
  size_t macros_ = 0;
  std::string out_;
  const char* stack_ = static_cast<const char*>(__builtin_frame_address(0));
};

template <typename Reader>
std::string Read(Reader&& reader, const std::string& name, bool first) {
  try {
    return reader.Read();
  } catch (const Error& error) {
    throw Error(first ? KGRPO_ERROR_UNSUPPORTED : error.code(), name + ":" + reader.Line() + ": " + error.what());
  }
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') source_ += source[i];
    if (source[i] == '\r' && (i + 1 == source.size() || source[i + 1] != '\n')) source_ += '\n';
  }
  if (source_.ends_with('\n')) source_.pop_back();  // Jinja drops the last line feed
  kgrpo::jinja::Read(Interpreter(source_, &notes_), name_, true);
}

std::string Template::Render(const nlohmann::ordered_json& variables, std::time_t now) const {
  return kgrpo::jinja::Read(Interpreter(source_, notes_, variables, now), name_, false);
}

std::string Literal(const nlohmann::ordered_json& value) {
  return Dump(value);
}

}  // namespace kgrpo::jinja
