// The service's answers: kernels, lists, streams, problems in requests, and every mistake with its place.
#include <kgrpo/support/evaluation_json.h>
#include <kgrpo/support/problem_files.h>

#include <sstream>

#include "running_service.h"

namespace kgrpo::test {
namespace {

using ServiceTest = ServeTest;

TEST_F(ServiceTest, JudgesOneKernelOnTheDevicesThatAreNamed) {
  RunningService running;
  const Answer answer =
      Post(running.Client(), {{"problem", "one"}, {"source", "x"}, {"seed", 7}, {"devices", {"slow", "fast"}}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  EXPECT_EQ(answer.json["problem"], "one");
  ASSERT_EQ(answer.json["results"].size(), 2U);
  const Json& slow = answer.json["results"][0];
  EXPECT_EQ(slow["device"], "slow");
  EXPECT_EQ(slow["speedup"], 4.0);
  const Evaluation evaluation = EvaluationFromJson(slow["evaluation"]);
  EXPECT_EQ(evaluation.verdict, "correct");
  EXPECT_EQ(evaluation.seconds, 2.0);
  EXPECT_EQ(evaluation.diagnosis, "seed 7");
  EXPECT_EQ(evaluation.metrics, (std::vector<Metric>{{"comments", 3}}));
  EXPECT_EQ(evaluation.remarks, (std::vector<Remark>{{"Group", "label", "text", 2, 0.5}}));
  EXPECT_EQ(slow["baseline"]["seconds"], 8.0);
  EXPECT_EQ(answer.json["results"][1]["evaluation"]["seconds"], 0.25);
}

TEST_F(ServiceTest, JudgesTheReferenceOnceForAllRequests) {
  RunningService running;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Post(running.Client(), {{"problem", "one"}, {"source", "x"}}).status, 200);
  EXPECT_EQ(judge().baselines, 1);
  const Answer reference = Post(running.Client(), {{"problem", "one"}});
  EXPECT_EQ(reference.json["results"][0]["baseline"]["diagnosis"], "the reference");
  EXPECT_FALSE(reference.json["results"][0].contains("evaluation"));
  EXPECT_EQ(judge().evaluations, 3);
}

TEST_F(ServiceTest, ComparesAThoroughlyJudgedKernelWithAThoroughlyJudgedReference) {
  RunningService running;
  const Answer answer =
      Post(running.Client(), {{"problem", "one"}, {"source", "x"}, {"seed", 3}, {"thoroughness", "thorough"}});
  EXPECT_EQ(answer.json["results"][0]["evaluation"]["diagnosis"], "seed 3, thorough");
  EXPECT_EQ(answer.json["results"][0]["baseline"]["diagnosis"], "seed 3, thorough");
}

TEST_F(ServiceTest, AnswersAListInItsOrder) {
  RunningService running({.workers = 4});
  Json list = Json::array();
  for (int i = 0; i < 40; ++i)
    list.push_back({{"problem", i % 2 == 0 ? "one" : "two"}, {"source", i % 3 == 0 ? "wrong" : "x"}, {"seed", i}});
  const Answer answer = Post(running.Client(), {{"evaluations", list}});
  ASSERT_EQ(answer.status, 200);
  ASSERT_EQ(answer.json["evaluations"].size(), 40U);
  for (int i = 0; i < 40; ++i) {
    const Json& one = answer.json["evaluations"][i];
    EXPECT_EQ(one["problem"], i % 2 == 0 ? "one" : "two");
    EXPECT_EQ(one["results"][0]["evaluation"]["verdict"], i % 3 == 0 ? "wrong" : "correct");
    EXPECT_EQ(one["results"][0]["evaluation"]["diagnosis"], "seed " + std::to_string(i));
    EXPECT_EQ(one["results"][0].contains("speedup"), i % 3 != 0);
  }
}

TEST_F(ServiceTest, StreamsEachResultAsSoonAsItIsThere) {
  RunningService running({.workers = 2});
  const Json body = {
      {"stream", true},
      {"evaluations", {{{"problem", "one"}, {"source", "hold"}}, {{"problem", "one"}, {"source", "x"}}}}};
  std::string text;
  bool released_by_first = false;
  httplib::Request request;
  request.method = "POST";
  request.path = "/v1/evaluations";
  request.body = body.dump();
  request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    text.append(data, size);
    if (!judge().released && text.find("\"index\":1") != std::string::npos) {
      released_by_first = true;  // the other one is still held
      judge().released = true;
    }
    return true;
  };
  const httplib::Result result = running.Client().send(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->get_header_value("Content-Type"), "application/x-ndjson");
  EXPECT_TRUE(released_by_first);
  std::istringstream lines(text);
  std::vector<Json> seen;
  for (std::string line; std::getline(lines, line);) seen.push_back(Json::parse(line));
  ASSERT_EQ(seen.size(), 3U) << text;
  EXPECT_EQ(seen[0]["index"], 1);
  EXPECT_EQ(seen[1]["index"], 0);
  EXPECT_EQ(seen[2], (Json{{"done", true}, {"results", 2}}));
}

TEST_F(ServiceTest, SaysWhichOfSeveralCouldNotBeJudged) {
  RunningService running;
  const Answer some =
      Post(running.Client(),
           {{"evaluations", {{{"problem", "one"}, {"source", "break"}}, {{"problem", "one"}, {"source", "x"}}}}});
  EXPECT_EQ(some.status, 200);
  EXPECT_EQ(some.json["evaluations"][0]["results"][0]["error"],
            (Json{{"code", "unavailable"}, {"message", "there is no compiler"}}));
  EXPECT_EQ(some.json["evaluations"][1]["results"][0]["evaluation"]["verdict"], "correct");
  const Answer all = Post(running.Client(), {{"problem", "one"}, {"source", "break"}});
  EXPECT_EQ(all.status, 503);
  EXPECT_EQ(all.json["error"]["message"], "there is no compiler");
}

TEST_F(ServiceTest, TakesAProblemWithItsFiles) {
  RunningService running;
  const Json files = {{"problem.yaml", "name: mine\n"}, {"reference.cu", "void launch();\n"}};
  const Answer told = Post(running.Client(), {{"name", "mine"}, {"files", files}}, "/v1/problems");
  ASSERT_EQ(told.status, 200) << told.json;
  EXPECT_EQ(told.json["source"], "void launch();\n");
  const std::string sha256 = told.json["sha256"];
  EXPECT_EQ(sha256, ProblemDigest({{"problem.yaml", "name: mine\n"}, {"reference.cu", "void launch();\n"}}));
  // From now on its digest is enough.
  EXPECT_EQ(Post(running.Client(), {{"problem", {{"name", "mine"}, {"sha256", sha256}}}, {"source", "x"}}).status, 200);
  const Answer other =
      Post(running.Client(), {{"problem", {{"name", "mine"}, {"sha256", std::string(64, '0')}}}, {"source", "x"}});
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(other.json["error"]["code"], "unknown_problem");
  // Known problems are found by the digest of their folder.
  const std::string one = ProblemDigest(ReadProblemFiles(running.problem("one").string()));
  EXPECT_EQ(Post(running.Client(), {{"problem", {{"name", "one"}, {"sha256", one}}}, {"source", "x"}}).status, 200);
}

TEST_F(ServiceTest, TakesNoNativeCodeAndNoPathsFromStrangers) {
  RunningService running;
  const auto refused = [&](const std::string& name, const Json& files) {
    const Answer answer = Post(running.Client(), {{"problem", {{"name", name}, {"files", files}}}, {"source", "x"}});
    return std::to_string(answer.status) + " " + answer.json["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(refused("mine", {{"oracle.cc", "int x;"}}).substr(0, 53),
            "422 problem.files: oracle.cc may be native code that ");
  EXPECT_EQ(refused("mine", {{"../x.cu", ""}}), "422 problem.files: \"../x.cu\" is no plain file name");
  EXPECT_EQ(refused("../mine", {{"x.cu", ""}}),
            "422 problem.name: expected letters, digits, _ and - alone, as a folder's name");
  EXPECT_EQ(refused("mine", {{"x.cu", std::string(2 << 20, 'x')}}),
            "422 problem.files: its files hold 2097152 bytes, above 1 MiB");
  // An evaluator's message about a file names no folder of the server.
  EXPECT_EQ(refused("mine", {{"problem.yaml", "name: mine"}}), "422 mine/reference.cu: there is no such file");
  const Json unreadable = {{"name", "mine"}, {"files", {{"problem.yaml", "name: mine"}}}};
  EXPECT_EQ(Post(running.Client(), unreadable, "/v1/problems").json["error"]["message"],
            "mine/reference.cu: there is no such file");
  RunningService trusting({.inline_code = true});
  const Json files = {{"oracle.cc", "int x;"}, {"reference.cu", "x"}};
  EXPECT_EQ(Post(trusting.Client(), {{"problem", {{"name", "mine"}, {"files", files}}}, {"source", "x"}}).status, 200);
}

TEST_F(ServiceTest, NamesEveryMistakeOfARequest) {
  RunningService running;
  const auto said = [&](const Json& body) {
    const Answer answer = Post(running.Client(), body);
    return std::to_string(answer.status) + " " + answer.json["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(said({{"problem", "on"}, {"source", "x"}}).substr(0, 66),
            "404 there is no problem \"on\" here; did you mean \"one\"?; GET /v1/pr");
  EXPECT_EQ(said({{"source", "x"}}), "400 problem: missing: a problem's name, or an object with its files");
  EXPECT_EQ(said({{"problem", "one"}, {"sorce", "x"}}), "400 sorce: no such key; did you mean \"source\"?");
  EXPECT_EQ(said({{"problem", "one"}, {"source", 3}}), "400 source: expected text, not number");
  EXPECT_EQ(said({{"evaluations", {{{"problem", "one"}}, {{"problem", "one"}, {"seed", -1}}}}}),
            "400 evaluations[1].seed: expected a whole number of at least 0");
  EXPECT_EQ(said({{"evaluations", Json::array()}}), "400 evaluations: expected a list of at least one evaluation");
  EXPECT_EQ(said({{"problem", "one"}, {"thoroughness", "very"}}),
            "400 thoroughness: expected \"quick\" or \"thorough\"");
  EXPECT_EQ(said({{"problem", "one"}, {"devices", {"fast", "fast"}}}), "400 devices[1]: named twice");
  EXPECT_EQ(said({{"problem", "one"}, {"devices", {"h100"}}}),
            "400 devices: this service does not judge for \"h100\"; it does for fast, slow");
  EXPECT_EQ(said(Json::array()), "400 the body: expected an object, not array");
  EXPECT_EQ(judge().evaluations, 0);
}

TEST_F(ServiceTest, DescribesItself) {
  RunningService running;
  EXPECT_EQ(Get(running.Client(), "/v1/evaluator").json["devices"],
            (Json{{{"name", "fast"}, {"description", "a fake"}}, {{"name", "slow"}, {"description", "a fake"}}}));
  const Answer problems = Get(running.Client(), "/v1/problems");
  ASSERT_EQ(problems.json["problems"].size(), 2U);
  EXPECT_EQ(problems.json["problems"][1]["name"], "two");
  EXPECT_EQ(Get(running.Client(), "/v1/problems/two").json["task"], "the task");
  EXPECT_EQ(Get(running.Client(), "/v1/problems/three").status, 404);
  const Json api = Get(running.Client(), "/openapi.json").json;
  // Every path that it describes is there, and each schema that it refers to.
  for (const auto& [path, methods] : api["paths"].items()) {
    if (methods.contains("get") && path.find('{') == std::string::npos) {
      EXPECT_EQ(Get(running.Client(), path).status, 200) << path;
    }
  }
  const std::string text = api.dump();
  for (size_t at = 0; (at = text.find("\"#/", at)) != std::string::npos; ++at) {
    const std::string pointer = text.substr(at + 2, text.find('"', at + 1) - at - 2);
    EXPECT_TRUE(api.contains(Json::json_pointer(pointer))) << pointer;
  }
  EXPECT_NE(running.Client().Get("/")->body.find("POST /v1/evaluations"), std::string::npos);
}

}  // namespace
}  // namespace kgrpo::test
