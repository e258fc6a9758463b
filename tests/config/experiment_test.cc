// Several runs described by one file: variants, a sweep, seeds.
#include "config/experiment.h"

#include "base/directories.h"
#include "test.h"

namespace kgrpo {
namespace {

class ExperimentTest : public testing::Test {
 protected:
  std::optional<std::vector<ExperimentRun>> Read(const std::string& text, std::vector<std::string> settings = {}) {
    const std::filesystem::path file = directory_.path() / "ab.yaml";
    std::ofstream(file) << text;
    LoadRequest request;
    request.file = file.string();
    request.settings = std::move(settings);
    return ReadExperiment(request);
  }
  std::vector<std::string> Folders(const std::string& text) {
    std::vector<std::string> folders;
    const std::vector<ExperimentRun> runs = *Read(text);
    for (const ExperimentRun& run : runs) folders.push_back(run.folder);
    return folders;
  }
  std::string Mistakes(const std::string& text) {
    return test::MessageOf([&] { Read(text); }, 0, "");
  }

  TemporaryDirectory directory_;
};

TEST_F(ExperimentTest, APlainFileIsNone) { EXPECT_FALSE(Read("name: a\nloop: {rounds: 3}\n")); }

TEST_F(ExperimentTest, VariantsAreDeltasBesideTheFileItself) {
  const auto runs = *Read(
      "name: a\nvariants:\n  log: {reward: {plugin: r, options: {formula: log}}, loop: {rounds: 2}}\n"
      "  none:\n    trainer[1].options.gamma: 0\nseeds: [1, 2]\n");
  ASSERT_EQ(runs.size(), 6U);
  EXPECT_EQ(runs[0].folder, "base/seed-1");
  EXPECT_THAT(runs[0].settings, ElementsAre("seed=1"));
  EXPECT_EQ(runs[3].variant, "log");
  EXPECT_EQ(runs[3].seed, 2U);
  EXPECT_THAT(runs[3].settings,
              ElementsAre("reward.plugin=\"r\"", "reward.options.formula=\"log\"", "loop.rounds=2", "seed=2"));
  EXPECT_THAT(runs[4].settings, ElementsAre("trainer[1].options.gamma=0", "seed=1"));
}

TEST_F(ExperimentTest, ASweepIsAGridWhoseLastKeyChangesFastest) {
  EXPECT_THAT(
      Folders("sweep: {loop.rounds: [2, 4], trainer.options.loss: [grpo, dr grpo]}\n"),
      ElementsAre("rounds=2_loss=grpo", "rounds=2_loss=dr_grpo", "rounds=4_loss=grpo", "rounds=4_loss=dr_grpo"));
  EXPECT_THAT(Folders("sweep: {a.x: [1], b.x: [2]}\nvariants: {v: {c: 1}}\n"),
              ElementsAre("a.x=1_b.x=2", "v_a.x=1_b.x=2"))
      << "keys that end alike are named whole";
}

TEST_F(ExperimentTest, SettingsReachTheThreeKeys) {
  const auto runs = Read("name: a\n", {"seeds=[7, 8]"});
  ASSERT_TRUE(runs);
  EXPECT_EQ(runs->back().folder, "base/seed-8");
}

TEST_F(ExperimentTest, EveryMistakeIsToldWithItsPlace) {
  const std::string mistakes = Mistakes(
      "variants:\n  base: {a: 1}\n  b/c: {a: 1}\n  d: {}\n  e: {output_dir: x}\n"
      "seeds: [1, 1, -2]\nsweep: {loop.rounds: 3}\n");
  EXPECT_THAT(mistakes, HasSubstr("ab.yaml:2:3: variants.base"));
  EXPECT_THAT(mistakes, HasSubstr("ab.yaml:3:3: variants.b/c"));
  EXPECT_THAT(mistakes, HasSubstr("ab.yaml:4:6: variants.d"));
  EXPECT_THAT(mistakes, HasSubstr("ab.yaml:5:3: variants.e"));
  EXPECT_THAT(mistakes, HasSubstr("ab.yaml:6:12: seeds"));
  EXPECT_THAT(mistakes, HasSubstr("ab.yaml:6:15: seeds"));
  EXPECT_THAT(mistakes, HasSubstr("ab.yaml:7:22: sweep.loop.rounds"));
}

TEST_F(ExperimentTest, NamesThatBecomeOneFolderAreRefused) {
  EXPECT_THAT(Mistakes("sweep: {a: ['x y', x_y]}\n"), HasSubstr("would share the folder a=x_y"));
}

}  // namespace
}  // namespace kgrpo
