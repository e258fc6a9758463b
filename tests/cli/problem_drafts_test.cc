// From a kernel to a problem that can be judged: `problems new`, `problems check` and `eval kernel --dispute-bound`,
// with evaluator_sim.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Result;

class ProblemDraftsTest : public CliTest {
 protected:
  ProblemDraftsTest() {
    Write("blend.cu",
          "__global__ void blend(const float* a, const float* b, float t, float* out, int n) {\n"
          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
          "  if (i < n) out[i] = a[i] + t * (b[i] - a[i]);\n"
          "}\n");
  }

  // The codes of `problems check --json` on one folder, and its exit code.
  std::string Codes(const std::string& folder) {
    const Result result = Run("problems check --json " + folder);
    std::string codes = std::to_string(result.code);
    const json checked = json::parse(result.out, nullptr, false);
    EXPECT_FALSE(checked.is_discarded()) << result.err;
    for (const json& finding : checked[0]["findings"]) codes += " " + finding["code"].get<std::string>();
    return codes;
  }

  // Replaces a text that is there in a file of the working folder.
  void Replace(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = test::Read(directory_.path() / file);
    ASSERT_NE(text.find(from), std::string::npos) << text;
    Write(file, text.replace(text.find(from), from.size(), to));
  }
};

TEST_F(ProblemDraftsTest, ADraftedMapIsJudgedAsItStands) {
  const Result drafted = Run("problems new blend.cu --out mine/blend --size n=4194304 --value t=0.3");
  EXPECT_EQ(drafted.code, 0) << drafted.err;
  EXPECT_THAT(drafted.out,
              HasSubstr("mine/blend: drafted from blend of blend.cu\n"
                        "  entry    blend: candidates define it, or what launcher.cu defines (blend is a kernel)\n"));
  EXPECT_THAT(drafted.out, HasSubstr("  guessed  accumulations: \"1\", the terms that one result sums"));
  EXPECT_THAT(drafted.out, HasSubstr("  guessed  needs.bytes: \"12*n\", each tensor once"));
  EXPECT_THAT(drafted.out, HasSubstr("  guessed  needs.flops: \"3*n\", as this kernel"));
  EXPECT_THAT(drafted.out, HasSubstr("  change   a wrong guess in mine/blend/problem.yaml"));
  EXPECT_EQ(Codes("mine/blend"), "0");
  // The user's own file is a candidate.
  const Result judged = Run("eval kernel blend.cu --problem mine/blend --json");
  EXPECT_EQ(json::parse(judged.out)["verdict"], "correct") << judged.out << judged.err;
  EXPECT_EQ(Run("problems new blend.cu --out mine/blend --size n=4194304 --value t=0.3").code, 3);

  Replace("mine/blend/problem.yaml", "\naccumulations", "\ntolerance: {relative: 0, absolute: 100}\naccumulations");
  EXPECT_EQ(Codes("mine/blend"), "1 zeros_pass input_unused input_unused");
  const Result table = Run("problems check mine/blend");
  EXPECT_THAT(table.out, HasSubstr("blend    zeros_pass    A kernel that writes zeros to out is within the tolerance"));
  EXPECT_THAT(table.err, HasSubstr("1 problem, 1 with findings, 0 unreadable\n"));
}

TEST_F(ProblemDraftsTest, ASkeletonIsRefusedUntilItIsWritten) {
  Write("total.cu",
        "__global__ void total(const float* x, float* out, int rows, int cols) {\n"
        "  const float* row = x + blockIdx.x * cols;\n"
        "  float sum = 0;\n"
        "  for (int c = 0; c < cols; ++c) sum += row[c];\n"
        "  if (threadIdx.x == 0) out[blockIdx.x] = sum;\n"
        "}\n"
        "void launch(const float* x, float* out, int rows, int cols) { total<<<rows, 32>>>(x, out, rows, cols); }\n");
  const Result drafted = Run("problems new total.cu --size rows=2048 --size cols=512");
  EXPECT_EQ(drafted.code, 0) << drafted.err;
  EXPECT_THAT(drafted.out, HasSubstr("  entry    launch: candidates define it\n"));
  EXPECT_THAT(drafted.out, HasSubstr("  guessed  accumulations: \"cols\""));
  EXPECT_THAT(drafted.out, HasSubstr("  guessed  needs.flops: \"0\", not counted"));
  EXPECT_EQ(Codes("total"), "1 oracle_not_written");
  EXPECT_THAT(drafted.out, HasSubstr("  oracle   to be written in oracle.cc"));
  const Result only = Run("problems new total.cu --out only --size rows=2048 --size cols=512 --reference-only");
  EXPECT_THAT(only.out, HasSubstr("  oracle   reference only: an error of the reference stays unseen"));
  EXPECT_EQ(Codes("only"), "0");
  EXPECT_EQ(Run("problems new total.cu --out two --torch t.py --reference-only").code, 2);
  Write("total/oracle.cc",
        "extern \"C\" void oracle(const double* x, double* out, int64_t rows, int64_t cols) {\n"
        "  for (int64_t r = 0; r < rows; ++r)\n"
        "    for (int64_t c = 0; c < cols; ++c) out[r] += x[r * cols + c];\n"
        "}\n");
  EXPECT_EQ(Codes("total"), "0");
  Replace("total/oracle.cc", "+=", "-=");
  EXPECT_EQ(Codes("total"), "1 reference_wrong");
  Replace("total/problem.yaml", "timing: {rows: 2048, cols: 512}", "timing: {rows: 64, cols: 8}");
  Replace("total/oracle.cc", "-=", "+=");
  EXPECT_EQ(Codes("total"), "1 too_short");
}

