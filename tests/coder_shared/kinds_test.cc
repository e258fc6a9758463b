// coder_shared: each line of kinds.txt (tests/golden/coder_shared.tar.xz) in answers of one form. The kernel that is
// asked for is of softmax_long; a draft differs from it in its block.
#include "coder_shared/answer.h"

#include "test.h"

namespace kgrpo::coder_shared {
namespace {

std::string TextOf(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_TRUE(text.find(from) != std::string::npos) << from;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

constexpr const char* kLaunch = "extern \"C\" void launch(const float* x, float* out, int rows, int cols)";
const std::string kJoin = "  p = WarpJoin(p);\n", kGivenJoin = "  maximum = warp_max(maximum);\n";

class KindsTest : public ::testing::Test {
 protected:
  // The lines of a section.
  static std::vector<std::string> Lines(const std::string& section) {
    std::ifstream file(KGRPO_BINARY_DIR "/test_data/coder_shared/kinds.txt");
    std::vector<std::string> lines;
    bool in = false;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("%%% ")) {
        in = line.starts_with("%%% " + section + ":");
      } else if (in) {
        lines.push_back(line);
      }
    }
    EXPECT_GE(lines.size(), 9u) << section;
    return lines;
  }

  ReadAnswer Read(const std::string& text, const std::string& finish_reason = "stop") const {
    return ReadKernel({text, "", finish_reason}, {kLaunch, given});
  }

  static std::string Block(const std::string& code) { return "```cuda\n" + code + "```\n"; }

