// The byte alphabet of byte-level BPE: in a vocabulary file every byte is spelled as one printable character (GPT-2's
// bytes_to_unicode). Used by the steps of type ByteLevel.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BYTE_ALPHABET_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BYTE_ALPHABET_H_
#include <string>
#include <string_view>

namespace kgrpo::tokenizer {

// The spelling of bytes, as UTF-8: `a` for 0x61, U+0120 for the space. At most twice as long.
void AppendSpelling(std::string_view bytes, std::string& out);
std::string SpellBytes(std::string_view bytes);

// Appends the bytes that a spelled token stands for; the token itself if a character of it is outside the alphabet.
void AppendBytesOfSpelling(std::string_view spelling, std::string& out);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BYTE_ALPHABET_H_
