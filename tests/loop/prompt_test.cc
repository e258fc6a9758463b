// prompt/template.h: what templates render to, and which mistakes are found in them.
#include "prompt/template.h"

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
