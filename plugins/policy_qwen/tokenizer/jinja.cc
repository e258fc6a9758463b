#include "policy_qwen/tokenizer/jinja.h"

#include <kgrpo/sdk/error.h>

#include "policy_qwen/tokenizer/jinja_expressions.h"

namespace kgrpo::jinja {
namespace {

using Names = std::vector<std::string>;

// Reads the statements of a template and runs what it reads. A loop's body or a macro is read again each time.
class Interpreter : public ExpressionReader {
 public:
  // The first reading, which fills `notes`.
  Interpreter(std::string_view source, Template::Notes* notes) : ExpressionReader(source, *notes, notes) {}
  Interpreter(std::string_view source, const Template::Notes& notes, const Json& variables, std::time_t now)
      : ExpressionReader(source, notes, nullptr) {
    run_.now = now;
    AddFunctions(run_, scope_->names);
    const Value all = run_.Charge(variables);
    for (const auto& [name, value] : all.json().items()) scope_->names[name] = Value(all, value);
  }
  std::string Read() {
    Body({});
    return std::move(out_);
  }

 private:
  // Names that are set while one lives hide those outside. A macro keeps the scopes around it.
  struct Inner {
    Inner(Interpreter& reader, Scope* parent) : in(reader), outer(in.scope_), macros(in.macros_) {
      in.run_.Spend(40);
      in.scope_ = &in.scopes_.emplace_back(Scope{parent});
    }
    ~Inner() {
      in.scope_ = outer;
      if (macros == in.macros_) in.scopes_.pop_back();
    }
    Interpreter& in;
    Scope* outer;
    size_t macros;
  };

  // Reads up to a statement whose name is one of `ends`, and returns it; without ends, up to the template's end.
  std::string Body(const Names& ends) {
    const Deeper deeper(*this);
    const size_t start = at_;
    const auto end = notes_.ends.find(start);
    if (!live_ && first_ == nullptr && end != notes_.ends.end()) at_ = end->second;
    while (PlainText()) {
      const char kind = Peek(1);
      const size_t tag = std::exchange(at_, at_ + 2);
      if (Peek() == '-' || Peek() == '+') ++at_;
      if (kind == '#') {
        at_ = source_.find("#}", at_);
        if (at_ == source_.npos) at_ = tag, Fail("a comment has no end");
        Close("#}", at_ > tag + 2 ? source_[at_ - 1] : '\0');
      } else if (kind == '{') {
        Write(Tuple(true));
        Close("}}", SignOf("}}"));
      } else {
        const std::string name = Name();
        const bool ends_here = std::find(ends.begin(), ends.end(), name) != ends.end();
        if (ends_here && first_ != nullptr) first_->ends[start] = tag;
        if (ends_here) return name;
        Statement(name);
        Close("%}", SignOf("%}"));
      }
    }
    if (!ends.empty()) Fail("the template ends before its {% " + ends.back() + " %}");
    return "";
  }

  // Reads and writes the text up to the next tag; false at the template's end. '-' strips all white space before a tag;
  // a statement or comment without '+' strips the blanks before it on its line.
  bool PlainText() {
    size_t tag = source_.find('{', at_);
    while (tag < source_.size() && std::string_view("{%#").find(tag + 1 < source_.size() ? source_[tag + 1] : ' ') > 2)
      tag = source_.find('{', tag + 1);
    WriteText(Trimmed(at_, tag));
    at_ = std::min(tag, source_.size());
    return tag < source_.size();
  }
  // The text between a place and the tag after it, without what that strips.
  std::string_view Trimmed(size_t start, size_t tag) const {
    const std::string_view text = source_.substr(start, tag - start);
    if (tag >= source_.size()) return text;
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
    const size_t kept = tokenizer::StartOfSpaceBefore(text, text.size(), 0);
    const bool at_line = line > 0 || start == 0 || source_[start - 1] == '\n';
    if (sign == '-') return text.substr(0, kept);
    return source_[tag + 1] != '{' && sign != '+' && at_line && kept <= line ? text.substr(0, line) : text;
  }

