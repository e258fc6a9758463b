#include "policy_qwen/tokenizer/vocabulary.h"

#include <kgrpo/sdk/error.h>

#include "policy_qwen/tokenizer/byte_alphabet.h"
#include "policy_qwen/tokenizer/json_reader.h"

namespace kgrpo::tokenizer {
namespace {

using nlohmann::json;

// No tokenizer has more; a larger id is a broken file, and must not make us allocate.
constexpr int64_t kLargestId = 16'000'000;

// Enters a token. A spelling with a character outside the byte alphabet stands for itself.
void Enter(Vocabulary& vocabulary, const std::string& spelling, int32_t id) {
  if (static_cast<size_t>(id) >= vocabulary.tokens.size()) vocabulary.tokens.resize(static_cast<size_t>(id) + 1);
  Vocabulary::Token& token = vocabulary.tokens[static_cast<size_t>(id)];
  token.bytes = BytesOfSpelling(spelling).value_or(spelling);
  token.present = true;
  vocabulary.ids.emplace(spelling, id);
}

int32_t ReadId(const ObjectReader& reader, std::string_view key, const json& value) {
  if (!value.is_number_integer() || value < 0 || value > kLargestId) {
    reader.Fail(key,
                "is " + value.dump() + ", must be a token id: a whole number from 0 to " + std::to_string(kLargestId));
  }
  return value.get<int32_t>();
}

void ReadVocabulary(ObjectReader& model, Vocabulary& vocabulary) {
  const ObjectReader reader = model.Object("vocab");
  const json& entries = model.Require("vocab");
  vocabulary.ids.reserve(entries.size());
  vocabulary.tokens.reserve(entries.size());
  for (const auto& [spelling, value] : entries.items()) {
    const int32_t id = ReadId(reader, "'" + spelling + "'", value);
    if (static_cast<size_t>(id) < vocabulary.tokens.size() && vocabulary.tokens[static_cast<size_t>(id)].present) {
      reader.Fail("'" + spelling + "'", "has the id " + std::to_string(id) + ", which another token has too");
    }
    Enter(vocabulary, spelling, id);
  }
}

// One merge: "left right", or ["left", "right"] as newer writers have it.
std::pair<std::string, std::string> ReadMerge(const ObjectReader& model, const std::string& key, const json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  if (!merge.is_string()) model.Fail(key, "is " + merge.dump() + ", must be \"left right\" or [\"left\", \"right\"]");
  const auto& text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    model.Fail(key, "is \"" + text + "\", must be two tokens with one space between them");
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

MergeTable ReadMerges(ObjectReader& model, const Vocabulary& vocabulary) {
  const json& merges = model.Array("merges");
  MergeTable table(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string key = "merges[" + std::to_string(i) + "]";
    const auto [left, right] = ReadMerge(model, key, merges[i]);
    const auto id_of = [&](const std::string& token) {
      const auto found = vocabulary.ids.find(token);
      if (found == vocabulary.ids.end()) model.Fail(key, "needs the token '" + token + "', which model.vocab lacks");
      return found->second;
    };
    const int32_t left_id = id_of(left), right_id = id_of(right);
    table.Set(left_id, right_id, {static_cast<int32_t>(i), id_of(left + right)});
  }
  return table;
}

bool IsEmptyString(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().empty();
}

// Refuses settings that change tokens and do not belong to this family of tokenizers.
void RefuseOtherKindsOfBpe(ObjectReader& model) {
  if (const json* type = model.Find("type"); type != nullptr && *type != "BPE") {
    model.Refuse("type",
                 "is " + type->dump() + "; only \"BPE\" is supported: use a model of the Qwen, SmolLM or GPT-2 family");
  }
  if (const json* dropout = model.Find("dropout"); dropout != nullptr && *dropout != 0.0) {
    model.Refuse("dropout", "is " + dropout->dump() + ": tokens would be random; set it to null");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const json* affix = model.Find(key); affix != nullptr && !IsEmptyString(*affix)) {
      model.Refuse(key, "is " + affix->dump() +
                            ", which byte-level tokenizers don't have: use a model of the Qwen, SmolLM or " +
                            "GPT-2 family");
    }
  }
  if (model.Bool("byte_fallback", false)) {
    model.Refuse("byte_fallback",
                 "is true, which byte-level tokenizers don't need: use a model of the Qwen, SmolLM or GPT-2 family");
  }
}

}  // namespace

Bpe ReadBpe(const std::string& file, const json& root, Vocabulary& vocabulary) {
  ObjectReader model(file, "model", root);
  RefuseOtherKindsOfBpe(model);
  ReadVocabulary(model, vocabulary);
  Bpe::Options options;
  for (size_t byte = 0; byte < options.byte_ids.size(); ++byte) {
    const auto found = vocabulary.ids.find(SpellByte(static_cast<uint8_t>(byte)));
    options.byte_ids[byte] = found == vocabulary.ids.end() ? -1 : found->second;
  }
  options.fuse_unknown = model.Bool("fuse_unk", false);
  if (model.Find("unk_token") != nullptr) {
    const std::string unknown = model.String("unk_token");
    const auto found = vocabulary.ids.find(unknown);
    if (found == vocabulary.ids.end()) model.Fail("unk_token", "is '" + unknown + "', which model.vocab lacks");
    options.unknown_id = found->second;
  }
  if (model.Bool("ignore_merges", false)) {
    for (const auto& [spelling, id] : vocabulary.ids) {
      if (auto bytes = BytesOfSpelling(spelling)) options.whole_words.emplace(std::move(*bytes), id);
    }
  }
  MergeTable merges = ReadMerges(model, vocabulary);
  model.RefuseOthers();
  return Bpe(std::move(options), std::move(merges));
}

std::vector<AddedToken> ReadAddedTokens(const std::string& file, const json& root, Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < root.size(); ++i) {
    ObjectReader reader(file, "added_tokens[" + std::to_string(i) + "]", root[i]);
    AddedToken token;
    token.content = reader.String("content");
    token.id = ReadId(reader, "id", reader.Require("id"));
    token.single_word = reader.Bool("single_word", false);
    token.lstrip = reader.Bool("lstrip", false);
    token.rstrip = reader.Bool("rstrip", false);
    token.special = reader.Bool("special", false);
    token.normalized = reader.Bool("normalized", !token.special);
    reader.RefuseOthers();
    if (token.content.empty()) reader.Fail("content", "is empty");
    const auto known = vocabulary.ids.find(token.content);
    if (known != vocabulary.ids.end() && known->second != token.id) {
      reader.Fail("id", "is " + std::to_string(token.id) + ", but '" + token.content + "' has the id " +
                            std::to_string(known->second) + " in the vocabulary");
    }
    if (known == vocabulary.ids.end() && static_cast<size_t>(token.id) < vocabulary.tokens.size() &&
        vocabulary.tokens[static_cast<size_t>(token.id)].present) {
      reader.Fail("id", "is " + std::to_string(token.id) + ", which another token has too");
    }
    if (known == vocabulary.ids.end()) Enter(vocabulary, token.content, token.id);
    vocabulary.tokens[static_cast<size_t>(token.id)].special |= token.special;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace kgrpo::tokenizer
