// prompt/template.h: what templates render to, and which mistakes are found in them.
#include "prompt/template.h"

#include <kgrpo/support/metrics.h>
#include <kgrpo/support/number_text.h>
#include <kgrpo/support/occupancy_limit.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

namespace kgrpo {
namespace {

using ::testing::HasSubstr;

PromptState State() {
  PromptState state;
  state.problem = {"vector_add",           "Vector addition", "elementwise",
                   "out[i] = a[i] + b[i]", "void launch()",   {"streaming", "memory-bound"}};
  state.code_a = "A<int> && \"x\"";
  state.code_b = "B";
  state.round = 3;
  state.rounds = 4;
  state.last_suggestion = "unroll";
  state.history = {{1, "vectorise loads", "vectorised, 4 wide", "right", true, 1.25, "bound by DRAM"},
                   {2, "unroll", "", "not applicable", false, 0, "no loop"}};
  state.current_speedup = 1.25;
  state.current_seconds = 1.234e-5;
  state.current_diagnosis = "bound by DRAM";
  state.current_verdict = "right";
  state.current_metrics = {{"registers", 30},         {"speedup", 1.25},  {"speedup_low", 1.2},
                           {"speedup_high", 1.3},     {"occupancy", 0.5}, {"profile.stalls.long_scoreboard", 0.625},
                           {"profile.l2_hits", 0.25}, {"warmth", 36.6}};
  return state;
}

std::string Render(const std::string& text, const PromptState& state = State()) {
  return PromptTemplate(text, "t").Render(state);
}

TEST(PromptTemplateTest, RendersEveryVariable) {
  EXPECT_EQ(Render("{{problem.name}}|{{problem.title}}|{{problem.family}}|{{problem.task}}|{{problem.signature}}"),
            "vector_add|Vector addition|elementwise|out[i] = a[i] + b[i]|void launch()");
  EXPECT_EQ(Render("{{#problem.traits}}<{{.}}>{{/problem.traits}} {{problem.traits_joined}}"),
            "<streaming><memory-bound> streaming, memory-bound");
  EXPECT_EQ(Render("{{code_b}} {{last_suggestion}} {{round}}/{{rounds}} {{rounds_left}}"), "B unroll 3/4 1");
  EXPECT_EQ(Render("{{#history}}{{round}}:{{suggestion}}={{outcome}}{{#applied}}!{{/applied}}{{#speedup}} "
                   "x{{.}}{{/speedup}};{{/history}}"),
            "1:vectorise loads=right! x1.25;2:unroll=not applicable;");
  EXPECT_EQ(Render("{{applied_joined}}|{{#applied}}[{{.}}]{{/applied}}"), "vectorised, 4 wide|[vectorised, 4 wide]");
  EXPECT_EQ(Render("{{last.suggestion}}: {{last.outcome}}, {{last.diagnosis}}"), "unroll: not applicable, no loop");
  EXPECT_EQ(Render("{{current.speedup}} {{current.time}} {{current.diagnosis}} {{current.verdict}}"),
            "1.25 12.3 us bound by DRAM right");
  EXPECT_EQ(
      Render(
          "{{#current.right}}ok{{/current.right}}{{#first_round}}1{{/first_round}}{{^last_round}}more{{/last_round}}"),
      "okmore");
}

TEST(PromptTemplateTest, SaysWhatWasMeasured) {
  EXPECT_EQ(Render("{{current.metrics.registers}} {{current.metrics.occupancy}} {{current.metrics.warmth}}"),
            "30 50% 36.6");
  EXPECT_EQ(Render("{{#current.metrics.profile.l2_hits}}L2 {{.}}{{/current.metrics.profile.l2_hits}} "
                   "{{current.metrics.profile.stalls.long_scoreboard}}{{current.metrics.not_measured}}"),
            "L2 25% 62.5%");
  EXPECT_EQ(Render("{{#current.metrics}}some{{/current.metrics}}"), "some");
  EXPECT_EQ(Render("{{#current.metrics}}some{{/current.metrics}}{{current.evidence}}", PromptState()), "");
  EXPECT_EQ(Render("{{current.evidence}}"),
            "Occupancy: occupancy 50%\n"
            "Machine code: registers a thread 30\n"
            "Profile (Nsight Compute): L2 hits 25%; warps' time lost to long scoreboard 62.5%\n"
            "Other: warmth 36.6");
  const auto bare = CheckTemplate("{{current.metrics}}");
  ASSERT_EQ(bare.size(), 1u);
  EXPECT_THAT(bare[0].message, HasSubstr("write {{current.metrics.registers}}"));
  EXPECT_EQ(CheckTemplate("{{#current.metrics}}{{registers}}{{/current.metrics}}").size(), 1u)
      << "metrics are known by their whole name only, so that misspelt variables are found";
  EXPECT_EQ(CheckTemplate("{{current.metrics.}}").size(), 1u);
}

TEST(PromptTemplateTest, SaysWhereTheTimeGoes) {
  PromptState state = State();
  state.current_metrics = {{"seconds/dram", 1e-5}, {"seconds/shared atomics", 2e-6}, {"line_sectors/12", 16}};
  EXPECT_EQ(Render("{{current.metrics.seconds/dram}}|{{current.metrics.seconds/shared atomics}}|"
                   "{{#current.metrics.line_sectors/12}}{{.}} sectors{{/current.metrics.line_sectors/12}}",
                   state),
            "10 us|2 us|16 sectors");
}

TEST(MetricsTest, GroupsLabelsAndUnits) {
  const std::vector<FactGroup> groups = GroupFacts({{"strange", 1},
                                                    {"clock_mhz", 1980},
                                                    {"strange_low", 0.5},
                                                    {"strange_high", 2},
                                                    {"seconds/dram", 1.15e-5},
                                                    {"lonely_low", 7},
                                                    {"bytes_per_second", 3.02e12},
                                                    {"measured_seconds", 1e-3},
                                                    {"same_bits_twice", 1},
                                                    {"registers of k<int>", 30},
                                                    {"worst_error/out", 0.5},
                                                    {"judge_time_seconds", 2},
                                                    {"first_call_seconds", -2e-6}});
  std::string text;
  for (const FactGroup& group : groups) {
    text += group.title + "\n";
    for (const Fact& fact : group.facts) text += "  " + fact.label + "=" + fact.value + "\n";
  }
  EXPECT_EQ(text,
            "Time\n  a call, beside the reference=1 ms\n  clock=1980 MHz\n"
            "Busy by memory level, each as if alone\n  dram (device memory)=11.5 us\n"
            "Machine code\n  registers a thread, k<int>=30\n"
            "Roofline\n  needed traffic=3.02 TB/s\n"
            "Cross-checks\n  first call of a batch longer by=-2 us\n  same bits when called twice=yes\n"
            "The judgement itself\n  timing=2 s\n"
            "Other\n  strange=1 (95%: 0.5 to 2)\n  lonely_low=7\n");
  EXPECT_TRUE(GroupFacts({}).empty());
  EXPECT_EQ(FormatMetric("spill_bytes", 0), "0 bytes");
  EXPECT_EQ(FormatMetric("l2_bytes", 65606997.3), "65.6 MB");
  EXPECT_EQ(FormatMetric("checked_warp_instructions", 79651), "79651");
}

TEST(MetricsTest, SaysWhatPartOfTheTimeSomethingIs) {
  const std::vector<FactGroup> groups =
      GroupFacts({{"seconds/l2", 5e-5}, {"modelled_seconds", 1e-4}, {"load_sectors", 4}, {"active_lanes", 0.25}});
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[1].facts[0].value, "50 us (50%)");
  EXPECT_EQ(groups[1].facts[0].fraction, 0.5);
  EXPECT_EQ(groups[2].facts[0].fraction, std::nullopt) << "a number of sectors is no part of anything";
  EXPECT_EQ(groups[3].facts[0].fraction, 0.25);
}

TEST(MetricsTest, NamesWhatLimitsOccupancy) {
  const auto limit = [](double occupancy, double registers, double shared, double threads, double waves) {
    return OccupancyLimit({{"occupancy", occupancy},
                           {"resident_blocks_by/registers", registers},
                           {"resident_blocks_by/shared_memory", shared},
                           {"resident_blocks_by/threads", threads},
                           {"resident_blocks_by/blocks", 32},
                           {"waves", waves}});
  };
  EXPECT_EQ(limit(0.625, 5, 9, 8, 4), "registers (room for 5 blocks; block size for 8)");
  EXPECT_EQ(limit(0.125, 5, 1, 8, 4), "shared memory (room for 1 block; registers for 5)");
  EXPECT_EQ(limit(0.75, 2, 9, 2, 4), "registers and block size (room for 2 blocks; shared memory for 9)");
  EXPECT_EQ(limit(0.5, 64, 64, 64, 4), "number of blocks (room for 32 blocks; registers for 64)");
  EXPECT_EQ(limit(1, 8, 9, 8, 4), "nothing");
  EXPECT_EQ(limit(1, 8, 9, 8, 0.25), "nothing but the grid: its blocks fill 25% of the places");
  EXPECT_EQ(limit(0.625, 5, 9, 8, 0.5),
            "registers (room for 5 blocks; block size for 8); and by the grid: its blocks fill 50% of the places");
  EXPECT_EQ(OccupancyLimit({{"occupancy", 0.5}}), "") << "nobody says";
  EXPECT_THAT(EvidenceText({{"occupancy", 0.625}, {"resident_blocks_by/registers", 5}}),
              HasSubstr("occupancy 62.5%; limited by registers (room for 5 blocks)"))
      << "prompts say it too";
}

TEST(MetricsTest, PutsTogetherWhatIsSaidOfALine) {
  const std::vector<NamedNumber> metrics = {{"line/7 issue", 0.05},
                                            {"line/12 dram", 0.5},
                                            {"line/12 latency", 0.25},
                                            {"line_sectors/12", 16},
                                            {"line_sectors_used/12", 0.25},
                                            {"line_shared_cycles/7", 2},
                                            {"line_shared_conflicts/7", 0.5},
                                            {"line/x", 1},
                                            {"lines/3", 1}};
  const std::vector<LineFacts> lines = LinesOf(metrics);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].line, 12u);
  EXPECT_EQ(lines[0].share, 0.75);
  EXPECT_EQ(lines[0].Text(), "75% of the time, mostly dram; 16 sectors a request, 25% of their bytes used");
  EXPECT_FALSE(lines[0].shared_cycles);
  EXPECT_EQ(lines[1].Text(), "5% of the time, mostly issue; 2 cycles a shared memory access, 50% by bank conflicts");
  EXPECT_EQ(
      EvidenceText(metrics),
      "By source line: line 12 75% of the time, mostly dram; 16 sectors a request, 25% of their bytes used; line 7 "
      "5% of the time, mostly issue; 2 cycles a shared memory access, 50% by bank conflicts\n"
      "Other: lines/3 1");
}