  // Reads the end of a tag. '-' strips all white space after it, a statement or comment without '+' the line feed.
  void Close(std::string_view closing, char sign) {
    if (!Starts(closing)) FailHere(std::string(closing));
    at_ += closing.size();
    if (sign == '-') SkipSpace();
    if (sign != '-' && sign != '+' && closing != "}}" && Peek() == '\n') ++at_;
  }
  char SignOf(std::string_view closing) {
    SkipSpace();
    const bool sign =
        (Peek() == '-' || (Peek() == '+' && closing == "%}")) && source_.substr(at_ + 1).starts_with(closing);
    return sign ? source_[at_++] : '\0';
  }
  std::string Block(const Names& ends) {
    Close("%}", SignOf("%}"));
    return Body(ends);
  }

  void WriteText(std::string_view text) {
    run_.Spend(1 + text.size() / 8);
    if (live_) out_ += text;
  }
  void Write(const Value& value) { live_ ? WriteText(Str(value)) : void(); }

  // What a body writes, in a scope of its own.
  std::string Capture(const std::string& end) {
    const Inner scope(*this, scope_);
    std::string outer = std::exchange(out_, "");
    Block({end});
    return std::exchange(out_, std::move(outer));
  }
  // What the filters that are next make of the text of the body after them.
  Value Filtered(const std::string& end) {
    const size_t filters = at_;
    const auto filter = [&](const Value& text) { return Steps(end == "endfilter" ? Named('|', text) : text, true); };
    if (const Dead dead(*this); true) filter(Value());
    const Value text = Capture(end);
    const size_t after = std::exchange(at_, filters);
    const Value value = filter(text);
    at_ = after;
    return value;
  }

  void Statement(const std::string& name) {
    run_.Spend(1);
    if (name == "if") return If();
    if (name == "for") return For();
    if (name == "macro") return Macro();
    if (name == "filter") return Write(Filtered("endfilter"));
    if (name == "raw") return Raw();
    if (name == "with") return With();
    if (name == "generation") return Write(Capture("endgeneration"));  // transformers' tag around an assistant's text
    if (name == "set") {
      const Names names = Targets();
      return Assign(names, Accept("=") ? Tuple(true) : Filtered("endset"));
    }
    if ((name != "break" && name != "continue") || loops_ == 0) Fail("the statement '" + name + "' is not known here");
    if (live_) jump_ = name;
    live_ = false;
  }

  void Raw() {
    Close("%}", SignOf("%}") == '-' ? '-' : '+');  // a line feed after it stays
    const size_t start = at_;
    for (std::string end; end != "endraw";) {
      const size_t tag = source_.find("{%", at_);
      if (tag == source_.npos) Fail("the template ends before its {% endraw %}");
      at_ = tag + 2;
      if (Peek() == '-' || Peek() == '+') ++at_;
      SkipSpace();
      if (!IsNext("endraw")) continue;
      end = Name();
      WriteText(Trimmed(start, tag));
    }
  }

  void With() {
    std::vector<std::pair<std::string, Value>> values;  // none sees the others
    while (!IsNext("%}") && !IsNext("-%}") && !IsNext("+%}")) {
      if (!values.empty()) Expect(",");
      const std::string name = Name();
      Expect("=");
      values.emplace_back(name, Expression());
    }
    const Inner scope(*this, scope_);
    for (const auto& [name, value] : values) scope_->names[name] = value;
    Block({"endwith"});
  }

  void If() {
    bool done = false;
    for (std::string end = "elif"; end != "endif";) {
      bool taken = !done && live_;
      if (const Dead dead(*this, done); end == "elif") {
        const Value condition = Tuple(false);
        taken = taken && Truth(condition);
      }
      const Dead dead(*this, !taken);
      end = end == "elif" ? Block({"elif", "else", "endif"}) : Block({"endif"});
      done = done || taken;
    }
  }

