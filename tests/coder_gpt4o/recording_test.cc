// coder_gpt4o/recording.h: storing exchanges and finding them again.
#include "coder_gpt4o/recording.h"

#include "../cli/host_binary.h"  // Read
#include "asked.h"
#include "fixtures/virtual_sleep.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using namespace std::chrono_literals;
using Access = Recording::Access;

RecordedCompletion Exchange(const std::string& text, double cost = 0.5) { return {AnswerOf(text), cost}; }

// A request that holds no measurements.
RecordedRequest Request(const std::string& body, uint64_t sample) { return MakeRecordedRequest(body, body, sample); }

RecordedCompletion Failure() {
  RecordedCompletion failure;
  failure.completion.message = "the line was cut";
  failure.completion.failure = "connection";
  return failure;
}

TEST(RecordingTest, GivesBackWhatWasKept) {
  Recording recording(TestFolder("kept") / "r.sqlite", Access::kReadWrite);
  RecordedCompletion exchange = Exchange("a \xc3\xa4 \"text\"");
  exchange.completion.finish_reason = "length";
  exchange.completion.refusal = "no";
  exchange.completion.model = "gpt-4o-2024";
  exchange.completion.answer_seconds = 1.5;
  exchange.completion.http_status = 200;
  const RecordedRequest request = Request("{\"a\":1}", ~uint64_t{0});
  recording.Add(request, exchange, true, true);
  const auto found = recording.Find(request, Match::kSample);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->completion.outcome, Completion::Outcome::kAnswered);
  EXPECT_EQ(found->completion.text, "a \xc3\xa4 \"text\"");
  EXPECT_EQ(found->completion.finish_reason, "length");
  EXPECT_EQ(found->completion.refusal, "no");
  EXPECT_EQ(found->completion.model, "gpt-4o-2024");
  EXPECT_EQ(found->completion.prompt_tokens, 1000u);
  EXPECT_EQ(found->completion.completion_tokens, 200u);
  EXPECT_TRUE(found->completion.usage_known);
  EXPECT_EQ(found->completion.answer_seconds, 1.5);
  EXPECT_EQ(found->completion.http_status, 200);
  EXPECT_EQ(found->cost, 0.5);
}

TEST(RecordingTest, FindsByContentAndSample) {
  Recording recording(TestFolder("match") / "r.sqlite", Access::kReadWrite);
  recording.Add(Request("{\"a\":1}", 10), Exchange("ten"), true, true);
  recording.Add(Request("{\"a\":1}", 11), Exchange("eleven"), true, true);
  recording.Add(Request("{\"a\":1}", 12), Failure(), true, true);
  recording.Add(Request("{\"a\":2}", 10), Failure(), true, true);
  const auto text = [&](const char* body, uint64_t sample, Match match) -> std::string {
    const auto found = recording.Find(Request(body, sample), match);
    return !found ? "nothing" : found->completion.message + found->completion.text;
  };
  EXPECT_EQ(text("{\"a\":1}", 11, Match::kSample), "eleven");
  EXPECT_EQ(text("{\"a\":1}", 12, Match::kSample), "nothing");  // a failure is no answer
  EXPECT_EQ(text("{\"a\":1}", 13, Match::kSample), "nothing");
  EXPECT_EQ(text("{\"a\":1}", 10, Match::kContent), "ten");
  EXPECT_EQ(text("{\"a\":1}", 12, Match::kContent), "the line was cut");  // as it was
  EXPECT_EQ(text("{\"a\":1}", 20, Match::kContent),
            "ten");  // another sample: by its number, of those that were answered
  EXPECT_EQ(text("{\"a\":1}", 21, Match::kContent), "eleven");
  EXPECT_EQ(text("{\"a\":2}", 99, Match::kContent), "the line was cut");
  EXPECT_EQ(text("{\"a\":3}", 10, Match::kContent), "nothing");
  EXPECT_EQ(text("{\"a\":1}", 11, Match::kAnswered), "eleven");
  EXPECT_EQ(text("{\"a\":1}", 12, Match::kAnswered), "ten");  // its own is a failure
  EXPECT_EQ(text("{\"a\":2}", 10, Match::kAnswered), "nothing");
  // Asked again after it had failed: the answer counts.
  recording.Add(Request("{\"a\":2}", 10), Exchange("at last"), true, true);
  EXPECT_EQ(text("{\"a\":2}", 10, Match::kSample), "at last");
}

