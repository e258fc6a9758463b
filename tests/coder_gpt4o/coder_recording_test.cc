// coder_gpt4o/coder.h: from request to answer, with a scripted service: what is recorded, replayed and cached.
#include "coder_gpt4o/coder.h"

#include "bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kgrpo::coder_gpt4o {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Asks for these suggestions, of as many samples, and answers whatever reaches the service.
std::vector<Answered> Play(Bench& bench, const std::vector<std::string>& suggestions) {
  std::vector<Answered> answered(suggestions.size());
  for (size_t i = 0; i < suggestions.size(); ++i) {
    Asked asked(suggestions[i], i);
    bench.Ask(asked, answered[i]);
    while (!bench.service.calls.empty())
      bench.service.Answer(
          AnswerOf(Fenced(kKernelC + ("// " + suggestions[i]) + std::to_string(bench.service.sent) + "\n")));
  }
  return answered;
}

TEST(CoderTest, AResumedRunDoesNotPayTwice) {
  const auto folder = TestFolder("resumed");
  std::vector<Answered> before;
  {
    Bench bench({{"prices", kPrices}}, RecordedIn(folder));
    before = Play(bench, {"a", "a", "b"});
    EXPECT_EQ(bench.service.sent, 3u);  // the same words of another sample are asked anew
  }
  Bench resumed({{"prices", kPrices}}, RecordedIn(folder));
  const std::vector<Answered> after = Play(resumed, {"a", "a", "b", "c"});
  EXPECT_EQ(resumed.service.sent, 1u);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].source, before[i].source);
    EXPECT_EQ(after[i].cost, before[i].cost);
  }
  EXPECT_DOUBLE_EQ(resumed.coder.spent(), 4 * 0.0045);
}

TEST(CoderTest, ReplaysByContentWithoutAService) {
  const auto folder = TestFolder("replayed");
  std::vector<Answered> before;
  {
    Bench bench({{"prices", kPrices}, {"continuations", 1}}, RecordedIn(folder));
    before = Play(bench, {"a", "b", "a"});
    Answered cut, failed;
    Asked long_one("long", 9), bad("bad", 10);
    bench.Ask(long_one, cut);
    bench.service.Answer(AnswerOf(Fenced(kKernelC).substr(0, 60), "length"));
    bench.service.Answer(AnswerOf(Fenced(kKernelC).substr(60)));
    bench.Ask(bad, failed);
    bench.service.Answer(Failed());
  }
  const json options = {{"mode", "replay"}, {"recording", folder.string()}, {"prices", kPrices}, {"continuations", 1}};
  const auto source = std::make_shared<Recording>(RecordingFile(folder), Recording::Access::kReplay);
  Bench replay(options, {{}, {}, source});
  const std::vector<Answered> after = Play(replay, {"a", "b", "a"});
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].source, before[i].source);
    EXPECT_EQ(after[i].prompt_tokens, before[i].prompt_tokens);
    EXPECT_EQ(after[i].cost, 0);
  }
  Answered cut, failed, other, missing;
  Asked long_one("long", 9), bad("bad", 10), same_words("b", 77), unknown("unroll", 3);
  replay.Ask(long_one, cut);
  EXPECT_EQ(cut.source, kKernelC);
  replay.Ask(bad, failed);
  EXPECT_EQ(failed.outcome, KGRPO_CODER_FAILED);
  replay.Ask(same_words, other);
  EXPECT_EQ(other.source, before[1].source);
  replay.Ask(unknown, missing);
  ASSERT_TRUE(missing.error);
  EXPECT_EQ(missing.error->code(), KGRPO_ERROR_NOT_FOUND);
  EXPECT_THAT(missing.error->what(), AllOf(HasSubstr("no answer to this request"), HasSubstr("message 2 (user), line"),
                                           HasSubstr("is \"unroll\", recorded is \"")));
  EXPECT_EQ(replay.service.sent, 0u);
}

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

// A process that measures the reference kernel anew finds another time, and words and counters that go with it.
Asked MeasuredAt(double seconds, const std::string& suggestion, uint64_t sample) {
  Asked asked(suggestion, sample);
  asked.current.seconds = seconds;
  asked.diagnosis = "bound by memory: " + std::to_string(seconds * 1e6) + " us";
  asked.registers.value = seconds * 1e6;
  return asked;
}

