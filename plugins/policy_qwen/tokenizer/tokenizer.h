// Text to token ids and back, as transformers 5 and its tokenizers library do it, for BPE tokenizers: byte-level ones
// (Qwen, Llama 3, SmolLM, GPT-2) and those of SentencePiece models (Llama 2, Mistral). Start here: the policy loads one
// Tokenizer from its model folder, and a ChatTemplate (chat_template.h) beside it; `kgrpo-host tokenize` needs nothing
// more.
//
// A text goes through: added_tokens.h (cuts out <|im_end|> and the like), steps.h (normalizer, then words), bpe.h
// (tokens). Tokens go through the decoder of steps.h.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_H_
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::tokenizer {

// Cheap to copy. Threads: every const member may be called from any number of threads at once. Results depend on the
// arguments alone.
class Tokenizer {
 public:
  // Reads tokenizer.json and the files beside it (tokenizer_config.h) from a model folder. Throws Error, naming file
  // and key, if a file is missing, cut short or wrong, or if tokenizer.json asks for anything that is not implemented
  // here. The file's `truncation` and `padding` are passed over.
  static Tokenizer Load(const std::filesystem::path& folder);

  // The tokens of `text`. Bytes that are no UTF-8 are read as U+FFFD. With parse_special false, special tokens spelled
  // out in the text are plain text (added tokens that are not special are found all the same).
  std::vector<int32_t> Encode(std::string_view text, bool parse_special = true) const;

  // The tokens that belong in front of a text which no chat template has written, such as <s>; often none.
  const std::vector<int32_t>& prefix() const;

  // The text of the tokens, always valid UTF-8: bytes that form no character become U+FFFD. With skip_special, special
  // tokens are left out. Ids that name no token (a model's embedding often has spare rows) give nothing.
  std::string Decode(std::span<const int32_t> ids, bool skip_special) const;

  // The id of a token as tokenizer.json spells it, such as "<|im_end|>"; -1 if there is none.
  int32_t TokenId(std::string_view token) const;

  // The end token that tokenizer_config.json names or its class implies; -1 if there is none.
  int32_t eos_id() const;

  // One more than the largest id: a model needs at least so many embedding rows.
  size_t vocabulary_size() const;

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_H_