TEST(RecordingTest, BooksWhatAKilledProcessLeftInFlight) {
  const fs::path file = TestFolder("in_flight") / "r.sqlite";
  {
    Recording recording(file, Access::kReadWrite);
    EXPECT_EQ(recording.BookLeftInFlight().calls, 0u);
    RecordedCompletion answered = Exchange("a", 0.25);
    answered.reservation = recording.Reserve(Request("{}", 1), 1);
    recording.Add(Request("{}", 1), answered, true, true);
    recording.Reserve(Request("{}", 2), 0, recording.Reserve(Request("{}", 2), 2));
    recording.Reserve(Request("{}", 3), 4);
    recording.Reserve(Request("{}", 4), 16, recording.Reserve(Request("{}", 4), 8));
    EXPECT_EQ(recording.Spent().cost, 0.25);
  }
  Recording again(file, Access::kReadWrite);
  const LeftInFlight left = again.BookLeftInFlight();
  EXPECT_EQ(left.calls, 2u);
  EXPECT_EQ(left.cost, 20);
  EXPECT_EQ(again.Spent().cost, 20.25);
  EXPECT_EQ(again.Spent().lost_cost, 20);
  EXPECT_EQ(again.BookLeftInFlight().calls, 0u);  // once
  EXPECT_EQ(again.Spent().cost, 20.25);
}

TEST(RecordingTest, ClosedItIsOnePlainFile) {
  const fs::path folder = TestFolder("plain");
  { Recording(folder / "r.sqlite", Access::kReadWrite).Add(Request("{}", 1), Exchange("a"), true, true); }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  Recording replay(folder / "r.sqlite", Access::kReplay);
  EXPECT_TRUE(replay.Find(Request("{}", 1), Match::kContent));
}

TEST(RecordingTest, RefusesWhatIsNoRecording) {
  const fs::path folder = TestFolder("none");
  const auto refusal = [&](Access access, const char* name) -> std::string {
    return test::MessageOf([&] { Recording recording(folder / name, access); }, 0, "");
  };
  EXPECT_THAT(refusal(Access::kReplay, "absent.sqlite"), HasSubstr("no recording at"));
  EXPECT_FALSE(fs::exists(folder / "absent.sqlite"));
  std::ofstream(folder / "text.sqlite") << std::string(4096, 'x');
  EXPECT_THAT(refusal(Access::kReplay, "text.sqlite"), HasSubstr("text.sqlite"));
  EXPECT_THAT(refusal(Access::kReadWrite, "text.sqlite"), HasSubstr("text.sqlite"));
  { Database(folder / "other.sqlite").Execute("CREATE TABLE t(a)"); }
  EXPECT_THAT(refusal(Access::kReplay, "other.sqlite"), HasSubstr("no recording of exchanges"));
  EXPECT_THAT(refusal(Access::kReadWrite, "other.sqlite"), HasSubstr("no recording of exchanges"));
}

// Somebody reads it in a transaction of his own: to write beside him is allowed, to change the file's mode is not.
TEST(RecordingTest, WaitsForAReaderWhenItIsOpened) {
  const fs::path file = TestFolder("reader") / "r.sqlite";
  { const Recording recording(file, Access::kReadWrite); }
  Database reader(file, Database::Mode::kReadWrite);
  reader.Execute("BEGIN; SELECT * FROM spending");
  const VirtualSleep leaves(300ms, [&] { reader.Execute("COMMIT"); });
  EXPECT_NO_THROW(const Recording recording(file, Access::kReadWrite));
  EXPECT_TRUE(leaves.over()) << "it need not have waited";
}

TEST(RecordingTest, WaitsForAWriterButNotOverAndOver) {
  const fs::path file = TestFolder("writer") / "r.sqlite";
  Recording recording(file, Access::kReadWrite, std::chrono::seconds(3));
  Database writer(file, Database::Mode::kReadWrite);
  const auto leave = [&] { writer.Execute("COMMIT"); };
  writer.Execute("BEGIN IMMEDIATE");
  {
    const VirtualSleep leaves(3100ms, leave);  // more than its patience
    EXPECT_THROW(recording.Add(Request("{}", 1), Exchange("a"), true, true), Error);
    EXPECT_FALSE(leaves.over());
  }
  {
    const VirtualSleep leaves(100ms, leave);  // less than it waited before
    EXPECT_THROW(recording.Add(Request("{}", 2), Exchange("b"), true, true), Error);
    EXPECT_FALSE(leaves.over());
  }
  leave();
  recording.Add(Request("{}", 3), Exchange("c"), true, true);
  writer.Execute("BEGIN IMMEDIATE");
  const VirtualSleep leaves(2000ms, leave);
  EXPECT_NO_THROW(recording.Add(Request("{}", 4), Exchange("d"), true, true));
  EXPECT_TRUE(leaves.over());
  EXPECT_EQ(recording.Exchanges(), 2u);
}

TEST(RecordingTest, AnEarlierVersionIsRefusedAndStaysAsItIs) {
  const fs::path file = TestFolder("earlier") / "r.sqlite";
  const std::string sql = test::Read(fs::path(KGRPO_SOURCE_DIR) / "tests/coder_gpt4o/earlier/recording_2_service.sql");
  Database(file).Execute(sql.c_str());
  const std::string before = test::Read(file);
  for (const Access access : {Access::kReplay, Access::kReadWrite}) {
    EXPECT_THAT(test::MessageOf([&] { Recording recording(file, access); }, KGRPO_ERROR_UNSUPPORTED),
                HasSubstr("version 2, not 3"));
  }
  EXPECT_TRUE(test::Read(file) == before) << "it was written to";
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
