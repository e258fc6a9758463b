// Splits CUDA C++ into tokens, enough to find directives, declarations and launches without a compiler. Used by the
// include policy and by the fast compile route.
#ifndef KGRPO_EVALUATOR_SHARED_SOURCE_LEXER_H
#define KGRPO_EVALUATOR_SHARED_SOURCE_LEXER_H

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::evaluator {

struct Token {
  enum class Kind {
    kDirective,   // a whole preprocessor line, with continuations, without its newline
    kIdentifier,  // and keywords
    kNumber,
    kString,  // "..." with prefix, raw strings too
    kCharacter,
    kPunctuation,  // one character, but "::", "->", "<<<" and ">>>" whole
  };
  Kind kind;
  size_t begin, end;  // offsets in the source
  std::string_view text;

  bool Is(std::string_view wanted) const {
    return text == wanted && (kind == Kind::kIdentifier || kind == Kind::kPunctuation);
  }
};

struct LexedSource {
  std::vector<Token> tokens;
  bool understood = true;  // false: an unterminated comment or string, or a line spliced within a token
};

// The views refer to `source`, which must outlive them.
LexedSource Lex(std::string_view source);

// Returns whether the source has a function of this name with a body.
bool DefinesFunction(std::string_view source, std::string_view name);

// The source with every backslash-newline removed: what the compiler's preprocessor sees as lines.
std::string RemoveSplices(std::string_view source);

}  // namespace kgrpo::evaluator

#endif
