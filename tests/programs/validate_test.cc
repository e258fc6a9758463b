// `plugins validate` of a reward that is a program: a sound one passes, and each broken one is found with its sentence.
#include "validate/validate.h"

#include "base/directories.h"
#include "base/log.h"
#include "test.h"

namespace kgrpo {
namespace {

class ValidateProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kPlugin)) GTEST_SKIP() << kPlugin << " was not built";
    InitLog(LogLevel::kError);  // to standard error, as in the host: on standard output it would be the plugin's fault
  }

  // The first check that fails, as "name: detail"; "none" where none does.
  std::string FirstFailure(const nlohmann::json& command) const {
    ValidateOptions options;
    options.seconds = 20;
    options.options = {{"command", command}, {"request_seconds", 1}, {"start_seconds", 5}};
    for (const ContractCheck& check : ValidatePlugin(kPlugin, options)) {
      if (check.outcome == CheckOutcome::kFailed) return check.name + ": " + check.detail;
    }
    return "none";
  }
  // Of tests/programs/faulty.py, whose `score` fails that way.
  std::string Faulty(const std::string& how, const std::string& method = "score") const {
    return FirstFailure({"python3", "-S", "-E", KGRPO_SOURCE_DIR "/tests/programs/faulty.py", how,
                         (directory_.path() / how).string(), method});
  }

  const fs::path kPlugin = fs::path(KGRPO_BINARY_DIR) / "lib/kgrpo/reward_program.so";
  const TemporaryDirectory directory_;
};

TEST_F(ValidateProgram, PassesASoundOne) {
  const fs::path script = directory_.path() / "one.py";
  fs::copy_file(KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py", directory_.path() / "kgrpo_plugin.py");
  std::ofstream(script) << "from kgrpo_plugin import reward, run\n@reward\ndef one(round):\n    return 1.0\nrun()\n";
  EXPECT_EQ(FirstFailure({"python3", script.string()}), "none");
}

TEST_F(ValidateProgram, PassesOneThatGivesSomeRoundsNoScore) {
  const fs::path script = directory_.path() / "some.py";
  fs::copy_file(KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py", directory_.path() / "kgrpo_plugin.py");
  std::ofstream(script) << "from kgrpo_plugin import NoScore, reward, run\n@reward\ndef some(round):\n"
                           "    if round.round > 0:\n        raise NoScore('too late')\n    return 1.0\nrun()\n";
  EXPECT_EQ(FirstFailure({"python3", script.string()}), "none");
}

TEST_F(ValidateProgram, FindsOneThatDoesNotStart) {
  EXPECT_THAT(FirstFailure({"/no/such/program"}), HasSubstr("cannot be started: No such file or directory"));
  for (const auto& [how, sentence] : std::map<std::string, std::string>{
           {"garbage_hello", "is not JSON: \"Hello! I am a reward.\""},
           {"dies_at_once", "ended with exit code 3; the last it said: \"no module named torch\""},
           {"other_protocol", "speaks protocol 2, this plugin protocol 1"},
           {"other_role", "the program is no reward"},
           {"refuses", "refused: cap must be even"},
           {"late", "did not answer \"initialize\" within 5 s (start_seconds)"}})
    EXPECT_THAT(Faulty(how), AllOf(HasSubstr("create refused the options given: "), HasSubstr(sentence))) << how;
}

TEST_F(ValidateProgram, FindsOneWhoseScoreFails) {
  for (const auto& [how, sentence] : std::map<std::string, std::string>{
           {"garbage", "wrote a line that is not JSON"},
           {"too_much", "wrote a line of more than 16 MiB"},
           {"deep", "nested 10001 deep"},
           {"never", "did not answer \"score\" within 1 s (request_seconds)"},
           {"forks", "ended with exit code 4"},
           {"exits", "ended with exit code 9; the last it said: \"I am out of memory\""},
           {"says_error", "failed at \"score\": no such GPU"},
       })
    EXPECT_THAT(Faulty(how),
                AllOf(HasSubstr("reward: score of a kernel of speedup 2: it failed: "), HasSubstr(sentence)))
        << how;
  EXPECT_THAT(Faulty("echoes", "no method"), HasSubstr("has no number \"score\""));
}

// The made-up evaluations lack metrics that an evaluator measures: asking for one is no failure, a missing default is.
TEST_F(ValidateProgram, WarnsOfAMetricThatItsRequestsLack) {
  const fs::path script = directory_.path() / "metric.py";
  fs::copy_file(KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py", directory_.path() / "kgrpo_plugin.py");
  const auto first_failure = [&](const std::string& score) {
    std::ofstream(script) << "from kgrpo_plugin import reward, run\n@reward\ndef one(round):\n    return " + score +
                                 "\nrun()\n";
    return FirstFailure({"python3", script.string()});
  };
  EXPECT_EQ(first_failure("round.metric('joules') if round.correct else 0"), "none");
  EXPECT_THAT(first_failure("round.metric('registers')"),
              AllOf(HasSubstr("reward: score of a wrong kernel: it failed: "),
                    HasSubstr("the kernel is not correct (wrong); test round.correct first, or give a default")));
}

// A round may begin with a wrong kernel, whose speedup is 0.
TEST_F(ValidateProgram, FindsAnIdleThatTakesTheCurrentKernelToBeCorrect) {
  const fs::path script = directory_.path() / "idle.py";
  fs::copy_file(KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py", directory_.path() / "kgrpo_plugin.py");
  std::ofstream(script) << "import math\nfrom kgrpo_plugin import reward, run\n"
                           "def idle(round):\n    return math.log2(round.previous_speedup)\n"
                           "@reward(idle=idle)\ndef one(round):\n    return 1.0\nrun()\n";
  EXPECT_THAT(
      FirstFailure({"python3", script.string()}),
      AllOf(HasSubstr("reward: idle reward instead of a kernel of speedup 2 made from a wrong one: it failed: "),
            HasSubstr("math domain error")));
}

}  // namespace
}  // namespace kgrpo
