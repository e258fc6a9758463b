// `kgrpo-host optimize --screen`: the choice of a screen, its part of the result, and refusals.
#include "commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo {
namespace {

using nlohmann::json;
using test::Result;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OptimizeScreenTest : public CliTest {
 protected:
  Result Optimize(const std::string& arguments, const std::string& pipeline = "p.yaml") {
    return Run("optimize problems/one --policy uniform --pipeline " + pipeline + " " + arguments);
  }
};

TEST_F(OptimizeScreenTest, TheResultTellsWhatWasScreened) {
  const Result result =
      Optimize("--screen fakes --set screen.options.unit=2 --set screen.options.salt=4 --json --out a");
  ASSERT_EQ(result.code, 0) << result.err;
  const json evidence = json::parse(result.out);
  EXPECT_EQ(evidence["screen"]["plugin"], "fakes");
  EXPECT_EQ(evidence["screen"]["evaluator"], "counts comments; salt 4, trace off");
  EXPECT_EQ(evidence["evaluator"], "counts comments; salt 0, trace off");
  EXPECT_EQ(evidence["screen"]["screened_out_slow"].get<int>() + evidence["screen"]["screened_out_wrong"].get<int>(), 0)
      << "a search of few kernels judges them all";
  size_t screened = 0;
  for (const json& line : Lines(test::Read(directory_.path() / "a/candidates.jsonl"))) {
    if (!line.contains("screening")) continue;
    ++screened;
    EXPECT_EQ(line["screening"]["verdict"], "correct");
    EXPECT_DOUBLE_EQ(line["screening"]["speedup_over_start"].get<double>(), line["speedup"].get<double>());
    EXPECT_GE(line["screening"]["seconds"].get<double>(), 0.1) << "the screen's, whose unit is 2 s";
    EXPECT_LT(line["seconds"][1].get<double>(), 0.01);
  }
  EXPECT_GT(screened, 0U);
  EXPECT_EQ(json::parse(Optimize("--json --out b").out)["screen"], nullptr);
}

// A screen that is strict keeps kernels out, and that is shown beside what was judged.
TEST_F(OptimizeScreenTest, ScreenedOutKernelsHaveNoMeasuredTime) {
  Write("p.yaml", test::Read(directory_.path() / "p.yaml") + "screen: {plugin: fakes, options: {calls_wrong: tile}}\n");
  const Result result = Optimize("--out a");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("tile: screened out as wrong"));
  EXPECT_THAT(result.out, HasSubstr(" as too slow and "));
  const json evidence = json::parse(test::Read(directory_.path() / "a/evidence.json"));
  EXPECT_GT(evidence["screen"]["screened_out_wrong"], 0);
  size_t out = 0;
  for (const json& line : Lines(test::Read(directory_.path() / "a/candidates.jsonl"))) {
    if (line["outcome"] != "screened_out") continue;
    ++out;
    EXPECT_FALSE(line.contains("seconds"));
    EXPECT_EQ(line["speedup"], 0);
    EXPECT_EQ(line["screening"]["verdict"], "wrong");
  }
  EXPECT_GT(out, 0U);
  const Result without = Optimize("--screen none --out b");
  EXPECT_EQ(without.code, 0) << without.err;
  EXPECT_THAT(without.out, Not(HasSubstr("screened out")));
  const Result other = Optimize("--screen fakes --out c --json");
  EXPECT_EQ(json::parse(other.out)["screen"]["screened_out_wrong"], 0) << "without the options of the file's screen";
}

TEST_F(OptimizeScreenTest, BadInputIsToldInASentence) {
  const auto refused = [this](const std::string& arguments, int code) {
    const Result result = Optimize(arguments + " --out a");
    EXPECT_EQ(result.code, code) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused("--screen nosuch", 3), HasSubstr("screen.plugin: "));
  EXPECT_THAT(refused("--screen nosuch", 3), HasSubstr("nosuch"));
  EXPECT_THAT(refused("--screen reward_speedup", 3), HasSubstr("screen.plugin: "));
  EXPECT_THAT(refused("--screen fakes --set screen.options.unit=no", 3),
              HasSubstr("--set: screen.options.unit: expected a number"));
  EXPECT_THAT(refused("--screen fakes --train", 2), HasSubstr("--screen"));
  // A problem of the fakes, which has no problem.yaml.
  EXPECT_THAT(refused("--screen evaluator_sim", 3),
              AllOf(HasSubstr("the screen (evaluator_sim) cannot open the problem: "), HasSubstr("--screen none")));
  Write("problems/one/reference.cu", "void launch() {} // tile\n");
  EXPECT_THAT(refused("--screen fakes --set screen.options.calls_wrong=tile", 3),
              AllOf(HasSubstr("the screen (fakes) cannot judge the kernel to begin with (wrong): "),
                    HasSubstr("--screen none")));
}

}  // namespace
}  // namespace kgrpo
