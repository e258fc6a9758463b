// The byte alphabet of byte-level BPE: in a vocabulary file every byte is spelled as one printable character (GPT-2's
// bytes_to_unicode). Used where vocabularies are read; everything else of this folder works on the bytes themselves.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BYTE_ALPHABET_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BYTE_ALPHABET_H_
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kgrpo::tokenizer {

// The file's spelling of one byte, as UTF-8: `a` for 0x61, U+0120 for the space.
std::string SpellByte(uint8_t byte);

// The bytes that a spelled token stands for; nothing if a character of it is outside the alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BYTE_ALPHABET_H_
