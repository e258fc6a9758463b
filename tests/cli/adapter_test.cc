// A run that trains a LoRA adapter: its folder's content, a resume that ends with the same bits, and `merge`.
#include "commands.h"

#include "test.h"

#include <kgrpo/support/sqlite.h>

namespace kgrpo {
namespace {

using test::Read;
using test::Result;

class AdapterRunTest : public CliTest {
 protected:
  AdapterRunTest() {
    Write("lora.yaml",
          "seed: 5\n"
          "policy: {plugin: policy_qwen, options: {model: " +
              base_ +
              ", chat_template: chatml, adapter: {rank: 2, alpha: 8, targets: [q_proj, v_proj, down_proj]}}}\n"
              "coder: {plugin: fakes}\nevaluator: {plugin: fakes}\nreward: {plugin: fakes}\n"
              "trainer: {plugin: trainer_grpo, steps: 4, options: {learning_rate: 1.0e-2, beta: 0.1}}\n"
              "problems: {train: ['problems/*']}\n"
              "loop: {batch_size: 4, rounds: 2, sampling: {max_new_tokens: 6}}\n"
              "prompt: {user: '{{problem.name}}'}\n"
              "checkpoint: {every: 1, keep_last: 4}\n");
  }

  const std::string base_ = std::string(KGRPO_SOURCE_DIR) + "/tests/golden/policy/qwen2";
};

TEST_F(AdapterRunTest, ResumeEndsWithTheSameBits) {
  const Result whole = Run("lora.yaml --set output_dir=whole");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const fs::path run = directory_.path() / "whole", part = directory_.path() / "part";
  const json config = json::parse(Read(run / "final/adapter_config.json"));
  EXPECT_EQ(config["r"], 2);
  EXPECT_EQ(config["base_model_name_or_path"], base_);
  EXPECT_TRUE(fs::exists(run / "final/tokenizer.json"));
  const std::string first = Read(run / "checkpoints/step-1/policy/adapter_model.safetensors");
  EXPECT_NE(first, Read(run / "final/adapter_model.safetensors")) << "it does not learn";
  // Nothing of the base is written, and the trainer keeps two moments of the factors alone.
  const auto factors = fs::file_size(run / "final/adapter_model.safetensors");
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    EXPECT_NE(entry.path().filename(), "model.safetensors") << entry.path();
    if (entry.path().string().find("checkpoints") != std::string::npos && entry.is_regular_file() &&
        entry.path().filename() != "tokenizer.json") {
      EXPECT_LT(entry.file_size(), 3 * factors) << entry.path();
    }
  }

  fs::copy(run, part, fs::copy_options::recursive);
  fs::remove_all(part / "final");
  for (const char* step : {"step-3", "step-4"}) fs::remove_all(part / "checkpoints" / step);
  const Result resumed = Run("resume part");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(test::StepSamples(part), test::StepSamples(run));
  for (const char* folder : {"final", "checkpoints/step-4/reference"})
    EXPECT_EQ(test::Tree(part / folder), test::Tree(run / folder)) << folder;
}

// A checkpoint has the reference of its own step, of an adapter and of a whole model.
TEST_F(AdapterRunTest, ResumeKeepsASynchronisedReference) {
  const auto kl = [&](const std::string& run) {
    std::vector<double> values;
    Database database(directory_.path() / run / "run.sqlite");
    Statement select(database, "SELECT value FROM metrics WHERE name = 'kl' ORDER BY step");
    while (select.Step()) values.push_back(select.Real(0));
    return values;
  };
  for (const bool adapter : {true, false}) {
    const std::string name = adapter ? "factors" : "weights";
    const Result whole = Run("lora.yaml --set output_dir=" + name +
                             " --set trainer.options.sync_ref_model=true --set trainer.options.ref_model_sync_steps=2"
                             " --set trainer.steps=7 --set checkpoint.keep_last=7" +
                             (adapter ? "" : " --set policy.options.adapter=null"));
    ASSERT_EQ(whole.code, 0) << whole.err;
    EXPECT_GT(kl(name).back(), 0) << "nothing to compare";
    const fs::path run = directory_.path() / name;
    const auto reference = [&](const fs::path& of, int step) {
      return of / "checkpoints" / ("step-" + std::to_string(step)) / "reference" /
             (adapter ? "adapter_model.safetensors" : "model.safetensors");
    };
    for (int step = 2; step <= 7; ++step) {
      const bool synchronised = step % 2 == 0;
      const fs::path before = reference(run, step - 1), after = reference(run, step);
      EXPECT_EQ(Read(before) != Read(after), synchronised) << name << ", step " << step;
      EXPECT_EQ(fs::equivalent(before, after), !synchronised) << "shares the file of a reference that did not change";
    }
    for (const int from : {2, 3}) {
      SCOPED_TRACE(name + " from step " + std::to_string(from));
      const fs::path part = directory_.path() / "part";
      fs::remove_all(part);
      fs::copy(run, part, fs::copy_options::recursive);
      const Result resumed = Run("resume part --from-step " + std::to_string(from));
      ASSERT_EQ(resumed.code, 0) << resumed.err;
      EXPECT_EQ(kl("part"), kl(name));
      EXPECT_EQ(kl("part").size(), 7U);
      EXPECT_EQ(test::StepSamples(part), test::StepSamples(run));
      for (const char* folder : {"final", "checkpoints/step-7/reference"})
        EXPECT_EQ(test::Tree(part / folder), test::Tree(run / folder)) << folder;
    }
  }
}

TEST_F(AdapterRunTest, WhatItLeavesOpensAsAModel) {
  ASSERT_EQ(Run("lora.yaml --set output_dir=run").code, 0);
  const std::string prompt = "{\"prompt\": \"tile the loop\"}\n";
  const std::string arguments = " --temperature 0 --max-new-tokens 8";
  const Result adapted = Model("generate run/final" + arguments, prompt);
  ASSERT_EQ(adapted.code, 0) << adapted.err;

  const Result merged = Run("merge run/final -o merged");
  ASSERT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("merged"));
  EXPECT_TRUE(fs::exists(directory_.path() / "merged/model.safetensors"));
  EXPECT_TRUE(fs::exists(directory_.path() / "merged/config.json"));
  EXPECT_FALSE(fs::exists(directory_.path() / "merged/adapter_config.json"));
  EXPECT_EQ(Model("generate merged" + arguments, prompt).out, adapted.out);

