#include "cuda_source/lexer.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cuda_source/conditionals.h"

namespace kgrpo::cuda_source {
namespace {

bool IsIdentifierStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool IsIdentifierPart(char c) { return IsIdentifierStart(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  LexedSource Run() {
    bool line_start = true;
    if (StartsWith(kByteOrderMark)) at_ = kByteOrderMark.size();
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

  // Tokens in a directive are found as in other lines: `"/*"` begins no comment. A quote without its partner, as in
  // `#error don't`, takes the rest of the line.
  void LexDirective() {
    const size_t begin = at_;
    in_directive_ = true;
    while (at_ < source_.size() && source_[at_] != '\n') {
      if (source_[at_] == '\\' && IsSplice(at_)) {
        at_ = source_.find('\n', at_) + 1;
      } else if (StartsWith("//")) {
        break;
      } else if (StartsWith("/*")) {
        SkipBlockComment();
      } else if (source_[at_] == '<' && ReadDirective(source_.substr(begin, at_ - begin)).word == "include") {
        at_ = std::min(source_.find_first_of(">\n", at_), source_.size());
      } else if (IsTight(source_[at_])) {
        LexToken();
      } else {
        ++at_;
      }
    }
    in_directive_ = false;
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
        const bool separator = d == '\'' && at_ + 1 < source_.size() && IsIdentifierPart(source_[at_ + 1]);
        if (!IsIdentifierPart(d) && d != '.' && !separator && !exponent_sign) break;
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
        result_.understood = result_.understood && in_directive_;
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
    if (!in_directive_) result_.tokens.push_back({kind, begin, at_, source_.substr(begin, at_ - begin)});
  }

  std::string_view source_;
  size_t at_ = 0;
  bool in_directive_ = false;
  LexedSource result_;
};

// Past blanks and comments /* */ within a line.
size_t SkipBlanks(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (std::string_view(" \t\r\f\v").find(text[at]) != std::string_view::npos) {
      ++at;
    } else if (text.substr(at, 2) == "/*") {
      const size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
    } else {
      break;
    }
  }
  return std::min(at, text.size());
}

}  // namespace

LexedSource Lex(std::string_view source) { return Lexer(source).Run(); }

std::vector<size_t> Closes(const std::vector<Token>& tokens, bool* balanced) {
  constexpr std::string_view kOpening = "([{", kClosing = ")]}";
  std::vector<size_t> closes(tokens.size(), 0), open;
  bool matched = true;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kPunctuation || tokens[i].text.size() != 1) continue;
    if (kOpening.find(tokens[i].text) != std::string_view::npos) open.push_back(i);
    const size_t closing = kClosing.find(tokens[i].text);
    if (closing == std::string_view::npos) continue;
    if (open.empty() || tokens[open.back()].text[0] != kOpening[closing]) {
      matched = false;
    } else {
      closes[open.back()] = i;
      open.pop_back();
    }
  }
  if (balanced != nullptr) *balanced = matched && open.empty();
  return closes;
}

Directive ReadDirective(std::string_view line) {
  const size_t begin = SkipBlanks(line, line.starts_with("%:") ? 2 : 1);  // "%:" is another "#"
  size_t end = begin;
  while (end < line.size() && IsIdentifierPart(line[end])) ++end;
  return {line.substr(begin, end - begin), line.substr(SkipBlanks(line, end))};
}

std::string_view HeaderNamed(std::string_view words) {
  const size_t end = words.starts_with('<')   ? words.find('>')
                     : words.starts_with('"') ? words.find('"', 1)
                                              : std::string_view::npos;
  return end == std::string_view::npos ? "" : words.substr(1, end - 1);
}

std::string_view IncludedHeader(const Token& token) {
  if (token.kind != Token::Kind::kDirective) return "";
  const Directive directive = ReadDirective(token.text);
  return directive.word == "include" ? HeaderNamed(directive.rest) : "";
}

std::string FunctionName(std::string_view signature) {
  const std::vector<Token> tokens = Lex(signature).tokens;
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i].Is("(") && tokens[i - 1].kind == Token::Kind::kIdentifier) return std::string(tokens[i - 1].text);
    if (tokens[i].Is("(")) break;
  }
  return "";
}

bool DefinesFunction(std::string_view source, std::string_view name) {
  if (name.empty() || source.find(name) == std::string_view::npos) return false;
  const std::string active = WithoutInactive(source).text;
  const std::vector<Token> tokens = Lex(active).tokens;
  const std::vector<size_t> closes = Closes(tokens);
  const auto is = [&](size_t i, std::string_view text) { return i < tokens.size() && tokens[i].Is(text); };
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!is(i, name) || !is(i + 1, "(") || closes[i + 1] == 0) continue;
    const size_t after = closes[i + 1] + 1;
    if (is(is(after, "noexcept") ? after + 1 : after, "{")) return true;
  }
  return false;
}

std::string RemoveSplices(std::string_view source, bool keep_lines) {
  std::string text;
  text.reserve(source.size());
  size_t removed = 0;  // line ends since the last one that stays
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\\') {
      size_t end = i + 1;
      while (end < source.size() && (source[end] == ' ' || source[end] == '\t' || source[end] == '\r')) ++end;
      if (end < source.size() && source[end] == '\n') {
        i = end;
        removed += keep_lines ? 1 : 0;
        continue;
      }
    }
    text += source[i];
    if (source[i] == '\n') text.append(std::exchange(removed, 0), '\n');
  }
  return text;
}

}  // namespace kgrpo::cuda_source
