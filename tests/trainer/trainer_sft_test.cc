// trainer_sft: against PyTorch (tests/golden/trainer/make_sft.py), reading of pairs, resuming, bad input.
#include "trainer_sft/sft_trainer.h"

#include "bigram_policy.h"
#include "fake_host.h"
#include "options_json.h"
#include "recorded_sink.h"
#include "test.h"
#include "trainer_sft/pairs.h"
#include "trainer_sft/sft_options.h"

namespace kgrpo::sft {
namespace {

using kgrpo::testing::BigramPolicy;
using kgrpo::testing::FakeHost;
using kgrpo::testing::MemoryStream;
using kgrpo::testing::OptionsJson;
using kgrpo::testing::RecordedSink;

std::string ErrorOf(const std::function<void()>& body, kgrpo_error_code code = KGRPO_ERROR_INVALID) {
  return test::MessageOf(body, code);
}

// A file that is gone with the test.
class PairsFile {
 public:
  explicit PairsFile(const std::string& text)
      : path_(std::filesystem::path(::testing::TempDir()) /
              (std::string("pairs_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl")) {
    std::ofstream(path_) << text;
  }
  ~PairsFile() { std::filesystem::remove(path_); }
  PairsFile(const PairsFile&) = delete;
  PairsFile& operator=(const PairsFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

constexpr kgrpo_trainer_plan PlanOf(uint64_t steps) {
  return {sizeof(kgrpo_trainer_plan), steps, 1.0, 16, 0, 0, 0, 0, 0, 0};
}

struct Bench {
  explicit Bench(const json& options, uint64_t steps = 7, size_t vocabulary = 40)
      : policy(vocabulary), trainer(host.get(), ReadSftOptions(OptionsJson(SftOptionsSchema(), options)), nullptr) {
    policy.FillRandomly(1);
    trainer.Begin(&BigramPolicy::Api(), policy.get(), PlanOf(steps));
  }
  void Update() { trainer.Update(nullptr, 0, sink.get()); }
  FakeHost host;
  BigramPolicy policy;
  SftTrainer trainer;
  RecordedSink sink;
};

TEST(TrainerSft, EqualsPyTorch) {
  const json golden = json::parse(std::ifstream(KGRPO_BINARY_DIR "/test_data/trainer/sft.json"));
  const size_t batch_size = golden.at("batch_size"), steps = golden.at("steps");
  for (uint32_t max_tokens : {0u, 9u}) {
    Bench bench({{"batch_size", batch_size},
                 {"learning_rate", golden.at("learning_rate")},
                 {"warmup_steps", golden.at("warmup_steps")},
                 {"weight_decay", 0.05},
                 {"max_grad_norm", 0.5},
                 {"max_tokens_per_forward", max_tokens}},
                steps, 13);
    for (size_t p = 0; p < 2; ++p) bench.policy.SetValues(p, golden.at("before")[p].get<std::vector<double>>());
    const json& list = golden.at("samples");
    std::vector<std::vector<int32_t>> prompts, completions;
    for (const json& s : list) {
      prompts.push_back(s.at("prompt_ids"));
      completions.push_back(s.at("completion_ids"));
    }
    for (size_t step = 0; step < steps; ++step) {
      std::vector<kgrpo_sample> batch;
      for (size_t i = 0; i < batch_size; ++i) {
        const size_t at = (step * batch_size + i) % list.size();
        kgrpo_sample& sample = batch.emplace_back();
        sample = {};
        sample.struct_size = sizeof(kgrpo_sample);
        sample.prompt_ids = prompts[at].data();
        sample.prompt_size = prompts[at].size();
        sample.completion_ids = completions[at].data();
        sample.completion_size = completions[at].size();
      }
      bench.trainer.Update(kgrpo::testing::PointersTo(batch).data(), batch.size(), bench.sink.get());
    }
    ASSERT_EQ(bench.sink.rows.size(), steps);
    for (size_t i = 0; i < steps; ++i) {
      for (const auto& [name, value] : golden.at("rows")[i].items()) {
        EXPECT_NEAR(bench.sink.rows[i].at(name), value.get<double>(), 1e-5 * value.get<double>())
            << name << " of step " << i;
      }
    }
    double squares = 0, error = 0;
    for (size_t p = 0; p < 2; ++p) {
      const auto before = golden.at("before")[p].get<std::vector<double>>();
      const auto after = golden.at("after")[p].get<std::vector<double>>();
      const auto values = bench.policy.Values(p);
      for (size_t i = 0; i < values.size(); ++i) {
        squares += std::pow(after[i] - before[i], 2);
        error += std::pow(values[i] - after[i], 2);
      }
    }
    EXPECT_LE(std::sqrt(error / squares), 1e-4);
  }
}

TEST(TrainerSft, LearnsThePairsOfAFile) {
  const PairsFile file(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bcd"}]})"
      "\n\n"
      R"({"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "bcd"}]})"
      "\n");
  Bench bench({{"pairs", file.path()}, {"batch_size", 3}, {"learning_rate", 0.1}}, 60);
  bench.Update();
  const double before = bench.sink.step["loss"];
  for (int i = 1; i < 60; ++i) bench.Update();
  EXPECT_GT(before, 1.0);
  EXPECT_LT(bench.sink.step["loss"], 0.3);
  EXPECT_EQ(bench.sink.step["optimizer_steps"], 1);
}

TEST(Pairs, CompletionsEndWithTheEndTokenAndPromptsWithTheOpening) {
  const PairsFile file(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bc"}]})"
                       "\n"
                       R"({"prompt": "a", "completion": "bc"})"
                       "\n");
  BigramPolicy policy(40);
  const auto pairs = ReadPairs(BigramPolicy::Api(), policy.get(), file.path());
  auto id = [](char c) { return 3 + c % 37; };
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_THAT(pairs[0].prompt_ids, ElementsAre(1, id('a'), 2, 1));
  EXPECT_THAT(pairs[0].completion_ids, ElementsAre(id('b'), id('c'), 2));
  EXPECT_THAT(pairs[1].prompt_ids, ElementsAre(id('a')));
  EXPECT_THAT(pairs[1].completion_ids, ElementsAre(id('b'), id('c'), 2));
}

// As `kgrpo-host export` and a run's rollouts write prompt and completion, among other columns.
TEST(Pairs, PromptAndCompletionMayBeMessages) {
  const PairsFile file(
      R"({"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "bc"}]})"
      "\n"
      R"({"step": 1, "prompt": [{"role": "system", "content": "x"}, {"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "bc"}], "prompt_ids": [9], "completion_ids": [9], "reward": -1.0})"
      "\n"
      R"({"stage": "s", "prompt": [{"role": "system", "content": "x"}, {"role": "user", "content": "a"}], "completion": "bc", "truncated": true})"
      "\n");
  BigramPolicy policy(40);
  const auto pairs = ReadPairs(BigramPolicy::Api(), policy.get(), file.path());
  ASSERT_EQ(pairs.size(), 3u);
  for (const Pair& pair : pairs) {
    EXPECT_EQ(pair.prompt_ids, pairs[0].prompt_ids);
    EXPECT_EQ(pair.completion_ids, pairs[0].completion_ids);
  }
}

