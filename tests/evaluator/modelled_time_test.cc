// What a modelled time is made of beside the kernels: the host's part, and which blocks are counted.
#include <filesystem>
#include <regex>

#include "affine_candidates.h"
#include "interpreter/client/call_prices.h"
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using namespace evaluator;  // NOLINT: the candidates
using namespace std::string_literals;

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(CallPrices, EveryCallOfTheRuntimeHasARow) {
  const std::regex calls(R"(\n[a-zA-Z*_ ]+ \*?(cuda\w+|__cudaLaunch\w+)\([^;{]*\{)");
  size_t found = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(KGRPO_SOURCE_DIR) + "/plugins/interpreter/client")) {
    if (!entry.path().filename().string().starts_with("cudart")) continue;
    const std::string text = Read(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), calls), end; it != end; ++it) {
      ++found;
      const interpreter::CallPrice* price = interpreter::FindCallPrice((*it)[1].str());
      ASSERT_NE(price, nullptr) << (*it)[1] << ": give it a row in call_prices.h";
    }
  }
  EXPECT_GT(found, 90u);
}

class ModelledTimeTest : public KernelEvaluatorTest {
 protected:
  static double Seconds(const std::string& source) {
    const KernelEvaluation evaluation = Affine(source);
    EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
    return evaluation.seconds;
  }
};

// 100 streams, events and waits took 1.1 ms of an H200's host (bench/results/h200_prices.csv, "the case").
TEST_F(ModelledTimeTest, CallsOfTheHostAndWaitsTakeTime) {
  const double plain = Seconds(WithBody(kHonest));
  const std::string calls =
      "for (int i = 0; i < 100; ++i) { cudaStream_t s; cudaEvent_t e; cudaStreamCreate(&s); cudaEventCreate(&e); "
      "cudaEventRecord(e, s); cudaEventSynchronize(e); cudaDeviceSynchronize(); cudaEventDestroy(e); "
      "cudaStreamDestroy(s); }";
  const double more = Seconds(WithBody(kHonest + calls)) - plain;
  EXPECT_GT(more, 1.1e-3 / 1.5);
  EXPECT_LT(more, 1.1e-3 * 1.5);
}

// Computes `each` for each i below 100,000 on the host, in `table`, and copies the table to the device.
std::string WithTable(const std::string& each, const std::string& before = "", const std::string& when = "true") {
  return before + "__device__ float copied[1024];\nstatic float table[1024];\nstatic bool done = false;\n" + kKernel +
         kLaunch + " { if (" + when + ") { unsigned h = 1; for (int i = 0; i < 100000; ++i) { " + each +
         " } done = true; cudaMemcpyToSymbol(copied, table, sizeof table); } " + kHonest + " }\n";
}
const std::string kPolynomial =
    "float x = i * 1e-5f; table[i & 1023] = ((((x * 0.3f + 0.2f) * x + 0.1f) * x + 0.7f) * x + 0.5f) * x + 1.f;";
const std::string kHash = "h ^= i; h *= 16777619u; h ^= h >> 13; table[i & 1023] = h;";

// The loops took 543 and 650 us of an H200's host.
TEST_F(ModelledTimeTest, ComputationOfTheHostTakesTime) {
  const double plain = Seconds(WithTable("", "", "false")), polynomial = Seconds(WithTable(kPolynomial));
  EXPECT_GT(polynomial - plain, 543e-6 / 1.6);
  EXPECT_LT(polynomial - plain, 543e-6 * 1.6);
  const double hash = Seconds(WithTable(kHash)) - plain;
  EXPECT_GT(hash, 650e-6 / 1.6);
  EXPECT_LT(hash, 650e-6 * 1.6);
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(Seconds(WithTable(kPolynomial) + "\n// " + std::to_string(run)), polynomial);
  // Code that the optimiser unrolls, or that is written out, has fewer and longer blocks.
  EXPECT_GT(Seconds(WithTable(kPolynomial, "#pragma GCC optimize(\"O3,unroll-loops\")\n")) - plain, 100e-6);
}

// Timed calls come after others, as on a GPU: a table that is made once costs nothing.
TEST_F(ModelledTimeTest, ComputationOfTheFirstCallIsFree) {
  EXPECT_EQ(Seconds(WithTable(kPolynomial, "", "!done")), Seconds(WithTable("", "", "false")));
}

// While the device works, the host's computation takes no time.
TEST_F(ModelledTimeTest, ComputationBehindALaunchOverlaps) {
  const std::string loop = "{ static volatile int s; for (int i = 0; i < 1000; ++i) s = s + i; }";
  EXPECT_EQ(Seconds(WithBody(kHonest + loop)), Seconds(WithBody(kHonest)));
  EXPECT_GT(Seconds(WithBody(loop + loop + kHonest + loop)), Seconds(WithBody(kHonest)) + 2e-6);
}

TEST_F(ModelledTimeTest, HostCodeThatIsNotCountedIsRefusedOrNotTimed) {
  for (const char* attribute : {"no_sanitize_coverage", "JOINED(no_sanitize_, coverage)"}) {
    const std::string source = std::string("#define JOINED(a, b) a##b\n") + kKernel + "__attribute__((" + attribute +
                               ")) static void work() {}\n" + kLaunch + " { work(); " + kHonest + " }\n";
    EXPECT_EQ(Affine(source).verdict, "not_compiled") << attribute;
    EXPECT_EQ(Affine(source, true).verdict, "not_compiled") << attribute;
  }
  const std::string own = "extern \"C\" __attribute__((visibility(\"hidden\"))) void __sanitizer_cov_trace_pc() {}\n";
  EXPECT_EQ(Affine(own + WithBody(kHonest)).verdict, "forbidden");
  const std::string assembly = "long count = 20000000; asm volatile(\"1: dec %0; jnz 1b\" : \"+r\"(count)); ";
  const std::string once_a_size = "static int made = 0; if (made != n) { " + assembly + "made = n; } ";
  for (const std::string& body : {assembly, once_a_size, "static char big[1 << 25]; memset(big, n, sizeof big); "s}) {
    const KernelEvaluation evaluation = Affine("#include <cstring>\n" + WithBody(body + kHonest));
    EXPECT_EQ(evaluation.verdict, "not_timed") << evaluation.diagnosis;
  }
}

// Such as printf, whose cost depends on who reads it.
TEST_F(ModelledTimeTest, WithoutAPriceAKernelIsNotTimed) {
  const KernelEvaluation evaluation = Affine(
      "#include <cstdio>\n" + WithKernel("if (i < n) { out[i] = 2.0f * x[i] + y[i]; if (n > 5000 && i % 1024 == 0) "
                                         "printf(\"%d\\n\", i); }"));
  EXPECT_EQ(evaluation.verdict, "not_timed") << evaluation.diagnosis;
}

TEST_F(ModelledTimeTest, EqualKernelsTakeTheSameTime) {
  EXPECT_EQ(Seconds(WithBody(kHonest)), Seconds(WithBody(kHonest) + "\n// another"));
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
