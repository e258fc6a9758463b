// coder_direct/completion.h: the kernels of the completions of completions.txt.
#include "coder_direct/completion.h"

#include "test.h"

namespace kgrpo::coder_direct {
namespace {

constexpr const char* kSignature = "extern \"C\" void launch(float* x)";

struct Row {
  std::string name, outcome, completion;
  bool cut = false;
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

class Table {
 public:
  Table() {
    std::ifstream file(KGRPO_SOURCE_DIR "/tests/coder_direct/completions.txt");
    std::string* text = nullptr;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("%%% = ")) {
        text = &texts[line.substr(6)];
      } else if (line.starts_with("%%% ")) {
        Row& row = rows.emplace_back();
        const size_t outcome = line.find(" | ");
        row.cut = line.ends_with(" | cut");
        row.name = line.substr(4, outcome - 4);
        row.outcome = line.substr(outcome + 3, line.size() - outcome - 3 - (row.cut ? 6 : 0));
        text = &row.completion;
      } else if (text != nullptr) {
        *text += line + "\n";
      }
    }
    for (Row& row : rows) {
      for (const auto& [name, kernel] : texts) row.completion = Replaced(row.completion, "@" + name + "@\n", kernel);
    }
  }

  std::map<std::string, std::string> texts;
  std::vector<Row> rows;
};

TEST(CompletionTest, Table) {
  const Table table;
  ASSERT_GE(table.rows.size(), 19u);
  for (const Row& row : table.rows) {
    SCOPED_TRACE(row.name);
    const std::string current = table.texts.at("B");
    const CoderAnswer written = ReadCompletion({row.completion, row.cut}, kSignature, current);
    const bool none = row.outcome.starts_with("none ");
    EXPECT_EQ(written.outcome, none ? KGRPO_CODER_NO_KERNEL : KGRPO_CODER_OK) << written.message;
    EXPECT_EQ(written.source, none ? "" : row.outcome == "unchanged" ? current : table.texts.at(row.outcome));
    EXPECT_THAT(written.message, HasSubstr(none ? row.outcome.substr(5) : ""));
    EXPECT_EQ(written.message.empty(), !none);
  }
}

// 6,000 tokens, most of them thoughts with drafts in them.
TEST(CompletionTest, ALongCompletionIsReadLikeAShortOne) {
  const Table table;
  const std::string draft = "```cuda\n" + Replaced(table.texts.at("C"), "2.0f", "3.0f") + "```\n";
  std::string thoughts;
  while (thoughts.size() < 22000) thoughts += "Wait. Each block has 32 threads, so is one warp enough?\n" + draft;
  const std::string blocks = "The kernel was\n```cuda\n" + table.texts.at("B") + "```\nHelpers alone\n```cuda\n" +
                             "__device__ float twice(float v) { return v + v; }\n```\nand the whole\n```cuda\n" +
                             table.texts.at("C") + "```\nEach element is read once.\n";
  const CoderAnswer written =
      ReadCompletion({"<think>\n" + thoughts + "</think>\n" + blocks, false}, kSignature, table.texts.at("B"));
  EXPECT_EQ(written.outcome, KGRPO_CODER_OK);
  EXPECT_EQ(written.source, table.texts.at("C"));
  EXPECT_THAT(written.summary, HasSubstr("Each element is read once."));
  EXPECT_THAT(written.summary, Not(HasSubstr("Wait")));
}

TEST(CompletionTest, TheSummaryIsTheWordsBesideTheCode) {
  const Table table;
  const auto summary = [&](const std::string& text) {
    return ReadCompletion({text, false}, kSignature, table.texts.at("B")).summary;
  };
  EXPECT_EQ(summary("One read\nis enough.\n```cuda\n" + table.texts.at("C") + "```\n"), "One read is enough.");
  EXPECT_EQ(summary(table.texts.at("C")), "") << "code without a fence has no words beside it";
}

}  // namespace
}  // namespace kgrpo::coder_direct