TEST(Pairs, BadLinesAreNamed) {
  BigramPolicy policy(40);
  const std::string good = R"({"prompt": "a", "completion": "b"})"
                           "\n\n";
  auto refused = [&](const std::string& line) {
    const PairsFile file(good + line + "\n");
    const std::string text = ErrorOf([&] { ReadPairs(BigramPolicy::Api(), policy.get(), file.path()); });
    EXPECT_EQ(text.rfind(file.path() + ":3: ", 0), 0u) << text;
    return text.substr(std::min(text.size(), file.path().size() + 4));
  };
  EXPECT_EQ(refused(R"({"prompt": "a",)"), "not JSON, at byte 16 of the line");
  EXPECT_EQ(refused("[1]"), "not a JSON object");
  EXPECT_EQ(refused("{}"), "neither \"messages\" nor \"prompt\" and \"completion\"");
  EXPECT_EQ(refused(R"({"prompt": "a"})"), "\"completion\" is missing");
  EXPECT_EQ(refused(R"({"prompt": "a", "completion": 3})"), "\"completion\" is not a text");
  EXPECT_EQ(refused(R"({"prompt": "", "completion": "b"})"), "the prompt is empty");
  EXPECT_EQ(refused(R"({"messages": "a"})"), "\"messages\" is not a list");
  EXPECT_EQ(refused(R"({"messages": ["a"]})"), "a message is not an object with \"role\" and \"content\"");
  EXPECT_EQ(refused(R"({"messages": [{"role": "assistant", "content": "b"}]})"),
            "\"messages\" needs at least a prompt and the assistant's answer");
  EXPECT_EQ(refused(R"({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]})"),
            "the last message is the user's; it must be the assistant's, which is what is learned");
  EXPECT_EQ(refused(R"({"messages": [{"role": "robot", "content": "a"}, {"role": "assistant", "content": "b"}]})"),
            "role \"robot\" is none of system, user, assistant, tool");
  EXPECT_EQ(refused(R"({"messages": [{"role": "user"}, {"role": "assistant", "content": "b"}]})"),
            "\"content\" is missing");
  const std::string chat = R"({"prompt": [{"role": "user", "content": "a"}])",
                    b = R"({"role": "assistant", "content": "b"})";
  EXPECT_EQ(refused(chat + "}"), "\"completion\" is missing");
  EXPECT_EQ(refused(chat + R"(, "completion": 3})"), "\"completion\" is not a text");
  EXPECT_EQ(refused(chat + R"(, "completion": [)" + b + ", " + b + "]}"),
            "\"prompt\" needs at least one message, and \"completion\" exactly one");
  EXPECT_EQ(refused(R"({"prompt": [], "completion": [)" + b + "]}"),
            "\"prompt\" needs at least one message, and \"completion\" exactly one");
  EXPECT_EQ(refused(chat + R"(, "completion": [{"role": "user", "content": "b"}]})"),
            "the last message is the user's; it must be the assistant's, which is what is learned");
  EXPECT_EQ(refused(R"({"prompt": "a", "completion": ")" + std::string(80, 'b') + "\"}"),
            "prompt and completion have 82 tokens, the policy's context holds 64");
}

