#include "coder_gpt4o/client/unicode_repair.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>

namespace kgrpo::coder_gpt4o {
namespace {

// The last private characters: 2,048 for surrogates, and before them 256 for bytes.
constexpr int32_t kSurrogates = 0x10F800, kBytes = kSurrogates - 256;
constexpr int32_t kHigh = 0xD800, kLow = 0xDC00, kEnd = 0xE000;

void Append(int32_t code, std::string& text) {
  utf8proc_uint8_t bytes[4];
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(utf8proc_encode_char(code, bytes)));
}

// Reads a character; returns its length, or 0 if the text does not begin with one.
size_t Read(std::string_view text, int32_t& code) {
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &code);
  return length > 0 ? static_cast<size_t>(length) : 0;
}

// The code unit of an escape "\uXXXX" at the text's beginning; -1: there is none.
int32_t Escape(std::string_view text) {
  int32_t unit = 0;
  if (text.size() < 6 || !text.starts_with("\\u")) return -1;
  const char* end = text.data() + 6;
  return std::from_chars(text.data() + 2, end, unit, 16).ptr == end ? unit : -1;
}

}  // namespace

std::string WithPlaceholders(std::string_view json) {
  std::string text;
  while (!json.empty()) {
    size_t used = 1;
    int32_t code = 0;
    if (json.front() == '\\') {
      const int32_t unit = Escape(json);
      const int32_t next = unit >= kHigh && unit < kLow ? Escape(json.substr(6)) : -1;
      if (unit < kHigh || unit >= kEnd || (next >= kLow && next < kEnd)) {
        used = std::min(json.size(), size_t{unit < 0 ? 2U : next < 0 ? 6U : 12U});
        text += json.substr(0, used);
      } else {
        used = 6;
        Append(kSurrogates + unit - kHigh, text);
      }
    } else if (const size_t length = Read(json, code)) {
      used = length;
      text += json.substr(0, used);
    } else {
      Append(kBytes + static_cast<unsigned char>(json.front()), text);
    }
    json.remove_prefix(used);
  }
  return text;
}

void RepairUnicode(std::string& text) {
  constexpr int32_t kUnknown = 0xFFFD;
  std::string repaired, bytes;
  int32_t high = 0;
  const auto end_parts = [&] {
    if (high != 0) Append(kUnknown, repaired);
    high = 0;
    for (std::string_view rest = bytes; !rest.empty();) {
      int32_t code = 0;
      const size_t length = Read(rest, code);
      Append(length > 0 ? code : kUnknown, repaired);
      rest.remove_prefix(std::max<size_t>(length, 1));
    }
    bytes.clear();
  };
  for (std::string_view rest = text; !rest.empty();) {
    int32_t code = 0;
    const size_t length = std::max<size_t>(Read(rest, code), 1);
    const int32_t unit = code - kSurrogates + kHigh;
    if (code >= kBytes && code < kSurrogates) {
      if (high != 0) end_parts();
      bytes += static_cast<char>(code - kBytes);
    } else if (code < kSurrogates) {
      end_parts();
      repaired += rest.substr(0, length);
    } else if (unit >= kLow && high != 0) {
      Append(0x10000 + ((high - kHigh) << 10) + (unit - kLow), repaired);
      high = 0;
    } else {
      end_parts();
      unit < kLow ? void(high = unit) : Append(kUnknown, repaired);
    }
    rest.remove_prefix(length);
  }
  end_parts();
  text = std::move(repaired);
}

}  // namespace kgrpo::coder_gpt4o
