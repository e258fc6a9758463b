// Meaning of a correct pipeline file: defaults, `extends`, `--set`, stages, problems, the resolved file.
#include "config/load.h"

#include "base/directories.h"
#include "config/pipeline_keys.h"
#include "fake_schemas.h"
#include "test.h"

namespace kgrpo {
namespace {

// Not of an Error without a place in the file.
std::string ConfigMessageOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// Works in an empty folder with four problems.
class LoadTest : public testing::Test {
 protected:
  LoadTest() {
    fs::current_path(directory_.path());
    for (const char* name : {"a", "b", "c", "d"}) fs::create_directories(fs::path("problems") / name);
    std::ofstream("problems/README.md") << "not a problem\n";
    Write("base.yaml",
          "policy: {plugin: fake_policy, options: {model: m, device: cuda}}\n"
          "coder: {plugin: fake_coder}\n"
          "evaluator: {plugin: fake_evaluator}\n"
          "reward: {plugin: fake_reward}\n"
          "trainer: {plugin: fake_trainer, options: {learning_rate: 0.5, epochs: 7}}\n"
          "problems: {train: [\"problems/*\"]}\n"
          "loop: {rounds: 3, sampling: {top_k: 5}}\n");
  }
  ~LoadTest() override { fs::current_path(KGRPO_SOURCE_DIR); }

  void Write(const std::string& file, const std::string& text) {
    if (fs::path(file).has_parent_path()) fs::create_directories(fs::path(file).parent_path());
    std::ofstream(file) << text;
  }

  PipelineConfig Load(const std::string& file, const std::vector<std::string>& settings = {}) {
    LoadRequest request;
    request.file = file;
    request.settings = settings;
    return LoadPipeline(request, test::FakeSchema);
  }

  // Message of a resumed run's settings.
  std::string OnResume(const std::string& file, const std::vector<std::string>& settings) {
    LoadRequest request;
    request.file = file;
    request.settings = settings;
    request.resumes = true;
    return ConfigMessageOf([&] { LoadPipeline(request, test::FakeSchema); });
  }

  std::string MessageOf(const std::string& file, const std::vector<std::string>& settings = {}) {
    return ConfigMessageOf([&] { Load(file, settings); });
  }

