// console/console.h: what a pipe and a terminal get.
#include "base/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/support/number_text.h>

#include <sstream>

namespace kgrpo {
namespace {

using ::testing::HasSubstr;

StepLine Line(uint64_t step, double reward) {
  StepLine line;
  line.step = step;
  line.steps = 100;
  line.stage = "trainer_grpo";
  line.has_rollouts = true;
  line.reward = reward;
  line.correct_rate = 0.875;
  line.speedup = 1.5;
  line.failed_rate = 0.03;
  line.not_applicable_rate = 0.07;
  line.unclear_rate = 0.02;
  line.favourite_share = 0.25;
  line.entropy = 3.14;
  line.seconds = 2.04;
  line.modelled = true;
  return line;
}

TEST(ConsoleTest, DollarsOfACentAreNotNothing) {
  EXPECT_EQ(FormatDollars(12.345), "$12.35");
  EXPECT_EQ(FormatDollars(0.27), "$0.27");
  EXPECT_EQ(FormatDollars(0.00417), "$0.0042");
  EXPECT_EQ(FormatDollars(0), "$0.00");
}

TEST(ConsoleTest, APipeGetsALineAStep) {
  std::ostringstream out;
  Console console(out, false);
  console.Step(Line(7, 1.25));
  EXPECT_EQ(out.str(),
            "step   7/100  trainer_grpo  reward  1.250  correct  88%  failed  3%  n/a  7%  unclear  2%  speedup  1.50x "
            "(modelled)  favourite 25%  entropy 3.1  2.0 s\n");
}

TEST(ConsoleTest, APipeGetsWhatTheTimeWentInto) {
  std::ostringstream out;
  Console console(out, false);
  StepLine line = Line(7, 1.25);
  line.parts = {{"rollout", 1.4}, {"generating", 0.31}, {"checkpoint", 0.04}};
  console.Step(line);
  EXPECT_THAT(out.str(), HasSubstr("  2.0 s (rollout 1.4, generating 0.3)\n"));
}

TEST(ConsoleTest, MoneyAndErrorsAreShownWhereThereAreSome) {
  std::ostringstream out;
  Console console(out, false);
  StepLine line = Line(7, 1.25);
  line.cost = 12.345;
  line.coder_error_rate = 0.001;
  console.Step(line);
  EXPECT_THAT(out.str(), HasSubstr("  entropy 3.1  coder errors 1%  $12.35  2.0 s\n"));
}

TEST(ConsoleTest, ATerminalGetsALineThatMoves) {
  std::ostringstream out;
  Console console(out, true, 160);
  for (uint64_t step = 1; step <= 3; ++step) console.Step(Line(step, static_cast<double>(step)));
  EXPECT_THAT(out.str(), HasSubstr("\r\033[Kstep   3/100"));
  EXPECT_THAT(out.str(), HasSubstr(" left  ▁▅█"));
  EXPECT_EQ(out.str().find('\n'), std::string::npos);
  console.Note("a note");
  EXPECT_THAT(out.str(), HasSubstr("\r\033[Ka note\n"));
}

TEST(ConsoleTest, TheMovingLineFitsANarrowTerminal) {
  std::ostringstream out;
  Console console(out, true, 40);
  console.Step(Line(1, 1));
  EXPECT_EQ(out.str().size(), std::string("\r\033[K").size() + 39);
}

TEST(ConsoleTest, ShowsControlCharactersInsteadOfSendingThem) {
  std::ostringstream out;
  Console console(out, false);
  console.Note("evil \033[2J");
  console.Table("", {"a"}, {{"\033[31mred"}});
  EXPECT_EQ(out.str().find('\033'), std::string::npos);
  EXPECT_THAT(out.str(), HasSubstr("\\x1b[2J"));
}

TEST(ConsoleTest, TablesAlignNumbersToTheRight) {
  std::ostringstream out;
  Console console(out, false);
  console.Table("title", {"name", "value"}, {{"long name", "1.5x"}, {"b", "12.25x"}});
  EXPECT_EQ(out.str(), "title\n  name        value\n  long name    1.5x\n  b          12.25x\n");
}

TEST(SparklineTest, ScalesBetweenTheExtremes) {
  EXPECT_EQ(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline({9, 0, 7}, 2), "▁█");
  EXPECT_EQ(Sparkline({2, 2}, 5), "▁▁");
  EXPECT_EQ(Sparkline({}, 5), "");
}

TEST(FormatDurationTest, ChoosesTheUnits) {
  EXPECT_EQ(FormatDuration(45.2), "45 s");
  EXPECT_EQ(FormatDuration(200), "3 min 20 s");
  EXPECT_EQ(FormatDuration(7500), "2 h 5 min");
}

}  // namespace
}  // namespace kgrpo
