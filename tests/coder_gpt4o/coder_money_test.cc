// coder_gpt4o/coder.h: from request to answer, with a scripted service: limits of cost, and cost.
#include "coder_gpt4o/coder.h"

#include "bench.h"
#include "test.h"

#include <deque>

namespace kgrpo::coder_gpt4o {
namespace {

TEST(CoderTest, HoldsCallsBackUntilTheirCostFitsAndThenStops) {
  // A call can cost about $0.044 and costs $0.0045: the limit has room for two at once, and for seven in all.
  Bench bench({{"prices", kPrices}, {"max_cost", 0.09 + 0.0001}});
  std::deque<Asked> asked(40);
  std::deque<Answered> answered(40);
  for (size_t i = 0; i < 40; ++i) bench.Ask(asked[i], answered[i]);
  EXPECT_EQ(bench.service.calls.size(), 2u);
  size_t most = 0;
  while (!bench.service.calls.empty()) {
    most = std::max(most, bench.service.calls.size());
    bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  }
  EXPECT_EQ(most, 2u);
  size_t fine = 0, refused = 0;
  for (const Answered& one : answered) {
    EXPECT_EQ(one.calls, 1);
    if (one.error) {
      ++refused;
      EXPECT_EQ(one.error->code(), KGRPO_ERROR_BUDGET);
      EXPECT_THAT(one.error->what(),
                  AllOf(HasSubstr("of max_cost $0.0901"), HasSubstr("raise it with --set coder.options.max_cost=...")));
    } else {
      ++fine;
    }
  }
  EXPECT_EQ(fine, bench.service.sent);
  EXPECT_EQ(fine + refused, 40u);
  EXPECT_GT(refused, 0u);
  EXPECT_GT(fine, 5u);
  EXPECT_LE(bench.coder.Spending().cost, 0.0901);
  EXPECT_DOUBLE_EQ(bench.coder.Spending().cost, static_cast<double>(fine) * 0.0045);
}

TEST(CoderTest, KnowsWhatTheRunSpentBefore) {
  const auto folder = TestFolder("budget");
  const json options = {{"prices", kPrices}, {"max_cost", 0.05}};
  Asked asked;
  {
    Bench bench(options, RecordedIn(folder));
    for (asked.seed = 2; asked.seed < 4; ++asked.seed) {
      Answered answered;
      bench.Ask(asked, answered);
      bench.service.Answer(AnswerOf(Fenced(kKernelC)));
      EXPECT_FALSE(answered.error);
    }
  }
  Bench resumed(options, RecordedIn(folder));
  Answered answered;
  resumed.Ask(asked, answered);
  ASSERT_TRUE(answered.error);
  EXPECT_EQ(answered.error->code(), KGRPO_ERROR_BUDGET);
  EXPECT_THAT(answered.error->what(), HasSubstr("has cost $0.009"));
}

// Attempts that the service took on and that gave no answer: a stream that broke off, a call that timed out.
TEST(CoderTest, LostAttemptsCostToo) {
  const auto folder = TestFolder("lost");
  Bench bench(json{{"prices", kPrices}}, RecordedIn(folder));
  double all = 0;
  const auto charged = [&](Completion completion, uint64_t text_tokens, double answer) {
    Asked asked("use one warp", bench.service.sent);
    Answered answered;
    bench.Ask(asked, answered);
    const auto prompt_tokens = static_cast<double>(bench.service.calls[0].tokens_at_most - 4096);
    const double lost = completion.lost.attempts * prompt_tokens * 2.5e-6 + static_cast<double>(text_tokens) * 10e-6;
    bench.service.Answer(std::move(completion));
    EXPECT_EQ(bench.metrics.back().first, "coder/lost_cost");
    EXPECT_DOUBLE_EQ(bench.metrics.back().second, lost);
    if (!answered.error) {
      EXPECT_DOUBLE_EQ(answered.cost, lost + answer);
    }
    all += lost + answer;
    EXPECT_NEAR(bench.coder.Spending().cost, all, 1e-12);
  };
  charged(AnswerOf(Fenced(kKernelC)), 0, 0.0045);
  Completion completion = AnswerOf(Fenced(kKernelC));
  completion.lost.attempts = 2;
  completion.lost.bytes = 300;
  charged(completion, 101, 0.0045);
  for (const auto outcome :
       {Completion::Outcome::kFailed, Completion::Outcome::kCancelled, Completion::Outcome::kFatal}) {
    completion = Failed();
    completion.outcome = outcome;
    completion.lost.attempts = completion.lost.silent = 3;
    charged(completion, 3 * 4096, 0);
  }
  completion.lost.silent = 1;
  completion.lost.bytes = 300;
  charged(completion, 4096 + 101, 0);
  completion.lost.bytes = 1 << 20;  // no more is billed than was asked for
  charged(completion, 3 * 4096, 0);
  bench.coder.Cancel();
  EXPECT_NEAR(Recording(folder / kRecordingName, Recording::Access::kReadWrite).Spent().cost, all, 1e-12);
}

TEST(CoderTest, AnAttemptAfterALostOneWaitsUntilItsCostFits) {
  Bench bench(json{{"prices", kPrices}, {"max_cost", 0.1}});
  Asked asked, other("use two warps", 2), third("use three warps", 3);
  Answered answered, second, last;
  bench.Ask(asked, answered);
  bench.Ask(other, second);
  ASSERT_EQ(bench.service.sent, 2u);  // about $0.044 each
  bench.service.Lose({1, 1, 0});
  EXPECT_EQ(bench.service.sent, 2u);
  EXPECT_EQ(answered.calls, 0);  // the other call may leave room
  bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(second.source, kKernelC);
  ASSERT_EQ(bench.service.sent, 3u);
  bench.Ask(third, last);
  EXPECT_EQ(bench.service.sent, 3u);  // there is no room for it beside that
  bench.service.Lose({2, 2, 0});
  ASSERT_TRUE(answered.error);
  EXPECT_EQ(answered.error->code(), KGRPO_ERROR_BUDGET);
  EXPECT_THAT(answered.error->what(),
              AllOf(HasSubstr("of that for attempts that gave no answer"), HasSubstr("and the next call could cost")));
  EXPECT_LE(bench.coder.Spending().cost, 0.1);
  EXPECT_TRUE(last.error);
}

TEST(CoderTest, TellsWhatTheRunSpentWithWhatAStopCutShort) {
  const auto folder = TestFolder("totals");
  Asked asked;
  double lost = 0;
  {
    Bench bench(json{{"prices", kPrices}}, RecordedIn(folder));
    Answered answered;
    bench.Ask(asked, answered);
    Completion cancelled = Failed();
    cancelled.outcome = Completion::Outcome::kCancelled;
    cancelled.lost.attempts = cancelled.lost.silent = 1;
    bench.service.Answer(cancelled);
    lost = bench.coder.Spending().cost;
    EXPECT_GT(lost, 0.04);
  }
  Bench resumed(json{{"prices", kPrices}}, RecordedIn(folder));
  Answered answered;
  resumed.Ask(asked, answered);
  EXPECT_DOUBLE_EQ(resumed.coder.Spending().cost, lost);
  EXPECT_DOUBLE_EQ(resumed.coder.Spending().lost_cost, lost);
  resumed.service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_DOUBLE_EQ(resumed.coder.Spending().cost, lost + 0.0045);
  EXPECT_DOUBLE_EQ(resumed.coder.Spending().lost_cost, lost);
}

TEST(CoderTest, TheLimitAssumesTheLongestAnswerOfAServiceThatIgnoresMaxTokens) {
  Bench bench(json{{"prices", kPrices}, {"max_cost", 1}});
  std::deque<Asked> asked;
  std::deque<Answered> answered(8);
  for (size_t i = 0; i < 8; ++i) asked.emplace_back("use one warp", i);
  for (size_t i = 0; i < 2; ++i) {
    bench.Ask(asked[i], answered[i]);
    Completion completion = AnswerOf(Fenced(kKernelC));
    completion.completion_tokens = 20000;
    bench.service.Answer(completion);
    EXPECT_DOUBLE_EQ(answered[i].cost, 0.2025);
  }
  for (size_t i = 2; i < 8; ++i) bench.Ask(asked[i], answered[i]);
  EXPECT_EQ(bench.service.calls.size(), 2u);  // of $0.2 each, $0.595 is left
  EXPECT_THAT(bench.warnings, testing::ElementsAre(AllOf(HasSubstr("ignores max_tokens (4096)"), HasSubstr("20000"))));
  bench.coder.Cancel();
}

TEST(CoderTest, WarnsOnceOfPromptsThatAreCut) {
  Bench bench;
  for (const uint64_t tokens : {3000, 1000, 1000}) {
    Asked asked("use one warp", tokens);
    asked.code_b += "// " + std::string(10000, 'x') + "\n";
    Answered answered;
    bench.Ask(asked, answered);
    Completion completion = AnswerOf(Fenced(kKernelC));
    completion.prompt_tokens = tokens;
    bench.service.Answer(completion);
    EXPECT_EQ(bench.warnings.size(), tokens == 3000 ? 0u : 1u);
  }
  EXPECT_THAT(bench.warnings[0], AllOf(HasSubstr("1000 tokens in a prompt of"), HasSubstr("OLLAMA_CONTEXT_LENGTH")));
}

// The reserved cost, or another figure, of the calls in flight in a run's recording.
double InFlight(const std::filesystem::path& folder, const char* what = "total(cost)") {
  Database database(folder / kRecordingName, Database::Mode::kReadOnly);
  Statement select(database, std::string("SELECT ") + what + " FROM in_flight");
  return select.Step() ? select.Real(0) : -1;
}

TEST(CoderTest, WritesDownWhatACallCanCostBeforeItIsSent) {
  const auto folder = TestFolder("reserved");
  Bench bench(json{{"prices", kPrices}}, RecordedIn(folder));
  Asked asked, other("use two warps", 2), third("use three warps", 3);
  Answered answered, second, cancelled;
  double at_most = 0;
  bench.on_send = [&] {  // the service has it already: what is not written down by now would be lost
    EXPECT_EQ(InFlight(folder, "count(*)"), 1);
    at_most = InFlight(folder);
  };
  bench.Ask(asked, answered);
  EXPECT_GT(at_most, 4096 * 10e-6);  // max_tokens, and the prompt
  EXPECT_LT(at_most, 0.05);
  EXPECT_EQ(bench.service.calls[0].may_send({1, 1, 0}), Leave::kSend);
  EXPECT_NEAR(InFlight(folder), 2 * at_most, 1e-9);  // the attempt that was lost, and the next one
  bench.on_send = nullptr;
  bench.Ask(other, second);
  EXPECT_EQ(InFlight(folder, "count(*)"), 2);
  bench.service.Answer(Failed());
  EXPECT_EQ(InFlight(folder, "count(*)"), 1);
  bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(InFlight(folder, "count(*)"), 0);
  bench.Ask(third, cancelled);
  EXPECT_EQ(InFlight(folder, "count(*)"), 1);
  bench.coder.Cancel();  // before it was lost to anybody
  EXPECT_EQ(cancelled.message, "cancelled");
  EXPECT_EQ(InFlight(folder, "count(*)"), 0);
  EXPECT_DOUBLE_EQ(bench.coder.Spending().cost, 0.0045);
}

// Calls that wait for their turn, or for the end of an outage, cannot be billed.
TEST(CoderTest, WritesDownOnlyWhatIsOnTheWire) {
  const auto folder = TestFolder("on_the_wire");
  Bench bench(json{{"prices", kPrices}}, RecordedIn(folder));
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  const auto& call = bench.service.calls[0];
  const double at_most = InFlight(folder);
  call.waits({});  // nobody was there
  EXPECT_EQ(InFlight(folder, "count(*)"), 0);
  EXPECT_EQ(call.may_send({}), Leave::kSend);
  EXPECT_EQ(InFlight(folder), at_most);
  call.waits({1, 1, 0});  // this one was lost
  EXPECT_EQ(InFlight(folder), at_most);
  EXPECT_EQ(call.may_send({1, 1, 0}), Leave::kSend);
  EXPECT_NEAR(InFlight(folder), 2 * at_most, 1e-9);
  bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(InFlight(folder, "count(*)"), 0);
}

TEST(CoderTest, CountsWhatAKilledProcessHadInFlight) {
  const auto folder = TestFolder("killed");
  const json options = {{"prices", kPrices}, {"max_cost", 0.1}};
  double at_most = 0;
  {
    Recording killed(folder / kRecordingName, Recording::Access::kReadWrite);  // nobody settles it
    killed.Reserve({}, at_most = 0.09);
  }
  Bench resumed(options, RecordedIn(folder));
  Asked asked;
  Answered answered;
  resumed.Ask(asked, answered);
  ASSERT_TRUE(answered.error);
  EXPECT_EQ(answered.error->code(), KGRPO_ERROR_BUDGET);
  EXPECT_THAT(answered.error->what(), AllOf(HasSubstr("has cost $0.09 of max_cost $0.1"),
                                            HasSubstr("up to $0.09 of that for attempts that gave no answer")));
  EXPECT_THAT(resumed.warnings, testing::ElementsAre(HasSubstr("1 call was in flight when the run's process was")));
  EXPECT_DOUBLE_EQ(resumed.coder.Spending().lost_cost, at_most);
}

TEST(CoderTest, SendsNothingWhoseCostCannotBeWrittenDown) {
  for (const bool limited : {true, false}) {
    const auto folder = TestFolder("unwritten");
    json options = {{"prices", kPrices}};
    if (limited) options["max_cost"] = 10;
    Recordings recordings;
    recordings.open_run = [&] {
      return std::make_shared<Recording>(folder / kRecordingName, Recording::Access::kReadWrite,
                                         std::chrono::milliseconds(50));
    };
    Bench bench(options, recordings);
    Asked asked, other("use two warps", 2);
    Answered first, second;
    bench.Ask(asked, first);
    bench.service.Answer(AnswerOf(Fenced(kKernelC)));
    Database writer(folder / kRecordingName);
    writer.Execute("BEGIN IMMEDIATE");  // stands for a disk that is full
    bench.Ask(other, second);
    EXPECT_EQ(bench.service.sent, limited ? 1u : 2u);
    EXPECT_THAT(bench.warnings, testing::ElementsAre(HasSubstr("cannot be recorded")));
    if (!limited) continue;
    ASSERT_TRUE(second.error);
    EXPECT_EQ(second.error->code(), KGRPO_ERROR_UNAVAILABLE);
    EXPECT_THAT(second.error->what(), HasSubstr("could exceed max_cost"));
    writer.Execute("COMMIT");
    Answered again;  // nothing is held back for the one that was not sent
    bench.Ask(other, again);
    EXPECT_EQ(bench.service.sent, 2u);
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