  const std::string given = TextOf(KGRPO_SOURCE_DIR "/problems/softmax_long/reference.cu");
  const std::string answer = TextOf(KGRPO_SOURCE_DIR "/tests/judging/honest/softmax_online.cu");
  const std::string changed = Replaced(given, "fdividef(expf(value - maximum), sum)", "expf(value - maximum) / sum");
  const std::string draft = Replaced(answer, "256", "64");
};

TEST_F(KindsTest, ACommentInPlaceOfCode) {
  for (const std::string& comment : Lines("left out")) {
    const std::string in_its_place = "  " + comment + "\n";
    for (const std::string& code :
         {Replaced(answer, kJoin, in_its_place), Replaced(changed, kGivenJoin, in_its_place)}) {
      const ReadAnswer read = Read(Block(code));
      EXPECT_EQ(read.outcome, KGRPO_CODER_NO_CODE) << comment;
      EXPECT_STREQ(read.form, "parts left out") << comment;
    }
  }
}

TEST_F(KindsTest, ARemarkBesideCode) {
  for (const std::string& comment : Lines("remarks")) {
    const std::string remark = "  " + comment + "\n";
    for (const std::string& code :
         {Replaced(answer, kJoin, remark + kJoin), Replaced(changed, kGivenJoin, remark + kGivenJoin),
          Replaced(answer, "__global__", comment + "\n__global__")}) {
      const ReadAnswer read = Read(Block(code));
      EXPECT_EQ(read.source, code) << comment << read.message;
      EXPECT_EQ(read.doubt, "") << comment;
    }
  }
  // Beside the given kernel's own line these leave nothing out.
  for (const std::string comment : {"// unchanged", "// (same as before)", "// existing code"})
    EXPECT_EQ(Read(Block(Replaced(changed, kGivenJoin, "  " + comment + "\n" + kGivenJoin))).outcome, KGRPO_CODER_OK);
}

TEST_F(KindsTest, Thoughts) {
  for (std::string marks : Lines("thoughts")) {
    if (marks.find("\\n") != std::string::npos) marks = Replaced(marks, "\\n", "\n");
    const std::string thought = marks.substr(0, marks.find(" @ ")) + "\nLet me see:\n" + Block(draft) +
                                marks.substr(marks.find(" @ ") + 3) + "\n\n";
    EXPECT_NE(Read(thought + "The kernel is bound by its loads.\n").outcome, KGRPO_CODER_OK) << marks;
    EXPECT_EQ(Read(thought + "NOT APPLICABLE: a row fits a warp.\n").outcome, KGRPO_CODER_NOT_APPLICABLE) << marks;
    EXPECT_EQ(Read(thought + Block(answer)).source, answer) << marks;
    EXPECT_EQ(Read(Block(answer) + thought).source, answer) << marks;
  }
}

TEST_F(KindsTest, WhatIsSaidOfAKernel) {
  for (const std::string& title : Lines("rejecting")) {
    EXPECT_EQ(Read("Use this:\n" + Block(answer) + "\n" + title + "\n\n" + Block(draft)).source, answer) << title;
    EXPECT_EQ(Read(title + "\n" + Block(draft) + "\nUse this:\n\n" + Block(answer)).source, answer) << title;
  }
  for (const std::string& words : Lines("of two"))
    EXPECT_EQ(Read("First:\n" + Block(answer) + "\nSecond:\n" + Block(draft) + "\n" + words + "\n").source, answer)
        << words;
  // A later kernel without a word is another one than the recommended.
  EXPECT_EQ(Read("Use this:\n" + Block(answer) + "\nFor small rows:\n\n" + Block(draft)).source, answer);
  for (const std::string& title : Lines("describing"))
    EXPECT_EQ(Read(title + "\n\n" + Block(answer)).source, answer) << title;
  for (const std::string& title : Lines("correcting")) {
    const std::string first = "The kernel:\n" + Block(draft) + "\n" + title + "\n\n";
    EXPECT_EQ(Read(first + Block(answer)).source, answer) << title;
    for (const char* finish : {"length", "stop"}) {
      const ReadAnswer cut = Read(first + "```cuda\n" + answer.substr(0, answer.size() - 100), finish);
      EXPECT_EQ(cut.outcome, KGRPO_CODER_TRUNCATED) << title;
    }
    for (const std::string& begun : {answer.substr(0, answer.size() - 100), std::string("```diff\n@@\n-  float sum")})
      EXPECT_EQ(Read(first + begun, "length").outcome, KGRPO_CODER_TRUNCATED) << title << begun;
  }
}

TEST_F(KindsTest, TheFunctionThatIsDefined) {
  for (const std::string& head : Lines("other functions")) {
    const ReadAnswer read = Read(Block(Replaced(answer, kLaunch + std::string(" {"), head)));
    EXPECT_EQ(read.outcome, KGRPO_CODER_NO_CODE) << head;
    EXPECT_STREQ(read.form, "other function") << head;
  }
  for (const std::string& head : Lines("same functions")) {
    const std::string code = Replaced(answer, kLaunch + std::string(" {"), head);
    EXPECT_EQ(Read(Block(code)).source, code) << head;
  }
}

// The kernel itself shows that a call is missing where the comment stands.
TEST_F(KindsTest, ACommentWithoutAWordInPlaceOfCode) {
  for (const std::string& comment : Lines("doubtful")) {
    const std::string in_its_place = "  " + comment + "\n";
    for (const std::string& code :
         {Replaced(answer, kJoin, in_its_place), Replaced(changed, kGivenJoin, in_its_place)}) {
      const ReadAnswer read = Read(Block(code));
      EXPECT_TRUE(read.outcome == KGRPO_CODER_NO_CODE || !read.doubt.empty()) << comment;
    }
  }
}

TEST_F(KindsTest, PatchesAfterAnother) {
  const auto patch = [](const std::string& before, const std::string& after) {
    return "```\n<<<<<<< SEARCH\n" + before + "=======\n" + after + ">>>>>>> REPLACE\n```\n";
  };
  const std::string sum = "    sum += expf(value - maximum);\n", fast = "    sum += __expf(value - maximum);\n";
  const std::string out = "    out_row[col] = finish(value, maximum, sum);\n", last = "    out_row[col] = value;\n";
  const std::string first = Replaced(given, sum, fast);
  for (const std::string& title : Lines("other patches"))
    EXPECT_EQ(Read("Option A:\n" + patch(sum, fast) + "\n" + title + "\n" + patch(out, last)).source, first) << title;
  for (const std::string& title : Lines("next patches"))
    EXPECT_EQ(Read("First:\n" + patch(sum, fast) + "\n" + title + "\n" + patch(out, last)).source,
              Replaced(first, out, last))
        << title;
}

// What may stand for left out code, although the kernel is whole, is told to the host: a wrong kernel is then no
// failure of the suggestion.
TEST_F(KindsTest, DoubtfulKernels) {
  for (const std::string comment : {"// existing code", "// helpers as before"}) {
    const ReadAnswer read = Read(Block(comment + "\n" + answer));
    EXPECT_EQ(read.outcome, KGRPO_CODER_OK);
    EXPECT_EQ(read.doubt, comment);
  }
}

// Every kernel of the judges' tests, honest or not, and every reference is taken as it is.
TEST_F(KindsTest, WholeKernelsAreUntouched) {
  const std::string root = KGRPO_SOURCE_DIR;
  size_t kernels = 0;
  for (const std::string& folder :
       {root + "/tests/judging/honest", root + "/tests/judging/cheats", root + "/tests/judging/bugs",
        std::string(KGRPO_BINARY_DIR "/test_data/judging/honest"), root + "/problems"}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".cu") continue;
      const std::string code = TextOf(entry.path());
      const size_t at = code.find("// problem: ");
      const fs::path problem =
          at == std::string::npos ? "" : root + "/" + code.substr(at + 12, code.find('\n', at) - at - 12);
      const std::string reference = problem.empty() ? "" : TextOf(problem / "reference.cu");
      const std::string& definition = problem.empty() ? code : reference;
      const size_t head = definition.find("extern \"C\"");
      ASSERT_NE(head, std::string::npos) << entry.path();
      const std::string signature = definition.substr(head, definition.find(" {", head) - head);
      const ReadAnswer read =
          ReadKernel({"Here it is.\n\n" + Block(code) + "It is faster.\n", "", "stop"}, {signature, reference});
      EXPECT_EQ(read.source, code) << entry.path() << ": " << read.message;
      EXPECT_EQ(read.doubt, "") << entry.path();
      ++kernels;
    }
  }
  EXPECT_GE(kernels, 310u);
}

}  // namespace
}  // namespace kgrpo::coder_shared
