// coder_gpt4o/coder.h: from request to answer, with a scripted service: answers and cost in mode cache.
#include "coder_gpt4o/coder.h"

#include "bench.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

TEST(CoderTest, ACacheAnswersForItsOwnServiceAlone) {
  const auto folder = TestFolder("services");
  const auto options = [](const char* url) { return json{{"mode", "cache"}, {"prices", kPrices}, {"base_url", url}}; };
  const auto sent = [&](const char* run, const char* url) {
    Bench bench(options(url), RecordedIn(folder / run, folder / "cache.sqlite"));
    Play(bench, {"a"});
    return bench.service.sent;
  };
  EXPECT_EQ(sent("first", "http://localhost:1/v1"), 1u);
  EXPECT_EQ(sent("second", "https://api.openai.com/v1"), 1u);
  EXPECT_EQ(sent("third", "http://localhost:1/v2"), 1u);
  EXPECT_EQ(sent("fourth", "http://localhost:1/v1/?x=y"), 0u);
  EXPECT_EQ(sent("fifth", "https://api.openai.com/v1"), 0u);
  // A replay stands for whichever service it was.
  const auto source = std::make_shared<Recording>(folder / "first" / kRecordingName, Recording::Access::kReplay);
  Bench replay({{"mode", "replay"}, {"recording", (folder / "first").string()}, {"base_url", "https://other/v1"}},
               {{}, {}, source});
  EXPECT_EQ(Play(replay, {"a"}).front().outcome, KGRPO_CODER_OK);
}

TEST(CoderTest, ACachePaysOnlyForWhatIsNew) {
  const auto folder = TestFolder("cached");
  const json options = {{"mode", "cache"}, {"prices", kPrices}};
  {
    Bench first(options, RecordedIn(folder / "one", folder / "cache.sqlite"));
    const std::vector<Answered> answered = Play(first, {"a", "b", "a"});
    EXPECT_EQ(first.service.sent, 2u);
    EXPECT_EQ(answered[2].source, answered[0].source);
    EXPECT_EQ(answered[2].cost, 0);
    EXPECT_FALSE(answered[0].reused);
    EXPECT_TRUE(answered[2].reused);
  }
  {
    Bench second(options, RecordedIn(folder / "two", folder / "cache.sqlite"));
    const std::vector<Answered> answered = Play(second, {"b", "c"});
    EXPECT_EQ(second.service.sent, 1u);
    EXPECT_EQ(answered[0].cost, 0);
    EXPECT_TRUE(answered[0].reused);
    EXPECT_FALSE(answered[1].reused);
    EXPECT_DOUBLE_EQ(second.coder.Spending().cost, 0.0045);
  }
  {  // resumed: it is known which of them the run had paid for
    Bench resumed(options, RecordedIn(folder / "two", folder / "cache.sqlite"));
    const std::vector<Answered> answered = Play(resumed, {"b", "c"});
    EXPECT_EQ(resumed.service.sent, 0u);
    EXPECT_TRUE(answered[0].reused);
    EXPECT_FALSE(answered[1].reused);
    EXPECT_DOUBLE_EQ(answered[1].cost, 0.0045);
  }
  // Answers from the cache stand in the run's own recording too, so that the run can be replayed.
  Recording own(folder / "two" / kRecordingName, Recording::Access::kReplay);
  EXPECT_EQ(own.Exchanges(), 2u);
  EXPECT_DOUBLE_EQ(own.Spent().cost, 0.0045);
}

TEST(CoderTest, WhatACacheWasFilledForIsNoneOfItsCost) {
  const auto folder = TestFolder("cache_cost");
  const json options = {{"mode", "cache"}, {"prices", kPrices}};
  {
    Bench bench(options, RecordedIn(folder / "one", folder / "cache.sqlite"));
    Play(bench, {"a"});
  }
  EXPECT_EQ(Recording(folder / "cache.sqlite", Recording::Access::kReplay).Spent().cost, 0);
  EXPECT_DOUBLE_EQ(Recording(folder / "one" / kRecordingName, Recording::Access::kReplay).Spent().cost, 0.0045);
  // The same file by another name: what is paid counts once, and is kept once.
  std::filesystem::create_directories(folder / "two");
  std::filesystem::create_symlink(folder / "two", folder / "alias");
  {
    Bench bench(options, RecordedIn(folder / "two", folder / "alias" / kRecordingName));
    Play(bench, {"a", "a"});
    EXPECT_EQ(bench.service.sent, 1u);
  }
  Recording same(folder / "two" / kRecordingName, Recording::Access::kReplay);
  EXPECT_DOUBLE_EQ(same.Spent().cost, 0.0045);
  EXPECT_EQ(same.Exchanges(), 2u);  // one a sample
}

TEST(CoderTest, ACacheDoesNotAskForAnAnswerBecauseAnotherFailed) {
  const auto folder = TestFolder("failure_in_cache");
  {
    Bench bench(json::object(), RecordedIn(folder));
    Asked asked("a", 0);
    Answered failed;
    bench.Ask(asked, failed);
    bench.service.Answer(Failed());
    asked.seed = 7;
    bench.Ask(asked, failed);
    bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  }
  Bench cache({{"mode", "cache"}}, RecordedIn(folder / "own", folder / kRecordingName));
  EXPECT_EQ(Play(cache, {"a"})[0].source, kKernelC);
  EXPECT_EQ(cache.service.sent, 0u);
}

TEST(CoderTest, SpendingThatCannotBeKeptEndsARunWithALimit) {
  for (const bool limited : {false, true}) {
    const auto folder = TestFolder("unkept");
    json options = {{"mode", "cache"}, {"prices", kPrices}};
    if (limited) options["max_cost"] = 5;
    Bench bench(options, RecordedIn(folder, folder / "cache.sqlite"));
    Play(bench, {"a"});
    { Database(folder / kRecordingName).Execute("DROP TABLE spending"); }
    Asked asked("b");
    Answered answered;
    bench.Ask(asked, answered);
    bench.service.Answer(AnswerOf(Fenced(kKernelC)));
    EXPECT_THAT(bench.warnings, testing::ElementsAre(HasSubstr("cannot be recorded")));
    EXPECT_EQ(answered.calls, 1);
    if (limited) {
      ASSERT_TRUE(answered.error);
      EXPECT_EQ(answered.error->code(), KGRPO_ERROR_UNAVAILABLE);
      EXPECT_THAT(answered.error->what(),
                  AllOf(HasSubstr("cannot be recorded in"), HasSubstr("no such table: spending")));
    } else {
      EXPECT_EQ(answered.source, kKernelC);
    }
    EXPECT_EQ(Recording(folder / "cache.sqlite", Recording::Access::kReadWrite).Exchanges(), 2u);  // the cache has it
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
