// The commands end to end: the real binary, with the small plugin of tests/fixtures/plugins in every part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "host/directories.h"
#include "host_binary.h"

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

using test::Read;
using test::Result;

// Runs commands in a folder of its own with two problems and a pipeline.
class CliTest : public testing::Test {
 protected:
  CliTest() {
    Write("problems/one/reference.cu", "void launch() {}\n");
    Write("problems/two/reference.cu", "void launch() {} // two\n");
    Write("p.yaml",
          "seed: 5\n"
          "policy: {plugin: fakes, options: {model: random}}\n"
          "coder: {plugin: fakes}\nevaluator: {plugin: fakes}\nreward: {plugin: fakes}\n"
          "trainer: {plugin: fakes}\n"
          "problems: {train: ['problems/*'], heldout: [problems/two]}\n"
          "loop: {max_steps: 3, batch_size: 4, rounds: 2, sampling: {max_new_tokens: 6}}\n"
          "prompt: {user: 'improve {{problem.name}}'}\n");
  }

  void Write(const std::string& file, const std::string& text) { test::Write(directory_.path() / file, text); }

  // `arguments` go through a shell.
  Result Run(const std::string& arguments, const std::string& input = "") {
    return test::RunHost(directory_.path(), arguments, input);
  }

  static std::vector<json> Lines(const std::string& text) {
    std::vector<json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
    return lines;
  }

  TemporaryDirectory directory_;
};

// ---- usage --------------------------------------------------------------------------------------

TEST_F(CliTest, EveryCommandHasHelpWithAnExample) {
  for (const char* command :
       {"run", "resume", "check", "coder-check", "eval", "plugins", "plugins list", "plugins describe",
        "plugins validate", "problems", "problems list", "problems check", "tokenize", "score", "generate", "update"}) {
    const Result result = Run(std::string(command) + " --help");
    EXPECT_EQ(result.code, 0) << command;
    EXPECT_THAT(result.out, HasSubstr("Example")) << command;
    EXPECT_THAT(result.out, HasSubstr("kgrpo-host ")) << command;
  }
  EXPECT_THAT(Run("--version").out, HasSubstr("plugin ABI 1.0"));
}

TEST_F(CliTest, WrongUsageIsTwo) {
  EXPECT_EQ(Run("").code, 2);
  EXPECT_EQ(Run("run").code, 2);
  EXPECT_EQ(Run("check p.yaml --nonsense").code, 2);
  EXPECT_EQ(Run("eval").code, 2);
  EXPECT_EQ(Run("eval --kernel k.cu").code, 2);
  EXPECT_EQ(Run("--plugin-path . p.yaml --quiet").code, 0) << "the folder is one word, the pipeline the next";
  const Result mistyped = Run("chekc p.yaml");
  EXPECT_EQ(mistyped.code, 2);
  EXPECT_THAT(mistyped.err, HasSubstr("did you mean \"check\"?"));
}

// ---- check --------------------------------------------------------------------------------------

TEST_F(CliTest, CheckPassesARightFile) {
  const Result result = Run("check p.yaml");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "p.yaml: fine. 1 training and 1 held-out problems, 3 steps in 1 stage; it would run in runs/p\n");
  EXPECT_FALSE(fs::exists(directory_.path() / "runs")) << "checking leaves nothing behind";
  EXPECT_FALSE(fs::exists(directory_.path() / "cache"));
}

TEST_F(CliTest, CheckResolvePrintsAFileThatRuns) {
  const Result resolved = Run("check p.yaml --resolve --set seed=8");
  EXPECT_THAT(resolved.out, HasSubstr("seed: 8\n"));
  Write("again.yaml", resolved.out);
  EXPECT_EQ(Run("check again.yaml --resolve").out, resolved.out);
}

