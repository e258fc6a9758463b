#include "report/token_texts.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

// Byte-level BPE writes each byte as one character: the printable ones as they are, the others from U+0100 on.
std::map<uint32_t, char> ByteOfCharacter() {
  std::map<uint32_t, char> bytes;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool as_it_is =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    bytes[as_it_is ? byte : next++] = static_cast<char>(byte);
  }
  return bytes;
}

// The characters of a UTF-8 text of JSON, which is valid.
std::vector<uint32_t> Characters(const std::string& text) {
  std::vector<uint32_t> characters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) {
      characters.back() = characters.back() << 6 | (byte & 0x3F);
    } else {
      characters.push_back(byte < 0x80 ? byte : byte < 0xE0 ? byte & 0x1F : byte < 0xF0 ? byte & 0x0F : byte & 0x07);
    }
  }
  return characters;
}

bool IsUtf8(const std::string& bytes) {
  try {
    (void)nlohmann::json(bytes).dump();  // strict
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

std::string Decode(const std::string& token) {
  static const std::map<uint32_t, char> kBytes = ByteOfCharacter();
  std::string bytes;
  for (const uint32_t character : Characters(token)) {
    const auto found = kBytes.find(character);
    if (found == kBytes.end()) return token;  // an added token, not encoded
    bytes += found->second;
  }
  if (IsUtf8(bytes)) return bytes;
  std::string shown;
  for (const char c : bytes) {
    std::array<char, 8> hex{};
    std::snprintf(hex.data(), hex.size(), "<%02X>", static_cast<unsigned>(static_cast<unsigned char>(c)));
    shown += static_cast<unsigned char>(c) < 0x80 ? std::string(1, c) : std::string(hex.data());
  }
  return shown;
}

fs::path FindTokenizer(const fs::path& folder) {
  if (fs::exists(folder / "final" / "tokenizer.json")) return folder / "final" / "tokenizer.json";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints", error)) {
    const fs::path file = entry.path() / "policy" / "tokenizer.json";
    if (fs::exists(file)) return file;
  }
  return {};
}

}  // namespace

std::unordered_map<int32_t, std::string> ReadTokenTexts(const fs::path& run_folder) {
  std::unordered_map<int32_t, std::string> texts;
  const fs::path file = FindTokenizer(run_folder);
  if (file.empty()) return texts;
  std::ifstream stream(file);
  const nlohmann::json tokenizer = nlohmann::json::parse(stream, nullptr, false);
  if (!tokenizer.is_object() || !tokenizer.contains("model") || !tokenizer["model"].is_object()) return texts;
  const nlohmann::json& model = tokenizer["model"];
  if (!model.contains("vocab") || !model["vocab"].is_object()) return texts;
  for (const auto& [token, id] : model["vocab"].items()) {
    if (id.is_number_integer()) texts[id.get<int32_t>()] = Decode(token);
  }
  if (!tokenizer.contains("added_tokens") || !tokenizer["added_tokens"].is_array()) return texts;
  for (const nlohmann::json& added : tokenizer["added_tokens"]) {
    if (added.is_object() && added.contains("id") && added.contains("content"))
      texts[added["id"].get<int32_t>()] = added["content"].get<std::string>();
  }
  return texts;
}

}  // namespace kgrpo
