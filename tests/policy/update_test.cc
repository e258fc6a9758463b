// A whole update by the command `update` with policy_qwen and trainer_grpo equals that of transformers and PyTorch
// (tests/golden/policy/make_update.py): the figures of each optimiser step, and the change of the weights.
#include <sys/wait.h>

#include <algorithm>

#include "golden.h"

namespace kgrpo::policy {
namespace {

std::vector<double> WeightsOf(const std::string& folder, const ModelConfig& config) {
  ParameterSet weights(config, at::kFloat, at::kCPU);
  ReadParameters(folder, config, weights);
  return ToDoubles(weights.buffer());
}

// As `run`: exit code 1 where every advantage is 0.
TEST(UpdateTest, AnUpdateThatLearnsNothingFails) {
  const std::string golden = GoldenFolder("update");
  const TemporaryFolder temporary;
  std::ofstream equal(temporary.path() + "/equal.jsonl");
  std::ifstream rollouts(golden + "/rollouts.jsonl");
  for (std::string line; std::getline(rollouts, line);) {
    nlohmann::json sample = nlohmann::json::parse(line);
    sample["reward"] = 0.5;
    equal << sample << std::endl;
  }
  const std::string command = std::string(KGRPO_BINARY_DIR) + "/tests/kgrpo-model update " + golden +
                              "/pipeline.yaml --set trainer.options.gamma=0 --rollouts " + temporary.path() +
                              "/equal.jsonl --out " + temporary.path() + "/updated 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): the test's own command line
  ASSERT_TRUE(WIFEXITED(status)) << command;
  EXPECT_EQ(WEXITSTATUS(status), 1) << command;
}

TEST(UpdateTest, IsTheUpdateThatPyTorchDoes) {
  const std::string golden = GoldenFolder("update");
  const TemporaryFolder temporary;
  const std::string out = temporary.path() + "/updated";
  const char* device = std::getenv("KGRPO_TEST_DEVICE");  // as golden.h
  const std::string command = std::string(KGRPO_BINARY_DIR) + "/tests/kgrpo-model update " + golden + "/pipeline.yaml" +
                              (device == nullptr ? "" : std::string(" --set policy.options.device=") + device) +
                              " --rollouts " + golden + "/rollouts.jsonl --out " + out + " 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): the test's own command line
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;

  const nlohmann::json metrics = nlohmann::json::parse(std::ifstream(out + "/metrics.json"));
  const nlohmann::json steps = metrics["steps"], expected = Expected("update")["steps"];
  ASSERT_EQ(steps.size(), expected.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const char* name : {"loss", "kl", "grad_norm"}) {
      const double value = expected[i][name].get<double>();
      EXPECT_NEAR(steps[i][name].get<double>(), value, 1e-5 * std::max(1.0, std::abs(value)))
          << name << " of step " << i;
    }
  }

  const ModelConfig config = ReadModelConfig(GoldenFolder("qwen2"));
  const std::vector<double> before = WeightsOf(GoldenFolder("qwen2"), config);
  std::vector<double> change = WeightsOf(out, config);
  // The golden folder holds weights alone: the configuration is the starting model's.
  std::filesystem::copy_file(GoldenFolder("qwen2") + "/config.json", temporary.path() + "/config.json");
  std::filesystem::copy_file(golden + "/model.safetensors", temporary.path() + "/model.safetensors");
  std::vector<double> expected_change = WeightsOf(temporary.path(), config);
  for (size_t i = 0; i < before.size(); ++i) {
    change[i] -= before[i];
    expected_change[i] -= before[i];
  }
  EXPECT_LT(RelativeL2(change, expected_change), 1e-3);
  // As many tokens were clipped as by PyTorch, of those of both epochs.
  size_t tokens = 0;
  std::ifstream rollouts(golden + "/rollouts.jsonl");
  for (std::string line; std::getline(rollouts, line);)
    tokens += 2 * nlohmann::json::parse(line)["completion_ids"].size();
  EXPECT_NEAR(metrics["update"]["clip_ratio/region_mean"].get<double>() * static_cast<double>(tokens),
              Expected("update")["clipped_tokens"].get<double>(), 1e-6);
}

}  // namespace
}  // namespace kgrpo::policy
