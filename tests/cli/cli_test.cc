// The commands end to end: usage, run and resume, eval, plugins and problems.
#include "commands.h"
#include "host_process.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::Read;
using test::Result;
using testing::AnyOf;

// ---- usage --------------------------------------------------------------------------------------

TEST_F(CliTest, EveryCommandHasHelpWithAnExample) {
  for (const char* command : {"run", "resume", "check", "compare", "coder-check", "eval", "eval kernel", "eval policy",
                              "eval suite", "plugins", "plugins list", "plugins describe", "plugins validate",
                              "problems", "problems list", "problems check", "problems new", "merge"}) {
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
  EXPECT_EQ(Run("eval kernel k.cu").code, 2);
  EXPECT_EQ(Run("--plugin-path . p.yaml --quiet").code, 0) << "the folder is one word, the pipeline the next";
  const Result mistyped = Run("chekc p.yaml");
  EXPECT_EQ(mistyped.code, 2);
  EXPECT_THAT(mistyped.err, HasSubstr("did you mean \"check\"?"));
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
  EXPECT_EQ(identity["plugins"].size(), 7U);
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
  EXPECT_EQ(check.code, 1) << check.err;
  EXPECT_THAT(check.out, HasSubstr("3 steps in 1 stage; but it would not run: " + refusal + "\n"));
  EXPECT_THAT(check.out, Not(HasSubstr("would run in")));
  const json shown = json::parse(Run("check p.yaml --set output_dir=out_run --json").out);
  EXPECT_EQ(shown["output_dir"]["refusal"], refusal);
  EXPECT_FALSE(shown["ok"].get<bool>());
  const Result other = Run("check p.yaml --set output_dir=problems");
  EXPECT_THAT(other.out, HasSubstr("but it would not run: output_dir problems is not empty"));
  EXPECT_EQ(other.code, 1);
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
  const Result finished = Run("resume whole");
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.out,
              testing::StartsWith("whole is finished: all 3 steps are done, and final/ contains the trained"));
  const Result result = Run("resume part");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Read(directory_.path() / "part/final/logits.bin"), Read(directory_.path() / "whole/final/logits.bin"));
  EXPECT_EQ(Run("resume nowhere").code, 3);
}

// ---- eval ---------------------------------------------------------------------------------------

TEST_F(CliTest, ATimeLimitStopsARunThatCanGoOn) {
  const Result limited = Run("run p.yaml --set output_dir=limited --set loop.max_steps=1000000 --time-limit 3s");
  EXPECT_EQ(limited.code, 130) << limited.err;
  EXPECT_THAT(limited.err, HasSubstr("stopped at the time limit; "));
  EXPECT_THAT(limited.err, AnyOf(HasSubstr("a checkpoint of step"), HasSubstr("the last checkpoint is of step")));
  EXPECT_EQ(Run("run p.yaml --set output_dir=x --time-limit soon").code, 2);
}

