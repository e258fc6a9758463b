#include "evaluator_shared/source_lexer.h"

#include <cctype>

namespace kgrpo::evaluator {
namespace {

bool IsIdentifierStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool IsIdentifierPart(char c) {
  return IsIdentifierStart(c) || std::isdigit(static_cast<unsigned char>(c));
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  LexedSource Run() {
    bool line_start = true;
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\n') {
        line_start = true;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (c == '\\' && IsSplice(at_)) {
        const size_t next = source_.find('\n', at_) + 1;
        if (at_ > 0 && IsTight(source_[at_ - 1]) && next < source_.size() && IsTight(source_[next]))
          result_.understood = false;  // it may splice one token
        at_ = next;
      } else if (StartsWith("//")) {
        SkipLineComment();
      } else if (StartsWith("/*")) {
        SkipBlockComment();
      } else if (line_start && (c == '#' || StartsWith("%:"))) {
        LexDirective();
      } else {
        line_start = false;
        LexToken();
      }
    }
    return std::move(result_);
  }

 private:
  bool StartsWith(std::string_view text) const { return source_.substr(at_, text.size()) == text; }

  bool IsSplice(size_t position) const {
    for (++position; position < source_.size(); ++position) {
      if (source_[position] == '\n') return true;
      if (source_[position] != ' ' && source_[position] != '\t' && source_[position] != '\r') return false;
    }
    return false;
  }

  static bool IsTight(char c) { return std::isspace(static_cast<unsigned char>(c)) == 0; }

  void SkipLineComment() {
    while (at_ < source_.size() && source_[at_] != '\n') {
      if (source_[at_] == '\\' && IsSplice(at_)) at_ = source_.find('\n', at_);
      ++at_;
    }
  }

  void SkipBlockComment() {
    const size_t end = source_.find("*/", at_ + 2);
    if (end == std::string_view::npos) result_.understood = false;
    at_ = end == std::string_view::npos ? source_.size() : end + 2;
  }

  void LexDirective() {
    const size_t begin = at_;
    while (at_ < source_.size() && source_[at_] != '\n') {
      if (source_[at_] == '\\' && IsSplice(at_)) {
        at_ = source_.find('\n', at_) + 1;
      } else if (StartsWith("//")) {
        break;
      } else if (StartsWith("/*")) {
        SkipBlockComment();
      } else {
        ++at_;
      }
    }
    Push(Token::Kind::kDirective, begin);
  }

  void LexToken() {
    const size_t begin = at_;
    const char c = source_[at_];
    if (IsIdentifierStart(c)) {
      while (at_ < source_.size() && IsIdentifierPart(source_[at_])) ++at_;
      const std::string_view word = source_.substr(begin, at_ - begin);
      const bool prefix = word == "R" || word == "L" || word == "u8" || word == "u" || word == "U" || word == "LR" ||
                          word == "uR" || word == "UR" || word == "u8R";
      if (prefix && at_ < source_.size() && source_[at_] == '"') {
        return word.back() == 'R' ? LexRawString(begin) : LexQuoted(begin, '"', Token::Kind::kString);
      }
      return Push(Token::Kind::kIdentifier, begin);
    }
    if (c == '"') return LexQuoted(begin, '"', Token::Kind::kString);
    if (c == '\'') return LexQuoted(begin, '\'', Token::Kind::kCharacter);
    const bool dotted_number =
        c == '.' && at_ + 1 < source_.size() && std::isdigit(static_cast<unsigned char>(source_[at_ + 1]));
    if (std::isdigit(static_cast<unsigned char>(c)) || dotted_number) {
      while (at_ < source_.size()) {
        const char d = source_[at_];
        const char before = at_ > begin ? source_[at_ - 1] : '0';
        const bool exponent_sign =
            (d == '+' || d == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
        if (!IsIdentifierPart(d) && d != '.' && d != '\'' && !exponent_sign) break;
        ++at_;
      }
      return Push(Token::Kind::kNumber, begin);
    }
    size_t length = 1;
    for (std::string_view longer : {"<<<", ">>>", "::", "->"}) {
      if (StartsWith(longer)) {
        length = longer.size();
        break;
      }
    }
    at_ += length;
    Push(Token::Kind::kPunctuation, begin);
  }

  void LexQuoted(size_t begin, char quote, Token::Kind kind) {
    at_ = source_.find(quote, at_) + 1;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\n') {
        result_.understood = false;
        return Push(kind, begin);
      }
      at_ += source_[at_] == '\\' ? 2 : 1;
    }
    if (at_ >= source_.size()) {
      result_.understood = false;
      at_ = source_.size();
    } else {
      ++at_;
    }
    Push(kind, begin);
  }

  void LexRawString(size_t begin) {
    const size_t length = source_.substr(at_, 18).find('(');  // a delimiter has at most 16 characters
    const size_t open = at_ + length;
    if (length == std::string_view::npos) {
      result_.understood = false;
      ++at_;
      return;
    }
    const std::string close = ")" + std::string(source_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const size_t end = source_.find(close, open);
    if (end == std::string_view::npos) result_.understood = false;
    at_ = end == std::string_view::npos ? source_.size() : end + close.size();
    Push(Token::Kind::kString, begin);
  }

  void Push(Token::Kind kind, size_t begin) {
    result_.tokens.push_back({kind, begin, at_, source_.substr(begin, at_ - begin)});
  }

  std::string_view source_;
  size_t at_ = 0;
  LexedSource result_;
};

}  // namespace

LexedSource Lex(std::string_view source) {
  return Lexer(source).Run();
}

bool DefinesFunction(std::string_view source, std::string_view name) {
  const LexedSource lexed = Lex(source);
  const auto is = [&](size_t i, std::string_view text) { return i < lexed.tokens.size() && lexed.tokens[i].Is(text); };
  for (size_t i = 0; i < lexed.tokens.size(); ++i) {
    if (!is(i, name) || !is(i + 1, "(")) continue;
    size_t close = i + 1;
    for (int depth = 0; close < lexed.tokens.size(); ++close) {
      depth += is(close, "(") ? 1 : is(close, ")") ? -1 : 0;
      if (depth == 0) break;
    }
    if (is(close + 1, "{")) return true;
  }
  return false;
}

std::string RemoveSplices(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\\') {
      size_t end = i + 1;
      while (end < source.size() && (source[end] == ' ' || source[end] == '\t' || source[end] == '\r')) ++end;
      if (end < source.size() && source[end] == '\n') {
        i = end;
        continue;
      }
    }
    text += source[i];
  }
  return text;
}

}  // namespace kgrpo::evaluator