TEST(CoderTest, WhatIsMeasuredAnewIsNotAskedAnew) {
  const auto folder = TestFolder("measured");
  const json live = {{"prices", kPrices}, {"continuations", 1}};
  const auto play = [](Bench& bench, double seconds) {
    Answered answered;
    Asked asked = MeasuredAt(seconds, "a", 3);
    bench.Ask(asked, answered);
    if (!bench.service.calls.empty()) {
      EXPECT_THAT(bench.service.calls[0].body.dump(), HasSubstr(asked.diagnosis));
      bench.service.Answer(AnswerOf(Fenced(kKernelC).substr(0, 60), "length"));
      bench.service.Answer(AnswerOf(Fenced(kKernelC).substr(60)));
    }
    EXPECT_EQ(answered.source, kKernelC);
  };
  {
    Bench bench(live, RecordedIn(folder));
    play(bench, 12.3e-6);
    EXPECT_EQ(bench.service.sent, 2u);
  }
  {
    Bench resumed(live, RecordedIn(folder));
    play(resumed, 12.9e-6);
    EXPECT_EQ(resumed.service.sent, 0u);
  }
  const auto source = std::make_shared<Recording>(RecordingFile(folder), Recording::Access::kReplay);
  Bench replay({{"mode", "replay"}, {"recording", folder.string()}, {"continuations", 1}}, {{}, {}, source});
  play(replay, 14e-6);
  // Another kernel is another question, and what differs is not what was measured.
  Asked other = MeasuredAt(14e-6, "b", 3);
  Answered missing;
  replay.Ask(other, missing);
  ASSERT_TRUE(missing.error);
  EXPECT_THAT(missing.error->what(), AllOf(HasSubstr("is \"b\", recorded is \"a\""), Not(HasSubstr("takes"))));
  Bench cache({{"mode", "cache"}, {"continuations", 1}}, RecordedIn(folder / "own", folder / kRecordingName));
  play(cache, 11e-6);
  EXPECT_EQ(cache.service.sent, 0u);
}

TEST(CoderTest, KernelsThatOnlyMeasurementsTellApartAreNotTheSame) {
  const auto folder = TestFolder("apart");
  Bench bench({{"prompt",
                {{"user",
                  "It takes {{current.time}}. {{#last_suggestion}}{{code_b}}{{/last_suggestion}}"
                  "{{suggestion}}"}}}},
              RecordedIn(folder));
  for (const char* kernel : {kKernelB, kKernelC, kKernelB}) {
    Asked asked;
    asked.code_b = kernel;
    Answered answered;
    bench.Ask(asked, answered);
    if (!bench.service.calls.empty()) bench.service.Answer(AnswerOf("no idea"));
    EXPECT_EQ(answered.calls, 1);
  }
  EXPECT_EQ(bench.service.sent, 2u);
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
  }
  {
    Bench second(options, RecordedIn(folder / "two", folder / "cache.sqlite"));
    const std::vector<Answered> answered = Play(second, {"b", "c"});
    EXPECT_EQ(second.service.sent, 1u);
    EXPECT_EQ(answered[0].cost, 0);
    EXPECT_DOUBLE_EQ(second.coder.spent(), 0.0045);
  }
  // What came from the cache stands in the run's own recording too, so that the run can be replayed.
  Recording own(folder / "two" / kRecordingName, Recording::Access::kReplay);
  EXPECT_EQ(own.Exchanges(), 2u);
  EXPECT_DOUBLE_EQ(own.Spent(), 0.0045);
}