TEST_F(CliTest, CheckReportsEverythingAtOnce) {
  Write("bad.yaml",
        "extends: p.yaml\ncoder: {plugin: coder_nobody}\nreward: {options: {corect: 1}}\nloop: {rounds: x}\n");
  const Result result = Run("check bad.yaml");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("bad.yaml:2:17: coder.plugin: there is no plugin \"coder_nobody\"; tried\n"));
  EXPECT_THAT(result.err, HasSubstr("bad.yaml:3:20: reward.options.corect: unknown key; did you mean \"correct\"?\n"));
  EXPECT_THAT(result.err, HasSubstr("bad.yaml:4:16: loop.rounds: expected an integer from 1 to 1000, found \"x\"\n"));
  EXPECT_THAT(result.err, HasSubstr("bad.yaml: 3 mistakes\n"));
  const json found = json::parse(Run("check bad.yaml --json").out);
  EXPECT_FALSE(found["ok"].get<bool>());
  ASSERT_EQ(found["mistakes"].size(), 3U);
  EXPECT_EQ(found["mistakes"][1]["path"], "reward.options.corect");
  EXPECT_EQ(found["mistakes"][1]["line"], 3);
  EXPECT_EQ(found["mistakes"][1]["suggestion"], "correct");
}

TEST_F(CliTest, CheckOpensProblemsAndMakesParts) {
  fs::create_directories(directory_.path() / "problems" / "three");
  Write("bad.yaml", "extends: p.yaml\npolicy: {options: {model: /nowhere}}\n");
  const Result result = Run("check bad.yaml");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("problems/three/reference.cu: there is no reference kernel\n"));
  EXPECT_THAT(result.err, HasSubstr("policy (fakes): no model in /nowhere/logits.bin\n"));
  EXPECT_EQ(Run("check bad.yaml --file-only").code, 0);
}

TEST_F(CliTest, AFileThatIsNotThere) {
  const Result result = Run("nothing.yaml");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err, "nothing.yaml: cannot read nothing.yaml: No such file or directory\n");
}

// ---- run and resume -----------------------------------------------------------------------------

TEST_F(CliTest, RunTrainsAndLeavesAFolder) {
  const Result result = Run("p.yaml --set output_dir=out_run");
  ASSERT_EQ(result.code, 0) << result.err;
  const fs::path run = directory_.path() / "out_run";
  EXPECT_TRUE(fs::exists(run / "resolved.yaml"));
  EXPECT_TRUE(fs::exists(run / "run.sqlite"));
  EXPECT_TRUE(fs::exists(run / "final" / "logits.bin"));
  const json identity = json::parse(Read(run / "run.json"));
  EXPECT_EQ(identity["plugins"].size(), 5U);
  EXPECT_EQ(identity["plugins"][0]["sha256"].get<std::string>().size(), 64U);

  const Result again = Run("p.yaml --set output_dir=out_run");
  EXPECT_EQ(again.code, 3);
  EXPECT_THAT(again.err, HasSubstr("--overwrite"));
  // Checking says the same: the file is fine, and would not run.
  const std::string refusal =
      "output_dir out_run holds a finished run: name another folder (--set output_dir=...), or delete that run with "
      "--overwrite";
  EXPECT_EQ(again.err, "error: " + refusal + "\n");
  const Result check = Run("check p.yaml --set output_dir=out_run");
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("3 steps in 1 stage; but it would not run: " + refusal + "\n"));
  EXPECT_THAT(check.out, Not(HasSubstr("would run in")));
  EXPECT_EQ(json::parse(Run("check p.yaml --set output_dir=out_run --json").out)["output_dir"]["refusal"], refusal);
  const Result other = Run("check p.yaml --set output_dir=problems");
  EXPECT_THAT(other.out, HasSubstr("but it would not run: output_dir problems is not empty"));
  const Result file = Run("check p.yaml --set output_dir=p.yaml");
  EXPECT_EQ(file.code, 3);
  EXPECT_THAT(file.err, HasSubstr("output_dir p.yaml is a file: name a folder\np.yaml: 1 mistake\n"));
  EXPECT_EQ(Run("run p.yaml --set output_dir=out_run --overwrite -q").code, 0);
}