TEST_F(CliTest, EvalJudgesAKernel) {
  Write("k.cu", "void launch() {} // a // b // c\n");
  const Result result = Run("eval kernel k.cu --problem problems/one --evaluator fakes --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json verdict = json::parse(result.out);
  EXPECT_EQ(verdict["verdict"], "correct");
  EXPECT_EQ(verdict["speedup"], 4.0);
  EXPECT_EQ(verdict["baseline"]["seconds"], 0.001);
  EXPECT_EQ(verdict["metrics"]["comments"], 3.0);
  EXPECT_THAT(Run("eval kernel k.cu --problem problems/one --evaluator fakes --set unit=0.5").out,
              HasSubstr("speedup    4\n"));
  const std::string text = Run("-v eval kernel k.cu --problem problems/one --evaluator fakes").out;
  EXPECT_THAT(text, HasSubstr("verdict    correct\nproblem    one\nfound      it has too few comments\n"
                              "reference  1 ms (modelled: comments)\nkernel     250 us\nspeedup    4\n"));
  EXPECT_THAT(text, HasSubstr("\nSource\n  comments   3   comments\n")) << "as the plugin declares it";
  const std::string brief = Run("eval kernel k.cu --problem problems/one --evaluator fakes").out;
  EXPECT_THAT(brief, testing::Not(HasSubstr("\nSource\n")));
  EXPECT_LE(std::count(brief.begin(), brief.end(), '\n'), 25);
  EXPECT_THAT(brief, HasSubstr("\nmore       -v prints all "));
  const std::string by = "-v eval kernel k.cu --problem problems/one --evaluator ";
  EXPECT_THAT(Run(by + "fakes").out, HasSubstr("counts comments; salt 0, trace off"));
  EXPECT_THAT(Run(by + "fakes --profile --quick --seed 7").out, HasSubstr("counts comments; salt 7, trace all"));
  EXPECT_THAT(Run("-v eval kernel k.cu --pipeline p.yaml --problem problems/one --profile").out,
              HasSubstr("salt 0, trace all"));
  const std::string plain = KGRPO_BINARY_DIR "/tests/bad_plugins/all_is_correct.so";
  const Result profile = Run(by + plain + " --profile");
  EXPECT_EQ(profile.code, 3);
  EXPECT_THAT(profile.err, HasSubstr("does not profile (none of its options is marked x-profile)"));
  EXPECT_THAT(Run(by + "fakes --dispute-bound").out,
              HasSubstr("found      it has too few comments\n\nComments needed 9,\ncounted 3.0\n"));
  EXPECT_EQ(json::parse(Run(by + "fakes --dispute-bound --json").out)["bound"],
            json::parse(R"({"needed": 9, "counted": 3})"));
  EXPECT_THAT(Run(by + plain + " --dispute-bound").err, HasSubstr("does not count what a kernel does"));
  EXPECT_EQ(json::parse(Run("eval kernel k.cu --pipeline p.yaml --problem problems/one --json").out)["speedup"], 4.0);
  const Result report = Run("eval kernel k.cu --problem problems/one --evaluator fakes --report k.html");
  EXPECT_NE(report.code, 0);
  EXPECT_THAT(report.err, HasSubstr("--report: the evaluator fakes writes no reports"));
  const Result nowhere = Run("eval kernel k.cu --problem problems/one --evaluator fakes --report none/k.html");
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("--report none/k.html: there is no folder none"));
  EXPECT_EQ(Run("eval policy p.yaml --policy uniform --report k.html").code, 2);
  Write("broken.cu", "#error\n");
  const Result broken = Run("eval kernel broken.cu --problem problems/one --evaluator fakes --json");
  EXPECT_EQ(broken.code, 0) << "a verdict is a result";
  EXPECT_EQ(json::parse(broken.out)["verdict"], "not_compiled");
  EXPECT_EQ(Run("eval kernel none.cu --problem problems/one --evaluator fakes").code, 3);
  const Result option = Run("eval kernel k.cu --problem problems/one --evaluator fakes --set unt=1");
  EXPECT_EQ(option.code, 3);
  EXPECT_EQ(option.err, "--set: unt: unknown key; did you mean \"unit\"?\n");
}

TEST_F(CliTest, EvalPlaysPolicies) {
  const Result uniform = Run("eval policy p.yaml --policy uniform --episodes 3 --json");
  ASSERT_EQ(uniform.code, 0) << uniform.err;
  EXPECT_EQ(json::parse(uniform.out)["episodes"], 3);
  EXPECT_EQ(Run("eval policy p.yaml --policy fixed:tile --episodes 2").code, 0);
  const Result nowhere = Run("eval policy p.yaml --policy nowhere --episodes 2");
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("nor \"fixed:TECHNIQUE,...\", nor a folder (a run's or a model's)"));
}

// ---- plugins and problems -----------------------------------------------------------------------

TEST_F(CliTest, PluginsListDescribeValidate) {
  const Result list = Run("plugins list --json");
  ASSERT_EQ(list.code, 0);
  const json plugins = json::parse(list.out);
  ASSERT_FALSE(plugins.empty());
  EXPECT_EQ(plugins[0]["name"], "fakes");
  EXPECT_EQ(plugins[0]["roles"].size(), 6U);
  const Result describe = Run("plugins describe fakes");
  EXPECT_THAT(describe.out, HasSubstr("As trainer:\n"));
  EXPECT_THAT(describe.out, HasSubstr("learning_rate  a number > 0  0.1      Of the gradient ascent."));
  EXPECT_EQ(Run("plugins validate fakes").code, 0);
  // A name that nothing has: as describe has it, and before any plugin is tried.
  const Result misspelt = Run("plugins validate fakes fake");
  EXPECT_EQ(misspelt.code, 3);
  EXPECT_EQ(misspelt.out, "");
  EXPECT_THAT(misspelt.err, HasSubstr("error: there is no plugin \"fake\"; did you mean \"fakes\"?; tried\n"));
  EXPECT_THAT(misspelt.err, HasSubstr("/tests/plugins/fake.so: no such file\n"));
  EXPECT_EQ(misspelt.err, Run("plugins describe fake").err);
  EXPECT_THAT(Run("plugins describe reward_expression").out,
              HasSubstr("\n  speedup                         over the reference; 0 unless correct\n"));
  const Result bad = Run("plugins validate " KGRPO_BINARY_DIR "/tests/bad_plugins/crashes_in_create.so");
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.out, HasSubstr("FAILED   reward: create with defaults works or says why not: crashed with signal 6"));
}