TEST(CoderTest, WhatACacheWasFilledForIsNoneOfItsCost) {
  const auto folder = TestFolder("cache_cost");
  const json options = {{"mode", "cache"}, {"prices", kPrices}};
  {
    Bench bench(options, RecordedIn(folder / "one", folder / "cache.sqlite"));
    Play(bench, {"a"});
  }
  EXPECT_EQ(Recording(folder / "cache.sqlite", Recording::Access::kReplay).Spent(), 0);
  EXPECT_DOUBLE_EQ(Recording(folder / "one" / kRecordingName, Recording::Access::kReplay).Spent(), 0.0045);
  // The same file by another name: what is paid counts once, and is kept once.
  std::filesystem::create_directories(folder / "two");
  std::filesystem::create_symlink(folder / "two", folder / "alias");
  {
    Bench bench(options, RecordedIn(folder / "two", folder / "alias" / kRecordingName));
    Play(bench, {"a", "a"});
    EXPECT_EQ(bench.service.sent, 1u);
  }
  Recording same(folder / "two" / kRecordingName, Recording::Access::kReplay);
  EXPECT_DOUBLE_EQ(same.Spent(), 0.0045);
  EXPECT_EQ(same.Exchanges(), 2u);  // one a sample
}

TEST(CoderTest, ACacheLooksAgainBeforeItPays) {
  const auto folder = TestFolder("looks_again");
  const json options = {{"mode", "cache"}, {"prices", kPrices}};
  Bench other(options, RecordedIn(folder / "one", folder / "cache.sqlite"));
  Bench bench(options, RecordedIn(folder / "two", folder / "cache.sqlite"));
  // The other one is answered right after this one's look into the cache.
  bench.on_metric = [&] { Play(other, {"a"}); };
  const std::vector<Answered> answered = Play(bench, {"a"});
  EXPECT_EQ(other.service.sent, 1u);
  EXPECT_EQ(bench.service.sent, 0u);
  EXPECT_EQ(answered[0].calls, 1);
  EXPECT_EQ(answered[0].outcome, KGRPO_CODER_OK);
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
    std::deque<Asked> asked;
    std::deque<Answered> answered(2);
    for (uint64_t i = 0; i < 2; ++i) {
      asked.emplace_back("b", i);
      bench.Ask(asked[i], answered[i]);
    }
    bench.service.Answer(AnswerOf(Fenced(kKernelC)));
    EXPECT_THAT(bench.warnings, testing::ElementsAre(HasSubstr("cannot be recorded")));
    for (const Answered& one : answered) {
      EXPECT_EQ(one.calls, 1);
      if (!limited) {
        EXPECT_EQ(one.source, kKernelC);
        continue;
      }
      ASSERT_TRUE(one.error);
      EXPECT_EQ(one.error->code(), KGRPO_ERROR_UNAVAILABLE);
      EXPECT_THAT(one.error->what(), AllOf(HasSubstr("cannot be kept in"), HasSubstr("no such table: spending")));
    }
    EXPECT_EQ(Recording(folder / "cache.sqlite", Recording::Access::kReadWrite).Exchanges(), 2u);  // the cache has it
  }
}

TEST(CoderTest, ACacheDoesNotAskTwiceAtOnce) {
  const auto folder = TestFolder("at_once");
  Bench bench({{"mode", "cache"}}, RecordedIn(folder, folder / "cache.sqlite"));
  std::deque<Asked> asked;
  std::deque<Answered> answered(3);
  for (uint64_t i = 0; i < 3; ++i) {
    asked.emplace_back("a", i);
    bench.Ask(asked[i], answered[i]);
  }
  EXPECT_EQ(bench.service.sent, 1u);
  bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  for (const Answered& one : answered) EXPECT_EQ(one.source, kKernelC);
  // A failure is not kept: the next one asks again.
  Asked other("b");
  Answered failed, again;
  bench.Ask(other, failed);
  bench.service.Answer(Failed());
  EXPECT_EQ(failed.outcome, KGRPO_CODER_FAILED);
  bench.Ask(other, again);
  EXPECT_EQ(bench.service.calls.size(), 1u);
  bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(again.source, kKernelC);
}

TEST(CoderTest, NothingIsKeptUnlessItIsToBeRecorded) {
  const auto folder = TestFolder("unrecorded");
  {
    Bench bench({{"record", false}, {"prices", kPrices}}, RecordedIn(folder));
    Play(bench, {"a"});
  }
  Recording recording(folder / kRecordingName, Recording::Access::kReplay);
  EXPECT_EQ(recording.Exchanges(), 0u);
  EXPECT_DOUBLE_EQ(recording.Spent(), 0.0045);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
