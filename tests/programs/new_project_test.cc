// `plugins new`, and docs/reward.md and similar pages: runs each command of a page in its order, as a reader would.
#include "cli/commands.h"

#include "test.h"

namespace kgrpo {
namespace {

// Projects are made and built with what the package kgrpo-dev holds, and kgrpo-host on PATH.
class NewProjectTest : public CliTest {
 protected:
  NewProjectTest() { std::filesystem::rename(directory_.path() / "p.yaml", directory_.path() / "pipeline.yaml"); }
  void Install() {
    ASSERT_EQ(Shell("cmake --install '" KGRPO_BINARY_DIR "' --component development --prefix kgrpo"), 0) << Log();
  }
  // Without a generator of its own CMake wants make, which need not be there: each command has to name Ninja.
  int Shell(const std::string& command) {
    const std::string at = directory_.path().string();
    const std::string environment = "export PATH='" KGRPO_BINARY_DIR "/bin':$PATH kgrpo_ROOT='" + at +
                                    "/kgrpo' CMAKE_GENERATOR=none KGRPO_CACHE_DIR='" + at +
                                    "/cache' KGRPO_PLUGIN_PATH='" KGRPO_BINARY_DIR "/tests/plugins'; ";
    return std::system(("cd '" + at + "' && (" + environment + "set -e; " + command + ") > log 2>&1").c_str());
  }
  std::string Log() const { return test::Read(directory_.path() / "log"); }
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

class CompiledProjectTest : public NewProjectTest, public testing::WithParamInterface<const char*> {};

TEST_P(CompiledProjectTest, BuildsValidatesAndPassesItsTest) {
  Install();
  ASSERT_EQ(Shell(std::string("kgrpo-host plugins new ") + GetParam() +
                  "; cd mine; cmake -G Ninja -B build; cmake --build build; ctest --test-dir build"),
            0)
      << Log();
  EXPECT_THAT(Log(), HasSubstr("\n  cmake -G Ninja -B build"));  // what it prints to do next
  EXPECT_EQ(Shell("kgrpo-host plugins validate mine/build/mine.so"), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr(" 0 failed, 0 warnings"));
  EXPECT_THAT(Log(), HasSubstr("mine 0.1.0"));
}

INSTANTIATE_TEST_SUITE_P(Kind, CompiledProjectTest,
                         testing::Values("reward mine --lang c", "reward mine", "coder mine --lang c",
                                         "coder mine --lang c++", "evaluator mine", "evaluator mine --lang c",
                                         "observer mine", "observer mine --lang c"));  // others: LearningProjectTest

TEST_F(NewProjectTest, PythonProjectsValidateAndPassTheirTests) {
  for (const std::string role : {"reward", "coder", "evaluator"}) {
    ASSERT_EQ(Shell("kgrpo-host plugins new " + role + " my_" + role + " --lang python; cd my_" + role +
                    "; python3 -B test_my_" + role + ".py; kgrpo-host plugins validate " + role +
                    "_program --options options.json"),
              0)
        << Log();
    EXPECT_THAT(Log(), HasSubstr(" 0 failed"));
  }
}

TEST_F(NewProjectTest, SaysWhatItCannotWrite) {
  EXPECT_NE(Shell("mkdir mine; kgrpo-host plugins new reward mine"), 0);
  EXPECT_THAT(Log(), HasSubstr("mine exists already: choose another name"));
  EXPECT_NE(Shell("kgrpo-host plugins new trainer mine --lang python"), 0);
  EXPECT_THAT(Log(),
              HasSubstr("no project for a plugin of kind trainer in python; there are: reward in c, reward in c++"));
  EXPECT_NE(Shell("kgrpo-host plugins new reward ../Mine"), 0);
  EXPECT_THAT(Log(), HasSubstr("a plugin's name is lower-case letters, digits and _"));
}

// The steps of a page's reader, in order: indented lines are commands; a ```python or ```yaml block is the file that
// its first comment names.
std::vector<std::string> StepsOf(const std::string& name) {
  std::istringstream page(test::Read(std::string(KGRPO_SOURCE_DIR "/docs/") + name));
  std::vector<std::string> steps;
  bool block = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      block = !block;
      if (line != "```python" && line != "```yaml") continue;
      std::getline(page, line);
      EXPECT_TRUE(line.starts_with("# ")) << line;
      std::string text = "cat > " + line.substr(2) + " <<'END_OF_FILE'\n";
      while (std::getline(page, line) && line != "```") text += line + "\n";
      block = false;
      steps.push_back(text + "END_OF_FILE\n");
    } else if (!block && line.starts_with("    ")) {
      while (line.ends_with("\\") || line.ends_with("|")) {
        std::string more;
        std::getline(page, more);
        line = (line.ends_with("|") ? line : line.substr(0, line.size() - 1)) + more;
      }
      steps.push_back(line);
    }
  }
  return steps;
}

struct Page {
  const char* name;
  size_t steps;  // at least
};

class PageTest : public NewProjectTest, public testing::WithParamInterface<Page> {};

TEST_P(PageTest, CanBeFollowed) {
  Install();
  // Some of the policy's random bytes then apply: rewards differ, so that a trainer has something to learn.
  if (std::string_view(GetParam().name) == "trainer.md") {
    Write(
        "pipeline.yaml",
        Replaced(test::Read(directory_.path() / "pipeline.yaml"), "coder: {plugin: fakes}",
                 "coder: {plugin: fakes, options: {techniques: [tile, unroll, A, B, C, D, E, F, G, H, J, K, Q, Z]}}"));
  }
  const std::vector<std::string> steps = StepsOf(GetParam().name);
  for (const std::string& step : steps) EXPECT_EQ(Shell(step), 0) << step << "\n" << Log();
  EXPECT_GE(steps.size(), GetParam().steps);
}

INSTANTIATE_TEST_SUITE_P(Docs, PageTest,
                         testing::Values(Page{"coder.md", 11}, Page{"reward.md", 12}, Page{"trainer.md", 7}),
                         [](const auto& info) { return std::filesystem::path(info.param.name).stem().string(); });

// docs/service.md in one shell, whose job the service is, on the page's own port.
TEST_F(NewProjectTest, TheServicePageCanBeFollowed) {
  if (Shell("curl --version") != 0) GTEST_SKIP() << "curl is not installed";
  if (Shell("curl -s localhost:8421") == 0) GTEST_SKIP() << "another service has port 8421";
  namespace fs = std::filesystem;
  fs::remove_all(directory_.path() / "problems");
  fs::create_directory(directory_.path() / "problems");
  for (const std::string problem : {"problems/softmax_long", "problems/transpose", "python"})
    fs::create_directory_symlink(fs::path(KGRPO_SOURCE_DIR) / problem, directory_.path() / problem);
  Write("pipeline.yaml",
        Replaced(test::Read(directory_.path() / "pipeline.yaml"), "heldout: [problems/two]", "heldout: []"));
  std::string script = "set -eo pipefail\ntrap 'kill $(jobs -p)' ERR\n";
  const std::vector<std::string> steps = StepsOf("service.md");
  EXPECT_GE(steps.size(), 10u);
  for (const std::string& step : steps) script += step + "\n";
  Write("follow.sh", script);
  ASSERT_EQ(Shell("bash follow.sh"), 0) << Log();
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr("with 2 problems on http://127.0.0.1:8421"));
  EXPECT_THAT(log, HasSubstr(R"("device":"l4")"));
  EXPECT_THAT(log, HasSubstr(R"({"done":true,"results":2})"));
  EXPECT_THAT(log, testing::ContainsRegex("\n\\[1\\.3[0-9]*, -1\\.0\\]\n"));  // of judge.py: as fast as the reference
  EXPECT_THAT(log, HasSubstr("step 3/3"));
  EXPECT_THAT(log, HasSubstr(R"(kgrpo_evaluations_total{device="h100",verdict="correct"})"));
}

