// Rewards written as expressions: permitted names, the reward of a round without a kernel, and refusals.
#include "reward_expression/expression_reward.h"

#include "test.h"

#include <kgrpo/sdk/text.h>

namespace kgrpo::reward {
namespace {

kgrpo_evaluation Kernel(bool compiled, bool correct, double seconds) {
  kgrpo_evaluation evaluation = {};
  evaluation.struct_size = sizeof(evaluation);
  evaluation.compiled = compiled;
  evaluation.correct = correct;
  evaluation.seconds = seconds;
  evaluation.speedup = correct ? 1e-3 / seconds : 0;
  return evaluation;
}

// The third of four rounds: the reference takes 1 ms, the current kernel 0.5 ms, the candidate 0.25 ms; the best before
// was 5 times as fast.
struct Round {
  kgrpo_evaluation baseline = Kernel(true, true, 1e-3), current = Kernel(true, true, 0.5e-3);
  kgrpo_evaluation candidate = Kernel(true, true, 0.25e-3), earlier = Kernel(true, true, 0.2e-3);
  const kgrpo_evaluation* history[2] = {&earlier, nullptr};
  kgrpo_coder_answer answer = {};
  kgrpo_metric metric = Measured("registers", 42);
  bool has_candidate = true, unchanged = false;

