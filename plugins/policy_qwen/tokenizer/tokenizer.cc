#include "policy_qwen/tokenizer/tokenizer.h"

#include <kgrpo/sdk/error.h>

#include <deque>
#include <mutex>
#include <optional>

#include "policy_qwen/tokenizer/added_tokens.h"
#include "policy_qwen/tokenizer/bpe.h"
#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/normalizer.h"
#include "policy_qwen/tokenizer/pre_tokenizer.h"
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
  State(Vocabulary vocabulary_in, Bpe bpe_in, PreTokenizer pre_tokenizer_in, Normalizer normalizer_in)
      : vocabulary(std::move(vocabulary_in)),
        bpe(std::move(bpe_in)),
        pre_tokenizer(std::move(pre_tokenizer_in)),
        normalizer(normalizer_in) {}

  void EncodeText(std::string_view text, WordCache* usable_cache, std::vector<int32_t>& ids) const;
  void EncodeWord(std::string_view word, WordCache* usable_cache, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary;
  Bpe bpe;
  PreTokenizer pre_tokenizer;
  Normalizer normalizer;
  AddedTokenMatcher as_given;    // added tokens that are looked for in the text as given
  AddedTokenMatcher normalized;  // and those that are looked for in the normalized text
  int32_t bos_id = -1;
  int32_t eos_id = -1;
  int32_t pad_id = -1;
  mutable WordCache cache;
};