  TemporaryDirectory directory_;
};

TEST_F(LoadTest, NamesThatAFileLeavesOutComeFromItsName) {
  Write("bare.yaml", "extends: base.yaml\n");
  const PipelineConfig config = Load("bare.yaml", {"loop={}", "checkpoint={}"});
  EXPECT_EQ(config.name, "bare");
  EXPECT_EQ(config.output_dir, "runs/bare");
  ASSERT_EQ(config.stages.size(), 1U);
  EXPECT_EQ(config.stages[0].steps, LoopConfig().max_steps);
}

TEST_F(LoadTest, FillsPluginDefaultsAtEveryDepth) {
  const PipelineConfig config = Load("base.yaml", {"coder.options.retry.attempts=5"});
  EXPECT_EQ(config.coder.options,
            nlohmann::json::parse(R"({"techniques": ["tile"], "retry": {"attempts": 5, "delay": 0.5}})"));
  EXPECT_EQ(config.reward.options, nlohmann::json::parse(R"({"correct": 0.3})"));
}

TEST_F(LoadTest, ReadsEveryKey) {
  Write(
      "all.yaml",
      "name: all-keys_1.0\nseed: 18446744073709551615\n"
      "policy: {plugin: fake_policy, options: {model: m}}\ncoder: {plugin: fake_coder}\n"
      "evaluator: {plugin: fake_evaluator}\nreward: {plugin: "
      "fake_reward}\n"
      "trainer:\n"
      "  - {plugin: fake_trainer, steps: 5, suggestions: uniform, episodes: 9, demonstrations_per_step: 11}\n"
      "  - {plugin: fake_trainer, options: {loss: dapo}, demonstrations: {from: [runs/a]}}\n"
      "problems: {train: [problems/a], heldout: [problems/b, problems/c/], skip_unusable: true}\n"
      "loop: {max_steps: 21, batch_size: 12, rounds: 6, trajectories_per_problem: 4, generation_batch: 0, workers: 3,\n"
      "       sampling: {max_new_tokens: 17, temperature: 0.7, top_k: 8, top_p: 0.9, min_p: 0.05}, on_coder_failure: "
      "punish, advance: correct, hang_seconds: 90, replay: {from: [runs/b], unrecorded: refuse}}\n"
      "prompt: {system: be brief, user: 'do {{code_b}}', enable_thinking: false, max_tokens: "
      "9000}\n"
      "checkpoint: {every: 2, keep_last: 3, keep_best: 0}\nevaluation: {every: 4, episodes: 5}\n"
      "controls: {shuffle_prompts: true, shuffle_rewards: true}\noutput_dir: out/x\n"
      "observers: [{plugin: observer_metrics, options: {rounds: true}}]\n");
  const PipelineConfig config = Load("all.yaml");
  EXPECT_EQ(config.name, "all-keys_1.0");
  EXPECT_EQ(config.seed, 18446744073709551615U);
  ASSERT_EQ(config.stages.size(), 2U);
  EXPECT_EQ(config.stages[0].steps, 5U);
  EXPECT_EQ(config.stages[0].suggestions, SuggestionSource::kUniform);
  EXPECT_EQ(config.stages[0].episodes, 9U);
  EXPECT_EQ(config.stages[0].demonstrations_per_step, 11U);
  EXPECT_EQ(config.stages[1].steps, 21U);
  EXPECT_EQ(config.stages[1].suggestions, SuggestionSource::kPolicy);
  EXPECT_EQ(config.stages[1].trainer.options["loss"], "dapo");
  EXPECT_THAT(config.stages[1].demonstrations.from, ElementsAre("runs/a"));
  EXPECT_THAT(config.loop.replay.from, ElementsAre("runs/b"));
  EXPECT_TRUE(config.loop.replay.only);
  EXPECT_THAT(config.train_problems, ElementsAre("problems/a"));
  EXPECT_THAT(config.heldout_problems, ElementsAre("problems/b", "problems/c"));
  EXPECT_TRUE(config.skip_unusable);
  EXPECT_EQ(config.loop.max_steps, 21U);
  EXPECT_EQ(config.loop.batch_size, 12U);
  EXPECT_EQ(config.loop.rounds, 6U);
  EXPECT_EQ(config.loop.trajectories_per_problem, 4U);
  EXPECT_EQ(config.loop.generation_batch, 0U);
  EXPECT_EQ(config.loop.workers, 3U);
  EXPECT_EQ(config.loop.hang_seconds, 90U);
  EXPECT_EQ(config.loop.on_coder_failure, CoderFailure::kPunish);
  EXPECT_EQ(config.loop.advance, Advance::kCorrect);
  EXPECT_EQ(config.loop.sampling.max_new_tokens, 17U);
  EXPECT_EQ(config.loop.sampling.temperature, 0.7);
  EXPECT_EQ(config.loop.sampling.top_k, 8U);
  EXPECT_EQ(config.loop.sampling.top_p, 0.9);
  EXPECT_EQ(config.loop.sampling.min_p, 0.05);
  EXPECT_EQ(config.prompt.system, "be brief");
  EXPECT_EQ(config.prompt.user, "do {{code_b}}");
  EXPECT_EQ(config.prompt.enable_thinking, false);
  EXPECT_EQ(config.prompt.max_tokens, 9000U);
  EXPECT_EQ(config.checkpoint.every, 2U);
  EXPECT_EQ(config.checkpoint.keep_last, 3U);
  EXPECT_EQ(config.checkpoint.keep_best, 0U);
  EXPECT_EQ(config.evaluation.every, 4U);
  EXPECT_EQ(config.evaluation.episodes, 5U);
  EXPECT_TRUE(config.controls.shuffle_prompts);
  EXPECT_TRUE(config.controls.shuffle_rewards);
  ASSERT_EQ(config.observers.size(), 1U);
  EXPECT_EQ(config.observers[0].plugin, "observer_metrics");
  EXPECT_EQ(config.observers[0].options["rounds"], true);
  EXPECT_EQ(config.output_dir, "out/x");
}

// Run from another folder than the project's, all lists are empty for one reason.
TEST_F(LoadTest, NamesTheProjectThatHoldsTheProblems) {
  Write("configs/mine.yaml",
        "extends: ../base.yaml\nproblems: {train: [\"problems/*\"], heldout: [problems/a, problems/zebra]}\n");
  fs::create_directory("elsewhere");
  fs::current_path("elsewhere");
  const std::string here = fs::current_path().string(), project = fs::current_path().parent_path().string();
  EXPECT_EQ(MessageOf("../configs/mine.yaml"),
            "../configs/mine.yaml:2:20: problems.train[0]: no folder matches \"problems/*\" (looked from " + here +
                "); paths in this file are relative to the working folder, and " + project +
                " holds them: run the command from there\n"
                "../configs/mine.yaml:2:57: problems.heldout[1]: there is no folder \"problems/zebra\" (looked from " +
                here + ")");
}

// ---- extends ------------------------------------------------------------------------------------

TEST_F(LoadTest, ExtendsMergesMappingsAndReplacesLists) {
  Write("sub/middle.yaml", "extends: ../base.yaml\nloop: {rounds: 5}\nproblems: {heldout: [problems/d]}\n");
  Write("top.yaml", "extends: sub/middle.yaml\nloop: {batch_size: 8}\nproblems: {train: [problems/b]}\n");
  const PipelineConfig config = Load("top.yaml");
  EXPECT_EQ(config.loop.rounds, 5U);          // from the middle
  EXPECT_EQ(config.loop.batch_size, 8U);      // from the top
  EXPECT_EQ(config.loop.sampling.top_k, 5U);  // from the base
  EXPECT_THAT(config.train_problems, ElementsAre("problems/b"));
  EXPECT_THAT(config.heldout_problems, ElementsAre("problems/d"));
}

TEST_F(LoadTest, AnotherPluginDoesNotInheritOptions) {
  Write(
      "top.yaml",
      "extends: base.yaml\npolicy: {plugin: fake_policy_two, options: {model: n}}\ntrainer: {options: {epochs: 3}}\n");
  const PipelineConfig config = Load("top.yaml");
  EXPECT_EQ(config.policy.options, nlohmann::json::parse(R"({"model": "n"})"));  // `device` was the other plugin's
  EXPECT_EQ(config.stages[0].trainer.options["epochs"], 3);
  EXPECT_EQ(config.stages[0].trainer.options["learning_rate"], 0.5);  // the same plugin keeps what the base said
}

TEST_F(LoadTest, MistakesPointIntoTheFileThatMadeThem) {
  Write("sub/middle.yaml", "extends: ../base.yaml\nloop:\n  rouds: 5\n");
  Write("top.yaml", "extends: sub/middle.yaml\nseed: -1\n");
  EXPECT_EQ(MessageOf("top.yaml"),
            "top.yaml:2:7: seed: expected an integer >= 0, found -1\n"
            "sub/middle.yaml:3:3: loop.rouds: unknown key; did you mean \"rounds\"?");
}

// ---- --set
// -----------------------------------------------------------------------------------------------------------

TEST_F(LoadTest, SetReadsValuesAsYaml) {
  const PipelineConfig config =
      Load("base.yaml", {"seed=7", "loop.sampling={temperature: 0.5}", "problems.heldout=[problems/a]"});
  EXPECT_EQ(config.seed, 7U);
  EXPECT_EQ(config.loop.sampling.temperature, 0.5);
  EXPECT_EQ(config.loop.sampling.top_k, 0U);  // the whole mapping was replaced
  EXPECT_THAT(config.heldout_problems, ElementsAre("problems/a"));
}

TEST_F(LoadTest, LaterSettingsWin) { EXPECT_EQ(Load("base.yaml", {"seed=7", "seed=8"}).seed, 8U); }

TEST_F(LoadTest, SetSplitsAtTheFirstEqualsSign) {
  EXPECT_EQ(Load("base.yaml", {"prompt.system='x=y'"}).prompt.system, "x=y");
}

TEST_F(LoadTest, SetReachesIntoStages) {
  Write("stages.yaml", "extends: base.yaml\ntrainer: [{plugin: fake_trainer}, {plugin: fake_trainer}]\n");
  const PipelineConfig config = Load("stages.yaml", {"trainer.0.steps=3", "trainer[1].options.loss=cispo"});
  EXPECT_EQ(config.stages[0].steps, 3U);
  EXPECT_EQ(config.stages[1].trainer.options["loss"], "cispo");
}

TEST_F(LoadTest, SetRefusesMaxStepsWhereEachStageHasItsOwn) {
  Write("own.yaml",
        "extends: base.yaml\nloop: {max_steps: 9}\ntrainer: [{plugin: fake_trainer, steps: 3}, {plugin: fake_trainer, "
        "steps: 4}]\n");
  EXPECT_EQ(Load("own.yaml").stages[1].steps, 4U) << "a file may hold it for those that extend it";
  EXPECT_EQ(MessageOf("own.yaml", {"loop.max_steps=2"}),
            "--set: loop.max_steps: it has no effect: each stage has its own `steps`; for fewer or more write --set "
            "trainer[0].steps=2 --set trainer[1].steps=2");
  Write("one.yaml", "extends: base.yaml\ntrainer: [{plugin: fake_trainer, steps: 3}, {plugin: fake_trainer}]\n");
  EXPECT_EQ(Load("one.yaml", {"loop.max_steps=2"}).stages[1].steps, 2U);
}

TEST_F(LoadTest, OptionsOfAnEvaluationThatNeverComesAreRefused) {
  Write("quiet.yaml",
        "extends: base.yaml\nproblems: {train: [problems/a], heldout: [problems/b]}\nevaluation:\n  at_start: true\n"
        "  greedy: true\n  patience: 2\n");
  const std::string message = MessageOf("quiet.yaml");
  EXPECT_THAT(message, HasSubstr("quiet.yaml:4:13: evaluation.at_start: it has no effect: evaluation.every is 0, so "
                                 "held-out problems are not evaluated; set evaluation.every, or leave this out\n"));
  EXPECT_THAT(message, HasSubstr("quiet.yaml:5:11: evaluation.greedy: "));
  EXPECT_THAT(message, HasSubstr("quiet.yaml:6:13: evaluation.patience: "));
  EXPECT_EQ(MessageOf("quiet.yaml", {"evaluation.every=2"}), "accepted");
  EXPECT_EQ(MessageOf("quiet.yaml", {"evaluation.at_start=false", "evaluation.greedy=false", "evaluation.patience=0"}),
            "accepted");
}

TEST_F(LoadTest, SettingAPluginDropsTheFormerOptionsWhateverTheOrder) {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"policy.plugin=fake_policy_two", "policy.options.model=n"},
        std::vector<std::string>{"policy.options.model=n", "policy.plugin=fake_policy_two"}}) {
    EXPECT_EQ(Load("base.yaml", settings).policy.options, nlohmann::json::parse(R"({"model": "n"})"));
  }
}

