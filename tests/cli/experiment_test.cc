// A file of several runs, end to end: run, stopped and gone on with, compared.
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
using test::Read;
using test::Result;
using testing::HasSubstr;

class ExperimentCliTest : public CliTest {
 protected:
  ExperimentCliTest() {
    Write("ab.yaml", "extends: p.yaml\noutput_dir: runs\nvariants:\n  short: {loop: {rounds: 1}}\nseeds: [1, 2]\n");
  }
};

TEST_F(ExperimentCliTest, RunsEachIntoAFolderOfItsOwnAndComparesThem) {
  const Result run = Run("ab.yaml --jobs 2");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("next: kgrpo-host compare runs\n"));
  for (const char* folder : {"base/seed-1", "base/seed-2", "short/seed-1", "short/seed-2"}) {
    EXPECT_TRUE(fs::exists(directory_.path() / "runs" / folder / "final")) << folder;
  }
  EXPECT_EQ(json::parse(Read(directory_.path() / "runs/experiment.json"))["runs"].size(), 4U);

  const Result again = Run("ab.yaml");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, HasSubstr("4 of 4 runs are finished"));

  const json compared = json::parse(Run("compare runs --json").out);
  ASSERT_EQ(compared["groups"].size(), 2U);
  EXPECT_EQ(compared["groups"][1]["label"], "short");
  EXPECT_EQ(compared["differences"], json({{"loop.rounds", {"2", "1"}}}));
  EXPECT_FALSE(compared["comparisons"].empty());
  for (const char* options : {"", " --markdown"}) {
    const Result text = Run("compare runs" + std::string(options));
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("loop.rounds"));
    EXPECT_THAT(text.out, HasSubstr("2 seeds: weak evidence"));
  }
}

TEST_F(ExperimentCliTest, GoesOnWithWhatIsNotFinished) {
  ASSERT_EQ(Run("ab.yaml --variant short").code, 0);
  EXPECT_FALSE(fs::exists(directory_.path() / "runs/base"));
  fs::remove_all(directory_.path() / "runs/short/seed-2");
  const Result rest = Run("ab.yaml");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("1 of 4 runs are finished"));
  EXPECT_TRUE(fs::exists(directory_.path() / "runs/short/seed-2/final"));
  EXPECT_EQ(Run("ab.yaml --set loop.max_steps=4").code, 3) << "another configuration's runs are there";
}

TEST_F(ExperimentCliTest, RefusesWhatWouldCompareNothing) {
  Write("same.yaml", "extends: p.yaml\noutput_dir: runs\nvariants:\n  twin: {seed: 5}\n");
  const Result same = Run("same.yaml");
  EXPECT_EQ(same.code, 3);
  EXPECT_THAT(same.err, HasSubstr("same.yaml:4:3: the variant \"twin\" changes nothing"));
  EXPECT_FALSE(fs::exists(directory_.path() / "runs"));
  EXPECT_EQ(Run("ab.yaml --variant nobody").code, 3);
  EXPECT_EQ(Run("p.yaml --variant base").code, 3);
  EXPECT_THAT(Run("eval ab.yaml --policy uniform").err, HasSubstr("several runs"));
  EXPECT_EQ(Run("compare nowhere").code, 3);
  EXPECT_THAT(Run("check ab.yaml").err, HasSubstr("4 runs: base/seed-1, base/seed-2, short/seed-1, short/seed-2"));
}

}  // namespace
}  // namespace kgrpo
