// A reward's parameters, written without a JSON tree, parse to the same values as with one.
#include "program_shared/wire.h"

#include <kgrpo/sdk/text.h>
#include <kgrpo/support/evaluation_json.h>

#include "program_shared/json_text.h"
#include "test.h"

namespace kgrpo::program {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Evaluation Awkward() {
  Evaluation evaluation;
  evaluation.compiled = evaluation.correct = true;
  evaluation.verdict = KGRPO_VERDICT_CORRECT;
  evaluation.seconds = evaluation.seconds_low = 1.7e-5;
  evaluation.seconds_high = 0.1 + 0.2;
  evaluation.modelled = true;
  evaluation.time_source = "H100 \"model\"";
  evaluation.diagnosis = "line 1\n\tline 2 \\ \x01 \u00b5s \xe2\x82\xac";
  evaluation.speedup = 3;
  evaluation.speedup_low = 5e-324;
  evaluation.speedup_high = 1.7976931348623157e308;
  evaluation.metrics = {{"registers", 32}, {"timed", 2, 1.5, 2.5}, {"a \"name\"", -0.0},
                        {"nan", kNan},     {"infinite", 1 / 0.0},  {"third", 1.0 / 3}};
  evaluation.remarks = {{"memory", "label", "4 sectors a request", 12, 0.25}, {"", "", "", 0, 0}};
  return evaluation;
}

TEST(RewardParams, ReadAsTheTreeDoes) {
  const Evaluation awkward = Awkward(), plain;
  const EvaluationView first = awkward.ToC(), second = plain.ToC();
  const kgrpo_evaluation* history[] = {first.c(), second.c(), first.c()};
  kgrpo_coder_answer answer = {};
  answer.struct_size = sizeof answer;
  answer.outcome = KGRPO_CODER_OK;
  answer.source = KGRPO_LITERAL("__global__ void f() { g<<<1, 1>>>(\"x\"); }\n");
  answer.summary = KGRPO_LITERAL("unrolled");
  answer.cost = 0.01;
  answer.seconds = 8;
  kgrpo_reward_request request = {};
  request.struct_size = sizeof request;
  request.baseline = first.c();
  request.candidate = second.c();
  request.history = history;
  request.round = 3;
  request.rounds = 4;
  request.unchanged = 1;
  request.answer = &answer;
  request.suggestion = KGRPO_LITERAL("unroll");
  request.suggestion_tokens = 3;
  const json a = EvaluationToJson(awkward), b = EvaluationToJson(plain);
  const json expected = {{"baseline", a},
                         {"candidate", b},
                         {"current", nullptr},
                         {"unchanged", true},
                         {"round", 3},
                         {"rounds", 4},
                         {"history", {a, b, a}},
                         {"suggestion", "unroll"},
                         {"suggestion_tokens", 3},
                         {"answer",
                          {{"outcome", "ok"},
                           {"source", View(answer.source)},
                           {"summary", "unrolled"},
                           {"message", ""},
                           {"cost", 0.01},
                           {"seconds", 8.0}}}};
  // Through a text, as NaN is null only there.
  EXPECT_EQ(json::parse(RewardParams(request)), json::parse(expected.dump()));
  request.answer = nullptr;
  request.round = 0;
  EXPECT_EQ(json::parse(RewardParams(request)).at("answer"), json());
  EXPECT_EQ(json::parse(RewardParams(request)).at("history"), json::array());
}

TEST(ReadCoderAnswer, ASourceThatIsMissingIsToldWithTheKeysThatAreThere) {
  const auto error = [](const nlohmann::json& answer) -> std::string {
    return test::MessageOf([&] { ReadCoderAnswer(answer); }, 0, "it was read");
  };
  EXPECT_EQ(error({{"outcome", "ok"}, {"sorce", "x"}, {"summary", "y"}}),
            "the program's answer: the outcome is \"ok\" and there is no \"source\"; it has \"sorce\", \"summary\"");
  EXPECT_THAT(error({{"outcome", "ok"}}), testing::EndsWith("there is no \"source\""));
  EXPECT_THAT(error({{"outcome", "ok"}, {"source", ""}}), testing::EndsWith("\"source\" is empty"));
  EXPECT_EQ(error({{"outcome", "ok"}, {"source", "x"}}), "it was read");
}

// A whole number stays one with a fraction: programs in Python tell int from float.
TEST(JsonText, NumbersAreWrittenAsDoubles) {
  JsonText text;
  text.Open('[').Number(1).Number(-0.0).Number(1e300).Number(0.1).Number(kNan).Count(7).Close(']');
  EXPECT_EQ(text.Take(), "[1.0,-0.0,1e+300,0.1,null,7]");
}

TEST(JsonText, WhatIsNotUtf8IsReplaced) {
  JsonText text;
  text.Open('{').QuotedKey("a\xff").Text("b\xfe").Close('}');
  EXPECT_EQ(text.Take(), "{\"a\xef\xbf\xbd\":\"b\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace kgrpo::program
