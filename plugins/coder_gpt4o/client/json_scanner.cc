#include "coder_gpt4o/client/json_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr int kMostLevels = 16;     // of arrays and objects in each other
constexpr size_t kMostDigits = 18;  // that fit every kind of number

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Bytes of a string that stand for themselves: ASCII but for quote, backslash and control characters.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}();

void AppendUtf8(uint32_t character, std::string& to) {
  if (character < 0x80) {
    to += static_cast<char>(character);
    return;
  }
  if (character < 0x800) {
    to += static_cast<char>(0xC0 | (character >> 6));
  } else {
    to += static_cast<char>(0xE0 | (character >> 12));
    to += static_cast<char>(0x80 | ((character >> 6) & 0x3F));
  }
  to += static_cast<char>(0x80 | (character & 0x3F));
}

}  // namespace

void JsonScanner::SkipBlanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

bool JsonScanner::Take(char mark) {
  SkipBlanks();
  if (at_ == text_.size() || text_[at_] != mark) return false;
  ++at_;
  return true;
}

bool JsonScanner::TakeEnd() {
  SkipBlanks();
  return at_ == text_.size();
}

// What follows a word is looked at by whoever comes next: no mark may begin with what would lengthen it.
bool JsonScanner::TakeWord(std::string_view word) {
  SkipBlanks();
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

bool JsonScanner::TakeString(std::string_view* raw) {
  if (!Take('"')) return false;
  const size_t begin = at_;
  for (;;) {
    while (at_ < text_.size() && kPlain[static_cast<unsigned char>(text_[at_])]) ++at_;
    if (at_ == text_.size()) return false;
    if (text_[at_] == '"') break;
    if (!(text_[at_] == '\\' ? TakeEscape() : TakeWideCharacter())) return false;
  }
  *raw = text_.substr(begin, at_ - begin);
  ++at_;
  return true;
}

bool JsonScanner::TakeEscape() {
  if (text_.size() - at_ < 2) return false;
  const char what = text_[at_ + 1];
  at_ += 2;
  if (what != 'u') return std::strchr("\"\\/bfnrt", what) != nullptr && what != '\0';
  if (text_.size() - at_ < 4) return false;
  const std::string_view digits = text_.substr(at_, 4);
  if (!std::all_of(digits.begin(), digits.end(), IsHexDigit)) return false;
  at_ += 4;
  const bool half_of_a_pair = (digits[0] == 'd' || digits[0] == 'D') && digits[1] > '7';  // \uD800 to \uDFFF
  return !half_of_a_pair;
}

// A character of two to four bytes, as UTF-8 has it: none longer than it need be, no halves of pairs, none beyond the
// last.
bool JsonScanner::TakeWideCharacter() {
  const auto byte = [this](size_t i) -> uint32_t {
    return at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : 0;
  };
  const uint32_t first = byte(0);
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return false;
  const uint32_t second = byte(1);
  const uint32_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint32_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (second < least || second > most) return false;
  for (size_t i = 2; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return false;
  }
  at_ += size;
  return true;
}

bool JsonScanner::TakeDigits(size_t* count) {
  const size_t begin = at_;
  while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
  *count += at_ - begin;
  return at_ > begin;
}

// Without an exponent.
bool JsonScanner::TakeNumber() {
  if (at_ < text_.size() && text_[at_] == '-') ++at_;
  const size_t begin = at_;
  size_t digits = 0;
  if (!TakeDigits(&digits) || (text_[begin] == '0' && digits > 1)) return false;
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    if (!TakeDigits(&digits)) return false;
  }
  return digits <= kMostDigits;
}

bool JsonScanner::TakeValue(int depth) {
  if (depth == kMostLevels) return false;
  SkipBlanks();
  if (at_ == text_.size()) return false;
  std::string_view ignored;
  switch (text_[at_]) {
    case '"':
      return TakeString(&ignored);
    case 'n':
      return TakeWord("null");
    case 't':
      return TakeWord("true");
    case 'f':
      return TakeWord("false");
    case '[':
    case '{':
      break;
    default:
      return TakeNumber();
  }
  const bool object = text_[at_++] == '{';
  const char end = object ? '}' : ']';
  if (Take(end)) return true;
  do {
    if (object && !(TakeString(&ignored) && Take(':'))) return false;
    if (!TakeValue(depth + 1)) return false;
  } while (Take(','));
  return Take(end);
}

void AppendUnescaped(std::string_view raw, std::string& to) {
  while (!raw.empty()) {
    const size_t escape = raw.find('\\');
    to.append(raw.substr(0, escape));
    if (escape == std::string_view::npos) return;
    const char what = raw[escape + 1];
    raw.remove_prefix(escape + 2);
    switch (what) {
      case 'b':
        to += '\b';
        break;
      case 'f':
        to += '\f';
        break;
      case 'n':
        to += '\n';
        break;
      case 'r':
        to += '\r';
        break;
      case 't':
        to += '\t';
        break;
      case 'u': {
        uint32_t character = 0;
        std::from_chars(raw.data(), raw.data() + 4, character, 16);
        AppendUtf8(character, to);
        raw.remove_prefix(4);
        break;
      }
      default:  // quote, backslash, slash
        to += what;
    }
  }
}

}  // namespace kgrpo::coder_gpt4o