// What a message has beside a role and a text reaches the template, or the line is refused.
TEST(Pairs, FurtherKeysReachTheTemplate) {
  const PairsFile file(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "reasoning_content": "t", "content": "b"}], "tools": [{"name": "f"}], "chat_template_kwargs": {"enable_thinking": true}})"
      "\n");
  BigramPolicy plain(40);
  EXPECT_EQ(
      ErrorOf([&] { ReadPairs(BigramPolicy::Api(), plain.get(), file.path()); }),
      file.path() + ":1: the policy takes a chat's roles and texts alone: no tools, and no other keys of messages");
  BigramPolicy policy(40);
  policy.ReadChatArguments();
  ASSERT_EQ(ReadPairs(BigramPolicy::Api(), policy.get(), file.path()).size(), 1u);
  const std::string arguments = R"({"enable_thinking":true,"tools":[{"name":"f"}]})";
  EXPECT_THAT(policy.chat_arguments, ElementsAre(arguments, arguments + R"({"reasoning_content":"t"})"));
  const PairsFile texts(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"
                        "\n");
  policy.chat_arguments.clear();
  ReadPairs(BigramPolicy::Api(), policy.get(), texts.path());
  EXPECT_THAT(policy.chat_arguments, ElementsAre("", ""));
}

// Of several end tokens a demonstration gets the one that the template writes.
TEST(Pairs, AnAnswerEndsAsTheTemplateWritesIt) {
  const std::vector<int32_t> ends = {39, 2};
  const PairsFile file(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"
                       "\n");
  BigramPolicy policy(40);
  policy.SetEnds(ends);
  for (const int32_t opening : {1, 30}) {  // with 30 the prompt is not how the answered chat begins
    policy.generation_prompt = opening;
    EXPECT_THAT(ReadPairs(BigramPolicy::Api(), policy.get(), file.path())[0].completion_ids,
                ElementsAre(3 + 'b' % 37, 2));
  }
  const PairsFile rich(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": []}]})"
      "\n");
  policy.ReadChatArguments();
  EXPECT_EQ(ErrorOf([&] { ReadPairs(BigramPolicy::Api(), policy.get(), rich.path()); }),
            rich.path() +
                ":1: the chat template does not write the answer as a continuation of the prompt, so the answer "
                "can only have a \"role\" and a text as \"content\"");
}

TEST(Pairs, FilesWithoutPairsAreRefused) {
  BigramPolicy policy(40);
  const PairsFile empty("\n \n");
  EXPECT_EQ(ErrorOf([&] { ReadPairs(BigramPolicy::Api(), policy.get(), empty.path()); }),
            "the training pairs " + empty.path() + " hold no pair");
  EXPECT_EQ(
      ErrorOf([&] { ReadPairs(BigramPolicy::Api(), policy.get(), "/nowhere/pairs.jsonl"); }, KGRPO_ERROR_NOT_FOUND),
      "cannot open the training pairs /nowhere/pairs.jsonl: No such file or directory");
  // `check` finds it before a run begins.
  FakeHost host;
  const SftTrainer trainer(host.get(), ReadSftOptions(OptionsJson(SftOptionsSchema(), {{"pairs", "/nowhere/p.jsonl"}})),
                           nullptr);
  EXPECT_EQ(ErrorOf([&] { trainer.CheckPlan(PlanOf(7)); }, KGRPO_ERROR_INVALID),
            "options.pairs: cannot open the training pairs /nowhere/p.jsonl: No such file or directory");
  for (const std::string path : {std::string(KGRPO_SOURCE_DIR), std::string("/dev/null")}) {
    const SftTrainer none(host.get(), ReadSftOptions(OptionsJson(SftOptionsSchema(), {{"pairs", path}})), nullptr);
    EXPECT_EQ(ErrorOf([&] { none.CheckPlan(PlanOf(7)); }, KGRPO_ERROR_INVALID),
              "options.pairs: the training pairs " + path + " hold no pair");
  }
}

