// The commands of one model, end to end: tokenize, score, generate and update.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Read;
using test::Result;

TEST_F(CliTest, TokenizeReadsTextAndChats) {
  const Result result = Model("tokenize random --plugin fakes",
                              "{\"text\": \"ab\"}\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], "
                              "\"add_generation_prompt\": true}\n");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<json> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], json::parse(R"({"ids": [97, 98], "text": "ab"})"));
  EXPECT_EQ(lines[1]["text"], "<user>x\n<assistant>");
}

// The order of keys is kept: templates write objects as JSON.
TEST_F(CliTest, TokenizeGivesAllOfAChatToTheTemplate) {
  std::filesystem::create_directory(directory_.path() / "model");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy(KGRPO_SOURCE_DIR "/tests/golden/policy/qwen2/" + std::string(name),
                          directory_.path() / "model");
  }
  Write("model/chat_template.jinja",
        "{% for m in messages %}{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls }}{% endfor %}"
        "{{ tools | tojson if tools }}{{ x }}");
  const std::string chat =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [{"b": 1, "a": 2}]}], )";
  const Result result =
      Model("tokenize model", chat + R"("tools": [{"z": 1, "y": 2}], "chat_template_kwargs": {"x": 7}})" + "\n");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Lines(result.out)[0]["text"], R"(a[{"b": 1, "a": 2}][{"z": 1, "y": 2}]7)");
  EXPECT_THAT(Model("tokenize model", chat + R"("chat_template_kwargs": {"w": 7}})" + "\n").err,
              HasSubstr("<stdin>:1: the chat template does not read 'w', which would be dropped"));
  EXPECT_THAT(Model("tokenize random --plugin fakes", chat + "\"tools\": []}\n").err,
              HasSubstr("<stdin>:1: this policy takes only the roles and texts of a chat"));
}

TEST_F(CliTest, BadLinesAreAllNamedAndNothingIsWritten) {
  Write("in.jsonl", "{\"text\": \"ab\"}\n{\"txt\": \"ab\"}\nnot json\n[1]\n{\"text\": 3}\n{}\n");
  const Result result = Model("tokenize random --plugin fakes --input in.jsonl");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "error: in.jsonl:2: unknown key \"txt\"; did you mean \"text\"?\n"
            "in.jsonl:3: not JSON, at column 2: each line must hold one object, {...}\n"
            "in.jsonl:4: expected a JSON object, found a list\n"
            "in.jsonl:5: \"text\": expected text, found 3\n"
            "in.jsonl:6: expected exactly one of \"text\", \"messages\", found 0\n");
}

TEST_F(CliTest, HalfOfASurrogatePairIsNamed) {
  EXPECT_EQ(
      Model("tokenize random --plugin fakes", "{\"text\": \"\\ud83d.\"}\n").err,
      "error: <stdin>:1: half of a surrogate pair, at column 17: \\ud800 to \\udfff are characters only in pairs\n");
}

TEST_F(CliTest, DeepNestingIsNamed) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(
      Model("tokenize random --plugin fakes", R"({"messages": [{"role": "user", "content": )" + deep + "}]}\n").err,
      "error: <stdin>:1: lists and objects are nested more than 200 deep\n");
}