TEST_F(LoadTest, MistakesInSettingsAreReportedWithTheRest) {
  EXPECT_EQ(MessageOf("base.yaml",
                      {"loop.rouds=1", "seed=[", "novalue", "a..b=1", "trainer.0.x=1", "loop.rounds.x=1", "name=x/y"}),
            "--set: seed: not valid YAML: this bracket is never closed\n"
            "    [\n"
            "    ^\n"
            "--set: expected KEY.KEY=VALUE, found \"novalue\"\n"
            "--set: a..b: the path has an empty part\n"
            "--set: loop.rounds.x: \"rounds\" is 3: it has no keys\n"
            "--set: trainer.0: unknown key; known are plugin, options, steps, suggestions, episodes, "
            "demonstrations_per_step, demonstrations\n"
            "--set: loop.rouds: unknown key; did you mean \"rounds\"?\n"
            "--set: name: expected text that matches ^[A-Za-z0-9][A-Za-z0-9._-]*$, found \"x/y\"");
}

TEST_F(LoadTest, TextWithAColonInSetIsShownWithItsPlace) {
  EXPECT_EQ(
      MessageOf("base.yaml", {"reward.options={score: a ? b : c}"}),
      "--set: reward.options: not valid YAML: a ',' is missing here, or a key or text that contains '[', '{', ': ' or "
      "'? ' needs quotes\n"
      "    {score: a ? b : c}\n"
      "              ^");
}

