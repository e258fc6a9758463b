#include "coder_gpt4o/source_text.h"

#include <cctype>
#include <vector>

namespace kgrpo::coder_gpt4o {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

bool IsSpace(char c) {
  return IsBlank(c) || c == '\n';
}

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Walks over source and gives what stands there without its comments.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  // Literals whole, or without what is between their quotes; a comment becomes a blank.
  std::string WithoutComments(bool empty_literals) {
    std::string code;
    code.reserve(source_.size());
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (Ahead("//")) {
        at_ = EndOfLineComment();
        code += ' ';
      } else if (Ahead("/*")) {
        const size_t end = source_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? source_.size() : end + 2;
        code += ' ';
      } else if (c == '"' || (c == '\'' && !IsDigitSeparator())) {
        const size_t begin = at_;
        at_ = c == '"' && IsRaw() ? EndOfRaw() : EndOfLiteral(c);
        if (empty_literals)
          code.append(2, c);
        else
          code += source_.substr(begin, at_ - begin);
      } else {
        code += c;
        ++at_;
      }
    }
    return code;
  }

  // One past the literal that begins here; a line that ends first ends it.
  size_t EndOfLiteral(char quote) const {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote && source_[end] != '\n') end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return source_.size();
    return source_[end] == quote ? end + 1 : end;
  }

 private:
  bool Ahead(std::string_view text) const { return source_.substr(at_, text.size()) == text; }

  // A backslash at the end of the line carries the comment on to the next.
  size_t EndOfLineComment() const {
    size_t end = source_.find('\n', at_);
    while (end != std::string_view::npos && source_[end - 1] == '\\') end = source_.find('\n', end + 1);
    return end == std::string_view::npos ? source_.size() : end;
  }

  // 1'000'000, but not L'a'.
  bool IsDigitSeparator() const {
    return at_ > 0 && at_ + 1 < source_.size() && IsWord(source_[at_ - 1]) && IsWord(source_[at_ + 1]) &&
           (at_ + 2 >= source_.size() || source_[at_ + 2] != '\'');
  }

  bool IsRaw() const {
    if (at_ == 0 || source_[at_ - 1] != 'R') return false;
    size_t begin = at_ - 1;
    while (begin > 0 && IsWord(source_[begin - 1])) --begin;
    const std::string_view prefix = source_.substr(begin, at_ - begin);
    return prefix == "R" || prefix == "u8R" || prefix == "uR" || prefix == "UR" || prefix == "LR";
  }

  // Of a delimiter longer than C++ allows nothing is searched: that would take its length for each character behind it.
  size_t EndOfRaw() const {
    constexpr size_t kLongestDelimiter = 16;
    const std::string_view delimiter = source_.substr(at_ + 1, kLongestDelimiter + 1);
    const size_t length = delimiter.find_first_of("( )\\\t\n\v\f");
    if (length == std::string_view::npos || delimiter[length] != '(') return EndOfLiteral('"');
    const size_t open = at_ + 1 + length;
    const std::string closing = ")" + std::string(source_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const size_t end = source_.find(closing, open);
    return end == std::string_view::npos ? source_.size() : end + closing.size();
  }

  std::string_view source_;
  size_t at_ = 0;
};

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

// Of each "(", one past the ")" that closes it; 0 where none does, and of every other character.
std::vector<size_t> ParenthesesEnds(std::string_view text) {
  std::vector<size_t> ends(text.size(), 0), open;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '(') open.push_back(at);
    if (text[at] != ')' || open.empty()) continue;
    ends[open.back()] = at + 1;
    open.pop_back();
  }
  return ends;
}

}  // namespace

std::string FunctionName(std::string_view signature) {
  const std::string code = Reader(signature).WithoutComments(/*empty_literals=*/true);
  const size_t open = code.find('(');
  if (open == std::string::npos) return "";
  size_t end = open;
  while (end > 0 && IsSpace(code[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && IsWord(code[begin - 1])) --begin;
  return code.substr(begin, end - begin);
}

bool Defines(std::string_view source, std::string_view function) {
  if (function.empty()) return false;
  const std::string code = Reader(source).WithoutComments(/*empty_literals=*/true);
  const std::vector<size_t> ends = ParenthesesEnds(code);
  for (size_t at = code.find(function); at != std::string::npos; at = code.find(function, at + function.size())) {
    const size_t end = at + function.size();
    if ((at > 0 && IsWord(code[at - 1])) || (end < code.size() && IsWord(code[end]))) continue;
    const size_t open = SkipSpace(code, end);
    if (open >= code.size() || code[open] != '(') continue;
    if (ends[open] == 0) continue;
    size_t after = SkipSpace(code, ends[open]);
    if (std::string_view(code).substr(after).starts_with("noexcept")) after = SkipSpace(code, after + 8);
    if (after < code.size() && code[after] == '{') return true;
  }
  return false;
}

bool IsBalanced(std::string_view source) {
  std::string open;
  for (const char c : Reader(source).WithoutComments(/*empty_literals=*/true)) {
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c != ')' && c != ']' && c != '}') continue;
    const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open.empty() || open.back() != wanted) return false;
    open.pop_back();
  }
  return open.empty();
}

std::string Essence(std::string_view source) {
  const std::string code = Reader(source).WithoutComments(/*empty_literals=*/false);
  std::string essence;
  bool space = false, line = false;
  for (size_t at = 0; at < code.size();) {
    const char c = code[at];
    if (IsSpace(c)) {
      (c == '\n' ? line : space) = true;
      ++at;
      continue;
    }
    if (!essence.empty() && line)
      essence += '\n';
    else if (!essence.empty() && space)
      essence += ' ';
    space = line = false;
    size_t end = at + 1;
    if (c == '"') end = at + Reader(std::string_view(code).substr(at)).EndOfLiteral(c);
    essence.append(code, at, end - at);
    at = end;
  }
  return essence;
}

}  // namespace kgrpo::coder_gpt4o
