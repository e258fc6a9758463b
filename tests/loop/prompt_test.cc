// prompt/template.h and kgrpo/support/metrics.h: rendering of templates, mistakes found in them, and the display of
// metrics and remarks.
#include "prompt/template.h"

#include "test.h"

#include <kgrpo/support/metrics.h>
#include <kgrpo/support/number_text.h>

#include <kgrpo/sdk/host.h>  // MetricDeclaration

namespace kgrpo {
namespace {

// As plugins declare theirs.
const MetricRegistry& Registry() {
  static MetricRegistry registry;
  static const MetricDeclaration kDeclared[] = {
      {"speedup", "speedup", ""},
      {"time", "a call", "Speed", KGRPO_METRIC_SECONDS},
      {"clock", "clock", "Speed", KGRPO_METRIC_NUMBER, "MHz"},
      {"traffic", "traffic", "Speed", KGRPO_METRIC_QUANTITY, "B/s"},
      {"seconds/", "", "Busy", KGRPO_METRIC_RUN_TIME},
      {"occupancy", "occupancy", "Occupancy", KGRPO_METRIC_FRACTION},
      {"saved", "saved", "Speed", KGRPO_METRIC_SECONDS},
      {"size", "bytes", "Size", KGRPO_METRIC_QUANTITY, "B"},
      {"same", "same twice", "Size", KGRPO_METRIC_FLAG},
      {"registers", "registers a thread", "Machine code"},
      {"profile.l2_hits", "L2 hits", "Profile", KGRPO_METRIC_FRACTION},
      {"profile.stalls.", "warps' time lost to", "Profile", KGRPO_METRIC_FRACTION},
      {"price", "price", "Size", KGRPO_METRIC_DOLLARS},
      {"stalls.", "waits", "Size"},
      {"used", "used", "Use", KGRPO_METRIC_FRACTION},
      {"hidden", "hidden", ""},
  };
  for (const MetricDeclaration& metric : kDeclared) registry.Declare(metric.ToC());
  return registry;
}

PromptState State() {
  PromptState state;
  state.problem = {"vector_add",           "Vector addition", "elementwise",
                   "out[i] = a[i] + b[i]", "void launch()",   {"streaming", "memory-bound"}};
  state.code_a = "A<int> && \"x\"";
  state.code_b = "B";
  state.round = 3;
  state.rounds = 4;
  state.last_suggestion = "unroll";
  state.history = {{1, "vectorise loads", "vectorised, 4 wide", "correct", true, 1.25, "bound by DRAM"},
                   {2, "unroll", "", "not applicable", false, 0, "no loop"}};
  state.current.speedup = 1.25;
  state.current.correct = state.current.compiled = true;
  state.current.seconds = 1.234e-5;
  state.current.diagnosis = "bound by DRAM";
  state.current.verdict = "correct";
  state.metrics = &Registry();
  state.current.metrics = {{"registers", 30},         {"speedup", 1.25, 1.2, 1.3},
                           {"occupancy", 0.5},        {"profile.stalls.long_scoreboard", 0.625},
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
            "1:vectorise loads=correct! x1.25;2:unroll=not applicable;");
  EXPECT_EQ(Render("{{applied_joined}}|{{#applied}}[{{.}}]{{/applied}}"), "vectorised, 4 wide|[vectorised, 4 wide]");
  EXPECT_EQ(Render("{{last.suggestion}}: {{last.outcome}}, {{last.diagnosis}}"), "unroll: not applicable, no loop");
  EXPECT_EQ(Render("{{current.speedup}} {{current.time}} {{current.diagnosis}} {{current.verdict}}"),
            "1.25 12.3 us bound by DRAM correct");
  EXPECT_EQ(Render("{{#current.correct}}ok{{/current.correct}}{{#first_round}}1{{/first_round}}{{^last_round}}more{{/"
                   "last_round}}"),
            "okmore");
}

// Three rounds of a policy that writes kernels: a kernel that does not compile, a fast one, a slower one.
PromptState WrittenKernels() {
  PromptState state = State();
  state.reference = "R";
  state.history = {{1, "", "", "not_compiled", false, 0, "error: f", "K1", {}},
                   {2, "", "fused", "correct", true, 3, "", "K2", {}},
                   {3, "", "", "correct", false, 2, "", "K3", {}},
                   {4, "", "", "no kernel", false, 0, "the answer is empty", "", {}}};
  state.history[1].evaluation.seconds = 4e-6;
  state.history[2].evaluation.seconds = 8e-6;
  state.history[1].evaluation.metrics = {{"registers", 40}};
  state.best_rounds = 2;
  return state;
}

TEST(PromptTemplateTest, ShowsEachRoundsKernelAndWhatBecameOfIt) {
  EXPECT_EQ(Render("{{reference}} {{#history}}{{round}} {{kernel}}{{^kernel}}{{diagnosis}}{{/kernel}} {{time}} "
                   "{{metrics.registers}} {{evidence}};{{/history}}",
                   WrittenKernels()),
            "R 1 K1   ;2 K2 4 us 40 Machine code: registers a thread 40;3 K3 8 us  ;4 the answer is empty   ;");
  EXPECT_EQ(Render("{{#best}}{{kernel}} {{speedup}}x;{{/best}}", WrittenKernels()), "K2 3.00x;K3 2.00x;");
}

TEST(PromptTemplateTest, AShorterHistoryLosesItsOldestRoundsThenTheSlowestOfTheBest) {
  PromptState state = WrittenKernels();
  std::string shown;
  do {
    shown += Render(
        "{{#history}}{{round}}{{/history}}/{{#best}}{{round}}{{/best}}/{{history_left_out}}/"
        "{{last.round}}{{applied_joined}} ",
        state);
  } while (ShortenHistory(&state));
  EXPECT_EQ(shown, "1234/23//4fused 234/23/1/4fused 34/23/2/4fused 4/23/3/4fused /23/4/4fused /2/4/4fused //4/4fused ");
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
            "Profile: L2 hits 25%; warps' time lost to long scoreboard 62.5%\n"
            "Other: warmth 36.6");
  const auto bare = CheckTemplate("{{current.metrics}}");
  ASSERT_EQ(bare.size(), 1u);
  EXPECT_THAT(bare[0].message, HasSubstr("write {{current.metrics.NAME}}"));
  EXPECT_EQ(CheckTemplate("{{#current.metrics}}{{registers}}{{/current.metrics}}").size(), 1u)
      << "metrics are known by their whole name only, so that misspelt variables are found";
  EXPECT_EQ(CheckTemplate("{{current.metrics.}}").size(), 1u);
}

TEST(PromptTemplateTest, SaysWhereTheTimeGoes) {
  PromptState state = State();
  state.current.metrics = {{"seconds/dram", 1e-5}, {"seconds/shared atomics", 2e-6}, {"line_sectors/12", 16}};
  EXPECT_EQ(Render("{{current.metrics.seconds/dram}}|{{current.metrics.seconds/shared atomics}}|"
                   "{{#current.metrics.line_sectors/12}}{{.}} sectors{{/current.metrics.line_sectors/12}}",
                   state),
            "10 us|2 us|16 sectors");
}

TEST(MetricsTest, AreShownAsDeclared) {
  Evaluation evaluation;
  evaluation.metrics = {
      {"strange", 1, 0.5, 2},         {"clock", 1980}, {"lonely_low", 7}, {"traffic", 3.02e12}, {"size", 9999},
      {"size of k<int>", 65606997.3}, {"time", 1e-3},  {"same", 1},       {"saved", -2e-6},     {"price", 0.0042},
      {"stalls.on_memory", 2, 1, 3},  {"hidden", 1}};
  evaluation.remarks = {{"Speed", "limited by", "the clock"}};
  std::string text;
  for (const FactGroup& group : GroupFacts(evaluation, &Registry())) {
    text += group.title + "\n";
    for (const Fact& fact : group.facts) text += "  " + fact.label + "=" + fact.value + "\n";
  }
  EXPECT_EQ(text,
            "Speed\n  a call=1 ms\n  clock=1980 MHz\n  traffic=3.02 TB/s\n  saved=-2 us\n  limited by=the clock\n"
            "Size\n  bytes=9999 B\n  bytes, k<int>=65.6 MB\n  same twice=yes\n  price=$0.0042\n"
            "  waits on memory=2 (95%: 1 to 3)\n"
            "Other\n  strange=1 (95%: 0.5 to 2)\n  lonely_low=7\n");
  EXPECT_TRUE(GroupFacts({}, &Registry()).empty());
  EXPECT_THAT(EvidenceText(evaluation, nullptr), testing::StartsWith("Speed: limited by the clock\nOther: strange 1"))
      << "nobody declared anything";
}

TEST(MetricsTest, ARunTimeIsToldAsPartOfTheWhole) {
  Evaluation evaluation;
  evaluation.metrics = {{"seconds/memory", 5e-5}, {"time", 1e-4}, {"used", 0.25}};
  EXPECT_THAT(EvidenceText(evaluation, &Registry()), HasSubstr("memory 50 us\n")) << "no run time is known";
  evaluation.seconds = 1e-4;
  const std::vector<FactGroup> groups = GroupFacts(evaluation, &Registry());
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[1].facts[0].value, "50 us (50%)");
  EXPECT_EQ(groups[1].facts[0].fraction, 0.5);
  EXPECT_EQ(groups[0].facts[0].fraction, std::nullopt) << "a time is no part of anything";
  EXPECT_EQ(groups[2].facts[0].fraction, 0.25);
}