// A key that is a path changes that value alone, wherever the others come from.
TEST_F(LoadTest, AKeyThatIsAPathChangesOneValueOfWhatIsExtended) {
  Write("stages.yaml", "extends: base.yaml\ntrainer: [{plugin: fake_trainer, steps: 5}, {plugin: fake_trainer}]\n");
  Write("shorter.yaml", "extends: stages.yaml\ntrainer[0].steps: 2\nloop.sampling: {top_k: 7}\n");
  const PipelineConfig config = Load("shorter.yaml");
  EXPECT_EQ(config.stages[0].steps, 2U);
  EXPECT_EQ(config.stages[0].trainer.plugin, "fake_trainer");
  EXPECT_EQ(config.loop.sampling.top_k, 7U);
  EXPECT_EQ(config.loop.rounds, Load("base.yaml").loop.rounds);
  EXPECT_THAT(config.origins_yaml, HasSubstr("steps: 2  # shorter.yaml:2:19"));
  EXPECT_EQ(Load("shorter.yaml", {"trainer.0.steps=9"}).stages[0].steps, 9U);
  Write("wrong.yaml", "extends: stages.yaml\ntrainer[2].steps: 2\n");
  EXPECT_EQ(MessageOf("wrong.yaml"),
            "wrong.yaml:2:1: trainer[2].steps: \"2\" is not an item of the list, which has 2 (counted from 0)");
  Write("alone.yaml", "trainer[0].steps: 2\n");
  EXPECT_THAT(MessageOf("alone.yaml"),
              HasSubstr("alone.yaml:1:1: trainer[0].steps: a key that is a path changes a value of the file that this "
                        "one `extends`, and it extends none: write the keys within each other"));
}

