#include "policy_qwen/tokenizer/byte_alphabet.h"

#include <array>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

constexpr uint32_t kAlphabetEnd = 0x100 + 68;  // 68 bytes are not printable and are spelled from U+0100 on

struct Alphabet {
  std::array<uint32_t, 256> character_of_byte;
  std::array<int16_t, kAlphabetEnd> byte_of_character;  // -1: not in the alphabet
};

Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.byte_of_character.fill(-1);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const uint32_t character = printable ? byte : next++;
    alphabet.character_of_byte[byte] = character;
    alphabet.byte_of_character[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

const Alphabet& TheAlphabet() {
  static const Alphabet alphabet = MakeAlphabet();
  return alphabet;
}

}  // namespace

std::string SpellByte(uint8_t byte) {
  std::string spelling;
  AppendUtf8(TheAlphabet().character_of_byte[byte], spelling);
  return spelling;
}

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  const Alphabet& alphabet = TheAlphabet();
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t i = 0; i < spelling.size();) {
    const CodePoint character = CodePointAt(spelling, i);
    if (character.value >= kAlphabetEnd || alphabet.byte_of_character[character.value] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(alphabet.byte_of_character[character.value]));
    i += character.length;
  }
  return bytes;
}

}  // namespace kgrpo::tokenizer
