// Several ranks, as processes on this machine, train one policy. Their result equals that of one rank, also after a
// kill and a resume, and rank 0 refuses impossible settings in one sentence.
#include "base/directories.h"
#include "host_binary.h"
#include "host_process.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::HostProcess;
using test::Read;
using test::StepSamples;
using test::Tree;
using test::Write;

// Without `warm_up` steps the policy is `model` as it is, and GRPO begins at once.
std::string Pipeline(int warm_up, int steps, const std::string& model = test::QuickstartModel().string()) {
  const std::string problems = std::string(KGRPO_SOURCE_DIR) + "/problems/";
  const std::string warm_start = warm_up == 0 ? ""
                                              : "  - {plugin: trainer_sft, steps: " + std::to_string(warm_up) +
                                                    ", suggestions: uniform, episodes: 6, demonstrations_per_step: 8,\n"
                                                    "     options: {learning_rate: 1.0e-2}}\n";
  return "name: small\nseed: 3\n"
         "policy: {plugin: policy_qwen, options: {model: " +
         model + (warm_up == 0 ? "" : ", init: random") +
         ", threads: 1}}\n"
         "coder: {plugin: coder_offline}\nevaluator: {plugin: evaluator_sim}\nreward: {plugin: reward_speedup}\n"
         "trainer:\n" +
         warm_start + "  - {plugin: trainer_grpo, steps: " + std::to_string(steps) +
         ", options: {learning_rate: 1.0e-3, mini_batch_size: 3, beta: 0.1,\n"
         "     gradient_accumulation_steps: 2, shuffle: true}}\n"
         "problems: {train: [" +
         problems + "transpose, " + problems +
         "row_norms]}\n"
         "loop: {batch_size: 6, rounds: 2, generation_batch: 2, workers: 1, sampling: {max_new_tokens: 8}}\n"
         "prompt: {user: 'suggest for {{problem.family}}:'}\n"
         "checkpoint: {every: 2, keep_last: 2, keep_best: 1}\n";
}

// Processes of one run, as torchrun starts them.
class RankProcesses {
 public:
  // The output of rank R goes to `directory` / rankR. `last`: added to the last rank's arguments. `further`: variables
  // of all of them.
  RankProcesses(const fs::path& directory, size_t size, const std::vector<std::string>& arguments,
                const std::vector<std::string>& last = {}, const std::map<std::string, std::string>& further = {}) {
    static int port = 21000 + getpid() % 8000;
    ++port;
    for (size_t rank = 0; rank < size; ++rank) {
      std::vector<std::string> own = arguments;
      if (rank + 1 == size) own.insert(own.end(), last.begin(), last.end());
      std::map<std::string, std::string> environment;
      if (size > 1) {
        environment = {{"RANK", std::to_string(rank)},       {"WORLD_SIZE", std::to_string(size)},
                       {"LOCAL_RANK", std::to_string(rank)}, {"LOCAL_WORLD_SIZE", std::to_string(size)},
                       {"MASTER_ADDR", "127.0.0.1"},         {"MASTER_PORT", std::to_string(port)}};
      }
      environment.insert(further.begin(), further.end());
      const std::string log = "rank" + std::to_string(rank);
      fs::remove(directory / log);
      ranks_.push_back(std::make_unique<HostProcess>(directory, own, environment, log));
    }
  }

  HostProcess& operator[](size_t rank) { return *ranks_.at(rank); }
  std::vector<int> Wait() {
    std::vector<int> codes;
    for (const auto& rank : ranks_) codes.push_back(rank->Wait());
    return codes;
  }

 private:
  std::vector<std::unique_ptr<HostProcess>> ranks_;
};

// All float32 tensors of a safetensors file, in the order of their names.
std::vector<float> Weights(const fs::path& file) {
  const std::string bytes = Read(file);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const auto json = nlohmann::json::parse(bytes.substr(8, header));
  std::vector<float> values;
  for (const auto& [name, tensor] : json.items()) {
    if (name == "__metadata__") continue;
    const uint64_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    const size_t before = values.size();
    values.resize(before + (end - begin) / sizeof(float));
    std::memcpy(values.data() + before, bytes.data() + 8 + header + begin, end - begin);
  }
  return values;
}

