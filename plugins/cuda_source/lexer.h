// Splits CUDA C++ into tokens, enough to find directives, declarations and launches without a compiler. The one lexer
// of everything that reads sources: evaluators, drafts of problems and coders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::cuda_source {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // ignored at the beginning of a source

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

// For each opening bracket the token that closes it; 0 if there is none, and for every other token. Takes linear time:
// sources may be made to be slow. *balanced: whether every bracket has its partner.
std::vector<size_t> Closes(const std::vector<Token>& tokens, bool* balanced = nullptr);

// The word of a directive ("include") and the rest of its line, without the comments before each.
struct Directive {
  std::string_view word, rest;
};
Directive ReadDirective(std::string_view line);

// The header that `"x.h"` or `<x.h>` at the beginning of a text names, without its marks; "" for other texts.
std::string_view HeaderNamed(std::string_view words);

// The header that a directive includes; "" for another directive, and for a header named through a macro.
std::string_view IncludedHeader(const Token& token);

// The name before the first "(", which is the function's in a C declaration; "" if there is none.
std::string FunctionName(std::string_view signature);

// Returns whether the source has a function of this name with a body. Comments, literals and
// branches that no compiler reads do not count.
bool DefinesFunction(std::string_view source, std::string_view name);

// The source with every backslash-newline removed: what the compiler's preprocessor sees as lines. `keep_lines`: the
// line ends follow after the next one, so that lines keep their numbers.
std::string RemoveSplices(std::string_view source, bool keep_lines = false);

}  // namespace kgrpo::cuda_source
