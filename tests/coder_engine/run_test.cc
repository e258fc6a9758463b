// Runs of configs/planner_local.yaml with tiny models in both roles: resumed after a kill to the same bits, and the
// same samples on two ranks.
#include "../cli/host_binary.h"
#include "../cli/host_process.h"
#include "base/directories.h"
#include "scripted_model.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::HostProcess;
using test::Read;
using test::StepSamples;
using test::Write;

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

class PlannerLocal : public testing::Test {
 protected:
  PlannerLocal() {
    const fs::path source(KGRPO_SOURCE_DIR), golden = source / "tests/golden/policy/qwen2";
    fs::copy(golden, directory() / "policy", fs::copy_options::recursive);
    auto config = nlohmann::json::parse(std::ifstream(golden / "config.json"));
    config["max_position_embeddings"] = 16384;
    std::ofstream(directory() / "policy/config.json") << config;
    const std::string reference = Read(source / "problems/transpose/reference.cu");
    test::WriteScriptedModel(
        directory() / "coder",
        {"```cuda\n" + Replaced(reference, "16", "8") + "```", "```cuda\n" + Replaced(reference, "16", "32") + "```",
         "```cuda\n" + Replaced(reference, "size_t", "long") + "```", "NOT APPLICABLE: why not"});
    Write(directory() / "p.yaml",
          "extends: " + (source / "configs/planner_local.yaml").string() +
              "\npolicy: {options: {model: policy, dtype: float32, device: cpu}}\n"
              "coder: {options: {model: coder, dtype: float32, device: cpu, generation_memory_mib: null,\n"
              "  sampling: {max_new_tokens: 8, temperature: 1}}}\n"
              "evaluator: {plugin: evaluator_sim}\n"
              "trainer: {plugin: trainer_grpo, options: {mini_batch_size: 2, learning_rate: 1.0e-3}}\n"
              "problems: {train: ['" +
              (source / "problems/transpose").string() +
              "']}\nloop: {max_steps: 2, batch_size: 4, rounds: 2, sampling: {max_new_tokens: 6}}\n"
              "checkpoint: {every: 1}\n");
  }
  const fs::path& directory() const { return temporary_.path(); }

  // Returns false where there is no compiler for kernels.
  bool Run(const std::string& output, const std::vector<std::string>& further = {}) {
    std::vector<std::string> arguments = {"-q", "run", "p.yaml", "--set", "output_dir=" + output};
    arguments.insert(arguments.end(), further.begin(), further.end());
    const int code = HostProcess(directory(), arguments).Wait();
    const std::string said = Read(directory() / "err");
    if (code == 4 && said.find("no CUDA toolkit with nvcc was found") != std::string::npos) return false;
    EXPECT_EQ(code, 0) << said;
    return true;
  }

 private:
  TemporaryDirectory temporary_;
};

TEST_F(PlannerLocal, IsResumedToTheSameBits) {
  if (!Run("whole")) GTEST_SKIP() << Read(directory() / "err");
  const std::map<int64_t, std::string> expected = StepSamples(directory() / "whole");
  ASSERT_EQ(expected.size(), 2U);
  {
    Database database(directory() / "whole/run.sqlite");
    Statement found(database, "SELECT count(DISTINCT code_c), count(DISTINCT coder_outcome) FROM rounds");
    ASSERT_TRUE(found.Step());
    EXPECT_GT(found.Integer(0), 2) << "kernels of the coder";
    EXPECT_GT(found.Integer(1), 1);
    Statement seconds(database, "SELECT min(value) FROM metrics WHERE name = 'coder/device_seconds'");
    ASSERT_TRUE(seconds.Step());
    EXPECT_GT(seconds.Real(0), 0);
  }
  HostProcess process(directory(), {"-q", "run", "p.yaml", "--set", "output_dir=broken"});
  // In the second step's rounds.
  ASSERT_TRUE(process.KillWhen([&] { return test::RecordedStep(directory() / "broken") > 0; }));
  EXPECT_EQ(HostProcess(directory(), {"-q", "resume", "broken"}).Wait(), 0) << Read(directory() / "err");
  EXPECT_EQ(StepSamples(directory() / "broken"), expected);
  EXPECT_EQ(Read(directory() / "broken/final/model.safetensors"), Read(directory() / "whole/final/model.safetensors"));
}

TEST_F(PlannerLocal, TwoRanksDrawTheSameSamples) {
  if (!fs::exists(KGRPO_BINARY_DIR "/lib/kgrpo/transport_torch.so")) GTEST_SKIP() << "transport_torch was not built";
  const std::vector<std::string> one_step = {"--set", "loop.max_steps=1"};
  if (!Run("one", one_step)) GTEST_SKIP() << Read(directory() / "err");
  Run("two", {"--set", "loop.max_steps=1", "--ranks", "2"});
  const std::map<int64_t, std::string> expected = StepSamples(directory() / "one");
  EXPECT_EQ(expected.size(), 1U);
  EXPECT_EQ(StepSamples(directory() / "two"), expected);
}

TEST_F(PlannerLocal, CheckShowsTheCoderAndTheSummaryItsTime) {
  const test::Result checked = test::RunHost(directory(), "check p.yaml");
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.err, HasSubstr("note: coder (coder_engine): Qwen2ForCausalLM"));
  EXPECT_THAT(checked.err, HasSubstr("coder on cpu: "));
  const test::Result run = test::RunHost(directory(), "run p.yaml --set loop.max_steps=1 --set loop.rounds=1");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out + run.err, HasSubstr("the coder had its device for "));
}

}  // namespace
}  // namespace kgrpo