TEST(MetricsTest, RemarksOnLinesSayTheirShare) {
  Evaluation evaluation;
  evaluation.remarks = {
      {"Lines", "", "mostly memory", 12, 0.75}, {"Lines", "", "", 7, 0.05}, {"Lines", "loop", "slow", 3}};
  evaluation.metrics = {{"strange", 1}};
  EXPECT_EQ(
      EvidenceText(evaluation, &Registry()),
      "Lines: line 12 75% of the time, mostly memory; line 7 5% of the time; line 3, loop slow\nOther: strange 1");
  EXPECT_EQ(GroupFacts(evaluation, nullptr)[0].facts[0].fraction, 0.75);
}

TEST(PromptTemplateTest, EscapesNothing) { EXPECT_EQ(Render("{{code_a}}"), "A<int> && \"x\""); }

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
  EXPECT_THAT(mistakes[1].message, HasSubstr("unknown variable \"code\" (known here: problem.name, "));
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
  EXPECT_EQ(FormatSeconds(1234.4), "1234 s");
  EXPECT_EQ(FormatSeconds(0.9996e-3), "1 ms");
  EXPECT_EQ(FormatSeconds(0.00456), "4.56 ms");
  EXPECT_EQ(FormatSeconds(1.234e-5), "12.3 us");
  EXPECT_EQ(FormatSeconds(8.1e-7), "810 ns");
}

}  // namespace
}  // namespace kgrpo