// The trainer and the policy that `plugins new` writes: built, tested, validated, and run on a coder that knows two of
// the policy's five suggestions; and what they save, resumed.
class LearningProjectTest : public NewProjectTest, public testing::WithParamInterface<const char*> {};

TEST_P(LearningProjectTest, NewTrainerAndPolicyLearn) {
  Install();
  ASSERT_EQ(
      Shell("for kind in trainer policy; do kgrpo-host plugins new $kind my_$kind --lang " + std::string(GetParam()) +
            "; cd my_$kind; "
            "cmake -G Ninja -B build; cmake --build build; ctest --test-dir build; "
            "kgrpo-host plugins validate build/my_$kind.so; cd ..; done"),
      0)
      << Log();
  const std::string made = Log();
  for (const char* kind : {"trainer", "policy"}) EXPECT_THAT(made, HasSubstr(std::string("my_") + kind + " 0.1.0"));
  const std::string sound = " 0 failed, 0 warnings";
  EXPECT_NE(made.find(sound), made.rfind(sound)) << made;  // of both
  const std::string parts =
      " --set 'policy={plugin: my_policy/build/my_policy.so}' --set loop.batch_size=16 "
      "--set 'trainer={plugin: my_trainer/build/my_trainer.so, options: {learning_rate: 0.1}}' --set loop.max_steps=40 "
      "--set 'checkpoint={every: 10, keep_last: 5}' ";
  const auto weights = [this](const std::string& run) {
    return test::Read(directory_.path() / run / "final/parameters.bin");
  };
  ASSERT_EQ(Shell("kgrpo-host pipeline.yaml --set output_dir=whole" + parts), 0) << Log();
  const std::vector<nlohmann::json> steps = Lines(test::Read(directory_.path() / "whole/metrics.jsonl"));
  ASSERT_EQ(steps.size(), 40u);
  double first = 0, last = 0;
  for (size_t i = 0; i < 5; ++i) {
    first += steps[i].at("reward").get<double>() / 5;
    last += steps[35 + i].at("reward").get<double>() / 5;
  }
  EXPECT_GT(last, first + 1);
  EXPECT_EQ(weights("whole").size(), 5 * sizeof(float));

  const std::string before = weights("whole");
  ASSERT_EQ(Shell("kgrpo-host resume whole --from-step 20"), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr("step 21/40"));
  EXPECT_EQ(weights("whole"), before);
}

INSTANTIATE_TEST_SUITE_P(Language, LearningProjectTest, testing::Values("c", "c++"));

}  // namespace
}  // namespace kgrpo
