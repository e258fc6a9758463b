// The command check: its findings on a file, the file's parts and the folder that a run would use.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Result;

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
  EXPECT_THAT(resolved.out, HasSubstr("seed: 8  # --set\n"));
  EXPECT_THAT(resolved.out, HasSubstr("  plugin: fakes  # p.yaml:3:17\n"));
  EXPECT_THAT(resolved.out, HasSubstr("  rounds: 2  # p.yaml:"));
  EXPECT_THAT(resolved.out, HasSubstr("  workers: 0  # default\n"));
  Write("again.yaml", resolved.out);
  const auto plain = [](const Result& checked) { return nlohmann::json::parse(checked.out)["resolved"]; };
  EXPECT_EQ(plain(Run("check again.yaml --resolve --json")), plain(Run("check p.yaml --resolve --set seed=8 --json")));
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

// A mistake that only the plugin can find, at its place in the file; and a metric that the evaluator does not declare.
TEST_F(CliTest, CheckSaysWhereAnOptionStands) {
  Write("mine.yaml", "extends: p.yaml\nreward:\n  plugin: reward_expression\n  options: {score: \"1 + speedupp\"}\n");
  EXPECT_THAT(Run("check mine.yaml").err,
              HasSubstr("mine.yaml:4:21: reward (reward_expression): options.score: at character 5 of "));
  EXPECT_THAT(Run("check mine.yaml --set 'reward.options.score=+'").err,
              HasSubstr("--set: reward (reward_expression): options.score: at "));
  Write("metric.yaml",
        "extends: p.yaml\nreward:\n  plugin: reward_expression\n  options:\n    score: metric(\"commentz\")\n");
  for (const char* command : {"check metric.yaml", "run metric.yaml"}) {
    EXPECT_THAT(Run(command).err,
                HasSubstr("metric.yaml:5:12: reward (reward_expression): options.score: at character 8 of "))
        << command;
  }
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

// Mistakes that only several keys together make, or keys and problems, are the file's too.
TEST_F(CliTest, CheckFindsWhatKeysTogetherForbid) {
  const std::string shuffled = " --set controls.shuffle_prompts=true";
  const std::string one = "controls.shuffle_prompts needs two problems in a step: problems.train has 1, and";
  for (const std::string command : {"check p.yaml --file-only", "check p.yaml"}) {
    const Result alone = Run(command + shuffled);
    EXPECT_EQ(alone.code, 3) << command;
    EXPECT_THAT(alone.err, HasSubstr(one)) << command;
    EXPECT_THAT(alone.err, HasSubstr("p.yaml: 1 mistake\n")) << command;
    const std::string two = command + shuffled + " --set 'problems.heldout=[]'";
    EXPECT_EQ(Run(two).code, 0) << command;
    const Result together = Run(two + " --set loop.trajectories_per_problem=4");
    EXPECT_EQ(together.code, 3) << command;
    EXPECT_THAT(together.err, HasSubstr("and loop.batch_size / loop.trajectories_per_problem is 1\n")) << command;
  }
  EXPECT_THAT(Run("run p.yaml" + shuffled).err, HasSubstr(one)) << "the run's words are the same";
  EXPECT_FALSE(fs::exists(directory_.path() / "runs/p/run.sqlite"));
}

// A reference that is not correct: of a training problem, and of a held-out one that this run would not use.
TEST_F(CliTest, CheckMeasuresTheReferences) {
  Write("problems/one/reference.cu", "void launch() {} // wrong\n");
  Write("problems/two/reference.cu", "void launch() {} // wrong, too\n");
  const Result result = Run("check p.yaml");
  EXPECT_EQ(result.code, 3);
  for (const std::string name : {"one", "two"}) {
    EXPECT_THAT(result.err, HasSubstr("the reference kernel of problem " + name + " (problems/" + name +
                                      ") is not correct (wrong): it has too few comments\n"));
  }
  const Result leaving = Run("check p.yaml --set problems.skip_unusable=true");
  EXPECT_EQ(leaving.code, 3);
  EXPECT_THAT(leaving.err,
              HasSubstr("none of the 1 problems can be used; of the first: the reference kernel of problem one"));
  EXPECT_THAT(leaving.err, HasSubstr("note: left out (problems.skip_unusable): the reference kernel of problem two"));
  Write("problems/one/reference.cu", "void launch() {}\n");
  const Result one_left = Run("check p.yaml --set problems.skip_unusable=true");
  EXPECT_EQ(one_left.code, 0);
  EXPECT_THAT(one_left.out, HasSubstr("fine. 1 training and 0 held-out problems"));
}

// The fakes' trainer refuses a certain learning rate for single trajectories.
TEST_F(CliTest, CheckAndRunHaveTrainersCheckTheirPlans) {
  Write("low.yaml", "extends: p.yaml\ntrainer:\n  plugin: fakes\n  options: {learning_rate: 1.0e-9}\n");
  for (const std::string command : {"check low.yaml", "run low.yaml"}) {
    const Result result = Run(command);
    EXPECT_EQ(result.code, 3) << command;
    EXPECT_THAT(result.err, HasSubstr("low.yaml:4:28: trainer[0] (fakes): options.learning_rate: too low for 4 "
                                      "trajectories of 2 rounds over 1 problems\n"))
        << command;
    EXPECT_EQ(Run(command + " --set loop.trajectories_per_problem=2").code, 0) << command;
  }
  Write("ab.yaml",
        "extends: p.yaml\nvariants:\n  a: {loop.max_steps: 2}\n  b: {trainer.options.learning_rate: 1.0e-9}\n");
  EXPECT_THAT(Run("check ab.yaml").err, HasSubstr("trainer[0] (fakes): options.learning_rate: too low"));
}

TEST_F(CliTest, CheckFindsThatNothingIsMeasured) {
  const Result none = Run("check p.yaml --file-only --set 'problems.heldout=[]' --set evaluation.every=2");
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("evaluation.every: held-out problems are to be measured, and problems.heldout names "
                                  "none: name some, or set this to 0\n"));
  const Result late = Run("check p.yaml --file-only --set evaluation.every=4");
  EXPECT_EQ(late.code, 0);
  EXPECT_THAT(late.err, HasSubstr("note: evaluation.every has no effect: it is 4, and the run has 3 steps\n"));
  EXPECT_EQ(Run("check p.yaml --file-only --set evaluation.every=3").err, "");
}

