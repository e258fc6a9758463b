// Problems with well-formed files but broken kernels or oracles: the exact message of the evaluator for each. Mistakes
// within problem.yaml: problem_test.cc.
#include "evaluator_sim/kernel_evaluator.h"
#include "judge/front/evaluator.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using testing::EndsWith;
using testing::MatchesRegex;

// A copy of the problem `affine` (out = 2 x + y) to break.
class BrokenProblemTest : public testing::Test {
 protected:
  BrokenProblemTest()
      : root_(fs::path(testing::TempDir()) / ("broken_problem_test_" + std::to_string(getpid()))),
        folder_(root_ / "affine") {
    fs::create_directories(root_);
    fs::copy(fs::path(KGRPO_SOURCE_DIR) / "tests/evaluator/problems/affine", folder_);
    KernelEvaluator::Options options;
    options.compile_seconds = 15;
    const std::string cache = (root_ / "cache").string();
    fs::create_directories(cache);
    evaluator_ = std::make_unique<evaluator::Evaluator>(std::make_unique<KernelEvaluator>(options),
                                                        evaluator::EvaluatorOptions{.cache_directory = cache});
  }
  ~BrokenProblemTest() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) const { std::ofstream(folder_ / file) << text; }

  // The message of opening the problem and judging its reference, the folder's name replaced by DIR.
  std::string Message() const {
    try {
      const auto open = evaluator_->Open(folder_.string());
      evaluator_->Baseline(*open);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == KGRPO_ERROR_INVALID || error.code() == KGRPO_ERROR_NOT_FOUND) << error.code();
      std::string text = error.what();
      for (size_t at; (at = text.find(folder_.string())) != std::string::npos;)
        text.replace(at, folder_.string().size(), "DIR");
      return text;
    }
    return "accepted";
  }

  fs::path root_, folder_;
  std::unique_ptr<evaluator::Evaluator> evaluator_;
};

const std::string kAffineKernel =
    "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
const std::string kAffineLaunch =
    "extern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
    "  k<<<(n + 255) / 256, 256>>>(x, y, out, n);\n}\n";

TEST_F(BrokenProblemTest, Whole) {
  EXPECT_EQ(Message(), "accepted");
  fs::remove(folder_ / "oracle.cc");
  EXPECT_EQ(Message(), "accepted") << "without an oracle the reference is its own";
}

// An oracle ends itself, not the evaluator, and is blamed by its file; the first case finds what goes past a tensor.
TEST_F(BrokenProblemTest, OracleThatCrashes) {
  const std::string signature =
      "extern \"C\" void oracle(const double* x, const double* y, double* out, int64_t n) {\n";
  const std::string right = "  for (int64_t i = 0; i < n; ++i) out[i] = 2 * x[i] + y[i];\n";
  const std::pair<std::string, std::string> kCases[] = {
      {right + "  out[0] += 0 * x[n];\n", "accesses x out of its bounds at n=[0-9]+"},
      {right + "  out[0] += 0 * y[-1];\n", "accesses y out of its bounds at n=[0-9]+"},
      {right + "  out[n] = 0;\n", "accesses out out of its bounds at n=[0-9]+"},
      {"  *(volatile int*)nullptr = 1;\n", "crashed \\(Segmentation fault\\) at n=[0-9]+"},
      {"  __builtin_abort();\n", "crashed \\(Aborted\\) at n=[0-9]+"},
      {"  throw 1;\n", "threw an exception at n=[0-9]+"},
      {"  exit(0);\n", "called exit at n=[0-9]+"}};
  for (const auto& [body, says] : kCases) {
    Write("oracle.cc", "#include <cstdlib>\n" + signature + body + "}\n");
    EXPECT_THAT(Message(), MatchesRegex("DIR/oracle.cc: " + says));
  }
  Write("oracle.cc", signature + right + "}\n");
  EXPECT_EQ(Message(), "accepted");
}

