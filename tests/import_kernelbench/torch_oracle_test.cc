// Problems whose oracle and inputs are TorchScript, as the import of KernelBench wrote them (golden/, by
// make_golden.py).
#include <unistd.h>

#include <bit>

#include "evaluator_sim/kernel_evaluator.h"
#include "judge/inputs/inputs.h"
#include "judge/problem/problem.h"
#include "judge/process/torch_worker.h"
#include "judge/verdict/oracle.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

const std::string kGolden = std::string(KGRPO_BINARY_DIR) + "/test_data/import_kernelbench/";
const std::string kScaled = kGolden + "kb_l1_001_scaled_rows", kSymmetric = kGolden + "kb_l1_002_symmetric_product",
                  kRandom = kGolden + "kb_l1_016_random";

// The bits of the first numbers of a float32 tensor.
std::string Bits(const TorchTensor& tensor) {
  std::string text;
  for (size_t i = 0; i < 8; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + 4 * i, 4);
    char hex[16];
    std::snprintf(hex, sizeof hex, "%s%08x", i == 0 ? "" : " ", bits);
    text += hex;
  }
  return text;
}

std::map<std::string, std::string> GoldenBits() {
  std::map<std::string, std::string> golden;
  std::ifstream file(kGolden + "bits.txt");
  for (std::string name, rest; file >> name && std::getline(file, rest);) golden[name] = rest.substr(1);
  return golden;
}

const float* Floats(const Argument& argument) { return reinterpret_cast<const float*>(argument.bytes.data()); }

TEST(TorchOracle, ReplaysWhatPyTorchDraws) {
  const auto golden = GoldenBits();
  const auto weights = TorchWorker::Shared().Replay(kScaled + "/tapes/weights.pt", 42);
  ASSERT_EQ(weights.size(), 1U);
  EXPECT_EQ(Bits(weights[0]), golden.at("weights"));
  const auto symmetric = TorchWorker::Shared().Replay(kSymmetric + "/inputs/A.timing.pt", 7);
  ASSERT_EQ(symmetric.size(), 1U);
  EXPECT_EQ(Bits(symmetric[0]), golden.at("symmetric"));
}

TEST(TorchOracle, ComputesInFloat64AtEverySize) {
  const Problem problem = LoadProblem(kScaled);
  EXPECT_EQ(problem.oracle, OracleKind::kTorchScript);
  const auto oracle = Oracle::Load(problem, testing::TempDir());
  for (const auto& [name, size] : problem.SizesByName()) {
    const std::vector<Argument> arguments = DrawArguments(problem, *size, 3, 0);
    const std::vector<Expected> expected = oracle->Run(problem, *size, arguments);
    const auto columns = static_cast<size_t>(arguments[1].elements);
    ASSERT_EQ(expected[2].reals.size(), static_cast<size_t>(arguments[2].elements)) << name;
    for (size_t i = 0; i < expected[2].reals.size(); ++i) {
      const double product =
          static_cast<double>(Floats(arguments[0])[i]) * static_cast<double>(Floats(arguments[1])[i % columns]);
      ASSERT_NEAR(expected[2].reals[i], std::tanh(product), 1e-14) << name << " " << i;
    }
  }
}

TEST(TorchOracle, DrawsWhatNoDistributionDraws) {
  const Problem problem = LoadProblem(kSymmetric);
  const Bindings& size = problem.visible[0];
  const std::vector<Argument> one = DrawArguments(problem, size, 5, 0), same = DrawArguments(problem, size, 5, 0),
                              other = DrawArguments(problem, size, 6, 0);
  EXPECT_EQ(one[0].bytes, same[0].bytes);
  EXPECT_NE(one[0].bytes, other[0].bytes);
  const auto n = static_cast<size_t>(size.at("N"));
  for (size_t r = 0; r < n; ++r) {
    for (size_t c = 0; c < r; ++c) EXPECT_EQ(Floats(one[0])[r * n + c], Floats(one[0])[c * n + r]);
  }
}

TEST(TorchOracle, JudgesKernels) {
  const std::string cache = testing::TempDir() + "/torch_oracle_test_" + std::to_string(getpid());
  fs::create_directories(cache);
  evaluator_sim::KernelEvaluator evaluator({});
  for (const std::string& folder : {kScaled, kSymmetric}) {
    const evaluator_sim::OpenProblem open(folder, cache);
    const std::string& reference = open.problem.reference_source;
    EXPECT_EQ(evaluator.Evaluate(open, reference, 1, false).verdict, "correct") << folder;
    std::string zeros = reference;
    const size_t at = zeros.find("] = ", zeros.find("out[")) + 4;
    zeros.insert(at, "0.0f * ");
    EXPECT_EQ(evaluator.Evaluate(open, zeros, 1, false).verdict, "wrong") << folder;
  }
  fs::remove_all(cache);
}

std::string ErrorOf(const std::string& folder) {
  try {
    LoadProblem(folder);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(TorchOracle, SaysWhichFileIsMissing) {
  const fs::path folder =
      fs::path(testing::TempDir()) / ("torch_missing_" + std::to_string(getpid())) / "kb_l1_002_symmetric_product";
  fs::remove_all(folder);
  fs::create_directories(folder.parent_path());
  fs::copy(kSymmetric, folder, fs::copy_options::recursive);
  const std::string whole = LoadProblem(folder.string()).digest;
  fs::remove(folder / "oracle/timing.pt");  // the reference says what is expected there
  EXPECT_EQ(ErrorOf(folder.string()), "");
  EXPECT_NE(LoadProblem(folder.string()).digest, whole);
  fs::remove(folder / "oracle/hidden_0.pt");
  fs::remove(folder / "inputs/A.visible_1.pt");
  EXPECT_THAT(ErrorOf(folder.string()), HasSubstr("oracle/hidden_0.pt: there is no such file"));
  EXPECT_THAT(ErrorOf(folder.string()), HasSubstr("inputs/A.visible_1.pt: there is no such file"));
  std::ofstream(folder / "oracle/visible_0.pt") << "no TorchScript";
  fs::copy_file(kSymmetric + "/oracle/hidden_0.pt", folder / "oracle/hidden_0.pt");
  fs::copy_file(kSymmetric + "/inputs/A.visible_1.pt", folder / "inputs/A.visible_1.pt");
  const Problem damaged = LoadProblem(folder.string());
  const auto oracle = Oracle::Load(damaged, testing::TempDir());
  const std::vector<Argument> arguments = DrawArguments(damaged, damaged.visible[0], 1, 0);
  EXPECT_THROW(oracle->Run(damaged, damaged.visible[0], arguments), Error);
  fs::remove_all(folder.parent_path());
}

TEST(TorchOracle, ARefusedProblemSaysWhy) {
  const Problem problem = LoadProblem(kRandom);
  EXPECT_EQ(problem.refused, "forward draws random numbers (bernoulli_)");
  EXPECT_THROW(RequireNotRefused(problem), Error);
}

}  // namespace
}  // namespace kgrpo::evaluator