// The rounds of a step, a warm start or a measurement are kept in memory, so the products of their sizes are bounded.
TEST_F(CliTest, CheckFindsMoreRoundsThanAreCollectedAtOnce) {
  const auto found = [&](const std::string& settings) { return Run("check p.yaml --file-only" + settings).err; };
  EXPECT_EQ(found(" --set loop.batch_size=500000"), "");
  EXPECT_THAT(found(" --set loop.batch_size=500001"),
              HasSubstr("loop.batch_size x loop.rounds is 500001 x 2: a step takes at most 1000000 rounds\n"));
  EXPECT_THAT(found(" --set trainer.suggestions=uniform --set trainer.episodes=500001"),
              HasSubstr("trainer[0].episodes x loop.rounds is 500001 x 2: "));
  const std::string measured = " --set problems.train='[problems/one]' --set problems.heldout='[problems/two]'";
  EXPECT_EQ(found(measured + " --set evaluation.episodes=500001"), "") << "no measurement is asked for";
  EXPECT_THAT(found(measured + " --set evaluation.episodes=500001 --set evaluation.every=1"),
              HasSubstr("evaluation.episodes x held-out problems x loop.rounds is 500001 x 1 x 2: "));
}

TEST_F(CliTest, CountsOfTheCommandLineHaveAnUpperEnd) {
  const Result eval = Run("eval policy p.yaml --policy uniform --episodes 100000000000");
  EXPECT_EQ(eval.code, 2);
  EXPECT_THAT(eval.err, HasSubstr("--episodes: Value 100000000000 not in range 1 to 1000000"));
  const Result optimize = Run("optimize problems/one --policy uniform --pipeline p.yaml --evaluations 100000000000");
  EXPECT_EQ(optimize.code, 2);
  EXPECT_THAT(optimize.err, HasSubstr("--evaluations: Value 100000000000 not in range 1 to 1000000"));
  const Result rounds = Run("eval policy p.yaml --policy uniform --episodes 500000 --repeat 2");
  EXPECT_EQ(rounds.code, 3);
  EXPECT_THAT(rounds.err, HasSubstr("episodes x held-out problems x loop.rounds x repeats is 500000 x 1 x 2 x 2: "));
}

// Permissions let root write there, and nothing can be made all the same.
TEST_F(CliTest, CheckFindsThatTheFolderCannotBeMade) {
  for (const std::string& folder : {std::string("/proc/x"), std::string(300, 'x')}) {
    const Result checked = Run("check p.yaml --set output_dir=" + folder);
    EXPECT_EQ(checked.code, 1) << checked.err;
    EXPECT_THAT(checked.out, HasSubstr("but it would not run: output_dir " + folder + " cannot be written ("));
    EXPECT_THAT(checked.out, HasSubstr("name another folder (--set output_dir=...)\n"));
    const Result run = Run("run p.yaml --set output_dir=" + folder);
    EXPECT_EQ(run.code, 3) << run.err;
    EXPECT_THAT(run.err, HasSubstr("output_dir " + folder + " cannot be written ("));
  }
}

