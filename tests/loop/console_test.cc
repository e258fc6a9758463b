// base/console.h: the output to a pipe and to a terminal.
#include "base/console.h"

#include "test.h"

#include <kgrpo/support/number_text.h>

namespace kgrpo {
namespace {

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

// The lines of one stage's steps from `first` on, which take `seconds`.
std::vector<std::string> StageLines(Console& console, std::ostringstream& out, StepLine line, uint64_t first,
                                    const std::vector<double>& seconds) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < seconds.size(); ++i) {
    line.step = first + i;
    line.seconds = seconds[i];
    out.str("");
    console.Step(line);
    lines.push_back(out.str());
  }
  return lines;
}

// A stage's first steps are slow, and say nothing of the later ones; nor does another stage.
TEST(ConsoleTest, TheTimeLeftIsThatOfTheStageOnceItHasHadEnoughSteps) {
  std::ostringstream out;
  Console console(out, false);
  StepLine line = Line(1, 1);
  line.stage = "trainer_sft";
  line.stage_end = 40;
  std::vector<double> seconds(40, 1);
  std::fill_n(seconds.begin(), 8, 30);  // caches fill
  seconds[25] = 40;                     // a checkpoint, once
  const std::vector<std::string> first = StageLines(console, out, line, 1, seconds);
  for (size_t i = 0; i < 19; ++i) EXPECT_THAT(first[i], Not(HasSubstr(" left"))) << "step " << i + 1;
  EXPECT_THAT(first[19], HasSubstr("step  20/100  20 s left in this stage  trainer_sft"));
  EXPECT_THAT(first[25], HasSubstr("step  26/100  14 s left in this stage"));
  // The next stage has the same trainer.
  line.stage_end = 100;
  const std::vector<std::string> second = StageLines(console, out, line, 41, std::vector<double>(20, 10));
  for (size_t i = 0; i < 19; ++i) EXPECT_THAT(second[i], Not(HasSubstr(" left"))) << "step " << i + 41;
  EXPECT_THAT(second[19], HasSubstr("step  60/100  6 min 40 s left  trainer_sft"));
}

TEST(ConsoleTest, ProgressMovesOnATerminalAndIsRareOnAPipe) {
  std::ostringstream terminal, pipe;
  Console moving(terminal, true), written(pipe, false);
  moving.AlsoTo(&written);
  for (size_t done = 0; done <= 3; ++done) moving.Progress("trajectories", done, 3);
  moving.Note("begun");
  EXPECT_EQ(terminal.str(), "trajectories 0/3\r\033[Ktrajectories 1/3\r\033[Ktrajectories 2/3\r\033[Kbegun\n");
  EXPECT_EQ(pipe.str(), "trajectories 0/3\nbegun\n");
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
  line.further_rates = {{"no kernel", 0.03}, {"coder errors", 0.001}};
  console.Step(line);
  EXPECT_THAT(out.str(), HasSubstr("  entropy 3.1  no kernel 3%  coder errors 1%  $12.35  2.0 s\n"));
}

// The lines of what is on the screen after these bytes, as far as the console uses it.
std::vector<std::string> Screen(const std::string& bytes) {
  std::vector<std::string> lines(1);
  size_t row = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\r') continue;  // only ever before moving up
    if (bytes[i] == '\n') {
      if (++row == lines.size()) lines.emplace_back();
    } else if (bytes.compare(i, 2, "\033[") == 0) {
      const size_t end = bytes.find_first_of("AJ", i);
      if (bytes[end] == 'A') row -= std::stoul(bytes.substr(i + 2, end - i - 2));
      if (bytes[end] == 'J') {
        lines.resize(row + 1);
        lines[row].clear();
      }
      i = end;
    } else {
      lines[row] += bytes[i];
    }
  }
  return lines;
}

TEST(ConsoleTest, ATerminalGetsABlockThatMoves) {
  std::ostringstream out;
  Console console(out, true, 80);
  console.Note("before");
  for (uint64_t step = 1; step <= 20; ++step) {
    StepLine line = Line(step, step < 18 ? 1.0 : static_cast<double>(step - 17));
    line.stage_end = 100;
    console.Step(line);
  }
  std::vector<std::string> screen = Screen(out.str());
  ASSERT_EQ(screen.size(), 4U);
  EXPECT_EQ(screen[0], "before");
  EXPECT_EQ(screen[1], "step 20/100  2 min 43 s left  trainer_grpo  2.0 s a step");
  EXPECT_EQ(screen[2], "  reward   3.000  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▅█");
  EXPECT_EQ(screen[3], "  rounds  ████████░  correct 88%  failed 3%  n/a 7%  unclear 2%  1.50x modelled");
  console.Note("a note");
  screen = Screen(out.str());
  EXPECT_EQ(screen, (std::vector<std::string>{"before", "a note", ""}));
  console.Step(Line(21, 1));
  console.Finish();
  EXPECT_EQ(Screen(out.str()).size(), 6U) << "the last block stays";
}

TEST(ConsoleTest, WhatIsUnderWayIsBelowTheBlock) {
  std::ostringstream out;
  Console console(out, true, 80);
  console.UnderWay("step 1  with the policy 3");
  EXPECT_EQ(Screen(out.str()), (std::vector<std::string>{"  now     step 1  with the policy 3"}));
  console.Step(Line(1, 1));
  EXPECT_EQ(Screen(out.str()).size(), 3U) << "the step has ended";
  console.UnderWay("step 2  with the coder 2");
  console.UnderWay("step 2  with the evaluator 1");
  const std::vector<std::string> screen = Screen(out.str());
  ASSERT_EQ(screen.size(), 4U);
  EXPECT_THAT(screen[1], HasSubstr("  reward   1.000"));
  EXPECT_EQ(screen[3], "  now     step 2  with the evaluator 1");
  console.Redraw({"a table", "  of three", "lines"});
  EXPECT_EQ(Screen(out.str()), (std::vector<std::string>{"a table", "  of three", "lines"}));
  console.Redraw({"shorter"});
  console.Finish();
  console.Note("after");
  EXPECT_EQ(Screen(out.str()), (std::vector<std::string>{"shorter", "after", ""}));

  std::ostringstream piped;
  Console pipe(piped, false);
  pipe.UnderWay("step 1");
  pipe.Redraw({"a table"});
  EXPECT_EQ(piped.str(), "");
}

TEST(ConsoleTest, TheMovingBlockFitsANarrowTerminal) {
  for (const size_t columns : {0, 1, 10, 40, 60, 80}) {
    std::ostringstream out;
    Console console(out, true, columns);
    for (uint64_t step = 1; step <= 90; ++step) console.Step(Line(step, static_cast<double>(step % 7)));
    for (const std::string& line : Screen(out.str())) EXPECT_LE(Columns(line), columns == 0 ? 0 : columns - 1);
  }
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