  void For() {
    const Names names = Targets();
    Expect("in");
    const Value list = Tuple(false);
    Values items = live_ ? run_.ElementsOf(list) : Values();
    const size_t test = Accept("if") ? at_ : 0;
    if (const Dead dead(*this); test != 0) Expression();
    const size_t body = at_;
    std::erase_if(items, [&](const Value& item) {
      const Inner scope(*this, scope_);
      Assign(names, item);
      at_ = std::max(test, at_ * (test == 0));
      return test != 0 && !Truth(Expression());
    });
    const auto size = static_cast<int64_t>(items.size());
    Object& loop = run_.Make({"loop"});
    std::string end;
    ++loops_;
    for (int64_t i = 0; i < std::max<int64_t>(size, 1) && (size == 0 || jump_ != "break"); ++i) {
      const Inner scope(*this, scope_);
      const Dead dead(*this, size == 0);
      const auto item = [&](int64_t at) {
        return at < 0 || at >= size ? Undefined("there is no such item in the loop") : items[static_cast<size_t>(at)];
      };
      loop.members = {{"index", i + 1},
                      {"index0", i},
                      {"revindex", size - i},
                      {"revindex0", size - i - 1},
                      {"first", i == 0},
                      {"last", i + 1 == size},
                      {"length", size},
                      {"previtem", item(i - 1)},
                      {"nextitem", item(i + 1)},
                      {"depth", 1},
                      {"depth0", 0}};
      scope_->names["loop"] = &loop;
      Assign(names, item(i));
      at_ = body;
      end = Block({"else", "endfor"});
      if (size > 0 && jump_ == "continue") jump_ = "";
    }
    if (size > 0 && !jump_.empty()) jump_ = "", live_ = true;
    --loops_;
    const Dead dead(*this, size > 0);
    const Inner scope(*this, scope_);
    if (end == "else") Block({"endfor"});
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
      Fail("there are " + std::to_string(parts.size()) + " values for " + std::to_string(names.size()) + " names");
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t dot = names[i].find('.');
      Object* object = dot == std::string::npos ? nullptr : Lookup(names[i].substr(0, dot)).object;
      if (dot != std::string::npos && (object == nullptr || object->type != "namespace"))
        Fail(names[i] + ": only a namespace can be set so");
      (object == nullptr ? scope_->names[names[i]] : object->members[names[i].substr(dot + 1)]) = parts[i];
    }
  }

  void Macro() {
    const std::string name = Name();
    const size_t signature = at_;
    const int loops = std::exchange(loops_, 0);
    if (const Dead dead(*this); true) Parameters({}), Block({"endmacro"});
    loops_ = loops;
    if (!live_) return;
    ++macros_;
    scope_->names[name] =
        &run_.Make({"function", {}, [this, signature, around = scope_](const Arguments& given) -> Value {
                      if (stack_ - static_cast<const char*>(__builtin_frame_address(0)) > 1 << 20)
                        Fail("macros call each other too deeply");
                      const size_t back = std::exchange(at_, signature);
                      const int depth = std::exchange(depth_, 0);
                      const Inner scope(*this, around);
                      Parameters(given);
                      std::string text = Capture("endmacro");
                      at_ = back, depth_ = depth;
                      return text;
                    }});
  }

  // Reads a macro's (a, b=default), and sets them from a call's arguments.
  void Parameters(const Arguments& given) {
    size_t count = 0, used = 0;
    for (Expect("("); !Accept(")"); ++count) {
      if (count > 0) Expect(",");
      const std::string name = Name();
      const auto named =
          std::find_if(given.named.begin(), given.named.end(), [&](const auto& item) { return item.first == name; });
      used += named != given.named.end() ? 1 : 0;
      const bool missing = named == given.named.end() && count >= given.list.size();
      Value value = missing                      ? Undefined("parameter '" + name + "' was not provided")
                    : named != given.named.end() ? named->second
                                                 : given.list[count];
      if (Accept("=")) {
        const Dead dead(*this, !missing);
        const Value otherwise = Expression();
        if (missing) value = otherwise;
      }
      if (live_) scope_->names[name] = value;
    }
    if (live_ && (used < given.named.size() || given.list.size() > count))
      Fail("the macro has no parameter for one of the arguments");
  }

  int loops_ = 0;  // around the current place, within its macro
  size_t macros_ = 0;
  std::string out_;
  const char* stack_ = static_cast<const char*>(__builtin_frame_address(0));
};

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  for (size_t i = 0; i < source.size(); ++i) {  // \r\n and \r are line feeds
    if (source[i] != '\r' || i + 1 == source.size() || source[i + 1] != '\n')
      source_ += source[i] == '\r' ? '\n' : source[i];
  }
  if (source_.ends_with('\n')) source_.pop_back();  // Jinja drops the last one
  Interpreter reader(source_, &notes_);
  try {
    reader.Read();
  } catch (const Error& error) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, name_ + ":" + reader.Line() + ": " + error.what());
  }
}

std::string Template::Render(const nlohmann::ordered_json& variables, std::time_t now) const {
  Interpreter reader(source_, notes_, variables, now);
  try {
    return reader.Read();
  } catch (const Error& error) {
    throw Error(error.code(), name_ + ":" + reader.Line() + ": " + error.what());
  }
}

}  // namespace kgrpo::jinja
