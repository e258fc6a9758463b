// Tokenizer's own promises: round trips, any bytes, ids out of range, roles of tokens, files beside tokenizer.json,
// long texts, threads.
#include "policy_qwen/tokenizer/tokenizer.h"

#include <utf8proc.h>

#include "policy_qwen/tokenizer/unicode.h"
#include "test.h"
#include "test_files.h"

namespace kgrpo::tokenizer {
namespace {

Tokenizer LoadTiny(const std::string& style) { return Tokenizer::Load(GoldenFolder() / "tiny" / style); }

uint32_t RandomCodePoint(std::mt19937& random) {
  while (true) {
    const uint32_t limits[] = {0x80, 0x800, 0x3100, 0x10000, 0x110000};
    const uint32_t code_point = random() % limits[random() % 5];
    if (code_point < 0xD800 || code_point > 0xDFFF) return code_point;
  }
}

std::string RandomText(std::mt19937& random, size_t most) {
  std::string text;
  for (size_t i = random() % (most + 1); i > 0; --i) AppendUtf8(RandomCodePoint(random), text);
  return text;
}

std::string RandomBytes(std::mt19937& random, size_t most) {
  std::string bytes;
  for (size_t i = random() % (most + 1); i > 0; --i) {
    // Lead and continuation bytes more often than by chance, and pieces of tokens.
    switch (random() % 4) {
      case 0: bytes.push_back(static_cast<char>(random())); break;
      case 1: bytes.push_back(static_cast<char>(0xC0 + random() % 0x40)); break;
      case 2: bytes.push_back(static_cast<char>(0x80 + random() % 0x40)); break;
      default: bytes += std::string_view("<|im_end|>").substr(random() % 10); break;
    }
  }
  return bytes;
}

std::string Nfc(const std::string& text) {
  utf8proc_uint8_t* composed = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&free)> owner(composed, &free);
  return std::string(reinterpret_cast<const char*>(composed), static_cast<size_t>(length));
}

TEST(TokenizerTest, DecodeUndoesEncodeWithoutNormalizer) {
  for (const char* style : {"gpt2", "smollm", "llama3"}) {
    const Tokenizer tokenizer = LoadTiny(style);
    std::mt19937 random(11);
    for (int i = 0; i < 3000; ++i) {
      const std::string text = RandomText(random, 40);
      ASSERT_EQ(tokenizer.Decode(tokenizer.Encode(text), false), text) << style;
    }
  }
}

TEST(TokenizerTest, DecodeUndoesEncodeUpToNfc) {
  const Tokenizer tokenizer = LoadTiny("qwen");
  std::mt19937 random(12);
  for (int i = 0; i < 5000; ++i) {
    const std::string text = RandomText(random, 40);
    const std::string back = tokenizer.Decode(tokenizer.Encode(text), false);
    bool known = true;  // to the reference's NFC, of an older Unicode version than utf8proc's
    for (size_t at = 0; at < text.size(); at += CodePointAt(text, at).length)
      known &= !IsUnknownToReference(CodePointAt(text, at).value);
    if (known) {
      ASSERT_EQ(back, Nfc(text));
    }
    ASSERT_EQ(tokenizer.Encode(back), tokenizer.Encode(text));
  }
}

TEST(TokenizerTest, TakesAnyBytes) {
  for (const char* style : {"qwen", "added_tokens", "inverted", "unknown", "dropped"}) {
    const Tokenizer tokenizer = LoadTiny(style);
    std::mt19937 random(13);
    for (int i = 0; i < 2000; ++i) {
      const std::string bytes = RandomBytes(random, 30);
      const std::vector<int32_t> ids = tokenizer.Encode(bytes);
      ASSERT_EQ(ids, tokenizer.Encode(ReplaceInvalidUtf8(bytes)));
      ASSERT_TRUE(IsValidUtf8(tokenizer.Decode(ids, false)));
    }
  }
}

TEST(TokenizerTest, DecodesAnyIds) {
  const Tokenizer tokenizer = LoadTiny("qwen");
  std::mt19937 random(14);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int32_t> ids(random() % 20);
    for (int32_t& id : ids)
      id = random() % 4 == 0 ? static_cast<int32_t>(random()) : static_cast<int32_t>(random() % 512);
    ASSERT_TRUE(IsValidUtf8(tokenizer.Decode(ids, i % 2 == 0)));
  }
  const std::vector<int32_t> none = {-1, 512, INT32_MIN, INT32_MAX};
  EXPECT_EQ(tokenizer.Decode(none, false), "");
}

