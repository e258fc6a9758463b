// The command check: what it finds of a file, of its parts and of the folder that a run would use.
#include "commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Result;
using testing::HasSubstr;

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
  EXPECT_THAT(resolved.out, HasSubstr("seed: 8\n"));
  Write("again.yaml", resolved.out);
  EXPECT_EQ(Run("check again.yaml --resolve").out, resolved.out);
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

TEST_F(CliTest, CheckOpensProblemsAndMakesParts) {
  fs::create_directories(directory_.path() / "problems" / "three");
  Write("bad.yaml", "extends: p.yaml\npolicy: {options: {model: /nowhere}}\n");
  const Result result = Run("check bad.yaml");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("problems/three/reference.cu: there is no reference kernel\n"));
  EXPECT_THAT(result.err, HasSubstr("policy (fakes): no model in /nowhere/logits.bin\n"));
  EXPECT_EQ(Run("check bad.yaml --file-only").code, 0);
}

TEST_F(CliTest, AFileThatIsNotThere) {
  const Result result = Run("nothing.yaml");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err, "nothing.yaml: cannot read nothing.yaml: No such file or directory\n");
}

}  // namespace
}  // namespace kgrpo
