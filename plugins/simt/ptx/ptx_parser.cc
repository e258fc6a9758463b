// Parses the PTX outside of functions' bodies.
#include "simt/ptx/ptx_parser.h"

#include <kgrpo/sdk/error.h>

#include <utility>

namespace kgrpo::simt {

PtxModule Parser::Run() {
  while (lexer_.Peek().kind != Token::Kind::kEnd) ModuleItem();
  return std::move(module_);
}

// ---- tokens ----

void Parser::Bad(const std::string& what) {
  throw Error(KGRPO_ERROR_INVALID, "PTX line " + std::to_string(lexer_.line()) + ": " + what);
}

void Parser::BadToken(const std::string& wanted) {
  const Token& token = lexer_.Peek();
  Bad("expected " + wanted + ", found " +
      (token.kind == Token::Kind::kEnd ? "the end of the text" : "'" + std::string(token.text) + "'"));
}

void Parser::Expect(char c) {
  if (!lexer_.Peek().Is(c)) BadToken(std::string("'") + c + "'");
  lexer_.Next();
}

bool Parser::Accept(char c) {
  if (!lexer_.Peek().Is(c)) return false;
  lexer_.Next();
  return true;
}

std::string_view Parser::Word() {
  if (lexer_.Peek().kind != Token::Kind::kWord) BadToken("a name");
  return lexer_.Next().text;
}

void Parser::SkipTo(char c) {
  while (lexer_.Peek().kind != Token::Kind::kEnd && !lexer_.Peek().Is(c)) lexer_.Next();
}

void Parser::SkipBraces() {
  SkipTo('{');
  int depth = 0;
  do {
    if (lexer_.Peek().kind == Token::Kind::kEnd) BadToken("'}'");
    const Token token = lexer_.Next();
    depth += token.Is('{') - token.Is('}');
  } while (depth > 0);
}

// ---- a module ----

void Parser::ModuleItem() {
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

void Parser::File() {
  Integer();
  if (lexer_.Peek().kind != Token::Kind::kString) BadToken("a file name");
  lexer_.Next();
  while (Accept(',')) Integer();  // time stamp and size
}

// ---- a function ----

void Parser::ParseFunction(bool is_entry) {
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
    const Lexer body = lexer_;
    Expect('{');
    function_.has_body = true;
    scopes_.assign(1, {});
    where_ = {};
    label_index_.clear();
    pending_labels_.clear();
    try {
      Body();
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_UNSUPPORTED) throw;
      if (function_.refused.empty()) function_.refused = error.what();
      lexer_ = body;
      SkipBraces();
      pending_labels_.clear();
    }
    if (!pending_labels_.empty()) Emit({});  // a label at the end of the body
  }
  module_.functions.push_back(std::move(function_));
}

void Parser::Directive() {
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
    function_.refused = Refusal(module_, {}, lexer_.line(), "a thread block cluster ('" + std::string(word) + "')");
    if (lexer_.Peek().kind == Token::Kind::kNumber) numbers();
  } else {
    Bad("unexpected '" + std::string(word) + "'");
  }
}

PtxModule ParsePtx(std::string_view text) { return Parser(text).Run(); }

}  // namespace kgrpo::simt