TEST_F(LoadTest, UnknownKeysOfTheFileAreMeasuredAgainstAllThatItMayHold) {
  Write("keys.yaml", "extends: base.yaml\nvariant: {}\nqqqqqq: 1\n");
  const std::string message = MessageOf("keys.yaml");
  EXPECT_THAT(message, HasSubstr("keys.yaml:2:1: variant: unknown key; did you mean \"variants\"?"));
  EXPECT_THAT(message, HasSubstr("keys.yaml:3:1: qqqqqq: unknown key; known are name, "));
  EXPECT_THAT(message, HasSubstr(", extends, variants, sweep, seeds"));
}

TEST_F(LoadTest, SetCannotInventItemsOfAList) {
  Write("stages.yaml", "extends: base.yaml\ntrainer: [{plugin: fake_trainer}]\n");
  EXPECT_EQ(MessageOf("stages.yaml", {"trainer.1.steps=3"}),
            "--set: trainer[1].steps: \"1\" is not an item of the list, which has 1 (counted from 0)");
}

// ---- observers ----------------------------------------------------------------------------------

TEST_F(LoadTest, ARunHasTwoObserversUnlessTheFileSaysOtherwise) {
  const PipelineConfig config = Load("base.yaml");
  ASSERT_EQ(config.observers.size(), 2U);
  EXPECT_EQ(config.observers[0].plugin, "observer_tensorboard");
  EXPECT_EQ(config.observers[1].plugin, "observer_metrics");
  EXPECT_EQ(config.observers[1].options, nlohmann::json::parse(R"({"rounds": false})"));
  EXPECT_THAT(config.resolved_yaml, HasSubstr("observers:\n"
                                              "  - plugin: observer_tensorboard\n"
                                              "    options: {}\n"
                                              "  - plugin: observer_metrics\n"
                                              "    options:\n"
                                              "      rounds: false\n"));
  Write("none.yaml", "extends: base.yaml\nobservers: []\n");
  EXPECT_THAT(Load("none.yaml").observers, IsEmpty());
  EXPECT_THAT(Load("none.yaml").resolved_yaml, HasSubstr("observers: []\n"));
  Write("resolved.yaml", Load("none.yaml").resolved_yaml);
  EXPECT_THAT(Load("resolved.yaml").observers, IsEmpty());
}

TEST_F(LoadTest, SetChangesObserversOfTheDefaultToo) {
  EXPECT_EQ(Load("base.yaml", {"observers.1.options.rounds=true"}).observers[1].options["rounds"], true);
  EXPECT_THAT(Load("base.yaml", {"observers=[]"}).observers, IsEmpty());
  EXPECT_EQ(Load("base.yaml", {"observers[0].plugin=observer_metrics"}).observers[0].options["rounds"], false);
  EXPECT_EQ(MessageOf("base.yaml", {"observers.1.options.round=true"}),
            "--set: observers[1].options.round: unknown key; did you mean \"rounds\"?");
  EXPECT_EQ(MessageOf("base.yaml", {"observers.2.plugin=observer_metrics"}),
            "--set: observers[2].plugin: \"2\" is not an item of the list, which has 2 (counted from 0)");
}

TEST_F(LoadTest, ObserversOfTheExtendingFileReplaceTheBases) {
  Write("middle.yaml", "extends: base.yaml\nobservers: [{plugin: observer_metrics, options: {rounds: true}}]\n");
  Write("top.yaml", "extends: middle.yaml\nseed: 2\n");
  EXPECT_EQ(Load("top.yaml").observers.at(0).options["rounds"], true);
  Write("top.yaml", "extends: middle.yaml\nobservers: [{plugin: observer_metrics}]\n");
  EXPECT_EQ(Load("top.yaml").observers.at(0).options["rounds"], false);
}

// ---- problems -----------------------------------------------------------------------------------

TEST_F(LoadTest, PatternsMatchFoldersAloneSortedWithoutRepetition) {
  EXPECT_THAT(Load("base.yaml", {"problems.train=[problems/c, 'problems/*', ./problems/a/]"}).train_problems,
              ElementsAre("problems/a", "problems/b", "problems/c", "problems/d"));
}

