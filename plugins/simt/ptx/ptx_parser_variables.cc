// Declarations of variables and parameters, with their initial values.
#include "simt/ptx/ptx_parser.h"

#include <utility>

namespace kgrpo::simt {
namespace {

constexpr uint64_t kMostInitialElements = uint64_t{1} << 40;  // so that no size overflows
constexpr uint64_t kMostInitialBytes = uint64_t{1} << 28;     // of one variable

}  // namespace

Variable::Space Parser::Space(std::string_view word) {
  if (word == ".const") return Variable::Space::kConst;
  if (word == ".shared") return Variable::Space::kShared;
  if (word == ".local") return Variable::Space::kLocal;
  if (word == ".param") return Variable::Space::kParam;
  return Variable::Space::kGlobal;
}

// After the state space: [.align n] [.ptr ...] .type name [dims] [= initialiser], further names after commas.
void Parser::ParseVariables(Variable::Space space, std::vector<Variable>& into) {
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

Variable Parser::ParseVariable(Variable::Space space) {
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

void Parser::Declarator(Variable& variable) {
  variable.name = Word();
  uint64_t count = 1;
  bool unsized = false;
  while (Accept('[')) {
    if (Accept(']')) {
      unsized = true;
      continue;
    }
    const auto extent = static_cast<uint64_t>(Integer());
    if (extent != 0 && count > kMostInitialElements / extent)
      Bad("'" + std::string(variable.name) + "' is larger than any memory");
    count *= extent;
    Expect(']');
  }
  variable.bytes = unsized ? 0 : count * TypeBytes(variable.type);
  if (Accept('=')) Initialiser(variable, unsized);
}

void Parser::Initialiser(Variable& variable, bool unsized) {
  if (lexer_.Peek().Is('{')) {
    InitialList(variable);
  } else {
    InitialValue(variable);
  }
  if (unsized) variable.bytes = variable.initial.size();
  if (variable.bytes > kMostInitialBytes) {
    Bad("'" + std::string(variable.name) + "' has initial values and " + std::to_string(variable.bytes) +
        " bytes; at most " + std::to_string(kMostInitialBytes) + " are kept");
  }
  if (variable.initial.size() > variable.bytes) Bad("too many initialisers of '" + std::string(variable.name) + "'");
  variable.initial.resize(variable.bytes);
}

void Parser::InitialList(Variable& variable) {
  const Nested nested(*this);
  Expect('{');
  if (Accept('}')) return;
  do {
    if (lexer_.Peek().Is('{')) {
      InitialList(variable);
    } else {
      InitialValue(variable);
    }
  } while (Accept(','));
  Expect('}');
}

void Parser::InitialValue(Variable& variable) {
  const uint32_t element = TypeBytes(variable.type);
  auto put = [&](uint64_t bits) {
    for (uint32_t i = 0; i < element; ++i) variable.initial.push_back(static_cast<uint8_t>(bits >> (8 * i)));
  };
  if (lexer_.Peek().kind == Token::Kind::kWord) {  // an address
    std::string_view symbol = Word();
    const bool generic = symbol == "generic";
    if (generic) {
      Expect('(');
      symbol = Word();
      Expect(')');
    }
    const int64_t addend = Accept('+') ? Integer() : 0;
    if (element != 8) Refuse(module_, {}, lexer_.line(), "an address in a variable of less than 64 bits");
    variable.references.push_back({variable.initial.size(), symbol, addend, generic});
    put(0);
    return;
  }
  const Arg number = Number();
  if (number.number == Arg::Number::kDouble && element == 4)
    Refuse(module_, {}, lexer_.line(), "a double initialiser of a 32-bit variable");
  put(number.bits);
}

std::vector<Variable> Parser::Parameters() {
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

}  // namespace kgrpo::simt