TEST(TokenizerTest, ReplacesMaximalSubparts) {
  // The example of the Unicode standard, table 3-8, and what Python's errors="replace" says of it.
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(ReplaceInvalidUtf8("h\xC3\xA9"), "h\xC3\xA9");
}

TEST(TokenizerTest, KnowsTokensAndTheirRoles) {
  const TemporaryFolder folder;
  std::filesystem::copy(GoldenFolder() / "tiny" / "qwen" / "tokenizer.json", folder.path() / "tokenizer.json");
  const Tokenizer bare = Tokenizer::Load(folder.path());
  EXPECT_EQ(bare.eos_id(), -1);
  const int32_t end = bare.TokenId("<|im_end|>");
  EXPECT_GE(end, 0);
  EXPECT_EQ(bare.TokenId("no such token"), -1);
  EXPECT_EQ(bare.Encode("<|im_end|>"), std::vector<int32_t>{end});
  EXPECT_GT(bare.Encode("<|im_end|>", false).size(), 1u);
  folder.Write("tokenizer_config.json",
               R"({"eos_token": "<|im_end|>", "pad_token": {"content": "<|endoftext|>", "lstrip": false},
      "bos_token": null, "tokenizer_class": "TokenizersBackend", "model_max_length": 1e30})");
  const Tokenizer tokenizer = Tokenizer::Load(folder.path());
  EXPECT_EQ(tokenizer.eos_id(), end);
  EXPECT_EQ(tokenizer.vocabulary_size(), 512u);
}

// The order of combining marks, of which a text may have a long run, takes n log n steps: n * n would be 6 minutes
// here.
TEST(TokenizerTest, TakesLongRunsOfCombiningMarks) {
  constexpr int kTimes = 150'000;
  std::string text = "a", ordered = "\u1EA1\u0316";  // U+0323 composes with the letter
  for (int i = 0; i < kTimes; ++i) text += "\u0301\u0323\u0316";
  for (int i = 1; i < kTimes; ++i) ordered += "\u0323\u0316";
  for (int i = 0; i < kTimes; ++i) ordered += "\u0301";
  const Tokenizer tokenizer = LoadTiny("qwen");
  EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text), false), ordered);
}

// Each would take n * n steps if white space, matches or merges were looked at again for every token.
TEST(TokenizerTest, TakesLongTexts) {
  const TemporaryFolder folder;
  json file = json::parse(ReadLines(GoldenFolder() / "tiny" / "gpt2" / "tokenizer.json").at(0));
  const int32_t mark = static_cast<int32_t>(Tokenizer::Load(GoldenFolder() / "tiny" / "gpt2").vocabulary_size());
  file["added_tokens"].push_back(
      {{"id", mark}, {"content", "\t"}, {"lstrip", true}, {"rstrip", true}, {"normalized", false}});
  folder.Write("tokenizer.json", file.dump());
  const Tokenizer tokenizer = Tokenizer::Load(folder.path());
  EXPECT_EQ(tokenizer.Encode(std::string(500'000, '\t')), std::vector<int32_t>{mark});
  for (const std::string unit : {" ", "a", "\u00E9", "\n", "!", "1"}) {
    std::string text;
    for (int i = 0; i < 300'000; ++i) text += unit;
    EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text), false), text) << unit;
  }
}

// What transformers does with the same files was compared over 36 folders; each of these is one of its rules.
class FilesBesideTokenizerJson : public testing::Test {
 protected:
  FilesBesideTokenizerJson() {
    std::filesystem::copy(GoldenFolder() / "tiny" / "smollm" / "tokenizer.json", folder_.path() / "tokenizer.json");
  }
  Tokenizer Load() const { return Tokenizer::Load(folder_.path()); }

  TemporaryFolder folder_;
  const std::vector<int32_t> digits_ = LoadTiny("smollm").Encode("12");  // tokens of single digits
};

TEST_F(FilesBesideTokenizerJson, FlagsOfTheConfigCount) {
  const int32_t end = Load().TokenId("<|im_end|>");
  EXPECT_GT(Load().Encode(" <|im_end|>").size(), 1u);
  const std::string id = std::to_string(end);
  folder_.Write("tokenizer_config.json", R"({"added_tokens_decoder": {")" + id +
                                             R"(": {"content": "<|im_end|>", "lstrip": true, "special": false}}})");
  EXPECT_EQ(Load().Encode(" <|im_end|>"), std::vector<int32_t>{end});
  EXPECT_EQ(Load().Decode(std::vector<int32_t>{end}, true), "");  // once special, always special
}

