#include "simt/ptx/ptx_lexer.h"

namespace kgrpo::simt {
namespace {

bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

}  // namespace

void Lexer::SkipBlanks() {
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

void Lexer::Advance() {
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

}  // namespace kgrpo::simt
