// `kgrpo-host optimize --train`: the tiny model is trained on one problem, with the real parts of the quickstart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/directories.h"
#include "host_binary.h"
#include "host_process.h"

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Read;
using test::Result;
using test::Tree;
using testing::HasSubstr;

class OptimizeTrainTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string problems = std::string(KGRPO_SOURCE_DIR) + "/problems/";
    test::Write(
        Path("p.yaml"),
        "name: small\nseed: 3\npolicy: {plugin: policy_qwen, options: {model: " + test::QuickstartModel().string() +
            ", init: random, threads: 1}}\n"
            "coder: {plugin: coder_offline}\nevaluator: {plugin: evaluator_sim}\n"
            "reward: {plugin: reward_speedup}\ntrainer:\n"
            "  - {plugin: trainer_sft, steps: 24, suggestions: uniform, episodes: 4,\n"
            "     demonstrations_per_step: 8, options: {learning_rate: 1.0e-2}}\n"
            "  - {plugin: trainer_grpo, steps: 1, options: {learning_rate: 1.0e-3, mini_batch_size: 4}}\n"
            "problems: {train: [" +
            problems +
            "transpose]}\nloop: {batch_size: 4, rounds: 2, workers: 1, sampling: {max_new_tokens: 8}}\n"
            "prompt: {user: 'suggest for {{problem.family}}:'}\noutput_dir: trained\n");
    const Result run = test::RunHost(directory_.path(), "-q run p.yaml");
    if (run.code == 4 && run.err.find("no CUDA toolkit with nvcc was found") != std::string::npos)
      GTEST_SKIP() << run.err;
    ASSERT_EQ(run.code, 0) << run.err;
    before_ = Tree(Path("trained"));
  }
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_EQ(Tree(Path("trained")), before_) << "the run's own folder is never written";
    }
  }

  fs::path Path(const std::string& file) const { return directory_.path() / file; }
  static std::string Problem() { return std::string(KGRPO_SOURCE_DIR) + "/problems/row_norms"; }
  Result Optimize(const std::string& arguments) {
    return test::RunHost(directory_.path(), "optimize " + Problem() + " --policy trained --train " + arguments);
  }
  std::vector<json> Candidates(const std::string& out) const {
    std::vector<json> candidates;
    std::istringstream lines(Read(Path(out) / "candidates.jsonl"));
    for (std::string line; std::getline(lines, line);) candidates.push_back(json::parse(line));
    return candidates;
  }

  TemporaryDirectory directory_;
  std::map<std::string, std::string> before_;
};

TEST_F(OptimizeTrainTest, ItsSamplesAreTheCandidatesAndTellTheirUpdates) {
  const Result result = Optimize("--evaluations 23 --out faster --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json evidence = json::parse(result.out);
  EXPECT_EQ(evidence["updates"], 2) << "of 8 kernels each";
  EXPECT_EQ(evidence["ended"], "2 updates");
  EXPECT_TRUE(evidence["thorough"]);
  EXPECT_GE(evidence["speedup"].get<double>(), 1);
  std::map<uint64_t, int> by_updates;
  for (const json& candidate : Candidates("faster")) ++by_updates[candidate["updates"].get<uint64_t>()];
  EXPECT_EQ(by_updates, (std::map<uint64_t, int>{{0, 8}, {1, 8}}));
  EXPECT_TRUE(fs::exists(Path("faster/best.cu")));
  EXPECT_NE(Read(Path("faster/run/final/model.safetensors")), Read(Path("trained/final/model.safetensors")));

  const Result dear = Optimize("--evaluations 16 --max-cost 0 --out dear --json");
  ASSERT_EQ(dear.code, 0) << dear.err;
  EXPECT_EQ(json::parse(dear.out)["ended"], "the cost limit (--max-cost)");
  EXPECT_EQ(Candidates("dear").size(), 8U);
  EXPECT_TRUE(fs::exists(Path("dear/run/final/model.safetensors"))) << "a limit of the search ends it like any other";
  fs::remove(Path("dear/evidence.json"));
  EXPECT_THAT(Optimize("--evaluations 16 --out dear").err, HasSubstr("holds the run of an earlier --train"));

  const Result refused = test::RunHost(directory_.path(), "optimize " + Problem() +
                                                              " --policy 'fixed:privatize histogram' --pipeline p.yaml "
                                                              "--evaluations 1 --out refused");
  EXPECT_THAT(refused.out, HasSubstr("privatize histogram: not_applicable (")) << "and the coder's reason";
  EXPECT_THAT(refused.out, HasSubstr("a row reduction has no place for it)")) << refused.out;

  EXPECT_THAT(Optimize("--evaluations 7 --out few").err, HasSubstr("is less than one update takes"));
  EXPECT_THAT(
      Optimize("--evaluations 16 --out sft --set 'trainer={plugin: trainer_sft, steps: 1, suggestions: uniform, "
               "episodes: 2}'")
          .err,
      HasSubstr("trainer_sft there imitates suggestions"));
  EXPECT_THAT(test::RunHost(directory_.path(),
                            "optimize " + Problem() + " --policy uniform --pipeline p.yaml --train --out none")
                  .err,
              HasSubstr("--train needs a policy that can learn"));
}

TEST_F(OptimizeTrainTest, AStopKeepsTheBestOfTheWholeUpdates) {
  test::HostProcess process(directory_.path(), {"optimize", Problem(), "--policy", "trained", "--train",
                                                "--evaluations", "80000", "--out", "stopped"});
  while (!process.Ended() && Read(Path("err")).find("update 2 ") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), 130) << Read(Path("err"));
  const json evidence = json::parse(Read(Path("stopped/evidence.json")));
  EXPECT_FALSE(evidence["thorough"]);
  EXPECT_EQ(evidence["ended"], "stopped by the user");
  EXPECT_TRUE(fs::exists(Path("stopped/best.cu")));
  EXPECT_GE(Candidates("stopped").size(), 16U);
}

}  // namespace
}  // namespace kgrpo
