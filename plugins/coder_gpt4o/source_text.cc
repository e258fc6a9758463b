#include "coder_gpt4o/source_text.h"

#include <algorithm>
#include <cctype>
#include <iterator>
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

// Scans source text and removes its comments.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  // The place of a literal in the text that WithoutComments returns.
  struct Span {
    size_t begin = 0, end = 0;
  };

  // The source with each comment replaced by a blank. `empty_literals`: literals keep their quotes only.
  std::string WithoutComments(bool empty_literals, std::vector<Span>* literals = nullptr) {
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
        if (literals != nullptr) literals->push_back({code.size() - (at_ - begin), code.size()});
      } else {
        code += c;
        ++at_;
      }
    }
    return code;
  }

 private:
  // The end of the literal that begins here: after its closing quote, or at the end of the line.
  size_t EndOfLiteral(char quote) const {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote && source_[end] != '\n') end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return source_.size();
    return source_[end] == quote ? end + 1 : end;
  }

  bool Ahead(std::string_view text) const { return source_.substr(at_, text.size()) == text; }

  // A backslash at the end of the line continues the comment on the next.
  size_t EndOfLineComment() const {
    size_t end = source_.find('\n', at_);
    while (end != std::string_view::npos && source_.substr(0, end).ends_with(source_[end - 1] == '\r' ? "\\\r" : "\\"))
      end = source_.find('\n', end + 1);
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

  // A delimiter longer than C++ allows is not searched for: the search would cost its length per character.
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

// The end of a line continuation (backslash and line end) at `at`; 0 if there is none.
size_t EndOfContinuation(std::string_view text, size_t at) {
  if (text[at] != '\\') return 0;
  const std::string_view rest = text.substr(at + 1);
  return rest.starts_with("\n") ? at + 2 : rest.starts_with("\r\n") ? at + 3 : 0;
}

// True if the two characters would join into one word or operator without a blank between them.
bool WouldJoin(char a, char b) {
  constexpr std::string_view kQuotes = "\"'";
  const auto is_word = [&](char c) { return IsWord(c) || kQuotes.find(c) != std::string_view::npos; };
  if (is_word(a) && is_word(b)) return true;
  if (b == '=' && std::string_view("+-*/%&|^=<>!").find(a) != std::string_view::npos) return true;
  if (a == b) return std::string_view("+-&|<>:#").find(a) != std::string_view::npos;
  constexpr std::string_view kPairs[] = {"->", "//", "/*", "<:", ":>", "<%", "%>", "%:"};
  return std::any_of(std::begin(kPairs), std::end(kPairs), [&](std::string_view p) { return p[0] == a && p[1] == b; });
}

// For each "(" the position after its closing ")"; 0 if it is not closed, and for every other character.
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

// Keeps a blank where two words or operators would join without it. Line ends and blanks stay in preprocessor
// directives. Literals are unchanged.
std::string Essence(std::string_view source) {
  std::vector<Reader::Span> literals;
  const std::string code = Reader(source).WithoutComments(/*empty_literals=*/false, &literals);
  std::string essence;
  bool space = false, line = false, directive = false;
  auto literal = literals.begin();
  for (size_t at = 0; at < code.size();) {
    const bool is_literal = literal != literals.end() && literal->begin == at;
    const char c = code[at];
    if (!is_literal && IsSpace(c)) {
      (c == '\n' ? line : space) = true;
      ++at;
      continue;
    }
    if (const size_t next = is_literal ? 0 : EndOfContinuation(code, at); next > 0) {
      at = next;
      continue;
    }
    const bool first = essence.empty() || line;
    if (!essence.empty() && line && (directive || c == '#')) {
      essence += '\n';
    } else if (!essence.empty() && (space || line) && (directive || WouldJoin(essence.back(), c))) {
      essence += ' ';
    }
    if (first) directive = c == '#';
    space = line = false;
    const size_t end = is_literal ? (literal++)->end : at + 1;
    essence.append(code, at, end - at);
    at = end;
  }
  return essence;
}

}  // namespace kgrpo::coder_gpt4o
