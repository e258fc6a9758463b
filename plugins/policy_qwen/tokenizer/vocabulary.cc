#include "policy_qwen/tokenizer/vocabulary.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdio>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

using nlohmann::json;

constexpr int64_t kLargestId = 16'000'000;  // no tokenizer has more: such an id must not make us allocate

void Enter(Vocabulary& vocabulary, const std::string& spelling, int32_t id) {
  if (static_cast<size_t>(id) >= vocabulary.tokens.size()) vocabulary.tokens.resize(static_cast<size_t>(id) + 1);
  Vocabulary::Token& token = vocabulary.tokens[static_cast<size_t>(id)];
  token.text = spelling;
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
  vocabulary.model_size = vocabulary.ids.size();
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

std::unordered_map<uint64_t, Bpe::Merge> ReadMerges(ObjectReader& model, const Vocabulary& vocabulary) {
  const json& merges = model.Array("merges");
  std::unordered_map<uint64_t, Bpe::Merge> read;
  read.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string key = "merges[" + std::to_string(i) + "]";
    const auto [left, right] = ReadMerge(model, key, merges[i]);
    const auto id_of = [&](const std::string& token) {
      const auto found = vocabulary.ids.find(token);
      if (found == vocabulary.ids.end()) model.Fail(key, "needs the token '" + token + "', which model.vocab lacks");
      return found->second;
    };
    // Of two merges of one pair, the later stays.
    read[Bpe::KeyOf(id_of(left), id_of(right))] = {static_cast<int32_t>(i), id_of(left + right)};
  }
  return read;
}

// Refuses settings that change tokens and are not implemented.
void RefuseOtherKinds(ObjectReader& model) {
  if (const json* type = model.Find("type"); type != nullptr && *type != "BPE") {
    model.Refuse("type", "is " + type->dump() +
                             "; only \"BPE\" is supported. The ids are the model's, so no other tokenizer can take its "
                             "place: use a model with a BPE tokenizer, such as those of the Qwen, Llama, Mistral and "
                             "SmolLM families");
  }
  if (const json* dropout = model.Find("dropout"); dropout != nullptr && *dropout != 0.0) {
    model.Refuse("dropout", "is " + dropout->dump() + ": tokens would be random; set it to null");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const json* affix = model.Find(key); affix != nullptr && *affix != json(std::string()))
      model.Refuse(key, "is " + affix->dump() + ", which is not supported");
  }
}

}  // namespace

Bpe ReadBpe(const std::string& file, const json& root, Vocabulary& vocabulary) {
  ObjectReader model(file, "model", root);
  RefuseOtherKinds(model);
  ReadVocabulary(model, vocabulary);
  Bpe::Options options;
  for (const auto& [spelling, id] : vocabulary.ids) {
    if (spelling.empty()) continue;
    const CodePoint first = CodePointAt(spelling, 0);
    if (first.length == spelling.size()) options.character_ids.emplace(first.value, id);
  }
  if (model.Bool("byte_fallback", false)) {
    for (int byte = 0; byte < 256; ++byte) {
      char spelling[8];
      std::snprintf(spelling, sizeof(spelling), "<0x%02X>", byte);
      const auto found = vocabulary.ids.find(spelling);
      if (found != vocabulary.ids.end()) options.byte_ids[static_cast<size_t>(byte)] = found->second;
    }
  }
  options.fuse_unknown = model.Bool("fuse_unk", false);
  if (model.Find("unk_token") != nullptr) {
    const std::string unknown = model.String("unk_token");
    const auto found = vocabulary.ids.find(unknown);
    if (found == vocabulary.ids.end()) model.Fail("unk_token", "is '" + unknown + "', which model.vocab lacks");
    options.unknown_id = found->second;
  }
  if (model.Bool("ignore_merges", false)) {
    options.whole_words.insert(vocabulary.ids.begin(), vocabulary.ids.end());
  }
  options.merges = ReadMerges(model, vocabulary);
  model.RefuseOthers();
  return Bpe(std::move(options));
}

std::vector<AddedToken> ReadAddedTokens(const std::string& file, const json& root) {
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < root.size(); ++i) {
    ObjectReader reader(file, "added_tokens[" + std::to_string(i) + "]", root[i]);
    AddedToken token = ReadAddedToken(reader, false);
    token.id = ReadId(reader, "id", reader.Require("id"));
    reader.RefuseOthers();
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void AddToken(AddedToken token, const std::string& where, Vocabulary& vocabulary,
              std::map<int32_t, AddedToken>& added) {
  const auto known = vocabulary.ids.find(token.content);
  const bool is_new = known == vocabulary.ids.end();
  const auto next = std::max<int64_t>(static_cast<int64_t>(vocabulary.model_size),
                                      added.empty() ? 0 : int64_t{added.rbegin()->first} + 1);
  const int32_t id = is_new ? static_cast<int32_t>(next) : known->second;
  if (token.id >= 0 && token.id != id) {
    throw Error(KGRPO_ERROR_INVALID,
                where + ": is " + std::to_string(token.id) + ", but '" + token.content + "' " +
                    (is_new ? "is not in model.vocab and gets the next free id, " : "has the id ") +
                    std::to_string(id));
  }
  if (is_new && static_cast<size_t>(id) < vocabulary.tokens.size() &&
      vocabulary.tokens[static_cast<size_t>(id)].present) {
    throw Error(KGRPO_ERROR_INVALID, where + ": '" + token.content + "' gets the next free id, " + std::to_string(id) +
                                         ", which another token has");
  }
  if (is_new) Enter(vocabulary, token.content, id);
  Vocabulary::Token& entered = vocabulary.tokens[static_cast<size_t>(id)];
  token.id = id;
  token.special = entered.special = entered.special || token.special;
  added[id] = std::move(token);
}

}  // namespace kgrpo::tokenizer
