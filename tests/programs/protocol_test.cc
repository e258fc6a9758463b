// Compares the messages that the host and the Python kit write with docs/protocol/program.json.
#define VALIJSON_USE_EXCEPTIONS 1

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "cli/commands.h"
#include "program_shared/message.h"
#include "test.h"

namespace kgrpo {
namespace {

json ReadJson(const std::string& name) { return json::parse(test::Read(KGRPO_SOURCE_DIR "/docs/protocol/" + name)); }

// The mistakes that a definition of program.json finds in a message; empty: none.
std::string Mistakes(const std::string& definition, const json& message) {
  json document = ReadJson("program.json");
  if (!document["definitions"].contains(definition)) return "there is no definition " + definition;
  document["definitions"]["evaluation"] = ReadJson("evaluation.json");
  document.erase("anyOf");
  document["$ref"] = "#/definitions/" + definition;
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(document), schema);
  valijson::ValidationResults results;
  valijson::Validator validator;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(message), &results)) return "";
  std::string mistakes = "invalid:";
  for (valijson::ValidationResults::Error error; results.popError(error);) mistakes += " " + error.description;
  return mistakes;
}

const char* const kAllRoles = R"(from kgrpo_plugin import NotApplicable, coder, evaluator, reward, run

@reward(idle=lambda round: 0.5)
def score(round):
    return {"correct": 1.0, "speed": round.speedup} if round.correct else -1

@coder(suggestions=["add a comment"])
def write(request):
    if request.seed % 3 == 0:
        raise NotApplicable("not today")
    return {"source": request.code_b + "// x\n", "summary": "a comment", "cost": 0.01, "prompt_tokens": 3}

@evaluator
def judge(kernel):
    if len(kernel.source) % 2:
        return {"correct": False, "compiled": False, "diagnosis": "odd"}
    return {"correct": True, "seconds": 1e-6 * len(kernel.source), "metrics": {"length": len(kernel.source)},
            "remarks": [{"text": "short"}]}

run()
)";

class ProtocolTest : public CliTest {
 protected:
  ProtocolTest() {
    std::filesystem::copy_file(KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py", directory_.path() / "kgrpo_plugin.py");
    Write("all.py", kAllRoles);
    Write("problems/one/reference.cu", "void launch() {} \n");
    Write("problems/two/reference.cu", "void launch() {}   \n");
    Write("options.json", json({{"command", {"sh", "-c", kRecord}}}).dump());
  }
  static constexpr const char* kRecord = "tee -a sent | python3 all.py | tee -a answered";
};

TEST_F(ProtocolTest, AWholeRunOfProgramsKeepsToTheSchema) {
  std::string settings;
  for (const std::string role : {"reward", "coder", "evaluator"}) {
    settings += " --set " + role + ".plugin=" + role + "_program --set '" + role + ".options={command: [sh, -c, \"" +
                kRecord + "\"]}'";
  }
  const test::Result ran = Run("run p.yaml --set output_dir=run" + settings);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const test::Result validated = Run("plugins validate reward_program --options options.json");
  ASSERT_EQ(validated.code, 0) << validated.out;

  std::set<std::string> methods;
  for (const json& request : Lines(test::Read(directory_.path() / "sent"))) {
    EXPECT_EQ(Mistakes(request.at("method"), request), "") << request;
    methods.insert(request.at("method"));
  }
  EXPECT_EQ(methods, (std::set<std::string>{"configure", "evaluate", "idle", "implement", "initialize", "open_problem",
                                            "score"}));
  std::set<std::string> results;
  for (const json& answer : Lines(test::Read(directory_.path() / "answered"))) {
    EXPECT_EQ(Mistakes("answer", answer), "") << answer;
    const json& result = answer.at("result");
    const std::string kind = result.contains("score")     ? "score_result"
                             : result.contains("outcome") ? "implement_result"
                             : result.contains("name")
                                 ? (result.contains("roles") ? "initialize_result" : "open_problem_result")
                             : result.contains("correct") ? "evaluate_result"
                                                          : "configure_result";
    EXPECT_EQ(Mistakes(kind, result), "") << result;
    results.insert(kind);
  }
  EXPECT_EQ(results.size(), 6U);
  // The messages of the coder and the evaluator are in the run's record.
  const std::string rollouts = Run("export run").out;
  EXPECT_THAT(rollouts, HasSubstr("not today"));
  EXPECT_THAT(rollouts, HasSubstr("a comment"));
}

TEST_F(ProtocolTest, TheSchemaOfEvaluationsNamesWhatTheHostWrites) {
  ASSERT_EQ(Run("plugins validate reward_program --options options.json").code, 0);
  for (const json& request : Lines(test::Read(directory_.path() / "sent"))) {
    if (request.at("method") != "score") continue;
    std::set<std::string> written, named;
    for (const auto& [key, value] : request["params"]["baseline"].items()) written.insert(key);
    const json schema = ReadJson("evaluation.json");
    for (const auto& [key, value] : schema["properties"].items()) named.insert(key);
    EXPECT_EQ(written, named);
  }
}

TEST_F(ProtocolTest, TheSchemaRefusesWhatTheHostRefuses) {
  EXPECT_EQ(Mistakes("cancel", json::parse(program::CancelLine(7))), "");
  EXPECT_NE(Mistakes("answer", {{"id", 1}}), "");
  EXPECT_NE(Mistakes("answer", {{"id", 1}, {"result", 1}, {"error", {{"message", "no"}}}}), "");
  EXPECT_NE(Mistakes("evaluate_result", {{"seconds", 1}}), "");
  EXPECT_NE(Mistakes("score_result", {{"score", "high"}}), "");
  EXPECT_EQ(Mistakes("score_result", {{"no_score", "too uncertain"}}), "");
  EXPECT_NE(Mistakes("score_result", json::object()), "");
  EXPECT_NE(Mistakes("implement_result", {{"outcome", "fine"}}), "");
  EXPECT_NE(Mistakes("initialize_result", {{"protocol", 2}, {"roles", {"reward"}}}), "");
}

}  // namespace
}  // namespace kgrpo
