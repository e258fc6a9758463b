// Tokenizer against Hugging Face's tokenizers and transformers, whose results make_tokenizer_golden.py and
// make_released_golden.py in tests/golden/tokenizer wrote.
#include "policy_qwen/tokenizer/tokenizer.h"
#include "test.h"
#include "test_files.h"

namespace kgrpo::tokenizer {
namespace {

std::vector<int32_t> ParseIds(const std::string& text) {
  std::istringstream stream(text);
  std::vector<int32_t> ids;
  for (int32_t id; stream >> id;) ids.push_back(id);
  return ids;
}

// Compares `tokenizer` on as many strings of a folder's strings.jsonl as `golden`.ids has lines, and on all of
// `golden`.decode.jsonl.
void ExpectEqualsReference(const Tokenizer& tokenizer, const std::filesystem::path& golden, size_t least_strings,
                           const std::filesystem::path& strings_folder = GoldenFolder()) {
  const std::vector<std::string> strings = ReadLines(strings_folder / "strings.jsonl");
  const std::vector<std::string> lines = ReadLines(golden.string() + ".ids");
  ASSERT_GE(lines.size(), least_strings);
  ASSERT_LE(lines.size(), strings.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto text = json::parse(strings[i]).get<std::string>();
    const size_t bar = lines[i].find(" | ");
    const std::string parsed = lines[i].substr(0, bar);
    const std::string unparsed = bar == std::string::npos ? parsed : lines[i].substr(bar + 3);
    EXPECT_EQ(tokenizer.Encode(text), ParseIds(parsed)) << "string " << i << ": " << strings[i];
    EXPECT_EQ(tokenizer.Encode(text, false), ParseIds(unparsed))
        << "special tokens as text, string " << i << ": " << strings[i];
  }
  const std::vector<std::string> rows = ReadLines(golden.string() + ".decode.jsonl");
  ASSERT_GE(rows.size(), 150u);
  for (const std::string& row : rows) {
    const json value = json::parse(row);
    const auto ids = value[0].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.Decode(ids, false), value[1].get<std::string>()) << row;
    EXPECT_EQ(tokenizer.Decode(ids, true), value[2].get<std::string>()) << row;
  }
}

class TinyVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(TinyVocabulary, EqualsReference) {
  const std::filesystem::path folder = GoldenFolder() / "tiny" / GetParam();
  const Tokenizer tokenizer = Tokenizer::Load(folder);
  EXPECT_LE(tokenizer.vocabulary_size(), 512u);
  ExpectEqualsReference(tokenizer, folder / "golden", 700);
}

INSTANTIATE_TEST_SUITE_P(, TinyVocabulary,
                         testing::Values("qwen", "gpt2", "gpt2_prefix", "smollm", "digits_together", "llama3",
                                         "added_tokens", "removed", "merged", "inverted", "unknown", "unknown_fused",
                                         "dropped"),
                         [](const auto& param_info) { return param_info.param; });

// Folders in the form of released models, read as transformers reads them.
class ReleasedForm : public testing::TestWithParam<const char*> {};

TEST_P(ReleasedForm, EqualsTransformers) {
  const std::filesystem::path folder = GoldenFolder() / "released" / GetParam();
  const Tokenizer tokenizer = Tokenizer::Load(folder);
  ExpectEqualsReference(tokenizer, folder / "golden", 200, GoldenFolder() / "released");
  const json golden = json::parse(ReadLines(folder / "golden.json").at(0));
  EXPECT_EQ(tokenizer.prefix(), golden["prefix"].get<std::vector<int32_t>>());
  EXPECT_EQ(tokenizer.eos_id(), golden["eos"].get<int32_t>());
}

INSTANTIATE_TEST_SUITE_P(, ReleasedForm, testing::Values("llama32", "r1_qwen", "llama2", "mistral"),
                         [](const auto& param_info) { return param_info.param; });

// The whole vocabularies are too large to keep here: scripts/setup_test_vocabularies makes them.
class WholeVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(WholeVocabulary, EqualsReference) {
  const char* variable = std::getenv("KGRPO_TEST_VOCABULARIES");
  const std::filesystem::path folder =
      (variable != nullptr ? std::filesystem::path(variable)
                           : std::filesystem::path(KGRPO_SOURCE_DIR) / "build" / "test_vocabularies") /
      GetParam();
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no vocabulary in " << folder
                 << ": run scripts/setup_test_vocabularies, or name the folder that it wrote "
                 << "in KGRPO_TEST_VOCABULARIES";
  }
  ExpectEqualsReference(Tokenizer::Load(folder), GoldenFolder() / GetParam(), 3000);
}

INSTANTIATE_TEST_SUITE_P(, WholeVocabulary, testing::Values("qwen", "smollm2"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace kgrpo::tokenizer
