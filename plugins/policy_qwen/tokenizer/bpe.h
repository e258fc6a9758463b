// Byte-pair encoding of one word (Sennrich et al. 2016): starting from single characters, the pair of neighbours that
// comes first in the merge list is joined, leftmost first, until no pair is in the list. Used by Tokenizer.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BPE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BPE_H_
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kgrpo::tokenizer {

// Immutable: safe from any thread.
class Bpe {
 public:
  struct Merge {
    int32_t rank;
    int32_t result;
  };
  struct Options {
    std::unordered_map<uint32_t, int32_t> character_ids;  // the tokens of single characters
    std::array<int32_t, 256> byte_ids;  // what the bytes of other characters become (byte_fallback); -1: not there
    int32_t unknown_id = -1;            // what a character without tokens becomes; -1: it is dropped
    bool fuse_unknown = false;          // neighbouring unknown characters become one token
    // Words that are tokens as they stand, whatever the merges say (the file's ignore_merges); else empty.
    std::unordered_map<std::string, int32_t> whole_words;
    std::unordered_map<uint64_t, Merge> merges;  // by KeyOf
    Options() { byte_ids.fill(-1); }
  };
  static uint64_t KeyOf(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  explicit Bpe(Options options) : options_(std::move(options)) {}

  // Appends the tokens of `word` (valid UTF-8, of any length) to `ids`. Time O(n log n).
  void Encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  std::vector<int32_t> InitialSymbols(std::string_view word) const;
  bool AppendBytes(std::string_view character, std::vector<int32_t>& symbols) const;

  Options options_;
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_BPE_H_
