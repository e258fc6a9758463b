// Reads a CUDA source by its tokens: brackets, and the properties of each declaration at namespace scope. Understands
// the declarations that people write; throws NotUnderstood at others. Used by source_split.cc, which decides which
// compiler gets what.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda_source/lexer.h"

namespace kgrpo::cuda_source {

// Thrown at what is not understood.
struct NotUnderstood {
  size_t offset;  // in the source
  std::string what;
};

// One declaration at namespace scope.
struct Declaration {
  bool for_both = false;  // `using`, `static_assert` or a macro's call: nothing else is known of it
  bool global = false, device = false, host = false, constant = false, is_constexpr = false, type = false,
       is_typedef = false;
  bool is_template = false, assigned = false;
  size_t parameters = 0;  // token of the function's "(", 0 for none
  std::string name;       // before it: "k" of `k<float>(`, "operator+"
  std::vector<size_t> statics;
  size_t body = 0;  // token of the function's "{", 0 where there is none: a variable, type, prototype
  size_t end = 0;   // the token after it
};

class SourceReader {
 public:
  // `source` outlives this. Throws NotUnderstood where it has no tokens: a literal or comment does not end.
  explicit SourceReader(const std::string& source) : source_(source), lexed_(Lex(source)) {
    if (!lexed_.understood) throw NotUnderstood{0, "a literal, comment or spliced token that does not end"};
  }

  size_t size() const { return lexed_.tokens.size(); }
  // An empty token past either end.
  const Token& At(size_t i) const {
    static constexpr Token kNone = {Token::Kind::kPunctuation, 0, 0, ""};
    return i < size() ? lexed_.tokens[i] : kNone;
  }
  [[noreturn]] void Fail(size_t token, const std::string& what) const;

  // The token after the one that closes what opens at `open`.
  size_t SkipGroup(size_t open, size_t end) const;
  // Past `<...>` of a template's parameters or arguments; 0 where there are none.
  size_t EndOfAngles(size_t open, size_t end) const;
  size_t SkipAngles(size_t open, size_t end) const;  // the same; throws where there are none
  size_t SkipToSemicolon(size_t i, size_t end) const;

  // Past the head of a namespace or an alias of one: the token after its "{", or after the alias's ";".
  size_t SkipNamespaceHead(size_t i, size_t end) const;

  // The declaration whose first token is `begin`; it ends before `end`. A macro's call without a semicolon is one.
  Declaration ReadDeclaration(size_t begin, size_t end) const;

 private:
  const std::string& source_;
  const LexedSource lexed_;
};

}  // namespace kgrpo::cuda_source
