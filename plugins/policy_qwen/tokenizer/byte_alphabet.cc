#include "policy_qwen/tokenizer/byte_alphabet.h"

#include <array>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

constexpr uint32_t kAlphabetEnd = 0x100 + 68;  // 68 bytes are not printable and are spelled from U+0100 on

struct Alphabet {
  std::array<std::string, 256> spelling;
  std::array<int16_t, kAlphabetEnd> byte_of_character;  // -1: not in the alphabet
};

Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.byte_of_character.fill(-1);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const uint32_t character = printable ? byte : next++;
    AppendUtf8(character, alphabet.spelling[byte]);
    alphabet.byte_of_character[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

const Alphabet& TheAlphabet() {
  static const Alphabet alphabet = MakeAlphabet();
  return alphabet;
}

}  // namespace

void AppendSpelling(std::string_view bytes, std::string& out) {
  for (const char byte : bytes) out += TheAlphabet().spelling[static_cast<uint8_t>(byte)];
}

std::string SpellBytes(std::string_view bytes) {
  std::string spelling;
  AppendSpelling(bytes, spelling);
  return spelling;
}

void AppendBytesOfSpelling(std::string_view spelling, std::string& out) {
  const Alphabet& alphabet = TheAlphabet();
  const size_t before = out.size();
  for (size_t i = 0; i < spelling.size();) {
    const CodePoint character = CodePointAt(spelling, i);
    if (character.value >= kAlphabetEnd || alphabet.byte_of_character[character.value] < 0) {
      out.resize(before);
      out.append(spelling);
      return;
    }
    out.push_back(static_cast<char>(alphabet.byte_of_character[character.value]));
    i += character.length;
  }
}

}  // namespace kgrpo::tokenizer
