// `kgrpo-host optimize` and `eval policy` write runs that report, compare and export read.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Result;

class RecordsTest : public CliTest {
 protected:
  Result Optimize(const std::string& arguments) {
    return Run("optimize problems/one --policy uniform --pipeline p.yaml " + arguments);
  }
  std::filesystem::path Path(const std::string& file) const { return directory_.path() / file; }
};

TEST_F(RecordsTest, ASearchIsARunThatReportCompareAndExportRead) {
  const Result result = Optimize("--evaluations 6 --out a --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json evidence = json::parse(result.out);
  EXPECT_EQ(evidence, json::parse(test::Read(Path("a/evidence.json"))));
  EXPECT_EQ(test::Read(Path("a/start.cu")), test::Read(Path("problems/one/reference.cu")));
  EXPECT_NE(test::Read(Path("a/best.cu")), "");
  // Each candidate is a row.
  const auto rows = Lines(Run("export a").out);
  EXPECT_EQ(rows.size(), evidence["candidates"]);
  std::set<std::string> kernels;
  for (const json& row : rows) {
    if (row["verdict"] != "") kernels.insert(row["code_c"].get<std::string>());
  }
  kernels.erase(test::Read(Path("problems/one/reference.cu")));
  EXPECT_EQ(kernels.size(), evidence["evaluations"]);
  EXPECT_EQ(Run("report a").code, 0);
  EXPECT_THAT(test::Read(Path("a/report.html")), HasSubstr("\"search\""));
  EXPECT_THAT(Run("resume a").err, HasSubstr("is the record of a search, which cannot be resumed"));
  EXPECT_THAT(Optimize("--out a").err, HasSubstr("a is not empty: choose another --out"));
  // Equal searches are one configuration, and another beam is another.
  ASSERT_EQ(Optimize("--evaluations 6 --out b --json").code, 0);
  ASSERT_EQ(Optimize("--evaluations 6 --beam 1 --out c --json").code, 0);
  const json compared = json::parse(Run("compare a b c --json").out);
  ASSERT_EQ(compared["groups"].size(), 2U) << compared;
  EXPECT_EQ(compared["differences"], json::parse(R"({"--beam": ["4", "1"]})"));
  ASSERT_EQ(Optimize("--evaluations 5 --out d --json").code, 0);
  EXPECT_EQ(json::parse(Run("compare a d --json").out)["differences"], json::parse(R"({"--evaluations": ["6", "5"]})"));
  EXPECT_EQ(compared["groups"][0]["runs"][0]["measures"]["reward"],
            compared["groups"][0]["runs"][1]["measures"]["reward"]);
}

TEST_F(RecordsTest, ARefusedStartLeavesNoFolder) {
  test::Write(Path("start.cu"), "#include \"own.h\"\n");
  test::Write(Path("own.h"), "wrong");
  const Result result = Run("optimize start.cu --problem problems/one --policy uniform --pipeline p.yaml --out a");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("the kernel to begin with is not correct"));
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

TEST_F(RecordsTest, AnErrorInTheRunsPipelineHasAHint) {
  ASSERT_EQ(Run("-q p.yaml --set output_dir=run").code, 0);
  const std::string yaml = test::Read(Path("run/resolved.yaml"));
  Write("run/resolved.yaml", yaml + "of_another_time: 1\n");
  const Result result = Run("optimize problems/one --policy run --evaluations 2 --out a");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("of_another_time: unknown key"));
  EXPECT_THAT(result.err, HasSubstr("The paths in run/resolved.yaml are relative to the folder in which that run was"));
  EXPECT_EQ(Run("optimize problems/one --policy run --pipeline p.yaml --evaluations 2 --out a").code, 0);
}

TEST_F(RecordsTest, AnAnswerWithoutAKernelIsShownOnce) {
  const Result result = Optimize("--evaluations 6 --out a");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("  round 1  "));
  EXPECT_THAT(result.out, HasSubstr("kgrpo-host report a shows each suggestion"));
  EXPECT_EQ(Optimize("--train --out b").code, 2);
}

TEST_F(RecordsTest, AnEvaluationIsARunThatCompareAndReportRead) {
  const Result both =
      Run("eval policy p.yaml --policy uniform --policy fixed:tile --episodes 4 --repeat 2 --out e --json");
  ASSERT_EQ(both.code, 0) << both.err;
  const json played = json::parse(both.out);
  ASSERT_EQ(played["policies"].size(), 2U);
  EXPECT_EQ(played["policies"][0]["folder"], "e/1-uniform");
  EXPECT_EQ(played["policies"][0]["episodes"], 8);
  const json compared = json::parse(Run("compare e/1-uniform e/2-fixed_tile --json").out);
  EXPECT_EQ(compared["differences"], json::parse(R"({"--policy": ["\"uniform\"", "\"fixed:tile\""]})"));
  ASSERT_EQ(compared["comparisons"].size(), played["comparison"]["comparisons"].size());
  for (size_t i = 0; i < compared["comparisons"].size(); ++i) {
    for (const char* key : {"measure", "effect", "low", "high", "basis", "episodes"})
      EXPECT_EQ(compared["comparisons"][i][key], played["comparison"]["comparisons"][i][key]);
  }
  EXPECT_EQ(compared["comparisons"][0]["basis"], "episodes");
  EXPECT_EQ(compared["comparisons"][0]["episodes"], 8);
  EXPECT_EQ(Run("report e/1-uniform").code, 0);
  EXPECT_THAT(test::Read(Path("e/1-uniform/report.html")), HasSubstr("\"evaluation\""));
  EXPECT_EQ(Lines(Run("export e/2-fixed_tile").out).size(), 16U) << "8 episodes of 2 rounds";
  EXPECT_THAT(Run("resume e/1-uniform").err, HasSubstr("is the record of an evaluation"));
  EXPECT_THAT(Run("eval policy p.yaml --policy uniform --out e").err, HasSubstr("e is not empty"));
  // Without --out each evaluation has the next folder.
  const Result text = Run("eval policy p.yaml --policy uniform --episodes 2");
  EXPECT_THAT(text.out, HasSubstr("fast_p"));
  ASSERT_EQ(Run("eval policy p.yaml --policy uniform --episodes 2").code, 0);
  size_t folders = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(Path("evaluated"))) ++folders;
  EXPECT_EQ(folders, 2U);
}

}  // namespace
}  // namespace kgrpo