TEST_F(LoadTest, AFolderNamedInOneListIsNotMeantByTheOthersPatterns) {
  const PipelineConfig config = Load("base.yaml", {"problems.heldout=[problems/b, problems/d]"});
  EXPECT_THAT(config.train_problems, ElementsAre("problems/a", "problems/c"));
  EXPECT_THAT(config.heldout_problems, ElementsAre("problems/b", "problems/d"));
}

TEST_F(LoadTest, NamesOfProblemsMustDiffer) {
  fs::create_directories("more/a");
  EXPECT_THAT(MessageOf("base.yaml", {"problems.train=[problems/a, more/a]"}),
              HasSubstr("names of problems must differ"));
}

// ---- parts --------------------------------------------------------------------------------------

TEST_F(LoadTest, PartsThatAreNotUsedMayBeAbsentOrUnknown) {
  Write("two.yaml",
        "policy: {plugin: fake_policy, options: {model: m}}\ntrainer: {plugin: fake_trainer}\ncoder: {plugin: nobody, "
        "options: {x: 1}}\n");
  LoadRequest request;
  request.file = "two.yaml";
  request.roles = {Role::kPolicy, Role::kTrainer};
  request.ignore_problems = true;
  const PipelineConfig config = LoadPipeline(request, test::FakeSchema);
  EXPECT_EQ(config.policy.plugin, "fake_policy");
  EXPECT_EQ(config.evaluator.plugin, "");
}

// ---- the resolved file --------------------------------------------------------------------------

TEST_F(LoadTest, ResolvedFileReadsBackToItself) {
  Write("top.yaml",
        "extends: base.yaml\nprompt:\n  user: |\n    first line\n      indented {{code_b}}\n\n    last: \"quoted\" # "
        "not a comment\n"
        "  system: \"tab\\there, trailing space \"\ntrainer: [{plugin: fake_trainer, options: {clip: [0.1, 0.25]}}, "
        "{plugin: fake_trainer}]\n"
        "seed: 0x10\n");
  const PipelineConfig once = Load("top.yaml", {"loop.sampling.temperature=1e-3"});
  Write("resolved.yaml", once.resolved_yaml);
  const PipelineConfig twice = Load("resolved.yaml");
  EXPECT_EQ(twice.resolved_yaml, once.resolved_yaml);
  EXPECT_EQ(twice.prompt.user, "first line\n  indented {{code_b}}\n\nlast: \"quoted\" # not a comment\n");
  EXPECT_EQ(twice.prompt.system, "tab\there, trailing space ");
  EXPECT_EQ(twice.seed, 16U);
  EXPECT_EQ(twice.loop.sampling.temperature, 1e-3);
  EXPECT_EQ(twice.name, "top");
  EXPECT_THAT(twice.resolved_yaml, HasSubstr("train: [problems/a, problems/b, problems/c, problems/d]"));
  EXPECT_THAT(twice.resolved_yaml, testing::Not(HasSubstr("extends")));
}

// Keys of earlier versions: a file that sets one is refused, and a run's own file with the value in force is not.
TEST_F(LoadTest, RemovedKeysAreRefusedWithTheReason) {
  Write("p.yaml",
        "extends: base.yaml\nloop: {fresh_inputs: false}\nprompt:\n  best_rounds: 3\n"
        "trainer: {plugin: fake_trainer, demonstrations: {min_gain: 1.05}}\ncoder: {options: {patience: 2}}\n");
  EXPECT_THAT(MessageOf("p.yaml"),
              AllOf(HasSubstr("p.yaml:2:8: loop.fresh_inputs: was removed: all kernels of a problem are"),
                    HasSubstr("p.yaml:4:3: prompt.best_rounds: was removed: the list"),
                    HasSubstr("p.yaml:5:50: trainer.demonstrations.min_gain: was removed: suggestions are"),
                    HasSubstr("p.yaml:6:19: coder.options.patience: was removed: it waits once")));
  EXPECT_THAT(MessageOf("base.yaml", {"loop.fresh_inputs=true"}), HasSubstr("loop.fresh_inputs: was removed: "));
  const PipelineConfig now = Load("base.yaml");
  const auto earlier = [&](const std::string& patience, const std::string& fresh_inputs) {
    std::string text = now.resolved_yaml;
    const auto after = [&](const std::string& line, const std::string& more) {
      ASSERT_NE(text.find(line), std::string::npos) << text;
      text.insert(text.find(line) + line.size(), more);
    };
    after("loop:\n", "  fresh_inputs: " + fresh_inputs + "\n");
    after("plugin: fake_coder\n  options:\n", "    patience: " + patience + "\n");
    return text;
  };
  Write("run/resolved.yaml", earlier("1", "false"));
  const PipelineConfig again = Load("run/resolved.yaml");
  EXPECT_EQ(again.resolved_yaml, now.resolved_yaml);
  EXPECT_TRUE(ChangesBetween(earlier("1", "false"), now.resolved_yaml, again.removed).value().empty());
  const auto changes = ChangesBetween(earlier("1", "true"), now.resolved_yaml, again.removed).value();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].path, "loop");
  Write("run/resolved.yaml", earlier("2", "true"));
  EXPECT_THAT(MessageOf("run/resolved.yaml"),
              AllOf(HasSubstr("loop.fresh_inputs: was removed"), HasSubstr("coder.options.patience: was removed")));
}