  kgrpo_reward_request request() {
    candidate.metrics = &metric;
    candidate.metric_count = 1;
    kgrpo_reward_request made = {};
    made.struct_size = sizeof(made);
    made.baseline = &baseline;
    made.current = &current;
    made.candidate = has_candidate ? &candidate : nullptr;
    made.answer = &answer;
    made.unchanged = unchanged;
    made.round = 2;
    made.rounds = 4;
    made.history = history;
    return made;
  }
  double Score(const std::string& expression, const std::string& no_kernel = "not_applicable ? 0 : -0.5") {
    return ExpressionReward(nlohmann::json{{"score", expression}, {"no_kernel", no_kernel}}.dump()).Score(request());
  }
};

std::string ErrorOf(const std::function<void()>& body, kgrpo_error_code code = KGRPO_ERROR_INVALID) {
  return test::MessageOf(body, code);
}

TEST(RewardExpression, NamesWhatTheRoundCameTo) {
  Round round;
  EXPECT_DOUBLE_EQ(round.Score("0.3 + log2(min(speedup, 8))"), 2.3);
  EXPECT_DOUBLE_EQ(round.Score("seconds / baseline_seconds"), 0.25);
  EXPECT_DOUBLE_EQ(round.Score("speedup - previous_speedup"), 2);
  EXPECT_DOUBLE_EQ(round.Score("best_speedup + 10 * round + 100 * rounds"), 5 + 20 + 400);
  EXPECT_DOUBLE_EQ(round.Score("metric(\"registers\") / 2"), 21);
  EXPECT_DOUBLE_EQ(round.Score("clamp(speedup, 0, 3)"), 3);
  EXPECT_DOUBLE_EQ(round.Score("min(speedup, 3, 5) + 10 * max(speedup, 3, 5)"), 53);
  EXPECT_DOUBLE_EQ(round.Score("abs(-speedup) + sqrt(speedup) + ln(exp(speedup)) + log10(1000) + log2(8)"), 16);
  EXPECT_DOUBLE_EQ(round.Score("compiled + 2 * correct + 4 * unchanged"), 3);
}

TEST(RewardExpression, PaysTheOriginalsTable) {
  const std::string table = "compiled == 0 ? -1 : correct == 0 ? -0.5 : 0.3 + speedup";
  Round round;
  EXPECT_DOUBLE_EQ(round.Score(table), 4.3);
  round.candidate = Kernel(true, false, 0);
  EXPECT_DOUBLE_EQ(round.Score(table), -0.5);
  EXPECT_DOUBLE_EQ(round.Score("speedup"), 0) << "a wrong kernel has no speedup";
  round.candidate = Kernel(false, false, 0);
  EXPECT_DOUBLE_EQ(round.Score(table), -1);
}

TEST(RewardExpression, ARoundWithoutAKernelHasItsOwn) {
  Round round;
  round.has_candidate = false;
  const std::string own = "1 * not_applicable + 2 * unclear + 4 * coder_error + 8 * policy_error";
  round.answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
  EXPECT_DOUBLE_EQ(round.Score("7", own), 1);
  EXPECT_DOUBLE_EQ(round.Score("7"), 0);
  round.answer.outcome = KGRPO_CODER_UNCLEAR;
  EXPECT_DOUBLE_EQ(round.Score("7", own), 2);
  round.answer.outcome = KGRPO_CODER_REFUSED;
  EXPECT_DOUBLE_EQ(round.Score("7", own), 4);
  round.answer.outcome = KGRPO_CODER_NO_KERNEL;
  EXPECT_DOUBLE_EQ(round.Score("7", own), 8);
  // Given back as it was, and not evaluated again: it is the kernel that the round started from.
  round.answer.outcome = KGRPO_CODER_OK;
  round.unchanged = true;
  EXPECT_DOUBLE_EQ(round.Score("unchanged ? -speedup : 7"), -2);
}

TEST(RewardExpression, DoingNothingIsPaidAsTheCurrentKernel) {
  Round round;
  const ExpressionReward reward(R"({"score": "unchanged ? -9 : speedup", "no_kernel": "0"})");
  EXPECT_DOUBLE_EQ(reward.Idle(round.request()), 2);
}

TEST(RewardExpression, MistakesAreToldWithTheirPlace) {
  Round round;
  EXPECT_THAT(ErrorOf([&] { round.Score("0.3 + * speedup"); }), HasSubstr("options.score: at character 7 of "));
  EXPECT_THAT(ErrorOf([&] { round.Score("speedup", "1 +"); }), HasSubstr("options.no_kernel: at character"));
  const auto error = [&](const char* text) { return ErrorOf([&] { round.Score(text); }); };
  EXPECT_THAT(error("1 + speed"), HasSubstr("options.score: at character 5 of \"1 + speed\": there is no variable "
                                            "\"speed\"; variables are compiled, correct, speedup, "));
  EXPECT_THAT(error("1 + log3(speedup)"),
              HasSubstr("at character 5 of \"1 + log3(speedup)\": there is no function \"log3\"; functions are "
                        "min(a, b, ...), max(a, b, ...), clamp(x, low, high), "));
  EXPECT_THAT(error("min + 1"), HasSubstr("at character 1 of \"min + 1\": min is a function: write min(...)"));
  EXPECT_THAT(error("speedup = 3"),
              HasSubstr("at character 9 of \"speedup = 3\": = would assign; write == to compare"));
  EXPECT_EQ(round.Score("speedup >= 4 && speedup != 5 && !unchanged"), 1);
  EXPECT_EQ(round.Score("1e3 * 1.5e-3"), 1.5);
  const std::pair<const char*, const char*> mistakes[] = {
      {"speedup + (", "it ends where a value is expected"},
      {"speedup speedup", "an operator is missing before \"speedup\""},
      {"3 $ 4", "means nothing in an expression"},
      {"speedup)", "the bracket \")\" is not expected there"},
      {"1 + (speedup", "at character 5 of \"1 + (speedup\": this bracket is not closed"},
      {"(1 + max(2, metric(\")\"))", "at character 1 of \"(1 + max(2, metric(\")\"))\": this bracket is not closed"},
      {"correct and compiled", "at character 9 of \"correct and compiled\": and is no operator: use &&"},
      {"correct or 1", "or is no operator: use ||"},
      {"not(correct)", "not is no operator: use !"},
      {"metric(\"x", "a text that begins with \" is not closed"},
      {"-0,5", "at character 3 of \"-0,5\": \",\" separates the arguments of a function"},
      {"min((1, 2), 3)", "at character 7 of"},
      {"(1, 2)", "at character 3 of"},
      {"log(speedup)", "there is no function \"log\"; functions are"},
      {"sin(1)", "there is no function \"sin\""},
      {"_pi", "there is no variable \"_pi\""},
      {"log2 (speedup)", "no space may stand between log2 and its bracket"},
      {"min()", "too few arguments of \"min\""},
      {"clamp(1, 2)", "too few arguments of \"clamp\""},
      {"clamp(1, 2, 3, 4)", "too many arguments of \"clamp\""},
      {"metric(3)", "metric takes a name in quotes"},
      {"1 ? 2", "\"a ? b\" without \": c\""},
      {"1 : 2", "\":\" without a \"?\" before it"}};
  for (const auto& [text, words] : mistakes) EXPECT_THAT(error(text), HasSubstr(words)) << text;
  EXPECT_THAT(ErrorOf([&] { round.Score("metric(\"register\")"); }),
              HasSubstr("metric(\"register\"): the evaluator did not report this metric"));
  Round wrong;
  wrong.candidate.correct = 0;
  wrong.candidate.verdict = Str("wrong");
  EXPECT_EQ(ErrorOf([&] { wrong.Score("metric(\"register\")"); }),
            "reward_expression: metric(\"register\"): the kernel is not correct (wrong), and has no such metric; "
            "write correct ? ... : -0.5");
  wrong.has_candidate = false;
  EXPECT_THAT(ErrorOf([&] { wrong.Score("0", "metric(\"registers\")"); }), HasSubstr("the round has no kernel"));
  // A number that is not finite costs its round only.
  EXPECT_THAT(ErrorOf([&] { round.Score("1 / (speedup - 4)"); }, KGRPO_ERROR_NOT_FINITE),
              HasSubstr("no finite number where speedup = 4.0"));
  EXPECT_THAT(ErrorOf([&] { round.Score("log2(1 - 2 * correct)"); }, KGRPO_ERROR_NOT_FINITE),
              HasSubstr("no finite number where correct = 1.0"));
  // Mistakes that a run would meet late are reported when the reward is made.
  const auto warning = [](const std::string& score, const std::string& no_kernel) {
    return ExpressionReward(nlohmann::json{{"score", score}, {"no_kernel", no_kernel}}.dump()).Warning();
  };
  EXPECT_THAT(warning("log2(speedup)", "0"),
              HasSubstr("options.score: for a kernel that is not correct it is no finite number where speedup = 0.0"));
  EXPECT_THAT(warning("speedup", "1 / unchanged"),
              HasSubstr("options.no_kernel: for a round without a kernel it is no"));
  EXPECT_EQ(warning("correct ? log2(speedup) : -0.5", "not_applicable ? 0 : -0.5"), "");
  EXPECT_EQ(warning("correct ? metric(\"registers\") : -0.5", "0"), "");
  EXPECT_EQ(
      warning("metric(\"registers\")", "0"),
      "options.score: reads a metric of a kernel that is not correct, which has few; where the metric is missing, "
      "the run ends; write correct ? ... : -0.5");
  EXPECT_THAT(warning("compiled ? 0 : metric(\"registers\")", "0"),
              HasSubstr("reads a metric of a kernel that does not compile"));
  EXPECT_THAT(warning("speedup", "metric(\"registers\")"),
              HasSubstr("options.no_kernel: reads a metric of a round without a kernel, which has none"));
}

TEST(RewardExpression, SuggestsTheMetricThatWasMeant) {
  const std::vector<std::string> declared = {"registers", "seconds/"};
  const auto error = [&](const std::string& score) {
    return ErrorOf([&] {
      static_cast<void>(
          ExpressionReward(nlohmann::json{{"score", score}, {"no_kernel", "0"}}.dump()).CheckMetrics(declared));
    });
  };
  EXPECT_EQ(error("speedup - metric(\"registerz\")"),
            "options.score: at character 18 of \"speedup - metric(\"registerz\")\": no part declares a metric "
            "\"registerz\"; did you mean \"registers\"?");
  EXPECT_EQ(error("metric( \"registers\" ) + metric(\"seconds/dram\")"), "nothing thrown");
  const ExpressionReward undeclared(R"x({"score": "metric(\"joules\") - metric(\"registers\")", "no_kernel": "0"})x");
  EXPECT_EQ(undeclared.CheckMetrics(declared), std::set<std::string>{"joules"}) << "it may be measured all the same";
}

TEST(RewardExpression, SeveralThreadsScoreAtOnce) {
  const ExpressionReward reward(R"({"score": "speedup * 2", "no_kernel": "0"})");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 1; i < 2000; ++i) {
        Round round;
        round.candidate.speedup = thread * 2000 + i;
        wrong[static_cast<size_t>(thread)] +=
            std::abs(reward.Score(round.request()) - 2 * (thread * 2000 + i)) > 1e-6 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::vector<int>(4)));
}

}  // namespace
}  // namespace kgrpo::reward
