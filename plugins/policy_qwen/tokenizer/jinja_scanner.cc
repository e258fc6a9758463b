#include "policy_qwen/tokenizer/jinja_scanner.h"

#include <algorithm>
#include <charconv>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::jinja {

void Scanner::SkipSpace() {
  while (at_ < source_.size()) {
    const tokenizer::CodePoint c = tokenizer::CodePointAt(source_, at_);
    if (!IsSpace(static_cast<char32_t>(c.value))) return;
    at_ += c.length;
  }
}

void Scanner::FailHere(const std::string& expected) {
  SkipSpace();
  size_t size = IsNameCharacter(Peek()) ? 0 : 1;
  while (IsNameCharacter(Peek(size)) && size < 40 && IsNameCharacter(Peek())) ++size;
  Fail("expected " + expected + ", found " +
       (at_ >= source_.size() ? "the template's end" : "'" + std::string(source_.substr(at_, size)) + "'"));
}

bool Scanner::Accept(std::string_view text) {
  SkipSpace();
  if (!Starts(text)) return false;
  const char next = Peek(text.size());
  if (IsNameCharacter(text[0]) ? IsNameCharacter(next) : text.size() == 1 && IsHalf(text[0], next)) return false;
  at_ += text.size();
  return true;
}

bool Scanner::IsHalf(char c, char next) const {
  const bool ends =
      (next == '}' && c == '%') || ((c == '-' || c == '+') && (next == '}' || next == '%') && Peek(2) == '}');
  return ends || (next == '=' && (c == '=' || c == '<' || c == '>')) || (next == c && (c == '*' || c == '/'));
}

void Scanner::Expect(std::string_view text) {
  if (!Accept(text)) FailHere("'" + std::string(text) + "'");
}

bool Scanner::IsNext(std::string_view text) {
  const size_t start = at_;
  const bool found = Accept(text);
  at_ = start;
  return found;
}

std::string Scanner::AcceptAny(Words words) {
  for (const std::string_view word : words) {
    if (Accept(word)) return std::string(word);
  }
  return "";
}

std::string Scanner::Note(std::string word) {
  if (first_ != nullptr) first_->words.insert(word);
  return word;
}

std::string Scanner::Name() {
  SkipSpace();
  size_t size = 0;
  while (IsNameCharacter(Peek(size))) ++size;
  if (size == 0 || std::isdigit(static_cast<unsigned char>(Peek()))) FailHere("a name");
  at_ += size;
  return Note(std::string(source_.substr(at_ - size, size)));
}

Value Scanner::Number() {
  const size_t start = at_;
  const auto digits = [&] {
    while (std::isdigit(static_cast<unsigned char>(Peek())) || Peek() == '_') ++at_;
  };
  digits();
  bool real = Peek() == '.' && std::isdigit(static_cast<unsigned char>(Peek(1)));
  if (real) ++at_, digits();
  const size_t sign = Peek(1) == '-' || Peek(1) == '+' ? 2 : 1;
  if ((Peek() | 0x20) == 'e' && std::isdigit(static_cast<unsigned char>(Peek(sign)))) {
    real = true;
    at_ += sign;
    digits();
  }
  std::string text(source_.substr(start, at_ - start));
  std::erase(text, '_');
  int64_t whole = 0;
  const bool fits = std::from_chars(text.data(), text.data() + text.size(), whole).ec == std::errc();
  if (IsNameCharacter(Peek()) || (!real && (!fits || (text.size() > 1 && text[0] == '0'))))
    Fail("the number " + text + " is not known here");
  return real ? Value(std::stod(text)) : Value(whole);
}

std::string Scanner::String() {
  static constexpr std::string_view kLetters = "ntrabfv\\'\"\n", kMeanings = "\n\t\r\a\b\f\v\\'\"";
  const char quote = Peek();
  std::string text;
  for (++at_; Peek() != quote || at_ >= source_.size(); ++at_) {
    if (at_ >= source_.size()) Fail("a string has no end");
    if (Peek() != '\\') {
      text += Peek();
      continue;
    }
    const char c = Peek(1);
    ++at_;
    const size_t letter = kLetters.find(c), digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      uint32_t code = 0;
      const char *start = source_.data() + at_ + 1, *end = start + digits;
      const bool whole = at_ + digits < source_.size() && std::from_chars(start, end, code, 16).ptr == end;
      if (!whole || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        Fail("a string has an escape that is no character");
      tokenizer::AppendUtf8(code, text);
      at_ += digits;
    } else if (c == 'N' || std::isdigit(static_cast<unsigned char>(c))) {
      Fail(std::string("the escape \\") + c + " is not known here");
    } else if (letter < kMeanings.size()) {
      text += kMeanings[letter];
    } else if (letter == kLetters.npos) {
      text += std::string("\\") + c;
    }
  }
  ++at_;
  return Note(text);
}

size_t Scanner::PlainText(std::string* out) {
  size_t tag = source_.find('{', at_);
  while (tag < source_.size() &&
         (tag + 1 == source_.size() || std::string_view("{%#").find(source_[tag + 1]) == std::string_view::npos)) {
    tag = source_.find('{', tag + 1);
  }
  tag = std::min(tag, source_.size());
  std::string_view text = source_.substr(at_, tag - at_);
  const char kind = tag < source_.size() ? source_[tag + 1] : '\0',
             sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
  const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
  const bool at_line = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
  const bool blanks = kind != '\0' && kind != '{' && sign != '-' && sign != '+' && at_line;
  if (blanks || (kind != '\0' && sign == '-')) {
    size_t kept = text.size();
    for (size_t least = blanks ? line : 0; kept > least;) {
      const tokenizer::CodePoint c = tokenizer::CodePointBefore(text, kept);
      if (!IsSpace(static_cast<char32_t>(c.value))) break;
      kept -= c.length;
    }
    if (!blanks || kept == line) text = text.substr(0, kept);
  }
  *out += text;
  return tag;
}

void Scanner::Comment() {
  const size_t end = source_.find("#}", at_);
  if (end == source_.npos) Fail("a comment has no end");
  at_ = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? end - 1 : end;
  Close("#}");
}

void Scanner::Close(std::string_view closing) {
  if (closing != "#}") SkipSpace();
  const char sign = Peek() == '-' || (Peek() == '+' && closing != "}}") ? Peek() : '\0';
  const size_t start = at_;
  at_ += sign != '\0' ? 1 : 0;
  if (!Starts(closing)) {
    at_ = start;
    FailHere(std::string(closing));
  }
  at_ += closing.size();
  if (sign == '-') SkipSpace();
  if (sign == '\0' && closing != "}}" && Peek() == '\n') ++at_;
}

}  // namespace kgrpo::jinja