// docs/pipeline.md's cells for a key: what it expects, its default, its meaning.
std::string CellsOf(const Schema& key) {
  const auto number = [](const Schema& value) {
    std::string text = value.dump();
    for (size_t at = text.size(); text.size() >= 5 && value.is_number_integer() && at > 3;) text.insert(at -= 3, ",");
    return text;
  };
  const auto word = [](const Schema& value) { return "`" + value.get<std::string>() + "`"; };
  std::string expects, standard = key.contains("default") ? key["default"].dump() : "";
  if (key.contains("enum")) {
    for (const Schema& value : key["enum"]) expects += (expects.empty() ? "" : " or ") + word(value);
    standard = word(key["default"]);
  } else if (key.value("type", Schema()) == "boolean") {
    expects = "true or false";
  } else if (key.contains("exclusiveMinimum")) {
    expects = "> " + number(key["exclusiveMinimum"]) + " and <= " + number(key["maximum"]);
  } else if (key.contains("minimum")) {
    expects = key.contains("maximum") ? number(key["minimum"]) + " to " + number(key["maximum"])
                                      : "an integer >= " + number(key["minimum"]);
  }
  const std::string meaning = " | " + key["description"].get<std::string>() + " |";
  return expects.empty() || standard.empty() ? meaning : " | " + expects + " | " + standard + meaning;
}

// A row of pipeline_keys.cc and a row of the page say the same.
TEST_F(LoadTest, TheDocumentationHasARowForEachKey) {
  std::ifstream stream(fs::path(KGRPO_SOURCE_DIR) / "docs" / "pipeline.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  const std::function<void(const Schema&)> visit = [&](const Schema& schema) {
    if (!schema.contains("properties")) return;
    for (const auto& [key, property] : schema["properties"].items()) {
      const std::string name = "| `" + key + "`", cells = CellsOf(property);
      EXPECT_TRUE(std::ranges::any_of(
          lines, [&](const std::string& line) { return line.starts_with(name) && line.ends_with(cells); }))
          << "docs/pipeline.md needs the row\n"
          << name << cells;
      visit(property);
    }
  };
  visit(PipelineSchema());
  visit(PipelineSchema()["definitions"]["stage"]);
}

