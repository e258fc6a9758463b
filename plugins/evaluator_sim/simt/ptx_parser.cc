// A lexer and recursive-descent parser for the PTX that nvcc and NVRTC emit.
#include <kgrpo/sdk/error.h>

#include <array>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "evaluator_sim/simt/ptx_syntax.h"

namespace kgrpo::simt {
namespace {

struct Token {
  enum class Kind : uint8_t { kEnd, kWord, kNumber, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;
  int line = 0;
  bool Is(char c) const { return kind == Kind::kPunctuation && text[0] == c; }
  bool Is(std::string_view word) const { return kind == Kind::kWord && text == word; }
};

bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsWordPart(char c) {
  return IsWordStart(c) || IsDigit(c);
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) { Advance(); }

  const Token& Peek() const { return token_; }
  Token Next() {
    Token token = token_;
    Advance();
    return token;
  }
  int line() const { return token_.line; }

 private:
  void SkipBlanks() {
    while (at_ != end_) {
      if (*at_ == '\n') {
        ++line_;
        ++at_;
      } else if (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\0') {
        ++at_;
      } else if (*at_ == '/' && at_ + 1 != end_ && at_[1] == '/') {
        while (at_ != end_ && *at_ != '\n') ++at_;
      } else if (*at_ == '/' && at_ + 1 != end_ && at_[1] == '*') {
        at_ += 2;
        while (at_ != end_ && !(*at_ == '*' && at_ + 1 != end_ && at_[1] == '/')) line_ += *at_++ == '\n';
        at_ = end_ - at_ < 2 ? end_ : at_ + 2;
      } else {
        return;
      }
    }
  }

  void Advance() {
    SkipBlanks();
    token_.line = line_;
    if (at_ == end_) {
      token_ = {Token::Kind::kEnd, {}, line_};
      return;
    }
    const char* start = at_;
    if (IsWordStart(*at_)) {
      while (at_ != end_ && (IsWordPart(*at_) || IsScope())) at_ += IsScope() ? 2 : 1;
      token_.kind = Token::Kind::kWord;
    } else if (IsDigit(*at_)) {
      while (at_ != end_ && (IsWordPart(*at_))) ++at_;
      token_.kind = Token::Kind::kNumber;
    } else if (*at_ == '"') {
      ++at_;
      while (at_ != end_ && *at_ != '"') at_ += *at_ == '\\' && at_ + 1 != end_ ? 2 : 1;
      if (at_ != end_) ++at_;
      token_.kind = Token::Kind::kString;
    } else {
      ++at_;
      token_.kind = Token::Kind::kPunctuation;
    }
    token_.text = {start, static_cast<size_t>(at_ - start)};
  }

  // "::" within ".shared::cta"
  bool IsScope() const { return *at_ == ':' && at_ + 1 != end_ && at_[1] == ':'; }

  const char* at_;
  const char* end_;
  int line_ = 1;
  Token token_;
};

constexpr std::array<std::string_view, 21> kTypeNames = {".pred", ".b8",    ".b16",  ".b32",    ".b64", ".b128", ".u8",
                                                         ".u16",  ".u32",   ".u64",  ".s8",     ".s16", ".s32",  ".s64",
                                                         ".f16",  ".f16x2", ".bf16", ".bf16x2", ".f32", ".f64",  ""};

// The registers of one pair of braces.
struct Scope {
  struct Range {
    std::string_view prefix;
    int count, first;
  };
  std::vector<Range> ranges;
  std::unordered_map<std::string_view, int> names;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { ScanFiles(text); }

  PtxModule Run() {
    while (lexer_.Peek().kind != Token::Kind::kEnd) ModuleItem();
    return std::move(module_);
  }

 private:
  [[noreturn]] void Bad(const std::string& what) {
    throw Error(KGRPO_ERROR_INVALID, "PTX line " + std::to_string(lexer_.line()) + ": " + what);
  }
  [[noreturn]] void BadToken(const std::string& wanted) {
    const Token& token = lexer_.Peek();
    Bad("expected " + wanted + ", found " +
        (token.kind == Token::Kind::kEnd ? "the end of the text" : "'" + std::string(token.text) + "'"));
  }
  void Expect(char c) {
    if (!lexer_.Peek().Is(c)) BadToken(std::string("'") + c + "'");
    lexer_.Next();
  }
  bool Accept(char c) {
    if (!lexer_.Peek().Is(c)) return false;
    lexer_.Next();
    return true;
  }
  std::string_view Word() {
    if (lexer_.Peek().kind != Token::Kind::kWord) BadToken("a name");
    return lexer_.Next().text;
  }