bool LacksCompiler(const fs::path& directory) {
  return Read(directory / "rank0").find("no CUDA toolkit with nvcc was found") != std::string::npos;
}

class RanksTest : public ::testing::Test {
 protected:
  const fs::path& directory() const { return temporary_.path(); }
  std::string Said(size_t rank) const { return Read(directory() / ("rank" + std::to_string(rank))); }
  std::vector<int> Run(size_t ranks, const std::string& output) {
    return RankProcesses(directory(), ranks, {"-q", "run", "p.yaml", "--set", "output_dir=" + output}).Wait();
  }

 private:
  TemporaryDirectory temporary_;
};

TEST_F(RanksTest, SeveralDoWhatOneDoes) {
  Write(directory() / "p.yaml", Pipeline(4, 1));
  const std::vector<int> alone = Run(1, "one");
  if (alone[0] == 4 && LacksCompiler(directory())) GTEST_SKIP() << Said(0);
  ASSERT_EQ(alone[0], 0) << Said(0);
  const std::vector<float> expected = Weights(directory() / "one/final/model.safetensors");
  for (size_t size : {2U, 4U}) {
    SCOPED_TRACE(size);
    const std::string output = "of" + std::to_string(size);
    ASSERT_EQ(Run(size, output), std::vector<int>(size, 0)) << Said(0) << Said(1);
    for (size_t rank = 1; rank < size; ++rank) EXPECT_EQ(Said(rank), "");
    const std::vector<float> found = Weights(directory() / output / "final/model.safetensors");
    ASSERT_EQ(found.size(), expected.size());
    // float32 sums in another order; AdamW makes a step of 0.01 of what is rounding alone, so a few may differ by that.
    double squares = 0;
    size_t far = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const double distance = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
      squares += distance * distance;
      if (distance > 1e-4) ++far;
    }
    std::printf("%zu ranks: root mean square difference of weights %.2g, %zu of %zu above 1e-4\n", size,
                std::sqrt(squares / static_cast<double>(found.size())), far, found.size());
    EXPECT_LT(static_cast<double>(far), 1e-3 * static_cast<double>(found.size()));
    EXPECT_LT(std::sqrt(squares / static_cast<double>(found.size())), 1e-4);
  }
}

// From the same weights, which the first step of a run without warm start has, each rank's part of the trajectories is
// what one process would have drawn, to the last bit of the log-probabilities.
TEST_F(RanksTest, TheFirstStepDrawsTheSameSamplesOnAnyNumberOfRanks) {
  Write(directory() / "p.yaml", Pipeline(12, 1));
  const std::vector<int> alone = Run(1, "trained");
  if (alone[0] == 4 && LacksCompiler(directory())) GTEST_SKIP() << Said(0);
  ASSERT_EQ(alone[0], 0) << Said(0);
  // Several ranks replay what one recorded.
  std::string pipeline = Pipeline(0, 1, (directory() / "trained/final").string());
  pipeline.replace(pipeline.find("batch_size: 6"), 0, "trajectories_per_problem: 2, ");
  Write(directory() / "p.yaml", pipeline);
  ASSERT_EQ(Run(1, "one"), std::vector<int>{0}) << Said(0);
  const auto samples = [&](const std::string& output) { return StepSamples(directory() / output); };
  const std::map<int64_t, std::string> expected = samples("one");
  ASSERT_EQ(expected.size(), 1U);
  // Trajectories that all end alike would hide one that took another's place.
  Database database(directory() / "one/run.sqlite");
  Statement distinct(database, "SELECT count(DISTINCT suggestion) FROM rounds");
  ASSERT_TRUE(distinct.Step());
  ASSERT_GT(distinct.Integer(0), 2) << expected.begin()->second;
  Write(directory() / "p.yaml",
        std::regex_replace(pipeline, std::regex("loop: \\{"), "loop: {replay: {from: [one]}, "));
  for (size_t size : {2U, 4U}) {
    const std::string output = "of" + std::to_string(size);
    ASSERT_EQ(Run(size, output), std::vector<int>(size, 0)) << Said(0) << Said(1);
    EXPECT_EQ(samples(output), expected) << size << " ranks";
    Database replayed(directory() / output / "run.sqlite");
    Statement reused(replayed, "SELECT sum(coder_reused) FROM rounds");
    EXPECT_TRUE(reused.Step() && reused.Integer(0) > 0);
  }
}

