// The real pipeline, repeatedly killed with SIGKILL and resumed: a small version of the quickstart's policy, coder,
// evaluator, reward and both trainers. The result must equal that of an unbroken run, byte for byte: weights, samples
// and best kernels. tests/loop/resume_test.cc does the same at every instant with fakes. A killed experiment ends its
// runs.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/directories.h"
#include "host_binary.h"
#include "host_process.h"
#include "test.h"

namespace kgrpo {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using test::HostProcess;
using test::QuickstartModel;
using test::Read;
using test::Tree;
using test::Write;

std::string Pipeline() {
  const std::string problems = std::string(KGRPO_SOURCE_DIR) + "/problems/";
  return "name: small\nseed: 3\n"
         "policy: {plugin: policy_qwen, options: {model: " +
         QuickstartModel().string() +
         ", init: random, threads: 1}}\n"
         "coder: {plugin: coder_offline}\nevaluator: {plugin: evaluator_sim}\nreward: {plugin: reward_speedup}\n"
         "trainer:\n"
         "  - {plugin: trainer_sft, steps: 24, suggestions: uniform, episodes: 4, demonstrations_per_step: 8,\n"
         "     options: {learning_rate: 1.0e-2}}\n"
         "  - {plugin: trainer_grpo, steps: 4, options: {learning_rate: 1.0e-3, mini_batch_size: 4,\n"
         "     gradient_accumulation_steps: 1, shuffle: true, sync_ref_model: true,\n"
         "     ref_model_sync_steps: 1, advantage: (value - others_mean) / (batch_std + 1e-4),\n"
         "     off_policy_mask_threshold: 0.01, old_logprobs: recomputed, importance_sampling_correction: "
         "token_truncate}}\n"
         "problems: {train: [" +
         problems + "transpose, " + problems + "row_norms], heldout: [" + problems +
         "dot_product]}\n"
         "evaluation: {every: 2, episodes: 2, at_start: true}\n"
         "loop: {batch_size: 4, rounds: 2, max_staleness: 1, generation_batch: 2, workers: 1, sampling: "
         "{max_new_tokens: 8}}\n"
         "prompt: {user: 'suggest for {{problem.family}}:'}\n"
         "checkpoint: {every: 2, keep_last: 2, keep_best: 1, final: best}\n";
}

// How many entries of a folder, which another process is changing, have this ending.
size_t Count(const fs::path& folder, const std::string& ending) {
  std::error_code error;
  size_t count = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().string().ends_with(ending)) ++count;
  }
  return count;
}