// The fixtures' policy has a token a byte and a context of 4096.
TEST_F(CliTest, CheckFindsThatThePolicysContextHasNoRoom) {
  Write("code.yaml", "extends: p.yaml\nprompt: {user: '{{code_b}}'}\n");
  const auto kernel_of = [&](const std::string& problem, size_t bytes) {
    Write("problems/" + problem + "/reference.cu", "void launch() {} //" + std::string(bytes - 19, 'x'));
  };
  kernel_of("one", 4000);
  EXPECT_EQ(Run("check code.yaml").err, "");

  // The chat's own words are 18 bytes: 4 are left, and max_new_tokens is 6.
  kernel_of("one", 4074);
  const std::string little =
      "the first prompt of problem one has at least 4092 tokens, and the policy's context holds 4096, which leaves 4 "
      "for "
      "completions, not loop.sampling.max_new_tokens (6)";
  const Result tight = Run("check code.yaml");
  EXPECT_EQ(tight.code, 0) << tight.err;
  EXPECT_THAT(tight.err, HasSubstr("note: " + little));
  EXPECT_EQ(Run("check code.yaml --set loop.sampling.max_new_tokens=4").err, "");
  const Result warned = Run("code.yaml --set loop.max_steps=1 --set output_dir=tight");
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_THAT(warned.out + warned.err, HasSubstr(little)) << "the run says so too, and goes on";

  kernel_of("one", 4078);
  const std::string none =
      "the first prompt of problem one has at least 4096 tokens, and the policy's context holds 4096, so there is no "
      "room for a completion: shorten prompt.user, leave the problem out, or take a model with a longer context\n";
  const Result full = Run("check code.yaml");
  EXPECT_EQ(full.code, 3);
  EXPECT_EQ(full.err, none + "code.yaml: 1 mistake\n");
  const Result refused = Run("code.yaml --set output_dir=full");
  EXPECT_EQ(refused.code, 3);
  EXPECT_EQ(refused.err, "error: " + none);
  EXPECT_FALSE(fs::exists(directory_.path() / "full/run.sqlite"));

  // A held-out problem counts where the run measures on it.
  kernel_of("one", 100);
  kernel_of("two", 5000);
  EXPECT_EQ(Run("check code.yaml").code, 0);
  const Result heldout = Run("check code.yaml --set evaluation.every=1");
  EXPECT_EQ(heldout.code, 3);
  EXPECT_THAT(heldout.err, HasSubstr("the first prompt of problem two has at least 5018 tokens"));
}

// The shape of an imported suite: the problems that the configurations name, of which the import refused 020_leakyrelu
// and has no reference kernel for 021_sigmoid. Returns how many.
size_t MakeSuite(const fs::path& folder) {
  const fs::path ours = fs::path(KGRPO_SOURCE_DIR) / "problems" / "swiglu";
  const std::string yaml = test::Read(ours / "problem.yaml");
  std::set<std::string> names;
  for (const char* config : {"kernelbench.yaml", "kernelbench_offline.yaml"}) {
    std::istringstream lines(test::Read(fs::path(KGRPO_SOURCE_DIR) / "configs" / config));
    for (std::string line; std::getline(lines, line);) {
      if (const std::string item = "    - kernelbench/"; line.starts_with(item)) names.insert(line.substr(item.size()));
    }
  }
  for (const std::string& name : names) {
    const fs::path problem = folder / name;
    fs::create_directories(problem);
    fs::copy(ours, problem, fs::copy_options::recursive);
    std::string text = "name: " + name + yaml.substr(yaml.find('\n', yaml.find("name: ")));
    if (name == "kb_l1_021_sigmoid") text += "reference: none\n";
    if (name == "kb_l1_020_leakyrelu") {
      text = "name: " + name +
             "\ntitle: Refused\nfamily: refused\nsplit: train\ntraits: []\ndescription: Nothing.\n"
             "refused: forward draws random numbers\n";
      fs::remove(problem / "oracle.cc");
    }
    test::Write(problem / "problem.yaml", text);
  }
  return names.size();
}

