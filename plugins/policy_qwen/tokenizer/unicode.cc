#include "policy_qwen/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_map>

namespace kgrpo::tokenizer {
namespace {

struct UnicodeTable {
  std::string_view kind, category;
  int value;
  const char* ranges;  // "41-5A 61"
};

#include "policy_qwen/tokenizer/unicode_tables.inc"

// The ranges of all tables of a kind, ascending.
std::vector<UnicodeRange> RangesOf(std::string_view kind) {
  std::vector<UnicodeRange> ranges;
  for (const UnicodeTable& table : kTables) {
    const char* at = table.kind == kind ? table.ranges : "";
    for (char* end = nullptr; *at != '\0'; at = end + (*end == ' ')) {
      const auto first = static_cast<uint32_t>(std::strtoul(at, &end, 16));
      const auto last = *end == '-' ? static_cast<uint32_t>(std::strtoul(end + 1, &end, 16)) : first;
      ranges.push_back({first, last, table.category, table.value});
    }
  }
  std::ranges::sort(ranges, {}, &UnicodeRange::first);
  return ranges;
}

// The range that contains `code_point`, else null.
const UnicodeRange* Find(const std::vector<UnicodeRange>& ranges, uint32_t code_point) {
  const auto range = std::ranges::lower_bound(ranges, code_point, {}, &UnicodeRange::last);
  return range != ranges.end() && code_point >= range->first ? &*range : nullptr;
}

// The general category of a code point, by the later of utf8proc's Unicode version and `version`.
std::string_view CategoryOf(uint32_t code_point, int version) {
  const UnicodeRange* addition = Find(UnicodeAdditions(), code_point);
  if (addition != nullptr && addition->value <= version) return addition->category;
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(code_point));
}

struct ByteAlphabet {
  std::array<std::string, 256> spelling;
  std::unordered_map<uint32_t, char> bytes;
  ByteAlphabet() {
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const uint32_t character = printable ? byte : next++;
      AppendUtf8(character, spelling[byte]);
      bytes.emplace(character, static_cast<char>(byte));
    }
  }
};

const ByteAlphabet& TheByteAlphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

uint8_t ByteAt(std::string_view text, size_t position) { return static_cast<uint8_t>(text[position]); }

// Looks at the sequence that starts at `position`: its length, and whether it is well formed. For an ill-formed one the
// length is that of its maximal subpart, at least 1 (Unicode standard, table 3-7).
struct Sequence {
  size_t length;
  bool valid;
};
Sequence SequenceAt(std::string_view bytes, size_t position) {
  const uint8_t first = ByteAt(bytes, position);
  if (first < 0x80) return {1, true};
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // What the second byte may be: no overlong forms, no surrogates, nothing above U+10FFFF.
  uint8_t lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  uint8_t highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i, lowest = 0x80, highest = 0xBF) {
    if (position + i >= bytes.size()) return {i, false};
    const uint8_t byte = ByteAt(bytes, position + i);
    if (byte < lowest || byte > highest) return {i, false};
  }
  return {length, true};
}

}  // namespace

CodePoint CodePointAt(std::string_view valid_text, size_t position) {
  const uint8_t first = ByteAt(valid_text, position);
  if (first < 0x80) return {first, 1};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t value = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) value = value << 6 | (ByteAt(valid_text, position + i) & 0x3F);
  return {value, length};
}

CodePoint CodePointBefore(std::string_view valid_text, size_t end) {
  size_t start = end - 1;
  while (start > 0 && (ByteAt(valid_text, start) & 0xC0) == 0x80) --start;
  return CodePointAt(valid_text, start);
}

void AppendUtf8(uint32_t code_point, std::string& out) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

bool IsValidUtf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const Sequence sequence = SequenceAt(bytes, i);
    if (!sequence.valid) return false;
    i += sequence.length;
  }
  return true;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const Sequence sequence = SequenceAt(bytes, i);
    if (sequence.valid) {
      out.append(bytes.substr(i, sequence.length));
    } else {
      out.append("\xEF\xBF\xBD");
    }
    i += sequence.length;
  }
  return out;
}

bool IsWhiteSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t EndOfSpaceAfter(std::string_view text, size_t position) {
  while (position < text.size()) {
    const CodePoint next = CodePointAt(text, position);
    if (!IsWhiteSpace(next.value)) break;
    position += next.length;
  }
  return position;
}

size_t StartOfSpaceBefore(std::string_view text, size_t position, size_t floor) {
  while (position > floor) {
    const CodePoint before = CodePointBefore(text, position);
    if (!IsWhiteSpace(before.value)) break;
    position -= before.length;
  }
  return position;
}

const std::vector<UnicodeRange>& UnicodeAdditions() {
  static const std::vector<UnicodeRange> ranges = RangesOf("category");
  return ranges;
}

bool IsUnknownToReference(uint32_t c) {
  static const std::vector<UnicodeRange> ranges = RangesOf("unknown");
  return Find(ranges, c) != nullptr;
}

bool IsNumeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return CategoryOf(c, 17)[0] == 'N';
}

bool IsPunctuation(uint32_t c) {
  if (c < 0x80) return c > 0x20 && c < 0x7F && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9');
  static const std::vector<UnicodeRange> unknown = RangesOf("no punctuation");
  // Two that are no punctuation any more.
  return (CategoryOf(c, 17)[0] == 'P' && Find(unknown, c) == nullptr) || c == 0x166D || c == 0x111C9;
}

bool IsWordCharacter(uint32_t c) {
  const std::string_view category = CategoryOf(c, 16);
  if (category[0] == 'L' || category[0] == 'M' || category == "Nd" || category == "Nl" || category == "Pc") return true;
  // Join controls, and the symbols that have property Alphabetic (circled, squared and parenthesised letters).
  return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

void AppendLowercase(uint32_t c, std::string& out) {
  static const std::vector<UnicodeRange> additions = RangesOf("lowercase");
  if (c == 0x130) return static_cast<void>(out.append("i\xCC\x87"));  // the one that becomes two characters
  const UnicodeRange* addition = Find(additions, c);
  AppendUtf8(addition != nullptr ? c + static_cast<uint32_t>(addition->value)
                                 : static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))),
             out);
}

void AppendSpelling(std::string_view bytes, std::string& out) {
  for (const char byte : bytes) out += TheByteAlphabet().spelling[static_cast<uint8_t>(byte)];
}

void AppendBytesOfSpelling(std::string_view spelling, std::string& out) {
  const size_t before = out.size();
  for (size_t i = 0; i < spelling.size();) {
    const CodePoint character = CodePointAt(spelling, i);
    const auto byte = TheByteAlphabet().bytes.find(character.value);
    if (byte == TheByteAlphabet().bytes.end()) {
      out.replace(before, std::string::npos, spelling);
      return;
    }
    out.push_back(byte->second);
    i += character.length;
  }
}

}  // namespace kgrpo::tokenizer