TEST_F(CliTest, ScoreGivesALogProbabilityAToken) {
  const Result result =
      Model("score random --plugin fakes --dtype fp32",
            "{\"prompt_ids\": [1], \"completion_ids\": [2, 3]}\n{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<json> lines = Lines(result.out);
  ASSERT_EQ(lines[0]["logprobs"].size(), 2U);
  EXPECT_NEAR(lines[0]["logprobs"][0].get<double>(), -5.545177444479562, 1e-6);
  EXPECT_EQ(lines[1]["logprobs"].size(), 1U);
  const Result outside =
      Model("score random --plugin fakes",
            "{\"prompt_ids\": [1], \"completion_ids\": [2]}\n{\"prompt_ids\": [1], \"completion_ids\": [900]}\n");
  EXPECT_EQ(outside.code, 3);
  EXPECT_EQ(outside.err, "error: <stdin>:2: token id 900 is outside the vocabulary\n");
  EXPECT_EQ(Model("score random --plugin fakes --dtype fp8", "").code, 3);
}

TEST_F(CliTest, GenerateDependsOnTheSeedAndTheLineAlone) {
  const std::string line = "{\"prompt\": \"x\"}\n";
  const Result first = Model("generate random --plugin fakes --seed 3 --max-new-tokens 5", line + line + line);
  ASSERT_EQ(first.code, 0) << first.err;
  const Result split =
      Model("generate random --plugin fakes --seed 3 --max-new-tokens 5 --batch 1", line + line + line);
  EXPECT_EQ(first.out, split.out);
  const std::vector<json> lines = Lines(first.out);
  EXPECT_EQ(lines[0]["ids"].size(), 5U);
  EXPECT_EQ(lines[0]["finish_reason"], "length");
  EXPECT_NE(lines[0]["ids"], lines[1]["ids"]);
  EXPECT_NE(Model("generate random --plugin fakes --seed 4 --max-new-tokens 5", line).out,
            Model("generate random --plugin fakes --seed 3 --max-new-tokens 5", line).out);
}

TEST_F(CliTest, GenerateNamesTheLineThatIsAtFault) {
  const Result outside = Model("generate '" KGRPO_SOURCE_DIR "/tests/golden/policy/qwen2' --max-new-tokens 2",
                               "{\"prompt_ids\": [1, 2]}\n{\"prompt_ids\": [1, 900]}\n");
  EXPECT_EQ(outside.code, 3);
  EXPECT_THAT(outside.err, HasSubstr("<stdin>:2: request 0: token 1 is 900, outside the model's vocabulary of 300"));
  const Result folder = Run("eval kernel . --problem .", "");
  EXPECT_EQ(folder.code, 3);
  EXPECT_EQ(folder.err, "error: .: the folder has no kernel (.cu, .ptx, .py with @triton.jit)\n");
}

// ---- update -------------------------------------------------------------------------------------

// Every column that a run writes must be one that `update` reads or knows to leave.
TEST_F(CliTest, UpdateTakesARunsOwnRollouts) {
  ASSERT_EQ(Run("p.yaml --set output_dir=recorded").code, 0);
  ASSERT_EQ(Run("export recorded -o rollouts.jsonl").code, 0);
  const size_t samples = Lines(Read(directory_.path() / "rollouts.jsonl")).size();
  ASSERT_GT(samples, 0U);
  const Result result = Model("update p.yaml --rollouts rollouts.jsonl --out updated");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(json::parse(Read(directory_.path() / "updated" / "metrics.json"))["samples"], samples);
}

// The samples of a run, by any of its files, make the run's model again: also where a coder's failures ended
// trajectories early.
TEST_F(CliTest, UpdateRepeatsARunFromItsFiles) {
  Write("real.yaml",
        "seed: 6\n"
        "policy: {plugin: policy_qwen, options: {model: " KGRPO_SOURCE_DIR
        "/tests/golden/policy/qwen2, chat_template: chatml}}\n"
        "coder: {plugin: fakes, options: {techniques: [a, e, i, o], fails_every: 5}}\n"
        "evaluator: {plugin: fakes}\nreward: {plugin: fakes}\n"
        "trainer: {plugin: trainer_grpo, options: {learning_rate: 1.0e-3, advantage_group: problem, shuffle: true}}\n"
        "problems: {train: ['problems/*']}\n"
        "loop: {max_steps: 3, batch_size: 8, rounds: 3, sampling: {max_new_tokens: 6}}\n"
        "prompt: {user: '{{problem.name}}'}\n");
  const auto run = Run("real.yaml --set output_dir=run");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto exported = Run("export run");
  ASSERT_EQ(exported.code, 0) << exported.err;
  Write("export.jsonl", exported.out);
  ASSERT_EQ(Run("export run --format datasets -o dataset").code, 0);
  std::string without_rounds;
  size_t early = 0;
  std::set<std::pair<int, int>> trajectories;
  for (json& line : Lines(exported.out)) {
    EXPECT_EQ(line.at("rounds"), 3);
    if (trajectories.emplace(line["step"], line["trajectory"]).second) early += 3;
    --early;
    line.erase("rounds");
    without_rounds += line.dump() + "\n";
  }
  EXPECT_GE(early, 5U) << "rounds that are missing";
  Write("without_rounds.jsonl", without_rounds);

  const auto weights = [&](const std::string& folder) {
    return Read(directory_.path() / folder / "model.safetensors");
  };
  for (const std::string file : {"export.jsonl", "dataset/train.jsonl", "without_rounds.jsonl"}) {
    std::filesystem::remove_all(directory_.path() / "updated");
    const auto result = Model("update real.yaml --rollouts " + file + " --out updated");
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(json::parse(Read(directory_.path() / "updated/metrics.json"))["updates"], 3);
    EXPECT_EQ(weights("updated") == weights("run/final"), file != "without_rounds.jsonl") << file;
  }

  // Imitation takes the same files.
  std::string first;
  for (const std::string file : {"export.jsonl", "dataset/train.jsonl"}) {
    const auto imitated =
        Run("real.yaml --set output_dir=imitated --overwrite --set 'trainer={plugin: trainer_sft, "
            "steps: 2, options: {learning_rate: 1.0e-3, pairs: " +
            file + "}}'");
    ASSERT_EQ(imitated.code, 0) << imitated.err;
    if (first.empty()) first = weights("imitated/final");
    EXPECT_EQ(weights("imitated/final"), first) << file;
  }
  EXPECT_NE(first, weights("run/final"));
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
  const Result result = Model("update two.yaml --rollouts r.jsonl --out updated");
  ASSERT_EQ(result.code, 0) << result.err;
  const json metrics = json::parse(Read(directory_.path() / "updated" / "metrics.json"));
  ASSERT_EQ(metrics["steps"].size(), 1U);
  for (const char* key : {"loss", "kl", "grad_norm"}) EXPECT_TRUE(metrics["steps"][0][key].is_number()) << key;
  EXPECT_EQ(metrics["samples"], 2);
  const std::vector<json> scores =
      Lines(Model("score updated --plugin fakes", "{\"prompt_ids\": [1], \"completion_ids\": [71, 66]}\n").out);
  EXPECT_GT(scores[0]["logprobs"][0], scores[0]["logprobs"][1]);
  EXPECT_THAT(Model("update two.yaml --rollouts r.jsonl --out updated").err,
              HasSubstr("updated is not empty: choose another --out"));
}

TEST_F(CliTest, ARunStandsForItsTrainedModel) {
  ASSERT_EQ(Run("-q run p.yaml --set output_dir=run --set checkpoint.every=1").code, 0);
  const auto rows = [&](const std::string& policy) {
    const auto played = Run("eval policy p.yaml --episodes 2 --json --policy " + policy);
    return played.code == 0 ? json::parse(played.out)["episode_rows"].dump() : played.err;
  };
  EXPECT_EQ(rows("run"), rows("run/final"));
  std::filesystem::remove_all(directory_.path() / "run/final");
  EXPECT_EQ(rows("run"), rows("run/checkpoints/step-3/policy"));
  EXPECT_THAT(Run("eval policy p.yaml --episodes 2 --policy run").err, HasSubstr("its policy after step 3 is taken"));
  std::filesystem::remove_all(directory_.path() / "run/checkpoints");
  EXPECT_THAT(rows("run"), HasSubstr("it contains no model yet"));
}

}  // namespace
}  // namespace kgrpo
