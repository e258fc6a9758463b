// Every technique on ordinary kernels without a schedule line (ordinary/): checks which technique applies to which
// kernel. The interpreter judges each result against the original kernel. Tests plain/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coder_offline/coder.h"
#include "evaluator_sim/kernel_evaluator.h"
#include "shipped.h"

namespace kgrpo::coder_offline {
namespace {

using evaluator_sim::KernelEvaluator;
using evaluator_sim::OpenProblem;
using testing::HasSubstr;

struct Suggested {
  char letter;
  const char* text;
};

constexpr Suggested kSuggested[] = {
    {'r', "read only restrict"}, {'b', "block size 128"},    {'B', "block size 512"},         {'l', "launch bounds"},
    {'u', "unroll 4"},           {'f', "fast intrinsics"},   {'i', "32-bit indices"},         {'g', "grid stride loop"},
    {'2', "vectorize loads 2"},  {'4', "vectorize loads 4"}, {'s', "warp shuffle reduction"},
};

struct Ordinary {
  const char* name;
  const char* apply;  // letters of those above
};

void PrintTo(const Ordinary& kernel, std::ostream* out) {
  *out << kernel.name;
}

std::filesystem::path Folder(const std::string& name) {
  return std::filesystem::path(KGRPO_SOURCE_DIR) / "tests/coder_offline/ordinary" / name;
}

class OrdinaryKernel : public testing::TestWithParam<Ordinary> {
 protected:
  static void SetUpTestSuite() {
    cache_ = testing::TempDir() + "/ordinary_kernels_" + std::to_string(getpid());
    std::filesystem::create_directories(cache_);
    KernelEvaluator::Options options;
    options.seeds = 1;
    options.sampled_blocks = 8;
    evaluator_ = new KernelEvaluator(options);
  }
  static void TearDownTestSuite() {
    delete evaluator_;
    std::filesystem::remove_all(cache_);
  }