TEST(PromptTemplateTest, EscapesNothing) {
  EXPECT_EQ(Render("{{code_a}}"), "A<int> && \"x\"");
}

TEST(PromptTemplateTest, EmptyThingsAreFalse) {
  PromptState state;
  EXPECT_EQ(
      Render("{{#last}}there{{/last}}{{^last}}none{{/last}}{{#last_suggestion}}x{{/last_suggestion}}"
             "{{#history}}x{{/history}}{{#applied_joined}}x{{/applied_joined}}{{#current.speedup}}x{{/current.speedup}}"
             "{{#first_round}}first{{/first_round}}",
             state),
      "nonefirst");
}

TEST(PromptTemplateTest, FindsEveryMistakeWithItsPlace) {
  const auto mistakes = CheckTemplate(
      "{{problem.nmae}}\nab {{code}} {{#histroy}}{{x}}{{/histroy}}\n{{first_round}}{{history}}{{> part}}");
  ASSERT_EQ(mistakes.size(), 6u);
  EXPECT_THAT(mistakes[0].message, HasSubstr("unknown variable \"problem.nmae\"; did you mean \"problem.name\"?"));
  EXPECT_EQ(mistakes[0].line, 1u);
  EXPECT_EQ(mistakes[0].column, 1u);
  EXPECT_THAT(mistakes[1].message,
              HasSubstr("unknown variable \"code\"; did you mean \"code_a\"? (known here: problem.name, "));
  EXPECT_EQ(mistakes[1].line, 2u);
  EXPECT_EQ(mistakes[1].column, 4u);
  EXPECT_THAT(mistakes[2].message, HasSubstr("did you mean \"history\"?"));
  EXPECT_EQ(mistakes[2].column, 13u);
  EXPECT_THAT(mistakes[3].message, HasSubstr("yes or no, not text: write {{#first_round}}"));
  EXPECT_EQ(mistakes[3].line, 3u);
  EXPECT_EQ(mistakes[3].column, 1u);
  EXPECT_THAT(mistakes[4].message, HasSubstr("\"history\" is a list: write {{#history}}"));
  EXPECT_THAT(mistakes[5].message, HasSubstr("partials"));
}