namespace {

// Byte-level tokens decode byte by byte; anything else would need another decoder.
void CheckDecoder(ObjectReader& root) {
  ObjectReader decoder = root.Object("decoder");
  const std::string type = decoder.String("type");
  if (type != "ByteLevel") {
    decoder.Refuse("type", "decoder '" + type +
                               "' is not supported (ByteLevel is); use a model of the Qwen, SmolLM or GPT-2 family");
  }
  for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"})
    decoder.Find(key);  // none concerns decoding
  decoder.RefuseOthers();
}

// True if a TemplateProcessing leaves a single text as it is; its template for pairs is never used here. `added`
// receives the tokens that it puts around the text instead.
bool KeepsText(ObjectReader& processor, std::string* added) {
  const json* single = processor.Find("single");
  if (single == nullptr || !single->is_array()) return false;
  size_t texts = 0;
  for (const json& piece : *single) {
    if (!piece.is_object()) return false;
    if (piece.contains("SpecialToken")) {
      const json& token = piece["SpecialToken"];
      const bool named = token.is_object() && token.contains("id") && token["id"].is_string();
      *added += (added->empty() ? "'" : ", '") + (named ? token["id"].get<std::string>() : token.dump()) + "'";
    } else if (piece.contains("Sequence") && piece["Sequence"].is_object() && piece["Sequence"].contains("id") &&
               piece["Sequence"]["id"] == "A") {
      ++texts;
    } else {
      return false;
    }
  }
  return texts == 1 && added->empty();
}

// A post-processor may add tokens around a text. ByteLevel, a template of the text alone, and a Sequence of these, add
// none.
void CheckPostProcessor(const std::string& file, const std::string& path, const json& value) {
  ObjectReader processor(file, path, value);
  const std::string type = processor.String("type");
  if (type == "ByteLevel") return;
  if (type == "Sequence") {
    const json& parts = processor.Array("processors");
    for (size_t i = 0; i < parts.size(); ++i) {
      CheckPostProcessor(file, processor.PathOf("processors") + "[" + std::to_string(i) + "]", parts[i]);
    }
    return;
  }
  std::string added;
  if (type == "TemplateProcessing" && KeepsText(processor, &added)) return;
  processor.Refuse("type", "post-processor '" + type + "' adds " + (added.empty() ? "tokens" : added) +
                               " around a text, which is not supported; set post_processor to null and write the "
                               "tokens into the prompt");
}

int32_t RoleOf(const TokenizerConfig& config, const char* key, const std::optional<std::string>& token,
               const Vocabulary& vocabulary) {
  if (!token) return -1;
  const auto found = vocabulary.ids.find(*token);
  if (found == vocabulary.ids.end()) {
    throw Error(KGRPO_ERROR_INVALID, config.file + ": " + key + ": is '" + *token +
                                         "', which tokenizer.json lacks; the two files are " + "of different models");
  }
  return found->second;
}

void CheckAddedTokens(const TokenizerConfig& config, const Vocabulary& vocabulary) {
  for (const auto& [id, content] : config.added_tokens) {
    const auto found = vocabulary.ids.find(content);
    if (found != vocabulary.ids.end() && found->second == id) continue;
    throw Error(
        KGRPO_ERROR_INVALID,
        config.file + ": added_tokens_decoder." + std::to_string(id) + ": '" + content + "' " +
            (found == vocabulary.ids.end() ? std::string("is not in tokenizer.json")
                                           : "has the id " + std::to_string(found->second) + " in tokenizer.json") +
            "; the two files are of different models");
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
  const json value = ReadJsonFile(path);
  ObjectReader root(file, "", value);
  root.Find("version");
  root.Find("truncation");
  root.Find("padding");

  Vocabulary vocabulary;
  Bpe bpe = ReadBpe(file, root.Require("model"), vocabulary);
  const json none = json::array();
  const json& added = root.Find("added_tokens") == nullptr ? none : root.Array("added_tokens");
  const std::vector<AddedToken> added_tokens = ReadAddedTokens(file, added, vocabulary);
  const json* normalizer = root.Find("normalizer");
  const json* pre_tokenizer = root.Find("pre_tokenizer");
  CheckDecoder(root);
  if (const json* processor = root.Find("post_processor")) CheckPostProcessor(file, "post_processor", *processor);
  root.RefuseOthers();

  auto state = std::make_unique<State>(std::move(vocabulary), std::move(bpe),
                                       PreTokenizer(file, pre_tokenizer == nullptr ? json() : *pre_tokenizer),
                                       Normalizer(file, normalizer == nullptr ? json() : *normalizer));
  // Hugging Face looks for special tokens first, which decides between equal patterns.
  for (const bool special : {true, false}) {
    for (const AddedToken& token : added_tokens) {
      if (token.special != special) continue;
      if (token.normalized) {
        state->normalized.Add(token, state->normalizer.Normalize(token.content));
      } else {
        state->as_given.Add(token, token.content);
      }
    }
  }
  const TokenizerConfig config = ReadTokenizerConfig(folder);
  CheckAddedTokens(config, state->vocabulary);
  state->bos_id = RoleOf(config, "bos_token", config.bos_token, state->vocabulary);
  state->eos_id = RoleOf(config, "eos_token", config.eos_token, state->vocabulary);
  state->pad_id = RoleOf(config, "pad_token", config.pad_token, state->vocabulary);
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

void Tokenizer::State::EncodeText(std::string_view text, WordCache* usable_cache, std::vector<int32_t>& ids) const {
  std::deque<std::string> storage;
  for (const std::string_view word : pre_tokenizer.Split(text, storage)) EncodeWord(word, usable_cache, ids);
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
    const std::string normalized = state_->normalizer.Normalize(stretch.text);
    for (const Stretch& part : state_->normalized.Split(normalized, parse_special)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else {
        state_->EncodeText(part.text, cache, ids);
      }
    }
  }
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  const std::vector<Vocabulary::Token>& tokens = state_->vocabulary.tokens;
  std::string bytes;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= tokens.size()) continue;
    const Vocabulary::Token& token = tokens[static_cast<size_t>(id)];
    if (!token.special || !skip_special) bytes += token.bytes;
  }
  return ReplaceInvalidUtf8(bytes);
}

int32_t Tokenizer::TokenId(std::string_view token) const {
  const auto found = state_->vocabulary.ids.find(token);
  return found == state_->vocabulary.ids.end() ? -1 : found->second;
}

int32_t Tokenizer::bos_id() const {
  return state_->bos_id;
}
int32_t Tokenizer::eos_id() const {
  return state_->eos_id;
}
int32_t Tokenizer::pad_id() const {
  return state_->pad_id;
}
size_t Tokenizer::vocabulary_size() const {
  return state_->vocabulary.tokens.size();
}

}  // namespace kgrpo::tokenizer