// The same on two GPUs, by the engine and the fused kernels, for a rank on either and for two; then they train.
TEST_F(RanksTest, TwoGpusDrawTheSameSamples) {
  if (!fs::exists("/dev/nvidia1")) GTEST_SKIP() << "needs two GPUs";
  fs::create_directory(directory() / "model");
  fs::copy_file(fs::path(KGRPO_SOURCE_DIR) / "tests/golden/policy/qwen2/tokenizer.json",
                directory() / "model/tokenizer.json");
  Write(directory() / "model/config.json",
        R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 768, "hidden_size": 128,
            "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
            "rope_theta": 10000.0, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "hidden_act": "silu",
            "initializer_range": 0.02, "tie_word_embeddings": true, "eos_token_id": 2})");
  const auto run = [&](const std::string& output, const std::string& device, const std::string& ranks) {
    Write(directory() / "p.yaml", Pipeline(0, 2,
                                           (directory() / "model").string() +
                                               ", init: random, dtype: bfloat16, chat_template: chatml, "
                                               "generation: engine, device: " +
                                               device));
    HostProcess host(directory(), {"-q", "run", "p.yaml", "--ranks", ranks, "--set", "output_dir=" + output}, {},
                     output + ".log");
    EXPECT_EQ(host.Wait(), 0) << output << ": " << Read(directory() / (output + ".log"));
    const std::map<int64_t, std::string> steps = StepSamples(directory() / output);
    EXPECT_EQ(steps.size(), 2U) << output;
    return steps.empty() ? "" : steps.begin()->second;
  };
  const std::string expected = run("first", "'cuda:0'", "1");
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(run("second", "'cuda:1'", "1"), expected);
  EXPECT_EQ(run("both", "cuda", "2"), expected);
  EXPECT_EQ(run("list", "['cuda:1', 'cuda:0']", "2"), expected);
}

// At random moments each rank in its turn is killed; the run is resumed each time, and ends as an unbroken one of as
// many ranks. KGRPO_TEST_KILLS=20 kills more often, in a longer run.
TEST_F(RanksTest, KilledRanksGoOnToTheSameEnd) {
  constexpr size_t kRanks = 3;
  const char* chosen = std::getenv("KGRPO_TEST_KILLS");
  const int kills = chosen == nullptr ? 3 : std::stoi(chosen);
  Write(directory() / "p.yaml", Pipeline(12, 4 * kills));
  const std::vector<int> unbroken = Run(kRanks, "whole");
  if (unbroken[0] == 4 && LacksCompiler(directory())) GTEST_SKIP() << Said(0);
  ASSERT_EQ(unbroken, std::vector<int>(kRanks, 0)) << Said(0) << Said(1);
  const fs::path run = directory() / "broken";
  const auto arguments = [&]() -> std::vector<std::string> {
    if (fs::exists(run / "run.sqlite")) return {"-q", "resume", "broken"};
    return {"-q", "run", "p.yaml", "--set", "output_dir=broken"};
  };
  std::mt19937_64 random(7);
  int lost = 0;
  std::string seconds;  // from each death to the end of all
  for (int kill = 0; kill < kills; ++kill) {
    // Once the ranks have met (before that they wait for each other for minutes): at the beginning, then a little after
    // more steps were recorded.
    const int64_t goal = kill == 0 ? 0 : std::max<int64_t>(test::RecordedStep(run), 12) + 2;
    RankProcesses ranks(directory(), kRanks, arguments());
    while (!ranks[0].Ended() && (test::RecordedStep(run) < goal || !fs::exists(run / "run.log")))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % (kill == 0 ? 2000 : 100)));
    const size_t victim = static_cast<size_t>(kill) % kRanks;
    ranks[victim].Signal(SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    const std::vector<int> codes = ranks.Wait();
    if (codes[victim] != -1) continue;  // it was through
    ++lost;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - killed;
    char text[64];
    std::snprintf(text, sizeof(text), " %.1f%s", took.count(), victim == 0 ? " (rank 0)" : "");
    seconds += text;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(codes[rank], 1) << rank;
    }
    // The first of those that live says it.
    EXPECT_THAT(Said(victim == 0 ? 1 : 0), HasSubstr("is lost"));
  }
  std::printf("%d of %d kills broke the run; seconds from a death to the end of all ranks:%s\n", lost, kills,
              seconds.c_str());
  EXPECT_GE(lost, kills / 2) << "too few to mean anything";
  const std::vector<int> codes = RankProcesses(directory(), kRanks, arguments()).Wait();
  EXPECT_EQ(codes, std::vector<int>(kRanks, 0)) << Said(0) << Said(1);
  EXPECT_TRUE(StepSamples(directory() / "whole") == StepSamples(run));
  for (const char* part : {"final", "kernels"})
    EXPECT_TRUE(Tree(directory() / "whole" / part) == Tree(run / part)) << part;
}