TEST_F(CliTest, TheKernelBenchConfigurationsPassOnAnImportedSuite) {
  const size_t count = MakeSuite(directory_.path() / "kernelbench");
  const std::string configs = KGRPO_SOURCE_DIR "/configs/";
  const std::string offline_file =
      "check " + configs + "kernelbench_offline.yaml --set policy.options.model=" + KGRPO_BINARY_DIR "/models/tiny";
  const Result offline = Run(offline_file);
  EXPECT_EQ(offline.code, 0) << offline.err;
  EXPECT_THAT(offline.err,
              HasSubstr("note: left out (problems.skip_unusable): kernelbench/kb_l1_020_leakyrelu: the problem "
                        "was refused when it was imported: forward draws random numbers\n"));
  const Result strict = Run(offline_file + " --set problems.skip_unusable=false");
  EXPECT_EQ(strict.code, 3);
  EXPECT_THAT(strict.err, HasSubstr("kernelbench/kb_l1_020_leakyrelu: the problem was refused"));
  // The other one needs weights, a key and a GPU: stand-ins for these parts.
  Write("stand_ins.yaml",
        "extends: " + configs +
            "kernelbench.yaml\nevaluator: {plugin: evaluator_sim}\ncoder: {plugin: fakes}\n"
            "policy: {plugin: fakes, options: {model: random}}\nprompt: {user: '{{problem.name}}'}\n");
  const Result original = Run("check stand_ins.yaml");
  EXPECT_EQ(original.code, 0) << original.err;
  constexpr size_t kLeftOut = 2;  // refused when they were imported
  EXPECT_THAT(original.out,
              HasSubstr(std::to_string(count - 13 - kLeftOut) + " training and 13 held-out problems, 100 steps"));
}

// Their prompts, for the problems with the longest sources, with a tiny model whose context is made as long as those of
// the models that they name.
TEST_F(CliTest, TheWriterConfigurationsPass) {
  const std::string source = KGRPO_SOURCE_DIR "/";
  const fs::path model = directory_.path() / "long";
  fs::copy(KGRPO_BINARY_DIR "/models/tiny", model);
  json config = json::parse(test::Read(model / "config.json"));
  config["max_position_embeddings"] = 131072;
  fs::remove(model / "config.json");
  test::Write(model / "config.json", config.dump());
  std::vector<std::pair<uintmax_t, std::string>> longest;
  for (const auto& problem : fs::directory_iterator(source + "problems"))
    if (fs::exists(problem.path() / "problem.yaml"))
      longest.emplace_back(fs::file_size(problem.path() / "reference.cu"), problem.path().string());
  std::sort(longest.rbegin(), longest.rend());
  std::string train;
  for (size_t i = 0; i < 4; ++i) train += longest.at(i).second + ", ";
  for (const std::string name : {"writer", "writer_looo"}) {
    Write("stand_ins.yaml", "extends: " + source + "configs/" + name + ".yaml\nevaluator: {plugin: evaluator_sim}\n" +
                                "policy: {options: {model: " + model.string() +
                                ", init: random, adapter: null, dtype: float32, device: cpu}}\n" +
                                "problems: {train: [" + train + "], heldout: [" + source + "problems/swiglu]}\n");
    const Result result = Run("check stand_ins.yaml");
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("context"))) << "prompt.max_tokens and max_new_tokens fit in it";
  }
  const std::string tiny = KGRPO_BINARY_DIR "/models/tiny_writer/";
  const Result quickstart =
      Run("check " + source + "configs/quickstart_writer.yaml --set policy.options.model=" + tiny +
          "model --set coder.options.examples=" + tiny + "examples --set problems.train=[" + tiny + "problems/*]");
  EXPECT_EQ(quickstart.code, 0) << quickstart.err;
  EXPECT_THAT(quickstart.out, HasSubstr("8 training and 0 held-out problems, 300 steps in 2 stages"));
}

// The whole process group gets the signal, so compilers end too: their failures are no faults of the file.
TEST_F(CliTest, AnInterruptedCheckIsNoFaultOfTheFile) {
  Write("problems/one/reference.cu", "void launch() {} // interrupts\n");
  Write("problems/two/reference.cu", "#error\n");
  const Result result =
      Run("check p.yaml --set 'problems.train=[problems/one, problems/two]' --set problems.heldout=[]");
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_THAT(result.err, HasSubstr("error: stopped by the user\n"));
  EXPECT_THAT(result.err, Not(HasSubstr("does not compile")));
  EXPECT_EQ(result.out, "");
}

TEST_F(CliTest, AFileThatIsNotThere) {
  const Result result = Run("nothing.yaml");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err, "nothing.yaml: cannot read nothing.yaml: No such file or directory\n");
}

}  // namespace
}  // namespace kgrpo