std::string ManyPairs(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text +=
        json{{"prompt", std::string(1, static_cast<char>('a' + i))}, {"completion", std::to_string(i)}}.dump() + "\n";
  }
  return text;
}

TEST(TrainerSft, EveryPairIsSeenEquallyOftenWhateverTheBatch) {
  // A learning rate so small that nothing moves: the mean loss over whole passes is that of the whole file.
  const PairsFile file(ManyPairs(12));
  Bench whole({{"pairs", file.path()}, {"batch_size", 12}, {"learning_rate", 1e-30}});
  Bench parts({{"pairs", file.path()}, {"batch_size", 4}, {"learning_rate", 1e-30}}, 7);
  whole.Update();
  for (int pass = 0; pass < 2; ++pass) {
    double loss = 0, tokens = 0;
    for (int i = 0; i < 3; ++i) {
      const double before = parts.sink.step["num_tokens"];
      parts.Update();
      const double completion_tokens = parts.sink.step["num_tokens"] - before - 4;  // prompts have one token
      loss += parts.sink.step["loss"] * completion_tokens;
      tokens += completion_tokens;
    }
    EXPECT_NEAR(loss / tokens, whole.sink.step["loss"], 1e-6);
  }
}

TEST(TrainerSft, ResumedRunsGoOnBitForBit) {
  const PairsFile file(ManyPairs(10));
  const json options = {{"pairs", file.path()}, {"batch_size", 4}, {"learning_rate", 0.05}, {"warmup_steps", 2}};
  Bench unbroken(options), first(options), second(options);
  for (int i = 0; i < 7; ++i) unbroken.Update();
  for (int i = 0; i < 4; ++i) first.Update();
  MemoryStream stream;
  first.trainer.SaveState(stream.writer());
  for (size_t p = 0; p < 2; ++p) second.policy.SetValues(p, first.policy.Values(p));
  second.trainer.LoadState(stream.reader());
  for (int i = 4; i < 7; ++i) second.Update();
  for (size_t p = 0; p < 2; ++p) EXPECT_EQ(second.policy.Values(p), unbroken.policy.Values(p));
  EXPECT_EQ(second.sink.step, unbroken.sink.step);
}

TEST(TrainerSft, NonFiniteLossesAreSkippedAndThenStopTheRun) {
  const PairsFile file(ManyPairs(4));
  Bench bench({{"pairs", file.path()}, {"batch_size", 4}, {"max_non_finite_steps", 2}});
  bench.policy.poison_forwards = {0};
  bench.Update();
  EXPECT_EQ(bench.sink.rows[0]["skipped"], 1);
  bench.Update();
  EXPECT_EQ(bench.sink.rows[1]["skipped"], 0);
  bench.policy.always_poison = true;
  bench.Update();
  EXPECT_THAT(ErrorOf([&] { bench.Update(); }, KGRPO_ERROR_NOT_FINITE), HasSubstr("2 optimiser steps in a row"));
  EXPECT_EQ(bench.policy.live_contexts, 0);
}

TEST(TrainerSft, DemonstrationsAreNeededWithoutAFile) {
  Bench bench(json::object());
  EXPECT_EQ(ErrorOf([&] { bench.Update(); }),
            "trainer_sft: an update needs demonstrations, or the option pairs names a file");
}

TEST(SftOptions, EveryOptionSaysWhatItIs) {
  const json schema = json::parse(SftOptionsSchema());
  EXPECT_FALSE(schema.at("additionalProperties").get<bool>());
  for (const auto& [name, property] : schema.at("properties").items()) {
    for (const char* key : {"title", "default", "description"})
      EXPECT_TRUE(property.contains(key)) << name << ": " << key;
  }
}

}  // namespace
}  // namespace kgrpo::sft
