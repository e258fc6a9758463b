#include "policy_qwen/tokenizer/normalizer.h"

#include <kgrpo/sdk/error.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

// True if the value (null, NFC, or a Sequence) contains NFC.
bool ReadNfc(const std::string& file, const std::string& path, const nlohmann::json& value) {
  if (value.is_null()) return false;
  ObjectReader reader(file, path, value);
  const std::string type = reader.String("type");
  bool nfc = false;
  if (type == "NFC") {
    nfc = true;
  } else if (type == "Sequence") {
    const nlohmann::json& parts = reader.Array("normalizers");
    for (size_t i = 0; i < parts.size(); ++i) {
      nfc |= ReadNfc(file, reader.PathOf("normalizers") + "[" + std::to_string(i) + "]", parts[i]);
    }
  } else {
    reader.Refuse("type", "normalizer '" + type +
                              "' is not supported (null, NFC and Sequence are); use a model of the Qwen, SmolLM or " +
                              "GPT-2 family");
  }
  reader.RefuseOthers();
  return nfc;
}

// Nothing below U+0300 changes under NFC, and those characters' UTF-8 has no byte of 0xCC or more.
bool IsSurelyNfc(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) >= 0xCC; });
}

// Appends NFC of a text that the reference and utf8proc see alike.
void AppendComposed(std::string_view text, std::string& out) {
  if (text.empty()) return;
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  if (length < 0) {
    throw Error(KGRPO_ERROR_INVALID, std::string("text can't be normalized to NFC: ") + utf8proc_errmsg(length));
  }
  out.append(reinterpret_cast<const char*>(composed), static_cast<size_t>(length));
}

}  // namespace

Normalizer::Normalizer(const std::string& file, const nlohmann::json& value)
    : nfc_(ReadNfc(file, "normalizer", value)) {}

std::string Normalizer::Normalize(std::string_view text) const {
  if (!nfc_ || IsSurelyNfc(text)) return std::string(text);
  // A character that the reference doesn't know stands for itself there, and nothing is moved or composed across it.
  std::string out;
  size_t taken = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint character = CodePointAt(text, i);
    if (IsUnknownToReferenceNfc(character.value)) {
      AppendComposed(text.substr(taken, i - taken), out);
      out.append(text.substr(i, character.length));
      taken = i + character.length;
    }
    i += character.length;
  }
  AppendComposed(text.substr(taken), out);
  return out;
}

}  // namespace kgrpo::tokenizer
