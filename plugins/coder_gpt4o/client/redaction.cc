#include "coder_gpt4o/client/redaction.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr std::string_view kMask = "[hidden]";
constexpr size_t kNone = std::string_view::npos;

// True if the digits at the text's beginning, as many as `digits`, or up to `end` if that is not 0, give the character.
// `length` gets their number, with `end`.
bool IsNumber(std::string_view text, int base, size_t digits, char end, unsigned char wanted, size_t& length) {
  if (end != 0) digits = text.substr(0, 8).find(end);
  if (digits == 0 || digits > text.size()) return false;
  unsigned value = 0;
  const auto result = std::from_chars(text.data(), text.data() + digits, value, base);
  length = digits + (end != 0 ? 1 : 0);
  return result.ptr == text.data() + digits && value == wanted;
}

// The length of the character, escaped or plain, at the text's beginning; 0 if the text begins with something else.
// JSON within JSON has several backslashes.
size_t LengthOf(char character, std::string_view text) {
  const auto wanted = static_cast<unsigned char>(character);
  size_t length = 0;
  if (text.starts_with('\\')) {
    constexpr size_t kMostSlashes =
        16;  // of JSON that is nested four times; a longer run would be read again and again
    const size_t slashes = std::min(text.size(), text.substr(0, kMostSlashes).find_first_not_of('\\'));
    const std::string_view rest = text.substr(slashes);
    if (rest.starts_with(character)) return slashes + 1;
    if (rest.starts_with('u') && IsNumber(rest.substr(1), 16, 4, 0, wanted, length)) return slashes + 1 + length;
  } else if (text.starts_with('%')) {
    if (IsNumber(text.substr(1), 16, 2, 0, wanted, length)) return 1 + length;
  } else if (text.starts_with("&#")) {
    const bool hex = text.size() > 2 && (text[2] | 0x20) == 'x';
    const size_t begin = hex ? 3 : 2;
    if (text.size() > begin && IsNumber(text.substr(begin), hex ? 16 : 10, 0, ';', wanted, length))
      return begin + length;
  } else if (text.starts_with('&')) {
    for (const auto& [entity, meant] :
         {std::pair{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}) {
      if (meant == character && text.starts_with(entity)) return std::string_view(entity).size();
    }
  }
  return text.starts_with(character) ? 1 : 0;
}

// The length of the secret at the text's beginning; kNone if it is not there.
size_t LengthOf(std::string_view secret, std::string_view text) {
  size_t at = 0;
  for (const char character : secret) {
    const size_t length = LengthOf(character, text.substr(at));
    if (length == 0) return kNone;
    at += length;
  }
  return at;
}

}  // namespace

void Redaction::Hide(std::string_view secret) {
  if (secret.size() < kShortest || std::find(secrets_.begin(), secrets_.end(), secret) != secrets_.end()) return;
  secrets_.emplace_back(secret);
  std::sort(secrets_.begin(), secrets_.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

void Redaction::Apply(std::string& text) const {
  for (const std::string& secret : secrets_) {
    const char starts[] = {secret.front(), '\\', '%', '&', '\0'};
    for (size_t at = text.find_first_of(starts); at != kNone; at = text.find_first_of(starts, at)) {
      const size_t length = LengthOf(secret, std::string_view(text).substr(at));
      if (length != kNone) text.replace(at, length, kMask);
      at += length == kNone ? 1 : kMask.size();
    }
  }
}

}  // namespace kgrpo::coder_gpt4o
