// `plugins new`, and docs/reward.md, as a reader follows it: each command of the page in its order.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "cli/commands.h"

namespace kgrpo {
namespace {

using testing::HasSubstr;

// Projects are made and built with what the package kgrpo-dev holds, and kgrpo-host on PATH.
class NewProjectTest : public CliTest {
 protected:
  NewProjectTest() { std::filesystem::rename(directory_.path() / "p.yaml", directory_.path() / "pipeline.yaml"); }
  void Install() {
    ASSERT_EQ(Shell("cmake --install '" KGRPO_BINARY_DIR "' --component development --prefix kgrpo"), 0) << Log();
  }
  int Shell(const std::string& command) {
    const std::string at = directory_.path().string();
    const std::string environment = "export PATH='" KGRPO_BINARY_DIR "/bin':$PATH kgrpo_ROOT='" + at +
                                    "/kgrpo' CMAKE_GENERATOR=Ninja KGRPO_CACHE_DIR='" + at +
                                    "/cache' KGRPO_PLUGIN_PATH='" KGRPO_BINARY_DIR "/tests/plugins'; ";
    return std::system(("cd '" + at + "' && (" + environment + "set -e; " + command + ") > log 2>&1").c_str());
  }
  std::string Log() const { return test::Read(directory_.path() / "log"); }
};

class CompiledProjectTest : public NewProjectTest, public testing::WithParamInterface<const char*> {};

TEST_P(CompiledProjectTest, BuildsValidatesAndPassesItsTest) {
  Install();
  ASSERT_EQ(Shell(std::string("kgrpo-host plugins new ") + GetParam() +
                  "; cd mine; cmake -B build; cmake --build build; ctest --test-dir build"),
            0)
      << Log();
  EXPECT_EQ(Shell("kgrpo-host plugins validate mine/build/mine.so"), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr(" 0 failed, 0 warnings"));
  EXPECT_THAT(Log(), HasSubstr("mine 0.1.0"));
}

INSTANTIATE_TEST_SUITE_P(Kind, CompiledProjectTest,
                         testing::Values("reward mine --lang c", "reward mine", "coder mine --lang c++",
                                         "evaluator mine", "trainer mine", "policy mine", "observer mine",
                                         "observer mine --lang c"));

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

// Indented lines are commands, a ```python block is the file that its first comment names.
TEST_F(NewProjectTest, ThePageAboutRewardsCanBeFollowed) {
  Install();
  std::istringstream page(test::Read(KGRPO_SOURCE_DIR "/docs/reward.md"));
  std::string file, text;
  int commands = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```python")) {
      std::getline(page, line);
      ASSERT_TRUE(line.starts_with("# ")) << line;
      file = line.substr(2);
    } else if (line == "```" && !file.empty()) {
      Write(file, text);
      file.clear();
      text.clear();
    } else if (!file.empty()) {
      text += line + "\n";
    } else if (line.starts_with("    ") && !line.ends_with(":") && line.find(": ") != 0) {
      while (line.ends_with("\\")) {
        std::string more;
        std::getline(page, more);
        line = line.substr(0, line.size() - 1) + more;
      }
      EXPECT_EQ(Shell(line), 0) << line << "\n" << Log();
      ++commands;
    }
  }
  EXPECT_GE(commands, 12);
}

}  // namespace
}  // namespace kgrpo
