// Every technique on ordinary kernels without a schedule line (ordinary/): checks which technique applies to which
// kernel. The interpreter judges each result against the original kernel. Tests plain/.
#include <unistd.h>

#include "coder_offline/coder.h"
#include "coder_offline/plain/source.h"
#include "evaluator_sim/kernel_evaluator.h"
#include "shipped.h"
#include "test.h"

namespace kgrpo::coder_offline {
namespace {

using evaluator_sim::KernelEvaluator;
using evaluator_sim::OpenProblem;

struct Suggested {
  char letter;
  const char* text;
};

constexpr Suggested kSuggested[] = {
    {'r', "read only restrict"},
    {'b', "block size 128"},
    {'B', "block size 512"},
    {'l', "launch bounds"},
    {'u', "unroll 4"},
    {'f', "fast intrinsics"},
    {'i', "32-bit indices"},
    {'g', "grid stride loop"},
    {'2', "vectorize loads 2"},
    {'4', "vectorize loads 4"},
    {'s', "warp shuffle reduction"},
    {'k', "one block per row"},
    {'c', "coalesce by loop interchange"},
    {'t', "tile in shared memory 32"},
    {'R', "register blocking 4"},
    {'p', "privatize histogram"},
};

struct Ordinary {
  const char* name;
  const char* apply;  // letters of those above
  double faster = 1;  // the best of them gains as much at least, by modelled times
};

void PrintTo(const Ordinary& kernel, std::ostream* out) { *out << kernel.name; }

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
  double baseline = 0, fastest = 0;
  const auto settle = [&](size_t keep) {
    while (judged.size() > keep) {
      const evaluator::KernelEvaluation evaluation = judged.front().second.get();
      const std::string& words = made.at(judged.front().first);
      EXPECT_TRUE(evaluation.correct) << words << ": " << evaluation.verdict << ": " << evaluation.diagnosis << "\n"
                                      << judged.front().first;
      if (words == "as it is") baseline = evaluation.seconds;
      if (evaluation.seconds > 0) fastest = std::max(fastest, baseline / evaluation.seconds);
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
  EXPECT_GE(fastest, GetParam().faster);
}

INSTANTIATE_TEST_SUITE_P(
    Styles, OrdinaryKernel,
    testing::Values(Ordinary{"vector_add", "rbBlg24"}, Ordinary{"saxpy", "rBlig24"}, Ordinary{"gelu", "rblfg24"},
                    Ordinary{"sigmoid_stride", "rbBluf24"}, Ordinary{"bias_relu", "rbBlg24"},
                    Ordinary{"block_sum", "rbBlus"}, Ordinary{"row_max", "rlui24s"},
                    Ordinary{"softmax_rows", "rbBluf24s"}, Ordinary{"naive_matmul", "rbBluiskctR"},
                    Ordinary{"rms_norm", "rlufiskcR"}, Ordinary{"gather_rows", "rbBlig24"},
                    Ordinary{"two_stages", "rbBlfg24"}, Ordinary{"histogram_counts", "rlg"},
                    Ordinary{"imported_chain", "rbBlfg24"}, Ordinary{"imported_row_mean", "rlus"},
                    Ordinary{"template_rows", "rBlu24"}, Ordinary{"row_softmax_thread", "rBluskc", 12},
                    Ordinary{"row_peak_thread", "rluskc", 4}, Ordinary{"row_totals_thread", "rbBlugsc", 4},
                    Ordinary{"column_means_thread", "rbBlug24skc", 5}, Ordinary{"product_across", "rbBluskctR", 2},
                    Ordinary{"pair_scores_divided", "rbBlug24skctR", 4}, Ordinary{"swap_axes", "rbBlt", 1.3},
                    Ordinary{"sum_by_atomics", "rbBlgp", 15}),
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

// Macros are expanded where they hide accesses; the others, and those of host code, stay.
TEST(Ordinary, MacrosAreExpandedInKernels) {
  const std::string source = R"(#define AT(v, i) (reinterpret_cast<float4*>(&(v[i]))[0])
#define TWICE(v) (2 * (v))
#define CHECK(call) if ((call) != 0) abort()
#define SET(v, i, x) AT(v, i) = AT(x, (i))
__global__ void k(float* x, float* y, int n) {
  int i = threadIdx.x;
  SET(y, i + 4, x);
  if (TWICE(i) < n) y[n] = expf(x[n]);
}
void launch(float* x, float* y, int n) { k<<<1, 32>>>(x, y, n); CHECK(cudaGetLastError()); }
)";
  const Answer answer = Implement(source, "fast intrinsics");
  EXPECT_THAT(answer.source, HasSubstr("  (reinterpret_cast<float4*>(&(y[i + 4]))[0]) = "
                                       "(reinterpret_cast<float4*>(&(x[(i + 4)]))[0]);\n"));
  EXPECT_THAT(answer.source, HasSubstr("if (TWICE(i) < n) y[n] = __expf(x[n]);"));
  EXPECT_THAT(answer.source, HasSubstr("CHECK(cudaGetLastError());"));
  // Both are accessed through their address: neither is read-only.
  EXPECT_THAT(Implement(source, "restrict").source, HasSubstr("(float* __restrict__ x, float* __restrict__ y, int n)"));
}

// The loops over which threads share elements, in the ways in which people write them.
TEST(Ordinary, VectorisesLoopsThatThreadsShare) {
  for (const std::string loop :
       {"for (int i = threadIdx.x; i < n; i += blockDim.x)", "int t = threadIdx.x; for (int i = t; i < n; i += 128)",
        "for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)",
        "int lane = threadIdx.x % 32, warp = threadIdx.x / 32; if (warp >= n) return;\n"
        "  for (int i = lane; i < n; i = i + 32)",
        "for (int r = blockIdx.x; r < n; r += gridDim.x) for (int i = threadIdx.x; i < n; i += blockDim.x)"}) {
    const std::string source = "__global__ void k(const float* x, float* y, int n) {\n  float sum = 0;\n  " + loop +
                               " sum += x[n * 8 + i];\n  y[threadIdx.x] = sum;\n}\n"
                               "void launch(const float* x, float* y, int n) { k<<<4, 128>>>(x, y, n); }\n";
    const Answer answer = Implement(source, "float4");
    EXPECT_EQ(answer.status, Status::kOk) << loop << ": " << answer.message;
    EXPECT_THAT(answer.source, HasSubstr("if (((size_t)(x + n * 8)) % 16 == 0 && n >= (")) << loop;
    EXPECT_THAT(answer.source, HasSubstr("= *reinterpret_cast<const float4*>(x + n * 8 + first);")) << loop;
    EXPECT_THAT(answer.source, HasSubstr("sum += x_4.w;")) << loop;
    EXPECT_THAT(answer.source, HasSubstr("i < n; i += ")) << loop;
  }
}

TEST(Ordinary, MacrosAreExpandedToAMebibyteAtMost) {
  std::string arguments, body;
  for (int i = 0; i < 4000; ++i) arguments += "x + ", body += "p[i] ";
  for (const std::string& source :
       {std::string("#define A B B B [\n#define B A A A [\n__global__ void k(float* x) { A; }\n"),
        "#define A(p) " + body + "\n__global__ void k(float* x) { A(" + arguments + "x); }\n"}) {
    std::set<std::string, std::less<>> hidden;
    const std::string expanded = ExpandMacros(source, &hidden);
    EXPECT_LT(expanded.size(), size_t{2} << 20);
    EXPECT_TRUE(hidden.contains("A"));
    EXPECT_THAT(Implement(source + "void launch(float* x) { k<<<1, 32>>>(x); }\n", "restrict").message,
                HasSubstr("this coder can't read the kernel: "));
  }
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
      {kernel("\n#ifdef X\nn = 0;\n#endif\n"), "restrict", "k is compiled under conditions (#ifdef)"},
      {"#define AT(i) x[i##1]\n" + kernel("y[0] = AT(n);"), "restrict", "a macro of its own hides what k does (AT)"},
      {"template <int N> __global__ void k(float* x) {}\nvoid launch(float* x) { k<256><<<1, 256>>>(x); }",
       "block size 128", "argument of the template k that may not stand for its threads"},
      {head + "}", "launch bounds", "its launch is not in this source"},
      {kernel("int t = 1; t += threadIdx.x; if (t < 9) for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];"),
       "float4", "some of its threads may not come to"},
      {kernel("if (y[threadIdx.x] > 0) return;\nfor (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];"),
       "float4", "some of its threads may not come to"},
      {kernel("for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];\n"
              "for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] *= 2;"),
       "float4", "k uses y outside of the loop too"},
      {kernel("for (int i = threadIdx.x; i < n; i += 64) y[i] = x[i];"), "float4", "is not of the form"},
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
      {kernel(index + "if (i < n) y[i] = x[i];"), "half precision", "needs a kernel with a '// schedule:' line"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "half precision", "; what applies: vectorize loads 4"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "tile 32", "k has no rows and columns that are known here"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "one block per row", "no loop whose turns several threads can share"},
      {kernel(index + "if (i < n) y[i] = x[i];"), "privatize", "no kernel whose threads add to global memory"},
  };
  for (const auto& [source, suggestion, reason] : refusals) {
    const Answer answer = Implement(source, suggestion);
    EXPECT_EQ(answer.status, Status::kNotApplicable) << source << "\n" << suggestion << "\n" << answer.source;
    EXPECT_THAT(answer.message, HasSubstr(reason)) << source;
  }
}

}  // namespace
}  // namespace kgrpo::coder_offline