TEST_F(RanksTest, ARunGoesOnAtAnotherNumberOfRanks) {
  Write(directory() / "p.yaml", Pipeline(4, 24));
  RankProcesses three(directory(), 3, {"-q", "run", "p.yaml", "--set", "output_dir=run"});
  while (!three[0].Ended() && !fs::exists(directory() / "run/checkpoints/step-8"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  three[0].Signal(SIGINT);
  const std::vector<int> codes = three.Wait();
  if (codes[0] == 4 && LacksCompiler(directory())) GTEST_SKIP() << Said(0);
  ASSERT_EQ(codes, (std::vector<int>{130, 130, 130})) << Said(0) << Said(1);
  EXPECT_EQ(RankProcesses(directory(), 2, {"-q", "resume", "run"}).Wait(), (std::vector<int>{0, 0})) << Said(0);
  // There is nothing left to do, which the leader alone sees: the others end with it.
  EXPECT_EQ(RankProcesses(directory(), 2, {"-q", "resume", "run"}).Wait(), (std::vector<int>{0, 0})) << Said(0);
  EXPECT_THAT(Said(0), HasSubstr("run is finished: all "));
  EXPECT_TRUE(fs::exists(directory() / "run/final/model.safetensors"));
}

TEST_F(RanksTest, TheCommandStartsRanksItself) {
  Write(directory() / "p.yaml", Pipeline(2, 1));
  HostProcess host(directory(), {"-q", "run", "p.yaml", "--ranks", "2", "--set", "output_dir=run"}, {}, "rank0");
  const int code = host.Wait();
  if (code == 4 && LacksCompiler(directory())) GTEST_SKIP() << Said(0);
  EXPECT_EQ(code, 0) << Said(0);
  EXPECT_EQ(Said(0), "");
  EXPECT_TRUE(fs::exists(directory() / "run/final/model.safetensors"));
}

// A shell that becomes the command leaves it children of its own, and a supervisor may ignore the ends of its children.
TEST_F(RanksTest, TheCommandWaitsForItsRanksAlone) {
  Write(directory() / "p.yaml", Pipeline(1, 1) + "bogus: 1\n");
  const std::string command = "cd '" + directory().string() +
                              "' && { true & true & exec env --ignore-signal=CHLD '" KGRPO_BINARY_DIR
                              "/bin/kgrpo-host' -q run p.yaml --ranks 2 > rank0 2>&1; }";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3) << Said(0);
}

TEST_F(RanksTest, RanksThatDisagreeAreNamedByTheFirst) {
  Write(directory() / "p.yaml", Pipeline(1, 1));
  const std::vector<int> codes =
      RankProcesses(directory(), 2, {"-q", "run", "p.yaml", "--set", "output_dir=run"}, {"--set", "seed=9"}).Wait();
  EXPECT_EQ(codes, (std::vector<int>{3, 1})) << Said(1);
  EXPECT_THAT(Said(0),
              HasSubstr("rank 1 reads another pipeline than rank 0: it has \"seed: 9\" where rank 0 has \"seed: 3\""));
  EXPECT_EQ(Said(1), "");
  EXPECT_FALSE(fs::exists(directory() / "run"));
}

// As where a machine was left out when the others got a new build. A byte behind a library's end changes nothing but
// its digest.
TEST_F(RanksTest, RanksOfDifferentVersionsAreNamedByTheFirst) {
  Write(directory() / "p.yaml", Pipeline(1, 1));
  const fs::path reward = fs::path(KGRPO_BINARY_DIR) / "lib/kgrpo/reward_speedup.so";
  Write(directory() / "other/reward_speedup.so", Read(reward) + "\n");
  const std::vector<int> codes = RankProcesses(directory(), 2, {"-q", "run", "p.yaml", "--set", "output_dir=run"},
                                               {"--plugin-path", (directory() / "other").string()})
                                     .Wait();
  EXPECT_EQ(codes, (std::vector<int>{3, 1})) << Said(1);
  EXPECT_THAT(Said(0), HasSubstr("rank 1 runs other programs than rank 0"));
  EXPECT_THAT(Said(0), HasSubstr("start the same build on every machine"));
  EXPECT_EQ(Said(1), "");
  EXPECT_FALSE(fs::exists(directory() / "run"));
}

TEST_F(RanksTest, AMistakeOfTheFileIsSaidOnce) {
  Write(directory() / "p.yaml", Pipeline(1, 1) + "bogus: 1\n");
  const std::vector<int> codes = Run(2, "run");
  EXPECT_EQ(codes[0], 3) << Said(0);
  EXPECT_THAT(Said(0), HasSubstr("bogus"));
  EXPECT_EQ(Said(1), "");
}

TEST_F(RanksTest, WhatOnlyTheProblemsShowIsSaidByTheFirst) {
  Write(directory() / "p.yaml", Pipeline(1, 1));
  const std::vector<int> codes = RankProcesses(directory(), 2,
                                               {"-q", "run", "p.yaml", "--set", "output_dir=run", "--set",
                                                "loop.batch_size=5", "--set", "loop.trajectories_per_problem=2"})
                                     .Wait();
  EXPECT_EQ(codes, (std::vector<int>{3, 1})) << Said(1);
  EXPECT_THAT(Said(0), Not(HasSubstr("rank 1")));
  EXPECT_EQ(Said(1), "");
}

// A frozen process can do nothing. Without our launcher it ends once it is continued, or killed.
TEST_F(RanksTest, AFrozenRankIsMissed) {
  Write(directory() / "p.yaml", Pipeline(4, 1000));
  std::vector<std::unique_ptr<RankProcesses>> runs;  // in run R, rank R is frozen
  for (const std::string run : {"0", "1"}) {
    fs::create_directory(directory() / run);
    runs.push_back(std::make_unique<RankProcesses>(
        directory() / run, 2, std::vector<std::string>{"-q", "run", "../p.yaml", "--set", "output_dir=run"}));
  }
  const auto said = [&](size_t run, size_t rank) {
    return Read(directory() / std::to_string(run) / ("rank" + std::to_string(rank)));
  };
  for (size_t run = 0; run < 2; ++run) {
    while (!(*runs[run])[0].Ended() && !fs::exists(directory() / std::to_string(run) / "run/checkpoints/step-2"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if ((*runs[run])[0].Ended() && LacksCompiler(directory() / std::to_string(run))) GTEST_SKIP() << said(run, 0);
    (*runs[run])[run].Signal(SIGSTOP);
  }
  for (size_t run = 0; run < 2; ++run) {
    EXPECT_EQ((*runs[run])[1 - run].Wait(), 1);
    EXPECT_THAT(said(run, 1 - run), HasSubstr("rank " + std::to_string(run) + " is lost"));
    (*runs[run])[run].Signal(SIGCONT);
  }
  for (size_t run = 0; run < 2; ++run) EXPECT_EQ((*runs[run])[run].Wait(), 1) << "continued, it misses the other";
}

// A stopped process takes no signal but SIGKILL, and the command waits for its ranks.
TEST_F(RanksTest, TheCommandOutlivesNoFrozenRank) {
  Write(directory() / "p.yaml", Pipeline(4, 1000));
  struct Case {
    std::string frozen;
    int interrupts;  // Ctrl-C after the freezing
    double most;     // seconds until all have ended, on a quiet machine
    int code = 1;
    std::unique_ptr<HostProcess> host = nullptr;
    std::map<std::string, pid_t> ranks = {};
    double took = 0;
  };
  std::vector<Case> cases;
  cases.push_back({"1", 0, 10});
  cases.push_back({"0", 0, 10});
  cases.push_back({"1", 1, 10});
  cases.push_back({"1", 2, 3});
  const auto name = [](size_t i) { return "frozen" + std::to_string(i); };
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].host = std::make_unique<HostProcess>(
        directory(),
        std::vector<std::string>{"-q", "run", "p.yaml", "--ranks", "2", "--set", "output_dir=run" + std::to_string(i)},
        std::map<std::string, std::string>{}, name(i));
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    while (!cases[i].host->Ended() && !fs::exists(directory() / ("run" + std::to_string(i)) / "checkpoints/step-2"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (cases[i].host->Ended() && Read(directory() / name(i)).find("no CUDA toolkit") != std::string::npos)
      GTEST_SKIP() << Read(directory() / name(i));
    cases[i].ranks = cases[i].host->Ranks();
    ASSERT_EQ(cases[i].ranks.size(), 2U) << i;
  }
  const auto began = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  for (Case& one : cases) kill(one.ranks.at(one.frozen), SIGSTOP);
  for (int interrupt = 1; interrupt <= 2; ++interrupt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (Case& one : cases) {
      if (one.interrupts >= interrupt) one.host->Signal(SIGINT);
    }
  }
  for (size_t left = cases.size(); left > 0 && seconds() < 40;) {
    left = 0;
    for (Case& one : cases) {
      if (!one.host->Ended()) {
        ++left;
      } else if (one.took == 0) {
        one.took = seconds();
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    Case& one = cases[i];
    SCOPED_TRACE("rank " + one.frozen + " frozen, Ctrl-C " + std::to_string(one.interrupts) + " times");
    std::printf("rank %s frozen, Ctrl-C %d times: all ended after %.1f s\n", one.frozen.c_str(), one.interrupts,
                one.took);
    EXPECT_TRUE(one.host->Ended());
    for (const auto& [rank, process] : one.ranks) EXPECT_NE(kill(process, 0), 0) << "rank " << rank << " is left";
    if (!one.host->Ended()) {
      for (const auto& [rank, process] : one.ranks) kill(process, SIGKILL);
    }
    EXPECT_EQ(one.host->Wait(), one.code);
    EXPECT_LT(one.took, 3 * one.most);
    const std::string said = Read(directory() / name(i));
    EXPECT_THAT(said, testing::ContainsRegex("rank " + one.frozen + " \\(process [0-9]+\\) was stopped, by SIGSTOP"));
    if (one.interrupts == 0) {
      EXPECT_THAT(said, HasSubstr("rank " + one.frozen + " is lost"));
      EXPECT_THAT(said, testing::ContainsRegex("; to continue it: kgrpo-host resume [^ ]+ --ranks 2"));
    }
  }
}

// The rewards of all ranks are not numbers: the leader counts the rounds of both.
TEST_F(RanksTest, FailuresOfFollowersCountToo) {
  Write(directory() / "p.yaml", std::regex_replace(Pipeline(0, 8), std::regex("reward_speedup"),
                                                   "\"" KGRPO_BINARY_DIR "/tests/bad_plugins/nan_score.so\""));
  RankProcesses two(directory(), 2,
                    {"-q", "run", "p.yaml", "--set", "output_dir=run", "--set", "policy.options.init=random"});
  const std::vector<int> codes = two.Wait();
  if (codes[0] == 4 && LacksCompiler(directory())) GTEST_SKIP() << Said(0);
  EXPECT_EQ(codes, (std::vector<int>{4, 1}));
  EXPECT_THAT(Said(0), HasSubstr("step 3: the reward's last 18 answers all failed; the commonest, 18 times: nan_score: "
                                 "the score is nan: it must be set and finite. "));
  EXPECT_THAT(Said(0), HasSubstr("(a checkpoint of step 3 was written; fix the cause, then: kgrpo-host resume "));
  EXPECT_EQ(Said(1), "");
}

// A rank that lives and never comes back from a plugin's function, while the others wait for it in a collective.
TEST_F(RanksTest, AHangIsNamedAndTheRunGoesOnAfterIt) {
  Write(directory() / "p.yaml",
        std::regex_replace(Pipeline(0, 3), std::regex("trainer_grpo[^}]*}"),
                           "\"" KGRPO_BINARY_DIR "/tests/bad_plugins/hangs_on_rank_1.so\", steps: 3"));
  const std::vector<std::string> arguments = {"-q",
                                              "run",
                                              "p.yaml",
                                              "--set",
                                              "output_dir=run",
                                              "--set",
                                              "policy.options.init=random",
                                              "--set",
                                              "loop.hang_seconds=3",
                                              "--set",
                                              "checkpoint.every=1"};
  const std::vector<int> codes = RankProcesses(directory(), 3, arguments, {}, {{"KGRPO_TEST_HANG_AT", "2"}}).Wait();
  if (codes[0] == 4 && LacksCompiler(directory())) GTEST_SKIP() << Said(0);
  EXPECT_EQ(codes, std::vector<int>(3, 1));
  EXPECT_THAT(
      Said(0),
      HasSubstr("rank 1 has been in hangs_on_rank_1's update for 3 s while others wait for it "
                "(loop.hang_seconds is the limit); the run ends on all ranks; to continue it: kgrpo-host resume"));
  EXPECT_EQ(Said(1), "");
  EXPECT_TRUE(fs::exists(directory() / "run/checkpoints/step-1"));
  EXPECT_EQ(RankProcesses(directory(), 2, {"-q", "resume", "run"}).Wait(), (std::vector<int>{0, 0})) << Said(0);
  EXPECT_TRUE(StepSamples(directory() / "run").contains(3));
}

// A rank that ends, or fails, in a backward pass while reductions of the others are under way.
TEST_F(RanksTest, AFaultBetweenReductionsEndsTheRunOnAllRanks) {
  const std::string pipeline = Pipeline(0, 3);
  const size_t policy = pipeline.find("policy:"), coder = pipeline.find("coder:");
  Write(directory() / "p.yaml", pipeline.substr(0, policy) +
                                    "policy: {plugin: \"" KGRPO_BINARY_DIR
                                    "/tests/bad_plugins/faults_in_backward.so\"}\n" +
                                    pipeline.substr(coder));
  struct Case {
    const char *fault, *rank, *said;
    std::vector<int> codes;
  };
  for (const Case& test : {Case{"dies", "1", "rank 1 is lost", {1, -1, 1}},
                           Case{"fails", "1", "rank 1: the device fell off the bus", {1, 1, 1}},
                           Case{"fails", "0", "the device fell off the bus", {4, 1, 1}}}) {
    SCOPED_TRACE(std::string(test.fault) + " on rank " + test.rank);
    const auto began = std::chrono::steady_clock::now();
    const std::vector<int> codes =
        RankProcesses(directory(), 3,
                      {"-q", "run", "p.yaml", "--set", "output_dir=run", "--set", "loop.hang_seconds=60"}, {},
                      {{"KGRPO_TEST_FAULT", test.fault}, {"KGRPO_TEST_FAULT_RANK", test.rank}})
            .Wait();
    if (codes[0] == 4 && LacksCompiler(directory())) GTEST_SKIP() << Said(0);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::printf("%s on rank %s: all ranks ended after %.1f s, start included\n", test.fault, test.rank, took.count());
    EXPECT_EQ(codes, test.codes);
    EXPECT_THAT(Said(0), HasSubstr(test.said));
    std::filesystem::remove_all(directory() / "run");
  }
}

TEST_F(RanksTest, AFollowersOwnFaultEndsTheRun) {
  Write(directory() / "p.yaml", Pipeline(1, 1));
  const std::vector<int> codes = RankProcesses(directory(), 2, {"-q", "run", "p.yaml", "--set", "output_dir=run"},
                                               {"--set", "policy.options.model=nowhere"})
                                     .Wait();
  EXPECT_EQ(codes, (std::vector<int>{1, 1}));
  EXPECT_THAT(Said(0), HasSubstr("rank 1: policy (policy_qwen)"));
  EXPECT_EQ(Said(1), "");
}

}  // namespace
}  // namespace kgrpo