TEST_F(CliTest, OtherProgramsAreGivenNoGlobalOptionsThatTheyLack) {
  EXPECT_EQ(Run("-q --plugin-path /none plugins new reward mine --lang c").code, 0);
  EXPECT_TRUE(fs::exists(directory_.path() / "mine/mine.c"));
  EXPECT_THAT(Run("-q --plugin-path /none problems new --help").out, HasSubstr("problems new"));
  EXPECT_EQ(Run("-q merge --help").code, 0);
}

TEST_F(CliTest, AnUnknownSubcommandIsNamedWithThoseThereAre) {
  const Result draft = Run("problems draft mine.cu");
  EXPECT_EQ(draft.code, 2);
  EXPECT_THAT(draft.err, HasSubstr("\"draft\" is no command of problems\n"));
  EXPECT_THAT(draft.err, HasSubstr("  new        Draft a problem folder from a kernel\n"));
  EXPECT_THAT(Run("--plugin-path . -v plugins lst").err,
              HasSubstr("\"lst\" is no command of plugins; did you mean \"list\"?\n"));
  EXPECT_THAT(Run("plugins").err, HasSubstr("plugins needs one of its commands\n"));
  EXPECT_EQ(Run("problems --help").code, 0);
}

TEST_F(CliTest, ProblemsListAndCheck) {
  const Result list = Run("problems list --evaluator fakes");
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_EQ(list.out, "PROBLEM  FAMILY  SPLIT  TRAITS, ! FLAGS\none      fake    train\ntwo      fake    train\n");
  EXPECT_EQ(json::parse(Run("problems check --evaluator fakes --json 'problems/*'").out)[1]["baseline"]["seconds"],
            0.0005);
  Write("problems/bad/reference.cu", "#error\n");
  const Result check = Run("problems check --evaluator fakes");
  EXPECT_EQ(check.code, 1);
  EXPECT_THAT(check.out, HasSubstr("bad      reference_wrong  bad: the reference kernel does not compile "));
  EXPECT_EQ(check.err, "3 problems, 1 with findings, 0 unreadable\n");
  EXPECT_EQ(Run("problems list nowhere --evaluator fakes").err, "error: there is no folder nowhere\n");
}

TEST_F(CliTest, AFolderOfProblemFoldersNamesThemAll) {
  Write("problems/one/problem.yaml", "");
  Write("problems/two/problem.yaml", "");
  Write("problems/notes/a.txt", "");
  const Result list = Run("problems list problems/ --evaluator fakes");
  EXPECT_EQ(list.out, "PROBLEM  FAMILY  SPLIT  TRAITS, ! FLAGS\none      fake    train\ntwo      fake    train\n");
  EXPECT_EQ(Run("problems check problems problems/one --evaluator fakes").err,
            "2 problems, 0 with findings, 0 unreadable\n");
  const auto served = [&](const std::string& folder) {
    const std::filesystem::path log = directory_.path() / "served";
    std::filesystem::remove(log);
    test::HostProcess server(directory_.path(),
                             {"serve", "--evaluator", "fakes", "--listen", "127.0.0.1:0", "--problems", folder},
                             {{"KGRPO_PLUGIN_PATH", KGRPO_BINARY_DIR "/tests/plugins"}}, log.filename().string());
    server.KillWhen([&] { return test::Read(log).ends_with("\n"); });
    return test::Read(log);
  };
  EXPECT_THAT(served("problems"), HasSubstr(" with 2 problems on http://"));
  EXPECT_THAT(served("problems/one"), HasSubstr(" with 1 problem on http://"));
  EXPECT_EQ(served("problems/notes"),
            "error: problems/notes is neither a problem nor a folder of problems: "
            "problems/notes/reference.cu: there is no reference kernel\n");
}

}  // namespace
}  // namespace kgrpo
