#include "policy_qwen/tokenizer/tokenizer.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>

#include "policy_qwen/files.h"
#include "policy_qwen/tokenizer/added_tokens.h"
#include "policy_qwen/tokenizer/bpe.h"
#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/steps.h"
#include "policy_qwen/tokenizer/tokenizer_config.h"
#include "policy_qwen/tokenizer/unicode.h"
#include "policy_qwen/tokenizer/vocabulary.h"

namespace kgrpo::tokenizer {
namespace {

using nlohmann::json;

constexpr size_t kMostKnownWords = 1 << 16;
constexpr size_t kLongestKnownWord = 64;  // longer ones hardly come again

}  // namespace

struct Tokenizer::State {
  State(const std::string& file, const json& root, Vocabulary vocabulary_in, Bpe bpe_in)
      : vocabulary(std::move(vocabulary_in)),
        bpe(std::move(bpe_in)),
        normalizer(file, root.value("normalizer", json())),
        pre_tokenizer(file, root.value("pre_tokenizer", json())),
        decoder(file, root.value("decoder", json())) {}

  // Appends the tokens of a word. Call with `mutex` locked, or with use_known_words false.
  void EncodeWord(std::string_view word, bool use_known_words, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary;
  Bpe bpe;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  std::vector<int32_t> prefix;
  AddedTokenMatcher as_given;    // added tokens that are looked for in the text as given
  AddedTokenMatcher normalized;  // and those that are looked for in the normalized text
  int32_t eos_id = -1;
  // Words seen before, with their tokens. Natural text repeats its words, so this saves most of the merging. It never
  // changes a result: a thread that finds it in use works without it.
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, std::vector<int32_t>, StringHash, std::equal_to<>> known_words;
};

namespace {

// The ids of the tokens that a TemplateProcessing puts in front of a text. Its template for pairs is never used here.
std::vector<int32_t> ReadTemplate(ObjectReader& processor, size_t vocabulary_size) {
  std::vector<int32_t> ids;
  const json& pieces = processor.Array("single");
  for (size_t i = 0; i < pieces.size() || pieces.empty(); ++i) {
    const bool last = i + 1 >= pieces.size();
    const auto member = [](const json& object, const char* key) {
      return object.is_object() ? object.value(key, json()) : json();
    };
    const json id = member(member(pieces.empty() ? json() : pieces[i], last ? "Sequence" : "SpecialToken"), "id");
    if (last ? id != "A" : !id.is_string()) {
      processor.Refuse("single",
                       "is not of the form that is supported: special tokens, then the text (\"Sequence\" \"A\"); set "
                       "post_processor to null if texts need no tokens around them");
    }
    if (last) break;
    ObjectReader tokens = processor.Object("special_tokens");
    ObjectReader token = tokens.Object(id.get<std::string>());
    for (const json& each : token.Array("ids")) {
      if (!each.is_number_unsigned() || each.get<size_t>() >= vocabulary_size)
        token.Fail("ids", "has " + each.dump() + ", which is not a token's id");
      ids.push_back(each.get<int32_t>());
    }
  }
  return ids;
}

std::vector<int32_t> ReadPostProcessor(const std::string& file, const json& value, size_t vocabulary_size) {
  std::vector<int32_t> prefix;
  for (ObjectReader& step : ReadSteps(file, "post_processor", value, "processors")) {
    const std::string type = step.String("type");
    if (type == "ByteLevel") continue;  // concerns offsets, not tokens
    if (type != "TemplateProcessing") step.RefuseType("post-processor", "ByteLevel, TemplateProcessing");
    const std::vector<int32_t> added = ReadTemplate(step, vocabulary_size);
    prefix.insert(prefix.begin(), added.begin(), added.end());
  }
  return prefix;
}

// Enters the added tokens of all files, in the order in which transformers adds them. Returns them by id.
std::map<int32_t, AddedToken> AddTokens(const std::vector<AddedToken>& of_file, const std::string& file,
                                        const TokenizerConfig& config, Vocabulary& vocabulary) {
  std::map<int32_t, AddedToken> added;
  std::vector<AddedToken> of_config = config.added_tokens;
  if (config.tokenizer_class.empty()) {
    for (size_t i = 0; i < of_file.size(); ++i)
      AddToken(of_file[i], file + ": added_tokens[" + std::to_string(i) + "].id", vocabulary, added);
  } else if (!config.has_added_tokens_decoder) {
    for (const AddedToken& token : of_file) {
      std::erase_if(of_config, [&](const AddedToken& other) { return other.id == token.id; });
      of_config.push_back(token);
    }
    std::ranges::sort(of_config, {}, &AddedToken::id);
  }
  for (AddedToken& token : of_config) {
    const auto known = added.find(token.id);
    if (known != added.end() && known->second == token) continue;
    token.special |= std::ranges::count(config.special_tokens, token.content, &AddedToken::content) > 0;
    const char* key = config.has_added_tokens_decoder ? "added_tokens_decoder." : "the id of an added token, ";
    AddToken(token, config.file + ": " + key + std::to_string(token.id), vocabulary, added);
  }
  for (const AddedToken& token : config.special_tokens) {
    const auto has_content = [&](const auto& entry) { return entry.second.content == token.content; };
    if (config.tokenizer_class == "Qwen2Tokenizer") {
      AddToken({.content = token.content, .special = true}, config.file, vocabulary, added);
    } else if (std::ranges::none_of(added, has_content)) {
      AddToken(token, config.file, vocabulary, added);
    }
  }
  return added;
}

}  // namespace

Tokenizer Tokenizer::Load(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  const std::string file = path.string();
  if (std::error_code error; !std::filesystem::is_directory(folder, error)) {
    throw Error(KGRPO_ERROR_NOT_FOUND, folder.string() + ": no such folder; a model is a folder that holds " +
                                           "config.json, tokenizer.json and weights in safetensors files");
  }
  if (!std::filesystem::exists(path)) {
    throw Error(KGRPO_ERROR_NOT_FOUND,
                file + ": no such file; a model folder needs the tokenizer.json that AutoTokenizer's " +
                    "save_pretrained writes");
  }
  json value = policy::ReadJsonObject(file);
  const TokenizerConfig config = ReadTokenizerConfig(folder);
  ApplyTokenizerClass(config, value);
  ObjectReader root(file, "", value);
  for (const char* key : {"version", "truncation", "padding", "normalizer", "pre_tokenizer", "decoder"}) root.Find(key);
  Vocabulary vocabulary;
  Bpe bpe = ReadBpe(file, root.Require("model"), vocabulary);
  const std::vector<AddedToken> of_file = root.Find("added_tokens") == nullptr
                                              ? std::vector<AddedToken>()
                                              : ReadAddedTokens(file, root.Array("added_tokens"));
  const json* processor = root.Find("post_processor");
  root.RefuseOthers();

  const auto state = std::make_shared<State>(file, value, std::move(vocabulary), std::move(bpe));
  const std::map<int32_t, AddedToken> added = AddTokens(of_file, file, config, state->vocabulary);
  if (processor != nullptr) state->prefix = ReadPostProcessor(file, *processor, state->vocabulary.tokens.size());
  std::set<std::string> special;
  for (const auto& [id, token] : added) {
    if (token.special) special.insert(token.content);
  }
  for (const auto& [id, token] : added) {
    if (!token.normalized) {
      state->as_given.Add(token, token.content);
      continue;
    }
    Vocabulary::Token& entered = state->vocabulary.tokens[static_cast<size_t>(id)];
    entered.text = state->normalizer.Normalize(token.content).text;
    entered.special = special.contains(entered.text);
    state->normalized.Add(token, entered.text);
  }
  for (const auto& [key, token] : config.named_tokens) {
    if (key == "eos_token") state->eos_id = state->vocabulary.ids.find(token)->second;
  }
  return Tokenizer(state);
}

void Tokenizer::State::EncodeWord(std::string_view word, bool use_known_words, std::vector<int32_t>& ids) const {
  if (!use_known_words || word.size() > kLongestKnownWord) return bpe.Encode(word, ids);
  auto known = known_words.find(word);
  if (known == known_words.end()) {
    std::vector<int32_t> made;
    bpe.Encode(word, made);
    if (known_words.size() >= kMostKnownWords) known_words.clear();
    known = known_words.emplace(word, std::move(made)).first;
  }
  ids.insert(ids.end(), known->second.begin(), known->second.end());
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, bool parse_special) const {
  std::string repaired;
  if (!IsValidUtf8(text)) text = repaired = ReplaceInvalidUtf8(text);
  const std::unique_lock<std::mutex> lock(state_->mutex, std::try_to_lock);
  std::vector<int32_t> ids;
  for (const Stretch& stretch : state_->as_given.Split(text, parse_special)) {
    if (stretch.id >= 0) {
      ids.push_back(stretch.id);
      continue;
    }
    const Normalizer::Result normalized = state_->normalizer.Normalize(stretch.text);
    for (const Stretch& part : state_->normalized.Split(normalized.text, parse_special)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
        continue;
      }
      const bool at_start = stretch.text.data() == text.data() && part.text.data() == normalized.text.data();
      std::deque<std::string> storage;
      for (const Word& word : state_->pre_tokenizer.Split({part.text, at_start && normalized.keeps_start}, storage))
        state_->EncodeWord(word.text, lock.owns_lock(), ids);
    }
  }
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  const std::vector<Vocabulary::Token>& tokens = state_->vocabulary.tokens;
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= tokens.size()) continue;
    const Vocabulary::Token& token = tokens[static_cast<size_t>(id)];
    if (token.present && !(token.special && skip_special)) texts.push_back(token.text);
  }
  return state_->decoder.Decode(std::move(texts));
}

const std::vector<int32_t>& Tokenizer::prefix() const { return state_->prefix; }

int32_t Tokenizer::TokenId(std::string_view token) const {
  const auto found = state_->vocabulary.ids.find(token);
  return found == state_->vocabulary.ids.end() ? -1 : found->second;
}

int32_t Tokenizer::eos_id() const { return state_->eos_id; }

size_t Tokenizer::vocabulary_size() const { return state_->vocabulary.tokens.size(); }

}  // namespace kgrpo::tokenizer
