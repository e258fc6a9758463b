// Splits PTX text into words, numbers, strings and punctuation, for the parser.
#pragma once

#include <cstdint>
#include <string_view>

namespace kgrpo::simt {

struct Token {
  enum class Kind : uint8_t { kEnd, kWord, kNumber, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;
  int line = 0;
  bool Is(char c) const { return kind == Kind::kPunctuation && text[0] == c; }
  bool Is(std::string_view word) const { return kind == Kind::kWord && text == word; }
};

// Holds one token in view. The tokens' texts point into the text.
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
  void SkipBlanks();
  void Advance();
  // "::" within ".shared::cta"
  bool IsScope() const { return *at_ == ':' && at_ + 1 != end_ && at_[1] == ':'; }

  const char* at_;
  const char* end_;
  int line_ = 1;
  Token token_;
};

}  // namespace kgrpo::simt
