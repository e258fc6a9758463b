// The body of a function: declarations, labels and instructions.
#include "simt/ptx/ptx_parser.h"

#include <utility>

namespace kgrpo::simt {

void Parser::Body() {
  const Nested nested(*this);
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
        SkipTo(';');  // the list of possible targets: the functions' declarations say the same
        Expect(';');
      } else {
        pending_labels_.push_back(Label(word));
      }
    } else {
      Instruction(word);
    }
  }
}

void Parser::BodyDirective(std::string_view word) {
  if (word == ".reg") {
    Registers(Word());
  } else if (word.starts_with(".reg.")) {  // as inline PTX of CUDA's headers has it
    Registers(word.substr(4));
  } else if (word == ".loc") {
    Location();
  } else if (word == ".local" || word == ".shared" || word == ".param") {
    ParseVariables(Space(word), function_.variables);
  } else if (word == ".pragma") {
    no_unroll_ = true;  // "nounroll", of the loop whose label came before: the one pragma that nvcc writes here
    SkipTo(';');
    Expect(';');
  } else {
    Unsupported("'" + std::string(word) + "'");
  }
}

void Parser::Registers(std::string_view name) {
  const Type type = TypeByName(name);
  if (type == Type::kNone) Unsupported("a register of type '" + std::string(name) + "'");
  do {
    const std::string_view reg = Word();
    if (Accept('<')) {
      const int64_t count = Integer();
      Expect('>');
      if (count < 0 || count > 1'000'000) Bad("unreasonable number of registers");
      scopes_.back().ranges.push_back({reg, static_cast<int>(count), type});
    } else {
      scopes_.back().names[reg] = NewRegister(type);
    }
  } while (Accept(','));
  Expect(';');
}

void Parser::Table(std::string_view name) {
  Word();
  BranchTable table;
  table.name = name;
  do table.targets.push_back(Word());
  while (Accept(','));
  Expect(';');
  function_.tables.push_back(std::move(table));
}

int Parser::Label(std::string_view name) {
  const auto [it, added] = label_index_.try_emplace(name, static_cast<int>(function_.labels.size()));
  if (!added) Bad("label '" + std::string(name) + "' stands twice");
  function_.labels.push_back(name);
  return it->second;
}

// `opcode` is empty where the instruction starts with its '@' predicate.
void Parser::Instruction(std::string_view opcode) {
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
  statement.opcode = opcode_ = opcode;
  video_ = opcode[0] == 'v';
  if (opcode == "call" || opcode == "call.uni") {
    Call(statement);
  } else if (!lexer_.Peek().Is(';')) {
    do statement.args.push_back(Operand());
    while (Accept(','));
  }
  Expect(';');
  Emit(std::move(statement));
}

void Parser::Call(Statement& statement) {
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
  statement.callee_register = FindRegister(statement.callee);
  if (Accept(',') && lexer_.Peek().Is('(')) {
    names(statement.arguments);
    if (!Accept(',')) return;
  }
  if (statement.callee_register >= 0) Word();  // its prototype or its targets
}

void Parser::Emit(Statement statement) {
  statement.where = where_;
  if (where_.line == 0 && own_file_) statement.where = {*own_file_, statement.ptx_line};
  statement.no_unroll = no_unroll_;
  no_unroll_ = false;
  if (!pending_labels_.empty()) {
    statement.label = pending_labels_[0];
    statement.more_labels.assign(pending_labels_.begin() + 1, pending_labels_.end());
    pending_labels_.clear();
  }
  function_.body.push_back(std::move(statement));
}

}  // namespace kgrpo::simt