TEST_F(FilesBesideTokenizerJson, TokensOfTheConfigAloneAreAdded) {
  const auto size = static_cast<int32_t>(Load().vocabulary_size());
  folder_.Write("tokenizer_config.json",
                R"({"eos_token": "the", "pad_token": "<pad>", "extra_special_tokens": ["<x>"], "image_token": "<i>"})");
  const Tokenizer tokenizer = Load();
  EXPECT_EQ(tokenizer.Encode("<pad><i><x>"), (std::vector<int32_t>{size, size + 1, size + 2}));
  EXPECT_EQ(tokenizer.eos_id(), tokenizer.TokenId("the"));
  EXPECT_EQ(tokenizer.Decode(tokenizer.Encode("atheb"), true), "ab");
}

TEST_F(FilesBesideTokenizerJson, OldFilesCountWithoutAddedTokensDecoder) {
  const auto size = static_cast<int32_t>(Load().vocabulary_size());
  folder_.Write("special_tokens_map.json", R"({"eos_token": {"content": "<y>", "lstrip": true}})");
  folder_.Write("added_tokens.json",
                R"({"<x>": )" + std::to_string(size) + R"(, "<y>": )" + std::to_string(size + 1) + "}");
  EXPECT_EQ(Load().Encode("<x><y>"), (std::vector<int32_t>{size, size + 1}));
  EXPECT_EQ(Load().eos_id(), size + 1);
  EXPECT_EQ(Load().Decode(Load().Encode("<x><y>"), true), "<x>");
  folder_.Write("tokenizer_config.json", R"({"added_tokens_decoder": {}})");
  EXPECT_EQ(Load().vocabulary_size(), static_cast<size_t>(size));
  EXPECT_EQ(Load().eos_id(), -1);
}

TEST_F(FilesBesideTokenizerJson, TheClassMakesThePipeline) {
  EXPECT_EQ(Load().Decode(Load().Encode(" x"), false), " x");
  folder_.Write("config.json", R"({"model_type": "qwen2"})");
  const Tokenizer qwen = Load();
  EXPECT_EQ(qwen.Encode("e\u0301"), qwen.Encode("\u00E9"));  // NFC
  EXPECT_EQ(qwen.eos_id(), qwen.TokenId("<|endoftext|>"));
  folder_.Write("config.json", R"({"model_type": "llama"})");
  EXPECT_NE(Load().Encode("e\u0301"), Load().Encode("\u00E9"));
  folder_.Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");  // but the file is byte-level
  EXPECT_EQ(Load().Encode("12"), digits_);
  EXPECT_EQ(Load().eos_id(), -1);
  folder_.Write("config.json", "not JSON");  // is for others to report
  EXPECT_EQ(Load().Encode("12"), digits_);
}

TEST(TokenizerTest, ThreadsShareOneTokenizer) {
  const Tokenizer tokenizer = LoadTiny("qwen");
  std::mt19937 random(15);
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> expected;
  for (int i = 0; i < 300; ++i) {
    texts.push_back(RandomText(random, 30) + " the kernel's shared memory");
    expected.push_back(tokenizer.Encode(texts.back()));
  }
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < texts.size(); ++i) wrong[t] += tokenizer.Encode(texts[i]) != expected[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

}  // namespace
}  // namespace kgrpo::tokenizer
