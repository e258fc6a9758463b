// prompt/template.h: what templates render to, and which mistakes are found in them.
#include "prompt/template.h"

#include "prompt/metrics.h"

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
            "Machine code: registers a thread 30\n"
            "Launch: occupancy 50%\n"
            "Profile (Nsight Compute): L2 hits 25%; warps' time lost to long scoreboard 62.5%\n"
            "Other: warmth 36.6");
  const auto bare = CheckTemplate("{{current.metrics}}");
  ASSERT_EQ(bare.size(), 1u);
  EXPECT_THAT(bare[0].message, HasSubstr("write {{current.metrics.registers}}"));
  EXPECT_EQ(CheckTemplate("{{#current.metrics}}{{registers}}{{/current.metrics}}").size(), 1u)
      << "metrics are known by their whole name only, so that misspelt variables are found";
  EXPECT_EQ(CheckTemplate("{{current.metrics.}}").size(), 1u);
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
                                                    {"first_call_seconds", -2e-6}});
  std::string text;
  for (const FactGroup& group : groups) {
    text += group.title + "\n";
    for (const Fact& fact : group.facts) text += "  " + fact.label + "=" + fact.value + "\n";
  }
  EXPECT_EQ(text,
            "Time\n  a call, beside the reference=1 ms\n  clock=1980 MHz\n"
            "Roofline\n  needed traffic=3.02 TB/s\n"
            "Cross-checks\n  first call of a batch longer by=-2 us\n  same bits when called twice=yes\n"
            "Model's terms\n  dram=11.5 us\n"
            "Other\n  strange=1 (95%: 0.5 to 2)\n  lonely_low=7\n");
  EXPECT_TRUE(GroupFacts({}).empty());
  EXPECT_EQ(FormatMetric("spill_bytes", 0), "0 bytes");
  EXPECT_EQ(FormatMetric("l2_bytes", 65606997.3), "65.6 MB");
  EXPECT_EQ(FormatMetric("checked_warp_instructions", 79651), "79651");
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
