// coder_gpt4o/coder.h: from request to answer, with a scripted service: recording and replay.
#include "coder_gpt4o/coder.h"

#include "bench.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

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
    EXPECT_FALSE(after[i].reused);  // this run paid for it
  }
  EXPECT_DOUBLE_EQ(resumed.coder.Spending().cost, 4 * 0.0045);
}

TEST(CoderTest, ReplaysByContentWithoutAService) {
  const auto folder = TestFolder("replayed");
  std::vector<Answered> before;
  {
    Bench bench({{"prices", kPrices}}, RecordedIn(folder));
    before = Play(bench, {"a", "b", "a"});
    Answered failed;
    Asked bad("bad", 10);
    bench.Ask(bad, failed);
    bench.service.Answer(Failed());
  }
  const json options = {{"mode", "replay"}, {"recording", folder.string()}, {"prices", kPrices}};
  const auto source = std::make_shared<Recording>(RecordingFile(folder), Recording::Access::kReplay);
  Bench replay(options, {{}, {}, source});
  const std::vector<Answered> after = Play(replay, {"a", "b", "a"});
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].source, before[i].source);
    EXPECT_EQ(after[i].prompt_tokens, before[i].prompt_tokens);
    EXPECT_EQ(after[i].cost, 0);
    EXPECT_TRUE(after[i].reused);
    EXPECT_FALSE(before[i].reused);
  }
  Answered failed, other, missing;
  Asked bad("bad", 10), same_words("b", 77), unknown("unroll", 3);
  replay.Ask(bad, failed);
  EXPECT_EQ(failed.outcome, KGRPO_CODER_FAILED);
  EXPECT_TRUE(failed.reused);
  replay.Ask(same_words, other);
  EXPECT_EQ(other.source, before[1].source);
  replay.Ask(unknown, missing);
  ASSERT_TRUE(missing.error);
  EXPECT_EQ(missing.error->code(), KGRPO_ERROR_NOT_FOUND);
  EXPECT_THAT(missing.error->what(), HasSubstr("no answer to this request"));
  EXPECT_EQ(replay.service.sent, 0u);
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
  const json live = {{"prices", kPrices}};
  const auto play = [](Bench& bench, double seconds) {
    Answered answered;
    Asked asked = MeasuredAt(seconds, "a", 3);
    bench.Ask(asked, answered);
    if (!bench.service.calls.empty()) {
      EXPECT_THAT(bench.service.calls[0].body.dump(), HasSubstr(asked.diagnosis));
      bench.service.Answer(AnswerOf(Fenced(kKernelC)));
    }
    EXPECT_EQ(answered.source, kKernelC);
  };
  {
    Bench bench(live, RecordedIn(folder));
    play(bench, 12.3e-6);
    EXPECT_EQ(bench.service.sent, 1u);
  }
  {
    Bench resumed(live, RecordedIn(folder));
    play(resumed, 12.9e-6);
    EXPECT_EQ(resumed.service.sent, 0u);
  }
  const auto source = std::make_shared<Recording>(RecordingFile(folder), Recording::Access::kReplay);
  Bench replay({{"mode", "replay"}, {"recording", folder.string()}}, {{}, {}, source});
  play(replay, 14e-6);
  Bench cache({{"mode", "cache"}}, RecordedIn(folder / "own", folder / kRecordingName));
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

}  // namespace
}  // namespace kgrpo::coder_gpt4o
