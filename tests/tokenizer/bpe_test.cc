// Bpe against the definition of byte-pair encoding, on random merge lists.
#include "policy_qwen/tokenizer/bpe.h"

#include "test.h"

namespace kgrpo::tokenizer {
namespace {

struct RandomMerges {
  std::map<std::pair<int32_t, int32_t>, Bpe::Merge> merges;
  int32_t next_id = 256;
};

// Merges that build on one another, over a small alphabet so that words have many; ranks in a random order.
RandomMerges MakeMerges(std::mt19937& random, int letters, int count) {
  RandomMerges made;
  std::vector<std::string> texts(256);
  std::map<std::string, int32_t> id_of_text;
  std::vector<int32_t> ids;
  for (int i = 0; i < letters; ++i) {
    ids.push_back('a' + i);
    texts['a' + i] = std::string(1, static_cast<char>('a' + i));
  }
  std::vector<int32_t> ranks(count);
  for (int i = 0; i < count; ++i) ranks[i] = i;
  std::shuffle(ranks.begin(), ranks.end(), random);
  for (int i = 0; i < count; ++i) {
    const int32_t left = ids[random() % ids.size()], right = ids[random() % ids.size()];
    const std::string text = texts[left] + texts[right];
    const auto [known, created] = id_of_text.try_emplace(text, made.next_id);
    if (created) {
      ++made.next_id;
      texts.push_back(text);
      ids.push_back(known->second);
    }
    made.merges[{left, right}] = {ranks[i], known->second};
  }
  return made;
}

// The definition: join the leftmost pair of the lowest rank, until there is none.
std::vector<int32_t> MergeByDefinition(std::vector<int32_t> symbols, const RandomMerges& made) {
  while (true) {
    size_t best = symbols.size();
    Bpe::Merge best_merge{INT32_MAX, -1};
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = made.merges.find({symbols[i], symbols[i + 1]});
      if (found == made.merges.end() || found->second.rank >= best_merge.rank) continue;
      best = i;
      best_merge = found->second;
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = best_merge.result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BpeTest, FollowsTheDefinition) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const int letters = 1 + static_cast<int>(random() % 4);
    const RandomMerges made = MakeMerges(random, letters, 1 + static_cast<int>(random() % 40));
    Bpe::Options options;
    for (const auto& [pair, merge] : made.merges) options.merges[Bpe::KeyOf(pair.first, pair.second)] = merge;
    for (int i = 0; i < letters; ++i) options.character_ids['a' + i] = 'a' + i;
    const Bpe bpe(options);
    for (const size_t length : {0, 1, 2, 3, 7, 20, 50, 100, 300}) {
      std::string word;
      std::vector<int32_t> symbols;
      for (size_t i = 0; i < length; ++i) {
        word.push_back(static_cast<char>('a' + random() % letters));
        symbols.push_back(word.back());
      }
      std::vector<int32_t> ids;
      bpe.Encode(word, ids);
      ASSERT_EQ(ids, MergeByDefinition(symbols, made)) << word;
    }
  }
}

TEST(BpeTest, TakesLongWordsInShortTime) {
  Bpe::Options options;
  options.merges[Bpe::KeyOf('a', 'a')] = {0, 256};
  options.merges[Bpe::KeyOf(256, 256)] = {1, 257};
  options.character_ids['a'] = 'a';
  const Bpe bpe(options);
  std::vector<int32_t> ids;
  bpe.Encode(std::string(1'000'000, 'a'), ids);  // quadratic time would be hours
  EXPECT_EQ(ids, std::vector<int32_t>(250'000, 257));
}

std::vector<int32_t> EncodeWith(const Bpe::Options& options, std::string_view word) {
  std::vector<int32_t> ids;
  Bpe(options).Encode(word, ids);
  return ids;
}

TEST(BpeTest, UnknownCharactersAreDroppedOrReplaced) {
  Bpe::Options options;
  options.character_ids['a'] = 0;
  EXPECT_THAT(EncodeWith(options, "xa\u00E9xa"), testing::ElementsAre(0, 0));
  options.unknown_id = 7;
  EXPECT_THAT(EncodeWith(options, "xa\u00E9xa"), testing::ElementsAre(7, 0, 7, 7, 0));
  options.fuse_unknown = true;
  EXPECT_THAT(EncodeWith(options, "xa\u00E9xa"), testing::ElementsAre(7, 0, 7, 0));
  options.whole_words["xax"] = 9;
  EXPECT_THAT(EncodeWith(options, "xax"), testing::ElementsAre(9));
}

TEST(BpeTest, UnknownCharactersFallBackToBytes) {
  Bpe::Options options;
  options.character_ids['a'] = 0;
  options.unknown_id = 7;
  options.fuse_unknown = true;
  options.byte_ids[0xC3] = 1;
  options.byte_ids[0xA9] = 2;
  EXPECT_THAT(EncodeWith(options, "a\u00E9a"), testing::ElementsAre(0, 1, 2, 0));
  // U+00E8 lacks its second byte; the bytes of what follows come before the unknown token, as in the reference.
  EXPECT_THAT(EncodeWith(options, "a\u00E8a"), testing::ElementsAre(0, 7, 0));
  EXPECT_THAT(EncodeWith(options, "\u00E8\u00E9a"), testing::ElementsAre(1, 2, 7, 0));
}

}  // namespace
}  // namespace kgrpo::tokenizer
