// Builds the example plugins as their authors would: copied elsewhere, with only the package kgrpo-dev. Then the host
// uses them.
#include <sys/wait.h>

#include "base/directories.h"
#include "test.h"

namespace kgrpo {
namespace {

// A folder with an example in "plugin" and the headers in "include", and what the last command said.
class ExampleTest : public testing::Test {
 protected:
  void Copy(const std::string& example) {
    const fs::path source(KGRPO_SOURCE_DIR);
    fs::copy(source / "examples" / example, directory_.path() / "plugin", fs::copy_options::recursive);
    ASSERT_EQ(Run("cmake --install '" KGRPO_BINARY_DIR "' --component development --prefix kgrpo"), 0) << Log();
  }
  int Run(const std::string& command) {
    return std::system(("cd '" + directory_.path().string() + "' && (" + command + ") > log 2>&1").c_str());
  }
  int Host(const std::string& arguments) {
    return Run("KGRPO_CACHE_DIR=cache '" KGRPO_BINARY_DIR "/bin/kgrpo-host' " + arguments);
  }
  std::string Log() const {
    std::ifstream stream(directory_.path() / "log");
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  TemporaryDirectory directory_;
};

TEST_F(ExampleTest, RewardBytesSavedBuildsOutOfTreeAndValidates) {
  Copy("reward_bytes_saved");
  ASSERT_EQ(Run("cmake -G Ninja -S plugin -B build -Dkgrpo_ROOT=$PWD/kgrpo"), 0) << Log();
  ASSERT_EQ(Run("cmake --build build"), 0) << Log();
  EXPECT_EQ(Host("plugins validate build/reward_bytes_saved.so"), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr(" 0 failed, 0 warnings"));
  EXPECT_EQ(Host("plugins describe build/reward_bytes_saved.so"), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr("weight"));
}

// The command of the file's own header comment, with another compiler where one is given.
std::string CommandOf(const fs::path& source, const std::string& compiler) {
  std::ifstream stream(source);
  std::string command;
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind(" *   ", 0) == 0) {
      command += line.substr(5);
      if (command.back() == '\\')
        command.pop_back();
      else
        command += " && ";
    } else if (!command.empty() && command.ends_with(" && ")) {
      break;
    }
  }
  command.resize(command.size() - 4);
  command.replace(command.find("gcc"), 3, compiler + " -Wpedantic -Werror");
  for (size_t at; (at = command.find("$KGRPO/core/abi")) != std::string::npos;)
    command.replace(at, std::string("$KGRPO/core/abi").size(), "../kgrpo/include");
  return "cd plugin && " + command;
}

class CExampleTest : public ExampleTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (Run(std::string(GetParam()) + " --version") != 0) GTEST_SKIP() << GetParam() << " is not installed";
    Copy("reward_c");
  }
};

TEST_P(CExampleTest, BuildsByItsOwnCommandAndValidates) {
  ASSERT_EQ(Run(CommandOf(directory_.path() / "plugin" / "reward_c.c", GetParam())), 0) << Log();
  EXPECT_EQ(Host("plugins validate plugin/reward_c.so"), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr(" 0 failed, 0 warnings"));
  EXPECT_THAT(Log(), HasSubstr("score of a kernel of speedup 2: 2.3"));

  std::ofstream(directory_.path() / "options.json") << R"({"failure": 1})";
  EXPECT_EQ(WEXITSTATUS(Host("plugins validate plugin/reward_c.so --options options.json")), 3);
  EXPECT_THAT(Log(), HasSubstr("failure"));
  std::ofstream(directory_.path() / "options.json") << R"({"failure": -0.5, "correct": -0.6})";
  EXPECT_EQ(WEXITSTATUS(Host("plugins validate plugin/reward_c.so --options options.json")), 3);
  EXPECT_THAT(Log(), HasSubstr("create refused the options given: options.failure: must be below options.correct"));
}

// Also once its author writes the logarithm, which C's own library does not hold.
TEST_P(CExampleTest, BuildsByItsCMakeListsToo) {
  ASSERT_EQ(
      Run("sed -i 's/^#include <stdlib.h>/#include <math.h>\\n&/; s/self->speedup \\* candidate->speedup/log2(2 + "
          "candidate->speedup)/' "
          "plugin/reward_c.c && grep log2 plugin/reward_c.c"),
      0)
      << Log();
  ASSERT_EQ(Run("CC=" + std::string(GetParam()) + " cmake -G Ninja -S plugin -B build -Dkgrpo_ROOT=$PWD/kgrpo"), 0)
      << Log();
  ASSERT_EQ(Run("cmake --build build"), 0) << Log();
  EXPECT_EQ(Host("plugins describe build/reward_c.so"), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr("speedup"));
}

INSTANTIATE_TEST_SUITE_P(Compiler, CExampleTest, testing::Values("gcc", "clang"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kgrpo
