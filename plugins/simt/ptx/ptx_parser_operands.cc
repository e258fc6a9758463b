// The operands of an instruction, and constants.
#include "simt/ptx/ptx_parser.h"

#include <charconv>
#include <cstring>

namespace kgrpo::simt {

Arg Parser::Operand() {
  const Nested nested(*this);
  Arg arg;
  const Token& token = lexer_.Peek();
  if (token.Is('{')) {
    lexer_.Next();
    arg.kind = Arg::Kind::kVector;
    do arg.elements.push_back(Operand());
    while (Accept(','));
    Expect('}');
    if (lexer_.Peek().Is('|')) Unsupported("the residency of a sparse texture ('" + std::string(opcode_) + "')");
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

void Parser::Name(Arg& arg, std::string_view name) {
  if (name == "_") {
    arg.kind = Arg::Kind::kSink;
    return;
  }
  arg.reg = FindRegister(name);
  if (const size_t dot = name.find('.'); arg.reg < 0 && dot != std::string_view::npos && video_) {
    arg.reg = FindRegister(name.substr(0, dot));  // "%r1.b0"
    arg.selector = name.substr(dot + 1);
  }
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

void Parser::Address(Arg& arg) {
  if (lexer_.Peek().kind == Token::Kind::kNumber) {
    arg.offset = Integer();
  } else {
    Name(arg, Word());
    if (Accept('+') || lexer_.Peek().Is('-')) arg.offset = Integer();
  }
  arg.kind = Arg::Kind::kAddress;
  if (Accept(',')) {
    if (opcode_.starts_with("cp.")) Unsupported("a tensor address ('" + std::string(opcode_) + "')");
    arg.elements.push_back(Operand());
    if (lexer_.Peek().Is(',')) Unsupported("a sampler beside its texture ('" + std::string(opcode_) + "')");
  }
  Expect(']');
}

int Parser::NewRegister(Type type) {
  function_.registers.push_back(type);
  return static_cast<int>(function_.registers.size()) - 1;
}

// A register of a range exists from its first mention on: a range may name a million that nothing uses.
int Parser::FindRegister(std::string_view name) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (!scope.names.empty()) {
      if (const auto it = scope.names.find(name); it != scope.names.end()) return it->second;
    }
    for (const Scope::Range& range : scope.ranges) {
      if (name.size() <= range.prefix.size() || name.substr(0, range.prefix.size()) != range.prefix) continue;
      const std::string_view digits = name.substr(range.prefix.size());
      int number = 0;
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (error != std::errc{} || stop != digits.data() + digits.size() || number < 0 || number >= range.count ||
          (digits[0] == '0' && digits.size() > 1))
        continue;
      return scope.names[name] = NewRegister(range.type);
    }
  }
  return -1;
}

// An integer or a float constant, with its sign.
Arg Parser::Number() {
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
      (text.find_first_of("eE") != std::string_view::npos && text.substr(0, 2) != "0x" && text.substr(0, 2) != "0X")) {
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

}  // namespace kgrpo::simt