TEST(PromptTemplateTest, MembersOfAListAreKnownInItsSectionOnly) {
  EXPECT_TRUE(CheckTemplate("{{#history}}{{suggestion}}{{problem.name}}{{/history}}").empty());
  EXPECT_TRUE(CheckTemplate("{{#last}}{{suggestion}}{{/last}}").empty());
  EXPECT_EQ(CheckTemplate("{{suggestion}}").size(), 1u);
  EXPECT_EQ(CheckTemplate("{{history.suggestion}}").size(), 1u);
  EXPECT_EQ(CheckTemplate("{{^history}}{{suggestion}}{{/history}}").size(), 1u);  // there is none there
  EXPECT_EQ(CheckTemplate("{{.}}").size(), 1u);
}

TEST(PromptTemplateTest, FindsBrokenSyntax) {
  for (const char* text : {"{{code_a", "{{#last}}x", "x{{/last}}", "{{#last}}{{/history}}", "{{=x}}"}) {
    const auto mistakes = CheckTemplate(text);
    EXPECT_EQ(mistakes.size(), 1u) << text;
  }
  EXPECT_EQ(CheckTemplate("a\nb {{code_a")[0].line, 2u);
  EXPECT_EQ(CheckTemplate("a\nb {{code_a")[0].column, 3u);
  EXPECT_THROW(PromptTemplate("{{nothing}}", "prompt.user"), Error);
}

TEST(FormatSecondsTest, ChoosesTheUnit) {
  EXPECT_EQ(FormatSeconds(1.5), "1.5 s");
  EXPECT_EQ(FormatSeconds(0.00456), "4.56 ms");
  EXPECT_EQ(FormatSeconds(1.234e-5), "12.3 us");
  EXPECT_EQ(FormatSeconds(8.1e-7), "810 ns");
}

}  // namespace
}  // namespace kgrpo
