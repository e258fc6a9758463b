// checker.cc in place of an oracle: right outputs in another order, wrong ones, and checkers that crash or forget.
#include <poll.h>
#include <unistd.h>

#include "evaluator_sim/kernel_evaluator.h"
#include "judge/front/evaluator.h"
#include "process/subprocess.h"  // MakePipe
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using testing::Contains;
using testing::Field;

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  return text.replace(text.find(from), from.size(), to);
}

// The problem top_two: the two largest elements of each row with their columns, in any order.
class CheckerTest : public testing::Test {
 protected:
  CheckerTest()
      : root_(fs::path(testing::TempDir()) / ("checker_test_" + std::to_string(getpid()))), folder_(root_ / "top_two") {
    fs::create_directories(root_);
    fs::copy(fs::path(KGRPO_SOURCE_DIR) / "tests/evaluator/problems/top_two", folder_);
    const std::string cache = (root_ / "cache").string();
    fs::create_directories(cache);
    evaluator_ = std::make_unique<evaluator::Evaluator>(std::make_unique<KernelEvaluator>(KernelEvaluator::Options{}),
                                                        evaluator::EvaluatorOptions{.cache_directory = cache});
  }
  ~CheckerTest() override { fs::remove_all(root_); }

  static std::string Read(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void Write(const std::string& file, const std::string& text) const { std::ofstream(folder_ / file) << text; }
  auto Open() const { return evaluator_->Open(folder_.string()); }
  KernelEvaluation Judge(const std::string& source) { return evaluator_->Evaluate(*Open(), source, {}); }
  std::vector<evaluator::ProblemFinding> Check() { return evaluator_->Check(*Open()); }
  std::string Reference() const { return Read(folder_ / "reference.cu"); }
  std::string Checker() const { return Read(folder_ / "checker.cc"); }

  fs::path root_, folder_;
  std::unique_ptr<evaluator::Evaluator> evaluator_;
};

// The other order.
std::string Swapped(const std::string& source) {
  return Replaced(
      Replaced(Replaced(Replaced(source, "values[2 * row] = mine[first]", "values[2 * row + 1] = mine[first]"),
                        "values[2 * row + 1] = mine[second]", "values[2 * row] = mine[second]"),
               "columns[2 * row] = first", "columns[2 * row + 1] = first"),
      "columns[2 * row + 1] = second", "columns[2 * row] = second");
}

TEST_F(CheckerTest, AcceptsAnyOrder) {
  for (const std::string& source : {Reference(), Swapped(Reference())}) {
    const KernelEvaluation evaluation = Judge(source);
    EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
    EXPECT_GT(evaluation.seconds, 0);
  }
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(CheckerTest, ItsSentenceIsTheVerdicts) {
  const KernelEvaluation wrong = Judge(Replaced(Reference(), "columns[2 * row] = first", "columns[2 * row] = second"));
  EXPECT_EQ(wrong.verdict, "wrong");
  EXPECT_THAT(wrong.diagnosis, HasSubstr("checker.cc: row 0: no two columns."));
  // Wrong at the timing size only, in the last row.
  const KernelEvaluation large =
      Judge(Replaced(Reference(), "columns[2 * row] = first", "columns[2 * row] = row == 65535 ? second : first"));
  EXPECT_EQ(large.verdict, "wrong") << large.diagnosis;
  EXPECT_THAT(large.diagnosis, HasSubstr("checker.cc: row 65535: no two columns"));
  const KernelEvaluation short_grid = Judge(Replaced(Reference(), "(rows + 127) / 128", "rows == 65536 ? 511 : rows"));
  EXPECT_EQ(short_grid.verdict, "wrong") << short_grid.diagnosis;
}

TEST_F(CheckerTest, ThatCrashesMakesTheKernelWrong) {
  Write("checker.cc", Replaced(Checker(), "  for (int64_t r",
                               "  if (columns[0] != 1000000000) return std::string(1, "
                               "x[columns[0] * 1000000000000]);\n  for (int64_t r"));
  const KernelEvaluation crashed =
      Judge(Replaced(Reference(), "columns[2 * row] = first", "columns[2 * row] = 999999999"));
  EXPECT_EQ(crashed.verdict, "wrong");
  EXPECT_THAT(crashed.diagnosis, HasSubstr("checker.cc crashed (Segmentation fault) on these outputs"));
  Write("checker.cc", Replaced(Checker(), "return std::string(1, x[columns[0] * 1000000000000]);", "throw 1;"));
  EXPECT_THAT(Judge(Reference()).diagnosis, HasSubstr("checker.cc threw an exception"));
}

TEST_F(CheckerTest, ThatExceedsItsProcessorTimeDidNotFinish) {
  // Brings its limit forward to a second and keeps the distance of the two.
  Write("checker.cc", "#include <sys/resource.h>\n" +
                          Replaced(Checker(), "  for (int64_t r",
                                   "  struct rlimit time;\n  getrlimit(RLIMIT_CPU, &time);\n"
                                   "  time.rlim_max -= time.rlim_cur - 1;\n  time.rlim_cur = 1;\n"
                                   "  setrlimit(RLIMIT_CPU, &time);\n  for (volatile bool on = true; on;) {\n  }\n"
                                   "  for (int64_t r"));
  const KernelEvaluation late = Judge(Reference());
  EXPECT_EQ(late.verdict, "wrong");
  EXPECT_THAT(late.diagnosis, HasSubstr("checker.cc did not finish on these outputs"));
}

TEST_F(CheckerTest, KeepsNoDescriptorOfOtherThreads) {
  const std::string begun = (root_ / "begun").string();
  Write("checker.cc", "#include <cstdio>\n#include <unistd.h>\n" +
                          Replaced(Checker(), "  for (int64_t r",
                                   "  if (std::FILE* once = std::fopen(\"" + begun +
                                       "\", \"wx\")) std::fclose(once), sleep(3);\n  for (int64_t r"));
  auto [reader, writer] = process::MakePipe();  // as another thread's, open while the checker starts
  std::thread judge([&] { EXPECT_EQ(Judge(Reference()).verdict, "correct"); });
  for (int i = 0; i < 6000 && !fs::exists(begun); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(fs::exists(begun));
  writer.Close();
  struct pollfd end = {reader.get(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 1000), 1) << "the checker's process holds the pipe";
  judge.join();
}

TEST_F(CheckerTest, ThatForgetsIsFound) {
  const auto found = [](const std::string& code) { return Contains(Field(&evaluator::ProblemFinding::code, code)); };
  Write("checker.cc", Replaced(Checker(), "  for (int64_t r", "  return \"\";\n  for (int64_t r"));
  EXPECT_THAT(Check(), found("zeros_pass"));
  // The columns are checked, but not that the values are theirs.
  const fs::path original = fs::path(KGRPO_SOURCE_DIR) / "tests/evaluator/problems/top_two/checker.cc";
  Write("checker.cc", Replaced(Read(original), "values[2 * r] != row[a] || values[2 * r + 1] != row[b]",
                               "values[2 * r] == 0 && values[2 * r + 1] == 0"));
  EXPECT_THAT(Check(), AllOf(found("permuted_passes"), found("poison_passes")));
  Write("checker.cc",
        Replaced(Checker(), "const double* row = x + r * cols;",
                 "const double* row = x + r * cols;\n    if (columns[0] == 0 && columns[1] == 0) abort();"));
  EXPECT_THAT(Check(), found("checker_fails"));
}

TEST_F(CheckerTest, NeedsItsFunctionAndNoOracle) {
  Write("checker.cc", "int check() { return 0; }\n");
  try {
    Open();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
    EXPECT_THAT(error.what(),
                HasSubstr("checker.cc: does not compile; it must define std::string check(const double* x, "
                          "const double* values, const int64_t* columns, int64_t rows, int64_t cols)"));
  }
  Write("oracle.cc", "");
  EXPECT_THROW(Open(), Error);
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
