// A run whose reward is a Python script, with the real host: its scores, output and errors reach the user.
#include "cli/commands.h"

#include "test.h"

namespace kgrpo {
namespace {

class ProgramPipelineTest : public CliTest {
 protected:
  ProgramPipelineTest() {
    std::filesystem::copy_file(KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py", directory_.path() / "kgrpo_plugin.py");
  }
  // Runs p.yaml with reward.py, whose lines these are.
  test::Result RunWith(const std::string& reward, const std::string& options = "") {
    Write("reward.py", "import os\nfrom kgrpo_plugin import reward, run\n\n" + reward + "run()\n");
    return Run(
        "run p.yaml --overwrite --set output_dir=run --set reward.plugin=reward_program "
        "--set 'reward.options={command: [python3, reward.py], " +
        options + "}'");
  }
};

TEST_F(ProgramPipelineTest, ScoresWithItsOptionsAndParts) {
  const test::Result ran = RunWith(
      "@reward\n"
      "def mine(round, *, correct=0.25):\n"
      "    print('scoring round', round.round)\n"
      "    return {'correct': correct, 'speed': 0.5} if round.correct else {'failed': -0.125}\n",
      "options: {correct: 0.5}");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("scoring round 1"));
  const test::Result exported = Run("export run");
  EXPECT_EQ(exported.code, 0) << exported.err;
  for (const nlohmann::json& sample : Lines(exported.out)) {
    EXPECT_EQ(sample.at("reward"), sample.at("correct") == true ? 1.0 : -0.125) << sample;
  }
}

TEST_F(ProgramPipelineTest, AProgramThatDiesOnceCostsNothing) {
  const test::Result ran = RunWith(
      "@reward\n"
      "def mine(round):\n"
      "    if not os.path.exists('died'):\n"
      "        open('died', 'w').close()\n"
      "        os._exit(7)\n"
      "    return 1\n");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("the program \"python3 reward.py\" ended with exit code 7"));
}

TEST_F(ProgramPipelineTest, AnExceptionEndsTheRunAndNamesItsLine) {
  const test::Result ran = RunWith(
      "@reward\n"
      "def mine(round):\n"
      "    return round.baseline.second\n");
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("AttributeError: there is no 'second' (did you mean 'seconds'?); there are: "));
  EXPECT_THAT(ran.err, HasSubstr("(reward.py:6)"));
}

TEST_F(ProgramPipelineTest, CheckFindsAMisspeltOptionOfTheScript) {
  Write("reward.py",
        "from kgrpo_plugin import reward, run\n"
        "@reward\n"
        "def mine(round, *, cap: float = 8.0):\n"
        "    return 1\n"
        "run()\n");
  const test::Result checked =
      Run("check p.yaml --set reward.plugin=reward_program "
          "--set 'reward.options={command: [python3, reward.py], options: {cup: 4}}'");
  EXPECT_EQ(checked.code, 3);
  EXPECT_THAT(checked.out + checked.err, HasSubstr("cup"));
}

TEST_F(ProgramPipelineTest, ACodersSuggestionsArePlayedAsABaseline) {
  const auto play = [&](const std::string& suggestions) {
    Write("coder.py",
          "from kgrpo_plugin import coder, run\n"
          "@coder(suggestions=" +
              suggestions +
              ")\n"
              "def write(request):\n"
              "    return request.code_b + '// ' + request.suggestion + '\\n'\n"
              "run()\n");
    return Run(
        "eval policy p.yaml --policy uniform --episodes 2 --json --set coder.plugin=coder_program "
        "--set 'coder.options={command: [python3, coder.py]}'");
  };
  const test::Result played = play("['unroll', 'tile']");
  ASSERT_EQ(played.code, 0) << played.err;
  EXPECT_EQ(nlohmann::json::parse(played.out).at("metrics").at("policy/distinct_suggestions"), 2);
  EXPECT_THAT(play("[]").err, HasSubstr("no list of suggestions"));
  EXPECT_THAT(play("[3]").err, HasSubstr("gave suggestions that are no list of texts"));
}

}  // namespace
}  // namespace kgrpo