  // An integer or a float constant, with its sign.
  Arg Number() {
    Arg arg;
    arg.kind = Arg::Kind::kImmediate;
    const bool minus = Accept('-');
    if (lexer_.Peek().kind != Token::Kind::kNumber) BadToken("a number");
    std::string_view text = lexer_.Next().text;
    auto parse = [&](std::string_view digits, int base) {
      uint64_t value = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
      if (error != std::errc{} || end != digits.data() + digits.size())
        Bad("'" + std::string(text) + "' is not a number");
      return value;
    };
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F')) {
      arg.number = Arg::Number::kFloat;
      arg.bits = parse(text.substr(2), 16);
      if (minus) arg.bits ^= 0x80000000u;
      return arg;
    }
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D')) {
      arg.number = Arg::Number::kDouble;
      arg.bits = parse(text.substr(2), 16);
      if (minus) arg.bits ^= uint64_t{1} << 63;
      return arg;
    }
    if (text.find('.') != std::string_view::npos ||
        (text.find_first_of("eE") != std::string_view::npos && text.substr(0, 2) != "0x")) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size()) Bad("'" + std::string(text) + "' is not a number");
      if (minus) value = -value;
      arg.number = Arg::Number::kDouble;
      std::memcpy(&arg.bits, &value, sizeof value);
      return arg;
    }
    if (text.back() == 'U') text.remove_suffix(1);
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
      arg.bits = parse(text.substr(2), 16);
    } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
      arg.bits = parse(text.substr(2), 2);
    } else {
      arg.bits = parse(text, text.size() > 1 && text[0] == '0' ? 8 : 10);
    }
    if (minus) arg.bits = uint64_t{0} - arg.bits;
    return arg;
  }
  int64_t Integer() { return static_cast<int64_t>(Number().bits); }

  void SkipTo(char c) {
    while (lexer_.Peek().kind != Token::Kind::kEnd && !lexer_.Peek().Is(c)) lexer_.Next();
  }
  void SkipBraces() {
    SkipTo('{');
    int depth = 0;
    do {
      if (lexer_.Peek().kind == Token::Kind::kEnd) BadToken("'}'");
      const Token token = lexer_.Next();
      depth += token.Is('{') - token.Is('}');
    } while (depth > 0);
  }

  void ModuleItem() {
    if (lexer_.Peek().Is(';') || lexer_.Peek().Is('}')) {
      lexer_.Next();
      return;
    }
    const std::string_view word = Word();
    if (word == ".version") {
      lexer_.Next();
    } else if (word == ".target") {
      Word();
      while (Accept(',')) Word();
    } else if (word == ".address_size") {
      if (Integer() != 64) Bad("only 64-bit PTX is interpreted");
    } else if (word == ".file") {
      File();
    } else if (word == ".section") {
      SkipBraces();
    } else if (word == ".pragma") {
      SkipTo(';');
    } else if (word == ".visible" || word == ".weak" || word == ".common") {
      // linkage changes nothing for a module on its own
    } else if (word == ".extern") {
      extern_ = true;
    } else if (word == ".entry" || word == ".func") {
      ParseFunction(word == ".entry");
      extern_ = false;
    } else if (word == ".global" || word == ".const" || word == ".shared") {
      ParseVariables(Space(word), module_.variables);
      extern_ = false;
    } else if (word == ".alias" || word == ".tex" || word == ".surf" || word == ".texref" || word == ".samplerref" ||
               word == ".surfref") {
      Refuse(module_, {}, lexer_.line(), "'" + std::string(word) + "'");
    } else {
      Bad("unexpected '" + std::string(word) + "'");
    }
  }

  void File() {
    Integer();
    if (lexer_.Peek().kind != Token::Kind::kString) BadToken("a file name");
    lexer_.Next();
    while (Accept(',')) Integer();  // time stamp and size
  }

  // The .file directives stand at the end of the text, but .loc lines need to know which files are headers.
  void ScanFiles(std::string_view text) {
    for (size_t at = text.find("\t.file\t"); at != std::string_view::npos; at = text.find("\t.file\t", at + 1)) {
      const char* end = text.data() + text.size();
      size_t index = 0;
      const char* name = std::from_chars(text.data() + at + 7, end, index).ptr;
      while (name != end && *name != '"' && *name != '\n') ++name;
      if (name == end || *name != '"' || index > 65535) continue;
      const char* stop = ++name;
      while (stop != end && *stop != '"' && *stop != '\n') ++stop;
      if (module_.files.size() <= index) module_.files.resize(index + 1);
      module_.files[index] = std::string(name, stop);
    }
  }
  bool IsHeader(uint16_t file) const {
    if (file >= module_.files.size()) return false;
    const std::string& name = module_.files[file];
    return name.find("/include/") != std::string::npos || name.ends_with(".h") || name.ends_with(".hpp");
  }

  static Variable::Space Space(std::string_view word) {
    if (word == ".const") return Variable::Space::kConst;
    if (word == ".shared") return Variable::Space::kShared;
    if (word == ".local") return Variable::Space::kLocal;
    if (word == ".param") return Variable::Space::kParam;
    return Variable::Space::kGlobal;
  }

  // What follows the state space: [.align n] [.ptr ...] .type name [dims] [= initialiser], further names after commas.
  void ParseVariables(Variable::Space space, std::vector<Variable>& into) {
    Variable variable = ParseVariable(space);
    into.push_back(variable);
    while (Accept(',')) {
      Variable next;
      next.space = space;
      next.type = variable.type;
      next.align = TypeBytes(variable.type);
      Declarator(next);
      into.push_back(std::move(next));
    }
    Expect(';');
  }
  Variable ParseVariable(Variable::Space space) {
    Variable variable;
    variable.space = space;
    variable.is_extern = extern_;
    uint32_t align = 0;
    for (;;) {
      const std::string_view word = Word();
      if (word == ".align") {
        align = static_cast<uint32_t>(Integer());
        continue;
      }
      if (word == ".ptr" || word == ".global" || word == ".shared" || word == ".const" || word == ".local") continue;
      if (word == ".attribute" || word == ".managed" || word == ".texref" || word == ".surfref" ||
          word == ".samplerref") {
        Refuse(module_, {}, lexer_.line(), "a variable declared '" + std::string(word) + "'");
      }
      variable.type = TypeByName(word);
      if (variable.type == Type::kNone) Bad("'" + std::string(word) + "' is not a type");
      break;
    }
    // ".param .u64 .ptr .align 1 name": the pointer's attributes may follow the type
    while (lexer_.Peek().kind == Token::Kind::kWord && lexer_.Peek().text[0] == '.') {
      if (Word() == ".align") Integer();
    }
    variable.align = align != 0 ? align : TypeBytes(variable.type);
    Declarator(variable);
    return variable;
  }
  void Declarator(Variable& variable) {
    variable.name = Word();
    uint64_t count = 1;
    bool unsized = false;
    while (Accept('[')) {
      if (Accept(']')) {
        unsized = true;
        continue;
      }
      count *= static_cast<uint64_t>(Integer());
      Expect(']');
    }
    variable.bytes = unsized ? 0 : count * TypeBytes(variable.type);
    if (Accept('=')) Initialiser(variable, unsized);
  }
  void Initialiser(Variable& variable, bool unsized) {
    const uint32_t element = TypeBytes(variable.type);
    auto put = [&](uint64_t bits) {
      for (uint32_t i = 0; i < element; ++i) variable.initial.push_back(static_cast<uint8_t>(bits >> (8 * i)));
    };
    auto value = [&] {
      if (lexer_.Peek().kind == Token::Kind::kWord) {
        bool generic = false;
        std::string_view symbol = Word();
        if (symbol == "generic") {
          generic = true;
          Expect('(');
          symbol = Word();
        }
        int64_t addend = 0;
        if (generic) Expect(')');
        if (Accept('+')) addend = Integer();
        if (element != 8) Refuse(module_, {}, lexer_.line(), "an address in a variable of less than 64 bits");
        variable.references.push_back({variable.initial.size(), symbol, addend, generic});
        put(0);
        return;
      }
      const Arg number = Number();
      if (number.number == Arg::Number::kDouble && element == 4) {
        Refuse(module_, {}, lexer_.line(), "a double initialiser of a 32-bit variable");
      }
      put(number.bits);
    };
    auto list = [&](auto&& self) -> void {
      Expect('{');
      if (Accept('}')) return;
      do {
        if (lexer_.Peek().Is('{')) {
          self(self);
        } else {
          value();
        }
      } while (Accept(','));
      Expect('}');
    };
    if (lexer_.Peek().Is('{')) {
      list(list);
    } else {
      value();
    }
    if (unsized) variable.bytes = variable.initial.size();
    if (variable.initial.size() > variable.bytes) Bad("too many initialisers of '" + std::string(variable.name) + "'");
    variable.initial.resize(variable.bytes);
  }

  std::vector<Variable> Parameters() {
    std::vector<Variable> parameters;
    Expect('(');
    if (Accept(')')) return parameters;
    do {
      const std::string_view space = Word();
      if (space != ".param") Refuse(module_, {}, lexer_.line(), "a parameter in '" + std::string(space) + "' space");
      parameters.push_back(ParseVariable(Variable::Space::kParam));
    } while (Accept(','));
    Expect(')');
    return parameters;
  }

  void ParseFunction(bool is_entry) {
    function_ = {};
    function_.is_entry = is_entry;
    function_.ptx_line = lexer_.line();
    while (lexer_.Peek().kind == Token::Kind::kWord && lexer_.Peek().text == ".attribute") {
      Word();
      SkipTo(')');
      Expect(')');
    }
    if (lexer_.Peek().Is('(')) {
      const bool saved = std::exchange(extern_, false);
      function_.results = Parameters();
      extern_ = saved;
    }
    function_.name = Word();
    if (lexer_.Peek().Is('(')) {
      const bool saved = std::exchange(extern_, false);
      function_.parameters = Parameters();
      extern_ = saved;
    }
    extern_ = false;
    while (lexer_.Peek().kind == Token::Kind::kWord) Directive();
    if (!Accept(';')) {
      Expect('{');
      function_.has_body = true;
      scopes_.assign(1, {});
      where_ = {};
      label_index_.clear();
      pending_labels_.clear();
      Body();
      if (!pending_labels_.empty()) Emit({});  // a label at the end of the body
    }
    module_.functions.push_back(std::move(function_));
  }

  void Directive() {
    const std::string_view word = Word();
    auto numbers = [&] {
      uint64_t product = 1;
      do product *= static_cast<uint64_t>(Integer());
      while (Accept(','));
      return static_cast<uint32_t>(product);
    };
    if (word == ".maxntid" || word == ".reqntid") {
      function_.max_threads = numbers();
    } else if (word == ".minnctapersm") {
      function_.min_blocks = numbers();
    } else if (word == ".maxnreg" || word == ".maxnctapersm") {
      numbers();
    } else if (word == ".noreturn") {
      // only a hint
    } else if (word == ".pragma") {
      SkipTo(';');
      Expect(';');
    } else if (word == ".reqnctapercluster" || word == ".explicitcluster" || word == ".maxclusterrank" ||
               word == ".blocksareclusters") {
      Refuse(module_, {}, lexer_.line(), "a thread block cluster ('" + std::string(word) + "')");
    } else {
      Bad("unexpected '" + std::string(word) + "'");
    }
  }

  void Body() {
    for (;;) {
      const Token& token = lexer_.Peek();
      if (token.kind == Token::Kind::kEnd) BadToken("'}'");
      if (Accept('}')) return;
      if (Accept(';')) continue;
      if (Accept('{')) {
        scopes_.emplace_back();
        Body();
        scopes_.pop_back();
        continue;
      }
      if (token.Is('@')) {
        Instruction({});
        continue;
      }
      const std::string_view word = Word();
      if (word[0] == '.') {
        BodyDirective(word);
      } else if (lexer_.Peek().Is(':')) {
        lexer_.Next();
        if (lexer_.Peek().Is(".branchtargets")) {
          Table(word);
        } else if (lexer_.Peek().Is(".callprototype") || lexer_.Peek().Is(".calltargets")) {
          Refuse(module_, where_, lexer_.line(), "a call through a function pointer");
        } else {
          pending_labels_.push_back(Label(word));
        }
      } else {
        Instruction(word);
      }
    }
  }

  void BodyDirective(std::string_view word) {
    if (word == ".reg") {
      Registers();
    } else if (word == ".loc") {
      Location();
    } else if (word == ".local" || word == ".shared" || word == ".param") {
      ParseVariables(Space(word), function_.variables);
    } else if (word == ".pragma") {
      SkipTo(';');
      Expect(';');
    } else {
      Refuse(module_, where_, lexer_.line(), "'" + std::string(word) + "'");
    }
  }

  void Registers() {
    const std::string_view name = Word();
    const Type type = TypeByName(name);
    if (type == Type::kNone) Refuse(module_, where_, lexer_.line(), "a register of type '" + std::string(name) + "'");
    do {
      const std::string_view reg = Word();
      const int first = static_cast<int>(function_.registers.size());
      int count = 1;
      if (Accept('<')) {
        count = static_cast<int>(Integer());
        Expect('>');
        scopes_.back().ranges.push_back({reg, count, first});
      } else {
        scopes_.back().names[reg] = first;
      }
      if (count < 0 || count > 1'000'000) Bad("unreasonable number of registers");
      function_.registers.insert(function_.registers.end(), static_cast<size_t>(count), type);
    } while (Accept(','));
    Expect(';');
  }

  // .loc file line column [, function_name label[+n], inlined_at file line column ...]. Of code inlined from a header
  // it is the place in the user's own file that counts, the innermost one.
  void Location() {
    bool header = true;
    auto place = [&] {
      SourceLine line;
      line.file = static_cast<uint16_t>(Integer());
      line.line = static_cast<int32_t>(Integer());
      Integer();
      if (line.line > 0 && header) {
        where_ = line;
        header = IsHeader(line.file);
      }
    };
    place();
    while (Accept(',')) {
      const std::string_view what = Word();
      if (what == "function_name") {
        Word();
        if (Accept('+')) Integer();
        Accept(',');
        if (lexer_.Peek().Is("inlined_at")) {
          Word();
          place();
        }
      } else if (what == "inlined_at") {
        place();
      } else {
        Bad("unexpected '" + std::string(what) + "' in .loc");
      }
    }
  }

  void Table(std::string_view name) {
    Word();
    BranchTable table;
    table.name = name;
    do table.targets.push_back(Word());
    while (Accept(','));
    Expect(';');
    function_.tables.push_back(std::move(table));
  }

  int Label(std::string_view name) {
    const auto [it, added] = label_index_.try_emplace(name, static_cast<int>(function_.labels.size()));
    if (!added) Bad("label '" + std::string(name) + "' stands twice");
    function_.labels.push_back(name);
    return it->second;
  }

  int FindRegister(std::string_view name) const {
    for (size_t i = scopes_.size(); i-- > 0;) {
      const Scope& scope = scopes_[i];
      if (!scope.names.empty()) {
        if (const auto it = scope.names.find(name); it != scope.names.end()) return it->second;
      }
      for (const Scope::Range& range : scope.ranges) {
        if (name.size() <= range.prefix.size() || name.substr(0, range.prefix.size()) != range.prefix) continue;
        int number = 0;
        const char* end = name.data() + name.size();
        const auto [stop, error] = std::from_chars(name.data() + range.prefix.size(), end, number);
        if (error == std::errc{} && stop == end && number < range.count) return range.first + number;
      }
    }
    return -1;
  }

  void Emit(Statement statement) {
    statement.where = where_;
    if (!pending_labels_.empty()) {
      statement.label = pending_labels_[0];
      statement.more_labels.assign(pending_labels_.begin() + 1, pending_labels_.end());
      pending_labels_.clear();
    }
    function_.body.push_back(std::move(statement));
  }

  // `opcode` is empty where the instruction starts with its '@' predicate.
  void Instruction(std::string_view opcode) {
    Statement statement;
    statement.ptx_line = lexer_.line();
    if (opcode.empty()) {
      Expect('@');
      statement.predicate_negated = Accept('!');
      const std::string_view name = Word();
      statement.predicate = FindRegister(name);
      if (statement.predicate < 0) Bad("unknown register '" + std::string(name) + "'");
      opcode = Word();
    }
    statement.opcode = opcode;
    if (opcode == "call" || opcode == "call.uni") {
      Call(statement);
    } else if (!lexer_.Peek().Is(';')) {
      do statement.args.push_back(Operand());
      while (Accept(','));
    }
    Expect(';');
    Emit(std::move(statement));
  }

  void Call(Statement& statement) {
    auto names = [&](std::vector<std::string_view>& into) {
      Expect('(');
      if (Accept(')')) return;
      do into.push_back(Word());
      while (Accept(','));
      Expect(')');
    };
    if (lexer_.Peek().Is('(')) {
      names(statement.results);
      Expect(',');
    }
    statement.callee = Word();
    if (FindRegister(statement.callee) >= 0) {
      Refuse(module_, where_, statement.ptx_line, "a call through a function pointer");
    }
    if (Accept(',')) names(statement.arguments);
    if (Accept(',')) Refuse(module_, where_, statement.ptx_line, "a call through a function pointer");
  }

  Arg Operand() {
    Arg arg;
    const Token& token = lexer_.Peek();
    if (token.Is('{')) {
      lexer_.Next();
      arg.kind = Arg::Kind::kVector;
      do arg.elements.push_back(Operand());
      while (Accept(','));
      Expect('}');
      return arg;
    }
    if (token.Is('[')) {
      lexer_.Next();
      Address(arg);
      return arg;
    }
    if (token.kind == Token::Kind::kNumber || token.Is('-')) return Number();
    if (Accept('!')) {
      arg = Operand();
      arg.negated = true;
      return arg;
    }
    Name(arg, Word());
    if (Accept('|')) {
      const std::string_view second = Word();
      if (second == "_") {
        arg.second_sink = true;
      } else {
        arg.second = FindRegister(second);
        if (arg.second < 0) Bad("unknown register '" + std::string(second) + "'");
      }
    }
    if (arg.kind == Arg::Kind::kSymbol && (lexer_.Peek().Is('+') || lexer_.Peek().Is('-'))) {
      if (lexer_.Peek().Is('+')) lexer_.Next();
      arg.offset = Integer();
    }
    return arg;
  }
  void Name(Arg& arg, std::string_view name) {
    if (name == "_") {
      arg.kind = Arg::Kind::kSink;
      return;
    }
    arg.reg = FindRegister(name);
    if (arg.reg >= 0) {
      arg.kind = Arg::Kind::kRegister;
      return;
    }
    arg.symbol = name;
    arg.kind = name[0] == '%' ? Arg::Kind::kSpecial : Arg::Kind::kSymbol;
    if (name == "WARP_SZ") {
      arg.kind = Arg::Kind::kImmediate;
      arg.bits = 32;
    }
  }
  void Address(Arg& arg) {
    if (lexer_.Peek().kind == Token::Kind::kNumber) {
      arg.offset = Integer();
    } else {
      Name(arg, Word());
      if (Accept('+')) {
        arg.offset = Integer();
      } else if (lexer_.Peek().Is('-')) {
        arg.offset = Integer();
      }
    }
    arg.kind = Arg::Kind::kAddress;
    if (lexer_.Peek().Is(',')) Refuse(module_, where_, lexer_.line(), "a texture or tensor address");
    Expect(']');
  }

  Lexer lexer_;
  PtxModule module_;
  Function function_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string_view, int> label_index_;
  std::vector<int> pending_labels_;
  SourceLine where_;
  bool extern_ = false;
};

}  // namespace

uint32_t TypeBytes(Type type) {
  static constexpr std::array<uint8_t, 21> kBytes = {1, 1, 2, 4, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 2, 4, 4, 8, 0};
  return kBytes[static_cast<size_t>(type)];
}

bool TypeIsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

Type TypeByName(std::string_view dotted) {
  for (size_t i = 0; i + 1 < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == dotted) return static_cast<Type>(i);
  }
  return Type::kNone;
}

void Refuse(const PtxModule& module, const SourceLine& where, int ptx_line, const std::string& what) {
  std::string place;
  if (where.line > 0 && where.file < module.files.size() && !module.files[where.file].empty()) {
    place = module.files[where.file] + ":" + std::to_string(where.line);
  } else {
    place = "PTX line " + std::to_string(ptx_line);
  }
  throw Error(KGRPO_ERROR_UNSUPPORTED, place + ": " + what + " is not supported by the GPU interpreter");
}

PtxModule ParsePtx(std::string_view text) {
  return Parser(text).Run();
}

}  // namespace kgrpo::simt
