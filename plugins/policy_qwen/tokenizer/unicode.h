// Unicode facts that a tokenizer needs: UTF-8 walking and repair, and the character classes of Rust's standard library,
// which decide how Hugging Face's tokenizers split. Used by every other file of this folder.
//
// All functions are pure and safe from any thread.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_UNICODE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_UNICODE_H_
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

// Our libraries and the reference (tokenizers 0.23) are of different Unicode versions; these are the differences that
// show. Made by make_unicode_tables.py.
//
// Code points that got their general category after Unicode 14, which PCRE2 10.42 knows.
struct UnicodeAddition {
  uint32_t first;
  uint32_t last;
  char category[3];  // two letters
  int version;  // the Unicode version that the reference needs to know: its regular expressions know 16, its Digits 17
};
std::span<const UnicodeAddition> UnicodeAdditions();

// True if the reference's NFC, of an older version, ignores a code point that ours would compose or reorder.
bool IsUnknownToReferenceNfc(uint32_t code_point);

bool IsWhiteSpace(uint32_t code_point);     // property White_Space: `\s` of the regex engines
bool IsNumeric(uint32_t code_point);        // general categories Nd, Nl, No: Rust's char::is_numeric
bool IsWordCharacter(uint32_t code_point);  // `\w` of Unicode regular expressions (UTS #18, annex C)

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_UNICODE_H_