TEST_F(CliTest, ResumeGoesOnToTheSameWeights) {
  ASSERT_EQ(Run("p.yaml --set output_dir=whole --set checkpoint.every=1").code, 0);
  // The same run, with its last checkpoint taken away and its end forgotten.
  fs::copy(directory_.path() / "whole", directory_.path() / "part", fs::copy_options::recursive);
  fs::remove_all(directory_.path() / "part" / "final");
  std::vector<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(directory_.path() / "part" / "checkpoints"))
    checkpoints.push_back(entry.path());
  for (const fs::path& checkpoint : checkpoints) {
    if (checkpoint.filename().string().find('3') != std::string::npos) fs::remove_all(checkpoint);
  }
  const Result result = Run("resume part");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Read(directory_.path() / "part/final/logits.bin"), Read(directory_.path() / "whole/final/logits.bin"));
  EXPECT_EQ(Run("resume nowhere").code, 3);
}

// ---- eval ---------------------------------------------------------------------------------------

TEST_F(CliTest, EvalJudgesAKernel) {
  Write("k.cu", "void launch() {} // a // b // c\n");
  const Result result = Run("eval --kernel k.cu --problem problems/one --evaluator fakes --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json verdict = json::parse(result.out);
  EXPECT_EQ(verdict["verdict"], "right");
  EXPECT_EQ(verdict["speedup"], 4.0);
  EXPECT_EQ(verdict["baseline"]["seconds"], 0.001);
  EXPECT_EQ(verdict["metrics"]["comments"], 3.0);
  EXPECT_THAT(Run("eval --kernel k.cu --problem problems/one --evaluator fakes --set unit=0.5").out,
              HasSubstr("speedup    4\n"));
  const std::string text = Run("eval --kernel k.cu --problem problems/one --evaluator fakes").out;
  EXPECT_THAT(text, HasSubstr("problem    one\nverdict    right\nfound      it has too few comments\n"
                              "reference  1 ms (modelled: comments)\nkernel     250 us\nspeedup    4\n"));
  EXPECT_THAT(text, HasSubstr("\nOther\n  comments  3\n")) << "a metric that no table knows";
  const Result profile = Run("eval --kernel k.cu --problem problems/one --evaluator fakes --profile");
  EXPECT_EQ(profile.code, 3);
  EXPECT_THAT(profile.err, HasSubstr("--profile: the evaluator fakes has no option \"profile\""));
  EXPECT_EQ(json::parse(Run("eval p.yaml --kernel k.cu --problem problems/one --json").out)["speedup"], 4.0);
  const Result report = Run("eval --kernel k.cu --problem problems/one --evaluator fakes --report k.html");
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("report     k.html\n"));
  EXPECT_THAT(Read(directory_.path() / "k.html"), HasSubstr("<pre>void launch() {} // a // b // c</pre>"));
  const Result nowhere = Run("eval --kernel k.cu --problem problems/one --evaluator fakes --report none/k.html");
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("--report none/k.html: there is no folder none"));
  EXPECT_EQ(Run("eval p.yaml --policy uniform --report k.html").code, 2);
  Write("broken.cu", "#error\n");
  const Result broken = Run("eval --kernel broken.cu --problem problems/one --evaluator fakes --json");
  EXPECT_EQ(broken.code, 0) << "a verdict is a result";
  EXPECT_EQ(json::parse(broken.out)["verdict"], "not_compiled");
  EXPECT_EQ(Run("eval --kernel none.cu --problem problems/one --evaluator fakes").code, 3);
  const Result option = Run("eval --kernel k.cu --problem problems/one --evaluator fakes --set unt=1");
  EXPECT_EQ(option.code, 3);
  EXPECT_EQ(option.err, "--set: unt: unknown key; did you mean \"unit\"?\n");
}

TEST_F(CliTest, EvalPlaysPolicies) {
  const Result uniform = Run("eval p.yaml --policy uniform --episodes 3 --json");
  ASSERT_EQ(uniform.code, 0) << uniform.err;
  EXPECT_EQ(json::parse(uniform.out)["episodes"], 3);
  EXPECT_EQ(Run("eval p.yaml --policy fixed:tile --episodes 2").code, 0);
  EXPECT_EQ(Run("eval p.yaml --policy nowhere --episodes 2").code, 3);
}

// ---- plugins and problems -----------------------------------------------------------------------