TEST_F(ProblemDraftsTest, ACheckerIsDraftedOrCopied) {
  Write("compact.cu",
        "__global__ void compact(const float* x, float* y, int* from, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) { y[i] = x[n - 1 - i]; from[i] = n - 1 - i; }\n"
        "}\n");
  const std::string draft = "problems new compact.cu --size n=1048576 --shape x=n --shape y=n --shape from=n ";
  const Result drafted = Run(draft + "--checker new");
  EXPECT_EQ(drafted.code, 0) << drafted.err;
  EXPECT_THAT(drafted.out, HasSubstr("  checker  to be written in checker.cc: which outputs are right\n"));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "compact/oracle.cc"));
  EXPECT_EQ(Codes("compact"), "1 oracle_not_written");
  // The draft compiles and accepts no kernel.
  const std::string eval = "eval kernel compact.cu --quick --json --problem ";
  const Result refused = Run(eval + "compact");
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err,
              HasSubstr("compact/checker.cc: still the draft of problems new, so no kernel can be judged. "
                        "Write which outputs are right, and delete the line \"// CHECKER TO BE WRITTEN\"."));
  Replace("compact/checker.cc", "// CHECKER TO BE WRITTEN", "//");
  Replace("compact/checker.cc", "is negative\";\n",
          "is negative\";\n    if (from[i] >= n || y[i] != x[from[i]]) return \"y is not x[from]\";\n");
  Replace("compact/checker.cc", "return \"the draft of checker.cc accepts no output\"", "return \"\"");
  EXPECT_EQ(json::parse(Run(eval + "compact").out)["verdict"], "correct");
  const Result copied = Run(draft + "--out mine --checker compact/checker.cc");
  EXPECT_EQ(copied.code, 0) << copied.err;
  EXPECT_THAT(copied.out, HasSubstr("  checker  checker.cc, a copy of compact/checker.cc\n"));
  EXPECT_EQ(json::parse(Run(eval + "mine").out)["verdict"], "correct");
  Replace("compact.cu", "y[i] = x[n - 1 - i]", "y[i] = x[i]");
  EXPECT_THAT(json::parse(Run(eval + "mine").out)["diagnosis"].get<std::string>(), HasSubstr("y is not x[from]"));
  EXPECT_THAT(Run(draft + "--out none --checker none.cc").err, HasSubstr("--checker none.cc: the file is empty or"));
  EXPECT_EQ(Run(draft + "--out two --checker new --reference-only").code, 2);
}

TEST_F(ProblemDraftsTest, WithoutATerminalTheMissingOptionsAreNamed) {
  const Result result = Run("problems new blend.cu");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("  --value t=X: the value of the scalar t\n"
                                    "  --size n=N: the value of the size n for timing, such as 1048576\n"));
  EXPECT_THAT(Run("problems new nothing.cu").err, HasSubstr("cannot read the kernel nothing.cu"));
  EXPECT_THAT(Run("problems new blend.cu --size 7").err, HasSubstr("--size 7: expected NAME=VALUE"));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "blend"));
}

TEST_F(ProblemDraftsTest, ABoundThatTheReferenceBeatsShowsWhatWasCounted) {
  ASSERT_EQ(Run("problems new blend.cu --size n=4194304 --value t=0.3").code, 0);
  const std::string dispute = "eval kernel blend/reference.cu --problem blend/ --dispute-bound --json";
  json bound = json::parse(Run(dispute).out)["bound"];
  EXPECT_EQ(bound["needed_bytes"], 12.0 * 4194304);
  EXPECT_EQ(bound["tensor_bytes"], 12.0 * 4194304);
  EXPECT_NEAR(bound["counted_bytes"].get<double>(), 12.0 * 4194304, 1e6);
  EXPECT_EQ(bound["beaten"], false);
  Replace("blend/problem.yaml", "needs: {bytes: \"12*n", "needs: {bytes: \"60*n");
  EXPECT_EQ(Codes("blend"), "1 bound_beaten");
  bound = json::parse(Run(dispute).out)["bound"];
  EXPECT_EQ(bound["beaten"], true);
  EXPECT_THAT(bound["conclusion"].get<std::string>(),
              HasSubstr("needs.bytes asks for more than any kernel has to move"));
  EXPECT_THAT(Run("eval kernel blend/reference.cu --problem blend/ --dispute-bound").out,
              HasSubstr("  bytes       needed 252 MB, counted 50.3 MB, every tensor once 50.3 MB\n"));
  EXPECT_EQ(Run("eval policy p.yaml --policy uniform --dispute-bound").code, 2);
}

}  // namespace
}  // namespace kgrpo
