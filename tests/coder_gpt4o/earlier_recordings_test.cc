// Recordings written by earlier versions of the plugin (tests/coder_gpt4o/earlier): their answers are found, a run can
// continue in them, and one that cannot be read stays unchanged.
#include "coder_gpt4o/recording.h"

#include "../cli/host_binary.h"  // Read
#include "asked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace kgrpo::coder_gpt4o {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Access = Recording::Access;

constexpr const char* kService = "https://service";

// The recording of an earlier version, in a folder of its own: `{}` was answered for sample 1, failed for sample 2.
fs::path Earlier(const std::string& name) {
  const fs::path file = TestFolder("earlier_" + name) / "r.sqlite";
  const std::string sql = test::Read(fs::path(KGRPO_SOURCE_DIR) / "tests/coder_gpt4o/earlier" / (name + ".sql"));
  Database(file).Execute(sql.c_str());
  return file;
}

RecordedRequest Request(uint64_t sample, const std::string& service = kService) {
  RecordedRequest request = MakeRecordedRequest("{}", "{}", sample);
  request.service = service;
  return request;
}

class EarlierRecordingTest : public ::testing::TestWithParam<const char*> {
 protected:
  bool names_services() const { return GetParam() == std::string("recording_2_service"); }
};

TEST_P(EarlierRecordingTest, IsReplayedWithoutBeingWrittenTo) {
  const fs::path file = Earlier(GetParam());
  const std::string before = test::Read(file);
  Recording replay(file, Access::kReplay);
  const auto answer = replay.Find(Request(1), Match::kContent);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->completion.text, "one");
  EXPECT_EQ(answer->completion.completion_tokens, 200u);
  EXPECT_EQ(answer->cost, 0.5);
  const auto failure = replay.Find(Request(2), Match::kContent);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->completion.message, "out of order");
  EXPECT_EQ(replay.Exchanges(), 2u);
  EXPECT_TRUE(test::Read(file) == before) << "it was written to";
}

TEST_P(EarlierRecordingTest, ARunGoesOnInIt) {
  const fs::path file = Earlier(GetParam());
  {
    Recording recording(file, Access::kReadWrite);
    EXPECT_EQ(recording.Spent(), 0.75);
    EXPECT_EQ(recording.LostCost(), names_services() ? 0.25 : 0.0);
    // An answer is taken for one of the service that it is known to be of, and for none where nobody kept which.
    EXPECT_EQ(recording.Find(Request(1), Match::kSample).has_value(), names_services());
    EXPECT_FALSE(recording.Find(Request(1, "https://another"), Match::kSample));
    const auto paid = recording.Find(Request(1), Match::kContent);
    ASSERT_TRUE(paid);
    EXPECT_TRUE(paid->paid) << "what was recorded before was paid for";
    recording.Add(Request(3), {AnswerOf("three"), 0.5, 0.125, false}, true, true);
  }
  Recording again(file, Access::kReadWrite);
  EXPECT_EQ(again.Exchanges(), 3u);
  EXPECT_EQ(again.Spent(), 1.25);
  EXPECT_EQ(again.LostCost(), names_services() ? 0.375 : 0.125);
  const auto found = again.Find(Request(3), Match::kSample);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->completion.text, "three");
  EXPECT_FALSE(found->paid);
  EXPECT_EQ(again.Find(Request(1), Match::kContent)->completion.text, "one");
}

INSTANTIATE_TEST_SUITE_P(EachOfThisVersion, EarlierRecordingTest,
                         ::testing::Values("recording_2", "recording_2_service"),
                         [](const auto& info) { return std::string(info.param); });

TEST(EarlierRecordingsTest, VersionOneIsRefusedAndStaysAsItIs) {
  const fs::path file = Earlier("recording_1");
  const std::string before = test::Read(file);
  for (const Access access : {Access::kReplay, Access::kReadWrite}) {
    try {
      Recording recording(file, access);
      ADD_FAILURE() << "it was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), KGRPO_ERROR_UNSUPPORTED);
      EXPECT_THAT(error.what(), HasSubstr("r.sqlite was recorded by another version of the plugin"));
      EXPECT_THAT(error.what(), HasSubstr("version 1, not 2"));
    }
  }
  EXPECT_TRUE(test::Read(file) == before) << "it was written to";
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