  static KernelEvaluator* evaluator_;
  static std::string cache_;
};

KernelEvaluator* OrdinaryKernel::evaluator_ = nullptr;
std::string OrdinaryKernel::cache_;

TEST_P(OrdinaryKernel, WhatEachTechniqueMakesOfItIsCorrect) {
  const OpenProblem problem(Folder(GetParam().name), cache_);
  const std::string source = ReadText(Folder(GetParam().name) / "reference.cu");
  std::map<std::string, std::string> made = {{source, "as it is"}};  // by the text
  std::string applied, all = source, all_words;
  for (const Suggested& suggested : kSuggested) {
    const Answer answer = Implement(source, suggested.text);
    if (answer.status == Status::kOk) {
      applied += suggested.letter;
      EXPECT_NE(answer.source, source) << suggested.text;
      made.emplace(answer.source, suggested.text);
    } else {
      EXPECT_EQ(answer.status, Status::kNotApplicable) << suggested.text;
      EXPECT_GT(answer.message.size(), std::string("not applicable: ").size() + 10) << suggested.text;
    }
    const Answer next = Implement(all, suggested.text);  // one after the other
    if (next.status != Status::kOk) continue;
    all = next.source;
    all_words += (all_words.empty() ? "" : ", ") + std::string(suggested.text);
  }
  if (all != source) made.emplace(all, all_words);
  EXPECT_EQ(applied, GetParam().apply);
  const Answer once = Implement(
      source,
      "32-bit indices, restrict, grid stride loop, float4, warp shuffles, fast intrinsics, unroll 8, launch bounds");
  if (once.status == Status::kOk) made.emplace(once.source, "all at once");
  std::vector<std::pair<std::string, std::future<evaluator::KernelEvaluation>>> judged;
  double baseline = 0;
  const auto settle = [&](size_t keep) {
    while (judged.size() > keep) {
      const evaluator::KernelEvaluation evaluation = judged.front().second.get();
      const std::string& words = made.at(judged.front().first);
      EXPECT_TRUE(evaluation.correct) << words << ": " << evaluation.verdict << ": " << evaluation.diagnosis << "\n"
                                      << judged.front().first;
      if (words == "as it is") baseline = evaluation.seconds;
      std::printf("  %-18s %8.2f us  %.2fx  %s\n", GetParam().name, 1e6 * evaluation.seconds,
                  evaluation.seconds > 0 ? baseline / evaluation.seconds : 0, words.c_str());
      judged.erase(judged.begin());
    }
  };
  const auto judge = [&](const std::string& text) {
    judged.emplace_back(text, std::async(std::launch::async, [&problem, text] {
                          return evaluator_->Evaluate(problem, text, /*key=*/7, /*thorough=*/false);
                        }));
    settle(1);
  };
  judge(source);
  for (const auto& [text, words] : made) {
    if (text != source) judge(text);
  }
  settle(0);
}

INSTANTIATE_TEST_SUITE_P(Styles, OrdinaryKernel,
                         testing::Values(Ordinary{"vector_add", "rbBlg24"}, Ordinary{"saxpy", "rBlig24"},
                                         Ordinary{"gelu", "rblfg24"}, Ordinary{"sigmoid_stride", "rbBluf24"},
                                         Ordinary{"bias_relu", "rbBlg24"}, Ordinary{"block_sum", "rbBlus"},
                                         Ordinary{"row_max", "rluis"}, Ordinary{"softmax_rows", "rbBlufs"},
                                         Ordinary{"naive_matmul", "rlui"}, Ordinary{"rms_norm", "rlufi"},
                                         Ordinary{"gather_rows", "rbBlig24"}, Ordinary{"two_stages", "rbBlfg24"},
                                         Ordinary{"histogram_counts", "rlg"}, Ordinary{"imported_chain", "rbBlfg24"},
                                         Ordinary{"imported_row_mean", "rlus"}),
                         [](const testing::TestParamInfo<Ordinary>& info) { return std::string(info.param.name); });

TEST(Ordinary, CommentsAndStringsAreLeftAlone) {
  const std::string source = R"(// expf(x) and for (;;) in a comment, float* a
/* x[i] = 1; #ifdef */
__device__ float Twice(float v) { return 2.0f * expf(v); }
__global__ void k(float* x, float* out, int n) {  // const float* x
  int i = blockIdx.x * blockDim.x + threadIdx.x;  /* x[i] */
  if (i < n) out[i] = Twice(x[i]);  // out[i] = x[i]
}
extern "C" void launch(float* x, float* out, int n) { k<<<(n + 255) / 256, 256>>>(x, out, n); }
)";
  const Answer fast = Implement(source, "fast intrinsics");
  EXPECT_THAT(fast.source, HasSubstr("// expf(x) and for"));
  EXPECT_THAT(fast.source, HasSubstr("2.0f * __expf(v)"));
  const Answer restricted = Implement(source, "restrict");
  EXPECT_THAT(restricted.source,
              HasSubstr("const float* __restrict__ x, float* __restrict__ out, int n) {  // const float* x"));
  EXPECT_THAT(restricted.source, HasSubstr("/* x[i] */"));
  EXPECT_THAT(restricted.source, HasSubstr("out[i] = Twice(__ldg(&x[i]));  // out[i] = x[i]"));
}

TEST(Ordinary, RefusalsSayWhatIsInTheWay) {
  const std::string head = "__global__ void k(float* x, float* y, int n) {\n";
  const std::string index = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
  const std::string host =
      "}\nextern \"C\" void launch(float* x, float* y, int n) { k<<<(n + 255) / 256, 256>>>(x, y, n); }";
  const auto kernel = [&](const std::string& body) { return head + body + host; };
  const std::string in_place =
      "__global__ void k(float* x, float* y, int n) { y[threadIdx.x] = x[0]; }\n"
      "void launch(float* x, int n) { k<<<1, 32>>>(x, x, n); }";
  const std::vector<std::tuple<std::string, const char*, const char*>> refusals = {
      {"", "restrict", "no __global__ function"},
      {"#ifdef X\n#endif\n" + kernel(""), "restrict", "compiled under conditions (#ifdef)"},
      {"#define AT(i) x[i]\n" + kernel(""), "restrict", "a macro of its own hides"},
      {"template <int N> __global__ void k(float* x) {}\nvoid launch(float* x) { k<4><<<1, 1>>>(x); }", "restrict",
       "template"},
      {in_place, "restrict", "may name the same memory"},
      {kernel(index + "if (i < n) y[i] = x[i + 1];"), "float4", "at other places than its own element"},
      {kernel(index + "if (i < n) { if (x[i] > 0) return; y[i] = 1.0f; }"), "float4", "has return in it"},
      {kernel(index + "y[i] = x[i];"), "grid stride", "is not of the form"},
      {kernel("int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = x[i];"), "block size 128", "the number 256"},
      {kernel("__shared__ float s[300]; s[threadIdx.x] = 1;"), "block size 128", "shared array of a fixed length"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "block size 256", "already applied"},
      {head + "}\nvoid launch(float* x, float* y, int n) { int t = 256; if (n < 9) t = 32; k<<<n, t>>>(x, y, n); }",
       "launch bounds", "not known before it runs"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "unroll 4", "no for loop"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "fast intrinsics", "no function that has a fast intrinsic"},
      {kernel("unsigned long long h = n; h ^= h >> 3; y[0] = h;"), "32-bit indices", "works on bits"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "shuffles", "no tree over shared memory"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "tile 32", "needs a kernel with a '// schedule:' line"},
  };
  for (const auto& [source, suggestion, reason] : refusals) {
    const Answer answer = Implement(source, suggestion);
    EXPECT_EQ(answer.status, Status::kNotApplicable) << source << "\n" << suggestion << "\n" << answer.source;
    EXPECT_THAT(answer.message, HasSubstr(reason)) << source;
  }
}

}  // namespace
}  // namespace kgrpo::coder_offline
