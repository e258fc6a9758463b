// Every file in tests/model/broken_rollouts given to `kgrpo-model update`: the whole message must be that of the
// .expected file beside it, and the output folder must be as it was. Files named real_* go through policy_qwen and
// trainer_grpo, the others through the small plugin of tests/fixtures/plugins. To write the expected files anew after a
// deliberate change of wording: KGRPO_WRITE_EXPECTED=1 model_test, then read the diff.
#include "base/directories.h"
#include "host_binary.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::Read;
using test::Result;
using test::RunModel;
using test::Write;

const fs::path& Folder() {
  static const fs::path folder = fs::path(KGRPO_SOURCE_DIR) / "tests" / "model" / "broken_rollouts";
  return folder;
}

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(Folder())) {
    if (entry.path().extension() == ".jsonl") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A folder with a pipeline for each kind of case; "updated" is there, and empty, for every other case.
class BrokenRollouts : public testing::TestWithParam<std::string> {
 protected:
  BrokenRollouts() {
    Write(directory_.path() / "fakes.yaml",
          "policy: {plugin: fakes, options: {model: random}}\ntrainer: {plugin: fakes}\nproblems: {train: [none]}\n");
    Write(directory_.path() / "real.yaml",
          "policy: {plugin: policy_qwen, options: {model: " KGRPO_SOURCE_DIR
          "/tests/golden/policy/qwen2}}\ntrainer: {plugin: trainer_grpo}\nproblems: {train: [none]}\n");
  }

  Result Update(const std::string& rollouts, const std::string& pipeline = "fakes.yaml") {
    return RunModel(directory_.path(), "-q update " + pipeline + " --rollouts " + rollouts + " --out updated");
  }

  TemporaryDirectory directory_;
};

TEST_P(BrokenRollouts, HasItsExactMessage) {
  const std::string file = GetParam() + ".jsonl";
  fs::copy(Folder() / file, directory_.path() / file);
  const bool empty_folder = GetParam().size() % 2 == 0;
  if (empty_folder) fs::create_directory(directory_.path() / "updated");
  const Result result = Update(file, GetParam().starts_with("real_") ? "real.yaml" : "fakes.yaml");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, "");
  const fs::path expected = Folder() / (GetParam() + ".expected");
  if (std::getenv("KGRPO_WRITE_EXPECTED") != nullptr) Write(expected, result.err);
  EXPECT_EQ(result.err, Read(expected));
  EXPECT_EQ(fs::exists(directory_.path() / "updated"), empty_folder);
  if (empty_folder) {
    EXPECT_TRUE(fs::is_empty(directory_.path() / "updated"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, BrokenRollouts, testing::ValuesIn(Cases()), [](const auto& info) { return info.param; });

using BrokenRolloutFiles = BrokenRollouts;

TEST_F(BrokenRolloutFiles, ThatAreNoFiles) {
  const Result missing = Update("nothing.jsonl");
  EXPECT_EQ(missing.code, 3);
  EXPECT_EQ(missing.err, "error: cannot read nothing.jsonl: No such file or directory\n");
  fs::create_directory(directory_.path() / "folder.jsonl");
  const Result folder = Update("folder.jsonl");
  EXPECT_EQ(folder.code, 3);
  EXPECT_EQ(folder.err, "error: cannot read folder.jsonl: it is a folder; name a file of JSON lines\n");
  const Result standard = Update("-");  // nothing is on standard input
  EXPECT_EQ(standard.code, 3);
  EXPECT_EQ(standard.err,
            "error: <stdin>: holds no sample: it must have one JSON object a line (kgrpo-model update --help shows "
            "it)\n");
  EXPECT_FALSE(fs::exists(directory_.path() / "updated"));
}

TEST_F(BrokenRolloutFiles, LeaveAFullFolderAlone) {
  fs::copy(Folder() / "not_json.jsonl", directory_.path() / "in.jsonl");
  Write(directory_.path() / "results" / "keep", "precious");
  const Result result = RunModel(directory_.path(), "-q update fakes.yaml --rollouts in.jsonl --out results");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err, "error: results is not empty: choose another --out, or delete it\n");
  EXPECT_EQ(Read(directory_.path() / "results" / "keep"), "precious");
}

TEST(BrokenRolloutCases, AreMany) { EXPECT_GE(Cases().size(), 25U); }

}  // namespace
}  // namespace kgrpo