// A library that another user can write, or that is not what was compiled, is compiled again, never loaded.
TEST_F(BrokenProblemTest, CachedOracleOfOthers) {
  EXPECT_EQ(Message(), "accepted");
  fs::path library;
  for (const auto& entry : fs::directory_iterator(root_ / "cache/oracles")) library = entry.path();
  const auto size = fs::file_size(library);
  for (const bool others : {true, false}) {
    std::ofstream(library, std::ios::binary) << "no library";
    fs::permissions(library, others ? fs::perms::all : fs::perms::owner_all);
    EXPECT_EQ(Message(), "accepted");
    EXPECT_EQ(fs::file_size(library), size);
    EXPECT_EQ(fs::status(library).permissions() & fs::perms::others_write, fs::perms::none);
  }
  fs::permissions(root_ / "cache/oracles", fs::perms::all);  // others can rename files in it
  std::ofstream(library, std::ios::binary) << "no library";
  EXPECT_EQ(Message(), "accepted");
  EXPECT_EQ(fs::file_size(library), 10u) << "left alone";
}

TEST_F(BrokenProblemTest, ReferenceThatDoesNotCompile) {
  Write("reference.cu", kAffineKernel + "  if (i < n) out[i] = 2.0f * x[i] + z[i];\n}\n" + kAffineLaunch);
  EXPECT_EQ(
      Message(),
      "DIR/reference.cu: the reference kernel is not correct (not_compiled): It does not compile. The compiler "
      "says:\n| "
      "kernel.cu(3): error: identifier \"z\" is undefined\n|     if (i < n) out[i] = 2.0f * x[i] + z[i];\n|            "
      "                           ^\n| 1 error detected in the compilation of \"kernel.cu\".");
  Write("reference.cu", "");
  EXPECT_EQ(Message(),
            "DIR/reference.cu: the reference kernel is not correct (not_compiled): The source does not define extern "
            "\"C\" void launch(const float* x, const float* y, float* out, int n).");
  Write("reference.cu", "void other() {}\n");
  EXPECT_EQ(Message(),
            "DIR/reference.cu: the reference kernel is not correct (not_compiled): The source does not define extern "
            "\"C\" void launch(const float* x, const float* y, float* out, int n).");
}

TEST_F(BrokenProblemTest, ReferenceThatIsWrong) {
  Write("reference.cu", kAffineKernel + "  if (i < n) out[i] = 0;\n}\n" + kAffineLaunch);
  EXPECT_THAT(Message(),  // the inputs, and so the figures, change with the evaluator's version
              MatchesRegex("DIR/reference.cu: the reference kernel is not correct \\(wrong\\): At n=1000: 1000 of 1000 "
                           "elements of out are wrong; the worst is out.[0-9]+. = 0, expected [-0-9.]+: relative error "
                           "1, [-0-9.e+]+ times the tolerance \\(relative [-0-9.e]+ \\+ absolute [-0-9.e]+\\); the "
                           "output is constant where the correct one is not."));
  Write("reference.cu", kAffineKernel + "  out[i] = 2.0f * x[i] + y[i];\n}\n" + kAffineLaunch);
  EXPECT_EQ(Message(),
            "DIR/reference.cu: the reference kernel is not correct (out_of_bounds): At n=1000: kernel 'k', line 3: "
            "thread (232,0,0) of block (3,0,0) reads 4 bytes out of bounds, just past the end of 'x' (4000 bytes): "
            "\"out[i] = 2.0f * x[i] + y[i];\"; guard the access: a size need not be a multiple of the block or the "
            "vector");
  Write("reference.cu", "extern \"C\" void launch(const float*, const float*, float*, int) {}\n");
  EXPECT_EQ(
      Message(),
      "DIR/reference.cu: the reference kernel is not correct (no_launch): At n=1000: the launch function launches "
      "no kernel.");
}