  // An adapter goes on from the folder, and one of another shape does not.
  const Result further = Run("run lora.yaml --set output_dir=further --set policy.options.adapter.start=run/final -q");
  EXPECT_EQ(further.code, 0) << further.err;
  const Result other =
      Run("check lora.yaml --set policy.options.adapter.start=run/final "
          "--set policy.options.adapter.rank=3");
  EXPECT_NE(other.code, 0);
  EXPECT_THAT(other.err, HasSubstr("run/final has rank 2, alpha 8, targets q_proj v_proj down_proj"));
  EXPECT_THAT(Run("merge run/final -o merged").err, HasSubstr("merged is not empty"));
  EXPECT_THAT(Run("merge merged -o again").err, HasSubstr("holds no adapter"));
}

// Other programs sample from what a run leaves as the run did, whatever the model that it began with recommends.
TEST_F(AdapterRunTest, WhatItLeavesIsSampledAsTheRunDid) {
  const fs::path base = directory_.path() / "base";
  fs::copy(base_, base);
  json given = json::parse(Read(base / "generation_config.json"));
  given.update({{"repetition_penalty", 1.1}, {"top_k", 20}, {"temperature", 0.6}, {"min_p", 0.2}, {"max_length", 7}});
  Write("base/generation_config.json", given.dump());
  const std::string sampling =
      " --set trainer.steps=1 --set policy.options.model=base --set loop.sampling.temperature=0.7 "
      "--set loop.sampling.top_p=0.9 --set output_dir=";
  const json expected = {{"eos_token_id", {2, 0}}, {"pad_token_id", 0}, {"do_sample", true},
                         {"temperature", 0.7},     {"top_k", 0},        {"top_p", 0.9}};
  const auto written = [&](const std::string& folder) {
    return json::parse(Read(directory_.path() / folder / "generation_config.json"));
  };
  ASSERT_EQ(Run("lora.yaml --set policy.options.adapter=null" + sampling + "whole").code, 0);
  EXPECT_EQ(written("whole/final"), expected);
  EXPECT_EQ(written("whole/checkpoints/step-1/policy"), expected);
  ASSERT_EQ(Run("lora.yaml" + sampling + "lora").code, 0);
  EXPECT_EQ(written("lora/final"), expected);
  ASSERT_EQ(Run("merge lora/final -o merged").code, 0);
  EXPECT_EQ(written("merged"), expected) << "the adapter's, not its base's";
}

TEST_F(AdapterRunTest, LogitsThatAreNotFiniteAreAnError) {
  const fs::path broken = directory_.path() / "broken";
  fs::copy(base_, broken);
  std::string file = Read(broken / "model.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  const auto offsets = json::parse(file.substr(8, header))["model.norm.weight"]["data_offsets"];
  const float large = 3e38F;
  for (uint64_t at = offsets[0]; at < offsets[1].get<uint64_t>(); at += sizeof large)
    std::memcpy(file.data() + 8 + header + at, &large, sizeof large);
  Write("broken/model.safetensors", file);
  const Result scored = Model("score broken",
                              "{\"prompt_ids\": [5], \"completion_ids\": [6, 7]}\n{\"prompt_ids\": [5, 6], "
                              "\"completion_ids\": [8]}\n");
  EXPECT_NE(scored.code, 0);
  EXPECT_EQ(scored.out, "");
  EXPECT_THAT(scored.err, HasSubstr("error: <stdin>:1: "));
  EXPECT_THAT(scored.err, HasSubstr("logits are not finite. Its weights have diverged, or its values are too large for "
                                    "the policy's dtype (with bfloat16, try float32)"));
  for (const char* temperature : {"0", "1"}) {
    const Result generated = Model(std::string("generate broken --max-new-tokens 4 --temperature ") + temperature,
                                   "{\"prompt_ids\": [5]}\n");
    EXPECT_NE(generated.code, 0);
    EXPECT_EQ(generated.out, "");
    EXPECT_THAT(generated.err, HasSubstr("the model's logits are not finite: its weights have diverged"));
  }
}

TEST_F(AdapterRunTest, ThePluginKeepsTheContract) {
  Write("options.json", json({{"model", base_}, {"chat_template", "chatml"}, {"adapter", {{"rank", 2}}}}).dump());
  const Result result = Run("plugins validate policy_qwen --options options.json");
  EXPECT_EQ(result.code, 0) << result.out << result.err;
}

}  // namespace
}  // namespace kgrpo