// Overruled values are not kept in resolved.yaml, but the text of --set is, in run.json.
TEST_F(LoadTest, AKeyOfAServiceIsRefusedWhereverItWasWritten) {
  const std::string key = "sk-test-0123456789abcdefghij";
  for (const std::string& setting :
       {"name=" + key, "prompt.system='Use " + key + "'", "coder.options={" + key + ": 1}", key + "=1"}) {
    const std::string message = MessageOf("base.yaml", {setting, "name=a"});
    EXPECT_THAT(message, HasSubstr("stand in variables of the environment")) << setting;
    EXPECT_THAT(message, HasSubstr("revoke a key")) << setting;
    EXPECT_EQ(message.find(key), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "one mistake: " << message;
  }
  Write("p.yaml", "extends: base.yaml\nname: lm-studio-and-more\nprompt: {system: 'ask-test-0123456789abcdefghij'}\n");
  setenv("KGRPO_TEST_API_KEY", "lm-studio-and-more", 1);  // any word: no reason to refuse what holds it
  EXPECT_EQ(MessageOf("p.yaml"), "accepted");
  setenv("KGRPO_TEST_API_KEY", "ask-test-0123456789abcdefghij", 1);
  EXPECT_THAT(MessageOf("p.yaml"), HasSubstr("stand in variables of the environment"));
  unsetenv("KGRPO_TEST_API_KEY");
}

// `--set` of `resume`: the keys of the host and the options that plugins mark.
TEST_F(LoadTest, AResumedRunMayChangeOnlyWhatLeavesItsRecordTrue) {
  Write("stages.yaml", "extends: base.yaml\ntrainer: [{plugin: fake_trainer, steps: 3}, {plugin: fake_trainer}]\n");
  const struct {
    const char* file;
    const char* setting;
    const char* reason;  // "": allowed
  } kCases[] = {
      {"base.yaml", "loop.max_steps=200", ""},
      {"base.yaml", "trainer.steps=200", ""},
      {"base.yaml", "trainer.options.learning_rate=0.1", ""},
      {"base.yaml", "policy.options.device=cpu", ""},
      {"base.yaml", "reward.options.correct=1", ""},
      {"base.yaml", "reward.plugin=fake_reward", ""},
      {"base.yaml", "coder.options.retry.attempts=5", ""},
      {"base.yaml", "evaluation.episodes=5", ""},
      {"base.yaml", "evaluation={every: 0, episodes: 2}", ""},
      {"base.yaml", "checkpoint.keep_best=3", ""},
      {"base.yaml", "loop.generation_batch=4", ""},
      {"base.yaml", "loop.workers=4", ""},
      {"base.yaml", "observers=[]", ""},
      {"base.yaml", "observers.1.options.rounds=true", ""},
      {"stages.yaml", "loop.max_steps=200", ""},
      {"stages.yaml", "trainer[1].steps=200", ""},
      {"stages.yaml", "trainer.1.options.learning_rate=0.1", ""},
      {"stages.yaml", "trainer[0].options.learning_rate=0.1", ""},
      {"stages.yaml", "trainer[0].steps=4", "only the last stage can get other steps"},
      {"stages.yaml", "trainer[0].episodes=0", "the recorded steps depend on it"},
      {"base.yaml", "trainer.options.epochs=3", "its plugin does not mark it as an option that may change"},
      {"base.yaml", "trainer.plugin=fake_trainer", "the recorded steps depend on it"},
      {"base.yaml", "policy.options.model=n", "its plugin does not mark it as an option that may change"},
      {"base.yaml", "policy.plugin=fake_policy_two", "the recorded steps depend on it"},
      {"base.yaml", "evaluator.plugin=fake_evaluator", "the recorded steps depend on it"},
      {"base.yaml", "coder.plugin=fake_coder", "the recorded steps depend on it"},
      {"base.yaml", "seed=1", "every random draw follows from it"},
      {"base.yaml", "problems.train=[problems/a]", "a step draws its problems by their places in these lists"},
      {"base.yaml", "prompt.user=hello", "the recorded samples answer it"},
      {"base.yaml", "loop.rounds=2", "the recorded steps depend on it"},
      {"base.yaml", "loop.batch_size=32", "the recorded steps depend on it"},
      {"base.yaml", "loop.trajectories_per_problem=2", "the recorded steps depend on it"},
      {"base.yaml", "loop.sampling.temperature=0.5", "the recorded steps depend on it"},
      {"base.yaml", "loop.advance=correct", "the recorded steps depend on it"},
      {"base.yaml", "controls.shuffle_rewards=true", "the recorded steps depend on it"},
      {"base.yaml", "name=b", "the run is recorded under it"},
      {"base.yaml", "output_dir=elsewhere", "a run's folder is moved by renaming it"},
  };
  for (const auto& one : kCases) {
    const std::string message = OnResume(one.file, {one.setting});
    if (*one.reason == '\0')
      EXPECT_EQ(message, "accepted") << one.setting;
    else
      EXPECT_THAT(message, HasSubstr(std::string("a resumed run keeps it: ") + one.reason)) << one.setting;
  }
  EXPECT_EQ(OnResume("base.yaml", {"trainer.options.epochs=3"}),
            "--set: trainer.options.epochs: a resumed run keeps it: its plugin does not mark it as an option that may "
            "change; what may change there: learning_rate");
  EXPECT_EQ(OnResume("stages.yaml", {"seed=1", "loop.workers=2"}),
            "--set: seed: a resumed run keeps it: every random draw follows from it; what may change: coder.options, "
            "reward, loop.generation_batch, loop.workers, loop.hang_seconds, evaluation, checkpoint, observers, "
            "loop.max_steps");
  Write("shared.yaml", "extends: base.yaml\ntrainer: [{plugin: fake_trainer}, {plugin: fake_trainer}]\n");
  EXPECT_THAT(OnResume("shared.yaml", {"loop.max_steps=200"}),
              HasSubstr("it sets the steps of an earlier stage, too; what may change: "));
  EXPECT_THAT(OnResume("shared.yaml", {"loop.max_steps=200"}), HasSubstr("trainer[1].steps"));
}

}  // namespace
}  // namespace kgrpo
