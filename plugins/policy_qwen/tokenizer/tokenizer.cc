#include "policy_qwen/tokenizer/tokenizer.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>

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

// Words seen before, with their tokens. Natural text repeats its words, so this saves most of the merging. The cache
// never changes a result: a thread that finds it in use works without it.
class WordCache {
 public:
  static constexpr size_t kMostWords = 1 << 16;
  static constexpr size_t kLongestWord = 64;  // longer ones hardly come again

  std::mutex mutex;
  std::unordered_map<std::string, std::vector<int32_t>, StringHash, std::equal_to<>> tokens_of_word;
};

}  // namespace

struct Tokenizer::State {
  // Moves `vocabulary_in` after reading it.
  State(const std::string& file, const json& root, Vocabulary vocabulary_in, Bpe bpe_in)
      : vocabulary(std::move(vocabulary_in)),
        bpe(std::move(bpe_in)),
        normalizer(file, root.value("normalizer", json())),
        pre_tokenizer(file, root.value("pre_tokenizer", json())),
        decoder(file, root.value("decoder", json())) {}

  void EncodeText(Word text, WordCache* usable_cache, std::vector<int32_t>& ids) const;
  void EncodeWord(std::string_view word, WordCache* usable_cache, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary;
  Bpe bpe;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  std::vector<int32_t> prefix;
  AddedTokenMatcher as_given;    // added tokens that are looked for in the text as given
  AddedTokenMatcher normalized;  // and those that are looked for in the normalized text
  int32_t eos_id = -1;
  mutable WordCache cache;
};

namespace {

// The ids of the tokens that a TemplateProcessing puts in front of a text. Its template for pairs is never used here.
std::vector<int32_t> ReadTemplate(ObjectReader& processor, size_t vocabulary_size) {
  std::vector<int32_t> ids;
  const json& pieces = processor.Array("single");
  for (size_t i = 0; i < pieces.size() || pieces.empty(); ++i) {
    const bool last = i + 1 >= pieces.size();
    const json piece = pieces.empty() ? json() : pieces[i].value(last ? "Sequence" : "SpecialToken", json::object());
    const json id = piece.is_object() ? piece.value("id", json()) : json();
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

// Enters the added tokens of all files, in the order in which transformers adds them.
void AddTokens(const std::vector<AddedToken>& of_file, const std::string& file, const TokenizerConfig& config,
               AddedVocabulary& added) {
  std::vector<AddedToken> of_config = config.added_tokens;
  if (config.tokenizer_class.empty()) {
    for (size_t i = 0; i < of_file.size(); ++i)
      added.Add(of_file[i], file + ": added_tokens[" + std::to_string(i) + "].id");
  } else if (!config.has_added_tokens_decoder) {
    for (const AddedToken& token : of_file) {
      std::erase_if(of_config, [&](const AddedToken& other) { return other.id == token.id; });
      of_config.push_back(token);
    }
    std::ranges::sort(of_config, {}, &AddedToken::id);
  }
  for (AddedToken& token : of_config) {
    const auto known = added.tokens().find(token.id);
    if (known != added.tokens().end() && known->second.SameButForId(token)) continue;
    token.special |= std::ranges::count(config.special_tokens, token.content, &AddedToken::content) > 0;
    const char* key = config.has_added_tokens_decoder ? "added_tokens_decoder." : "the id of an added token, ";
    added.Add(token, config.file + ": " + key + std::to_string(token.id));
  }
  for (const AddedToken& token : config.special_tokens) {
    const auto has_content = [&](const auto& entry) { return entry.second.content == token.content; };
    if (config.tokenizer_class == "Qwen2Tokenizer") {
      added.Add({.content = token.content, .special = true}, config.file);
    } else if (std::ranges::none_of(added.tokens(), has_content)) {
      added.Add(token, config.file);
    }
  }
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
  json value = ReadJsonFile(path);
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

  auto state = std::make_unique<State>(file, value, std::move(vocabulary), std::move(bpe));
  AddedVocabulary added(state->vocabulary);
  AddTokens(of_file, file, config, added);
  if (processor != nullptr) state->prefix = ReadPostProcessor(file, *processor, state->vocabulary.tokens.size());
  std::set<std::string> special;
  for (const auto& [id, token] : added.tokens()) {
    if (token.special) special.insert(token.content);
  }
  for (const auto& [id, token] : added.tokens()) {
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
  return Tokenizer(std::move(state));
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::State::EncodeWord(std::string_view word, WordCache* usable_cache, std::vector<int32_t>& ids) const {
  if (usable_cache == nullptr || word.size() > WordCache::kLongestWord) return bpe.Encode(word, ids);
  auto& known = usable_cache->tokens_of_word;
  if (const auto found = known.find(word); found != known.end()) {
    ids.insert(ids.end(), found->second.begin(), found->second.end());
    return;
  }
  const size_t before = ids.size();
  bpe.Encode(word, ids);
  if (known.size() >= WordCache::kMostWords) known.clear();
  known.emplace(word, std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end()));
}

void Tokenizer::State::EncodeText(Word text, WordCache* usable_cache, std::vector<int32_t>& ids) const {
  std::deque<std::string> storage;
  for (const Word& word : pre_tokenizer.Split(text, storage)) EncodeWord(word.text, usable_cache, ids);
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, bool parse_special) const {
  std::string repaired;
  if (!IsValidUtf8(text)) text = repaired = ReplaceInvalidUtf8(text);
  const std::unique_lock<std::mutex> lock(state_->cache.mutex, std::try_to_lock);
  WordCache* cache = lock.owns_lock() ? &state_->cache : nullptr;
  std::vector<int32_t> ids;
  for (const Stretch& stretch : state_->as_given.Split(text, parse_special)) {
    if (stretch.id >= 0) {
      ids.push_back(stretch.id);
      continue;
    }
    const Normalizer::Result normalized = state_->normalizer.Normalize(stretch.text);
    const bool at_start = stretch.text.data() == text.data() && normalized.keeps_start;
    for (const Stretch& part : state_->normalized.Split(normalized.text, parse_special)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else {
        state_->EncodeText({part.text, at_start && part.text.data() == normalized.text.data()}, cache, ids);
      }
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

const std::vector<int32_t>& Tokenizer::prefix() const {
  return state_->prefix;
}

int32_t Tokenizer::TokenId(std::string_view token) const {
  const auto found = state_->vocabulary.ids.find(token);
  return found == state_->vocabulary.ids.end() ? -1 : found->second;
}

int32_t Tokenizer::eos_id() const {
  return state_->eos_id;
}

size_t Tokenizer::vocabulary_size() const {
  return state_->vocabulary.tokens.size();
}

}  // namespace kgrpo::tokenizer