TEST_F(BrokenProblemTest, ReferenceThatIsWrongWithoutAnOracle) {
  fs::remove(folder_ / "oracle.cc");
  Write("reference.cu", kAffineKernel + "  if (i <= n) out[i] = 2.0f * x[i] + y[i];\n}\n" + kAffineLaunch);
  EXPECT_EQ(
      Message(),
      "DIR/reference.cu: the reference kernel is not correct (out_of_bounds): At n=1000: kernel 'k', line 3: "
      "thread (232,0,0) of block (3,0,0) reads 4 bytes out of bounds, just past the end of 'x' (4000 bytes): \"if "
      "(i <= n) out[i] = 2.0f * x[i] + y[i];\"; guard the access: a size need not be a multiple of the block or "
      "the vector");
}

const std::string kOracle =
    "it must define extern \"C\" void oracle(const double* x, const double* y, double* out, int64_t n)";

TEST_F(BrokenProblemTest, OracleThatDoesNotCompile) {
  Write("oracle.cc", "extern \"C\" void oracle(const double* x { }\n");
  EXPECT_THAT(Message(), StartsWith("DIR/oracle.cc: does not compile; " + kOracle +
                                    ". The compiler says:\nDIR/oracle.cc:1:39: error: expected "));
}

TEST_F(BrokenProblemTest, OracleThatIsAnother) {
  const std::string refused = "DIR/oracle.cc: does not compile; " + kOracle + ". The compiler says:\ncall of oracle: ";
  Write("oracle.cc", "");
  EXPECT_THAT(Message(), AllOf(StartsWith(refused), HasSubstr("was not declared in this scope")));
  Write("oracle.cc", "extern \"C\" void oracle(const double* x, double* out, int64_t n) {}\n");
  EXPECT_THAT(Message(), AllOf(StartsWith(refused), HasSubstr("too many arguments to function")));
  Write("oracle.cc", "extern \"C\" void oracle(const double*, const double*, double*, int64_t);\n");
  EXPECT_THAT(Message(), AllOf(StartsWith("DIR/oracle.cc: cannot be loaded; " + kOracle + ": "),
                               EndsWith("undefined symbol: oracle")));
}

// Of whatever a client of the service sends, nothing takes the machine's memory.
TEST_F(BrokenProblemTest, SizesThatDoNotFitThisMachine) {
  Write("problem.yaml",
        "name: affine\ntitle: T\nfamily: elementwise\nsplit: train\ntraits: [streaming]\ndescription: D.\nparameters:\n"
        "  - {name: x, role: input, dtype: int8, shape: [n], distribution: integers, low: 0, high: 9}\n"
        "  - {name: out, role: output, dtype: int8, shape: [n]}\n  - {name: n, role: scalar, dtype: int64, value: n}\n"
        "sizes:\n  visible: [{n: 1000}]\n  hidden: [{n: 33}]\n  timing: {n: 68719476736}\n"
        "needs: {bytes: 2*n, flops: n}\n");
  EXPECT_THAT(Message(),
              MatchesRegex("DIR/problem.yaml: sizes: the tensors of timing take 1024 GiB in float64, more than "
                           "a quarter of this machine's [0-9]+ GiB: choose smaller sizes"));
}

TEST_F(BrokenProblemTest, FilesThatAreMissing) {
  fs::remove(folder_ / "reference.cu");
  EXPECT_EQ(Message(), "DIR/reference.cu: there is no such file");
  fs::remove(folder_ / "problem.yaml");
  EXPECT_EQ(Message(), "DIR/problem.yaml: there is no such file\nDIR/reference.cu: there is no such file");
  fs::remove_all(folder_);
  EXPECT_EQ(Message(), "DIR: no such folder; a problem is a folder with problem.yaml and reference.cu");
  std::ofstream(folder_) << "a file";
  EXPECT_EQ(Message(), "DIR: no such folder; a problem is a folder with problem.yaml and reference.cu");
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