TEST_F(CliTest, PluginsListDescribeValidate) {
  const Result list = Run("plugins list --json");
  ASSERT_EQ(list.code, 0);
  const json plugins = json::parse(list.out);
  ASSERT_FALSE(plugins.empty());
  EXPECT_EQ(plugins[0]["name"], "fakes");
  EXPECT_EQ(plugins[0]["roles"].size(), 5U);
  const Result describe = Run("plugins describe fakes");
  EXPECT_THAT(describe.out, HasSubstr("As trainer:\n"));
  EXPECT_THAT(describe.out, HasSubstr("learning_rate  a number > 0  0.1      Of the gradient ascent."));
  EXPECT_EQ(Run("plugins validate fakes").code, 0);
  const Result bad = Run("plugins validate " KGRPO_BINARY_DIR "/tests/bad_plugins/crashes_in_create.so");
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.out, HasSubstr("FAILED  reward: create with defaults works or says why not: crashed with signal 6"));
}

TEST_F(CliTest, ProblemsListAndCheck) {
  const Result list = Run("problems list --evaluator fakes");
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_EQ(list.out, "PROBLEM  FAMILY  SPLIT  TRAITS\none      fake    train\ntwo      fake    train\n");
  EXPECT_EQ(json::parse(Run("problems check --evaluator fakes --json 'problems/*'").out)[1]["baseline"]["seconds"],
            0.0005);
  Write("problems/bad/reference.cu", "#error\n");
  const Result check = Run("problems check --evaluator fakes");
  EXPECT_EQ(check.code, 3);
  EXPECT_EQ(check.err, "bad: the reference kernel does not compile\n3 problems, 1 bad\n");
  EXPECT_EQ(Run("problems list nowhere --evaluator fakes").code, 3);
}

// ---- models -------------------------------------------------------------------------------------

TEST_F(CliTest, TokenizeReadsTextAndChats) {
  const Result result = Run("tokenize random --plugin fakes",
                            "{\"text\": \"ab\"}\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], "
                            "\"add_generation_prompt\": true}\n");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<json> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], json::parse(R"({"ids": [97, 98], "text": "ab"})"));
  EXPECT_EQ(lines[1]["text"], "<user>x\n<assistant>");
}

TEST_F(CliTest, BadLinesAreAllNamedAndNothingIsWritten) {
  Write("in.jsonl", "{\"text\": \"ab\"}\n{\"txt\": \"ab\"}\nnot json\n[1]\n{\"text\": 3}\n{}\n");
  const Result result = Run("tokenize random --plugin fakes --input in.jsonl");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "error: in.jsonl:2: unknown key \"txt\"; did you mean \"text\"?\n"
            "in.jsonl:3: not JSON, at column 2: each line must hold one object, {...}\n"
            "in.jsonl:4: expected a JSON object, found a list\n"
            "in.jsonl:5: \"text\": expected text, found 3\n"
            "in.jsonl:6: expected exactly one of \"text\", \"messages\", found 0\n");
}