TEST(KilledRun, EndsAsTheUnbrokenOne) {
  const TemporaryDirectory temporary;
  const fs::path& directory = temporary.path();
  Write(directory / "p.yaml", Pipeline());
  const int code = HostProcess(directory, {"-q", "run", "p.yaml", "--set", "output_dir=whole"}).Wait();
  const std::string says = Read(directory / "err");
  if (code == 4 && says.find("no CUDA toolkit with nvcc was found") != std::string::npos) GTEST_SKIP() << says;
  ASSERT_EQ(code, 0) << says;

  const fs::path run = directory / "broken";
  const auto start = [&] {  // a run that was killed before its folder held one has nothing to resume
    return fs::exists(run / "run.sqlite")
               ? HostProcess(directory, {"-q", "resume", "broken"})
               : HostProcess(directory, {"-q", "run", "p.yaml", "--set", "output_dir=broken"});
  };
  std::mt19937_64 random(20);
  const auto below = [&](microseconds limit) { return microseconds(random() % static_cast<uint64_t>(limit.count())); };
  size_t kills = 0, partial_checkpoints = 0;
  const auto after = [&](microseconds time) {
    const auto end = Clock::now() + time;
    return start().KillWhen([=] { return Clock::now() >= end; });
  };
  // A little after so many more checkpoints are there.
  const auto after_checkpoints = [&](uint64_t more, microseconds then) {
    const auto last = [&] {
      uint64_t step = 0;
      std::error_code error;
      for (fs::directory_iterator entry(run / "checkpoints", error), end; !error && entry != end;
           entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.find('.') == std::string::npos) step = std::max<uint64_t>(step, std::stoull(name.substr(5)));
      }
      return step;
    };
    const uint64_t goal = last() + 2 * more;
    return start().KillWhen([&] {
      if (last() < goal) return false;
      std::this_thread::sleep_for(then);
      return true;
    });
  };
  // While a checkpoint is being written.
  const auto within_checkpoint = [&](microseconds then) {
    const bool killed = start().KillWhen([&] {
      if (Count(run / "checkpoints", ".partial") == 0) return false;
      std::this_thread::sleep_for(then);
      return true;
    });
    if (Count(run / "checkpoints", ".partial") > 0) ++partial_checkpoints;
    return killed;
  };

  kills += after(below(microseconds(400'000)));
  kills += within_checkpoint(microseconds(0));
  kills += after_checkpoints(2, below(microseconds(30'000)));
  kills += after(below(microseconds(800'000)));
  kills += within_checkpoint(below(microseconds(2'000)));
  kills += after_checkpoints(2, below(microseconds(30'000)));
  kills += start().KillWhen([&] {  // while the kernels of the next step are judged
    if (test::RecordedStep(run) < 25) return false;
    std::this_thread::sleep_for(microseconds(100'000) + below(microseconds(400'000)));
    return true;
  });
  kills += start().KillWhen([&] { return fs::exists(run / "final.partial"); });
  EXPECT_EQ(start().Wait(), 0) << Read(directory / "err");
  EXPECT_GE(kills, 5U) << "too few to mean anything";
  EXPECT_GE(partial_checkpoints, 1U);
  std::printf("%zu kills, %zu of them within a checkpoint\n", kills, partial_checkpoints);

  const fs::path whole = directory / "whole";
  const std::map<int64_t, std::string> samples = test::StepSamples(whole);
  EXPECT_TRUE(test::StepSamples(run) == samples);
  for (const char* part : {"final", "kernels"}) {
    const std::map<std::string, std::string> expected = Tree(whole / part), found = Tree(run / part);
    for (const auto& [file, bytes] : expected) {
      ASSERT_TRUE(found.contains(file)) << part << "/" << file;
      EXPECT_TRUE(found.at(file) == bytes) << part << "/" << file << " differs";
    }
    EXPECT_EQ(found.size(), expected.size()) << part;
  }
  EXPECT_EQ(samples.size(), 4U) << "one a step of GRPO";
  EXPECT_TRUE(fs::exists(run / "final/model.safetensors"));
  EXPECT_EQ(Count(run / "checkpoints", ".partial") + Count(run / "checkpoints", ".removed"), 0U);
  if (QuickstartModel().filename() == "tiny") {  // rewards differed, so GRPO had something to learn from
    EXPECT_THAT(samples.at(26), testing::HasSubstr("|correct|"));
    EXPECT_FALSE(Tree(whole / "kernels").empty());
  }
}

// The command of an experiment starts a process for each run. Killed or stopped, it must not leave one that trains on.
TEST(KilledExperiment, EndsItsRuns) {
  const TemporaryDirectory temporary;
  const fs::path& directory = temporary.path();
  std::string pipeline = Pipeline();
  pipeline.replace(pipeline.find("steps: 24"), std::string_view("steps: 24").size(), "steps: 1000000");
  Write(directory / "ab.yaml", pipeline + "output_dir: runs\nseeds: [3, 4]\n");
  const fs::path run = directory / "runs/base/seed-3";
  const bool killed =
      HostProcess(directory, {"-q", "run", "ab.yaml"}).KillWhen([&] { return Count(run / "checkpoints", "0") > 0; });
  if (!killed) GTEST_SKIP() << Read(directory / "err");  // without nvcc it ends at once
  const auto is_running = [&] {
    const int lock = open((run / "run.lock").c_str(), O_RDONLY | O_CLOEXEC);
    const bool held = flock(lock, LOCK_SH | LOCK_NB) != 0;
    close(lock);
    return held;
  };
  for (int waited = 0; is_running() && waited < 600; ++waited) std::this_thread::sleep_for(microseconds(100'000));
  EXPECT_FALSE(is_running());
  EXPECT_FALSE(fs::exists(run / "final"));

  // One signal to the command ends each run with a checkpoint: a second one would kill it.
  HostProcess both(directory, {"run", "ab.yaml", "--jobs", "2"}, {}, "both");
  const fs::path other = directory / "runs/base/seed-4";
  const auto both_run = [&] { return Count(other / "checkpoints", "0") > 0 && is_running(); };
  while (!both.Ended() && !both_run()) std::this_thread::sleep_for(microseconds(1'000));
  both.Signal(SIGTERM);
  EXPECT_EQ(both.Wait(), 130);
  const std::string said = Read(directory / "both");
  for (const char* name : {"seed 3", "seed 4"})
    EXPECT_THAT(said, testing::HasSubstr(std::string(name) + ": ended with exit code 130\n")) << said;
}

}  // namespace
}  // namespace kgrpo
