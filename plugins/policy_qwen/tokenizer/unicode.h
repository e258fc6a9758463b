// Unicode facts that a tokenizer needs: UTF-8 walking and repair, the character classes of Rust's standard library,
// which decide how Hugging Face's tokenizers split, and the byte alphabet. Used by every other file of this folder.
//
// All functions are pure and safe from any thread.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_UNICODE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_UNICODE_H_
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::tokenizer {

// One code point of valid UTF-8 text at `position` (< text.size()), and the number of bytes it takes.
struct CodePoint {
  uint32_t value;
  size_t length;
};
CodePoint CodePointAt(std::string_view valid_text, size_t position);

// The code point that ends at byte `end` (> 0) of valid UTF-8 text.
CodePoint CodePointBefore(std::string_view valid_text, size_t end);

// Appends the UTF-8 form of `code_point` (a Unicode scalar value) to `out`.
void AppendUtf8(uint32_t code_point, std::string& out);

// `bytes` with every maximal ill-formed part replaced by U+FFFD, as Unicode (section 3.9, "U+FFFD substitution of
// maximal subparts"), Python's errors="replace" and Rust's from_utf8_lossy do. Well-formed text comes back unchanged.
std::string ReplaceInvalidUtf8(std::string_view bytes);
bool IsValidUtf8(std::string_view bytes);

// Our libraries and the reference (tokenizers 0.23) are of different Unicode versions; unicode_tables.inc has the
// differences. This one: code points that got their general category after Unicode 14, which Oniguruma 6.9.8 knows.
struct UnicodeRange {
  uint32_t first, last;
  std::string_view category;  // two letters
  int value;  // the Unicode version that the reference needs to know: its regular expressions know 16, its Digits 17
};
const std::vector<UnicodeRange>& UnicodeAdditions();

// True if the reference's normal forms, of an older version, ignore a code point that ours would change or reorder.
bool IsUnknownToReference(uint32_t code_point);

bool IsWhiteSpace(uint32_t code_point);     // property White_Space: `\s` of the regex engines
bool IsNumeric(uint32_t code_point);        // general categories Nd, Nl, No: Rust's char::is_numeric
bool IsPunctuation(uint32_t code_point);    // ASCII punctuation, and the general categories P*
bool IsWordCharacter(uint32_t code_point);  // `\w` of Unicode regular expressions (UTS #18, annex C)

// The byte after the white space that starts at `position`; where the white space that ends at `position` starts, at or
// after `floor`.
size_t EndOfSpaceAfter(std::string_view valid_text, size_t position);
size_t StartOfSpaceBefore(std::string_view valid_text, size_t position, size_t floor);

// The byte alphabet of byte-level BPE (GPT-2's bytes_to_unicode): a vocabulary file spells every byte as one printable
// character, `a` for 0x61, U+0120 for the space. The spelling of bytes is at most twice as long as they are.
void AppendSpelling(std::string_view bytes, std::string& out);
// Appends the bytes that a spelled token stands for; the token itself if a character of it is outside the alphabet.
void AppendBytesOfSpelling(std::string_view spelling, std::string& out);

// Appends the lowercase form of `code_point` to `out`, as Rust's char::to_lowercase gives it.
void AppendLowercase(uint32_t code_point, std::string& out);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_UNICODE_H_