TEST_F(CliTest, ScoreGivesALogProbabilityAToken) {
  const Result result =
      Run("score random --plugin fakes --dtype fp32",
          "{\"prompt_ids\": [1], \"completion_ids\": [2, 3]}\n{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<json> lines = Lines(result.out);
  ASSERT_EQ(lines[0]["logprobs"].size(), 2U);
  EXPECT_NEAR(lines[0]["logprobs"][0].get<double>(), -5.545177444479562, 1e-6);
  EXPECT_EQ(lines[1]["logprobs"].size(), 1U);
  const Result outside =
      Run("score random --plugin fakes",
          "{\"prompt_ids\": [1], \"completion_ids\": [2]}\n{\"prompt_ids\": [1], \"completion_ids\": [900]}\n");
  EXPECT_EQ(outside.code, 3);
  EXPECT_EQ(outside.err, "error: <stdin>:2: token id 900 is outside the vocabulary\n");
  EXPECT_EQ(Run("score random --plugin fakes --dtype fp8", "").code, 3);
}

TEST_F(CliTest, GenerateDependsOnTheSeedAndTheLineAlone) {
  const std::string line = "{\"prompt\": \"x\"}\n";
  const Result first = Run("generate random --plugin fakes --seed 3 --max-new-tokens 5", line + line + line);
  ASSERT_EQ(first.code, 0) << first.err;
  const Result split = Run("generate random --plugin fakes --seed 3 --max-new-tokens 5 --batch 1", line + line + line);
  EXPECT_EQ(first.out, split.out);
  const std::vector<json> lines = Lines(first.out);
  EXPECT_EQ(lines[0]["ids"].size(), 5U);
  EXPECT_EQ(lines[0]["finish_reason"], "length");
  EXPECT_NE(lines[0]["ids"], lines[1]["ids"]);
  EXPECT_NE(Run("generate random --plugin fakes --seed 4 --max-new-tokens 5", line).out,
            Run("generate random --plugin fakes --seed 3 --max-new-tokens 5", line).out);
}

TEST_F(CliTest, GenerateNamesTheLineThatIsAtFault) {
  const Result outside = Run("generate '" KGRPO_SOURCE_DIR "/tests/golden/policy/qwen2' --max-new-tokens 2",
                             "{\"prompt_ids\": [1, 2]}\n{\"prompt_ids\": [1, 900]}\n");
  EXPECT_EQ(outside.code, 3);
  EXPECT_THAT(outside.err, HasSubstr("<stdin>:2: request 0: token 1 is 900, outside the model's vocabulary of 300"));
  const Result folder = Run("eval --kernel . --problem .", "");
  EXPECT_EQ(folder.code, 3);
  EXPECT_EQ(folder.err, "error: --kernel . is a folder: name a CUDA source, such as reference.cu\n");
}

// ---- update -------------------------------------------------------------------------------------

// Every column that a run writes must be one that `update` reads or knows to leave.
TEST_F(CliTest, UpdateTakesARunsOwnRollouts) {
  ASSERT_EQ(Run("p.yaml --set output_dir=recorded").code, 0);
  const std::string rollouts = "recorded/rollouts/step-000001.jsonl";
  const size_t samples = Lines(Read(directory_.path() / rollouts)).size();
  ASSERT_GT(samples, 0U);
  const Result result = Run("update p.yaml --rollouts " + rollouts + " --out updated");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(json::parse(Read(directory_.path() / "updated" / "metrics.json"))["samples"], samples);
}

TEST_F(CliTest, UpdateReplaysSamples) {
  Write("r.jsonl",
        "{\"prompt_ids\": [1], \"completion_ids\": [71], \"logprobs\": [-5.5], \"reward\": 1.0, \"trajectory\": 0, "
        "\"round\": 0, \"problem\": \"a\"}\n"
        "{\"prompt_ids\": [1], \"completion_ids\": [66], \"reward\": -1.0, \"trajectory\": 1, \"round\": 0, "
        "\"problem\": 3}\n");
  // Neither coder nor problems nor reward are needed.
  Write("two.yaml",
        "policy: {plugin: fakes, options: {model: random}}\ntrainer: {plugin: fakes, options: {learning_rate: "
        "10}}\nproblems: {train: [gone]}\n");
  const Result result = Run("update two.yaml --rollouts r.jsonl --out updated");
  ASSERT_EQ(result.code, 0) << result.err;
  const json metrics = json::parse(Read(directory_.path() / "updated" / "metrics.json"));
  ASSERT_EQ(metrics["steps"].size(), 1U);
  for (const char* key : {"loss", "kl", "grad_norm"}) EXPECT_TRUE(metrics["steps"][0][key].is_number()) << key;
  EXPECT_EQ(metrics["samples"], 2);
  const std::vector<json> scores =
      Lines(Run("score updated --plugin fakes", "{\"prompt_ids\": [1], \"completion_ids\": [71, 66]}\n").out);
  EXPECT_GT(scores[0]["logprobs"][0], scores[0]["logprobs"][1]);
  EXPECT_THAT(Run("update two.yaml --rollouts r.jsonl --out updated").err, HasSubstr("not an empty folder"));
}

}  // namespace
}  // namespace kgrpo
