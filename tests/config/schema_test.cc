// The messages of config/schema.h against valijson's evaluation, and mistakes in schemas themselves.
#define VALIJSON_USE_EXCEPTIONS 1  // without it valijson ends the process at a malformed schema
#include "config/schema.h"

#include <kgrpo/support/closest.h>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "base/keyed.h"
#include "test.h"

namespace kgrpo {
namespace {

std::vector<std::string> Objections(const char* schema, const char* value) {
  std::vector<Diagnostic> diagnostics;
  CheckAgainstSchema(Node::FromJson(nlohmann::ordered_json::parse(value), {"f", 1, 1}), Schema::parse(schema), "o",
                     &diagnostics);
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : diagnostics) messages.push_back(diagnostic.ToString());
  return messages;
}

TEST(CheckAgainstSchema, SpeaksOfEachKindOfMistake) {
  EXPECT_THAT(Objections(R"({"type": "integer", "minimum": 1})", R"("many")"),
              ElementsAre("f:1:1: o: expected an integer >= 1, found \"many\""));
  EXPECT_THAT(Objections(R"({"type": ["string", "null"]})", "3"),
              ElementsAre("f:1:1: o: expected text or nothing, found 3"));
  EXPECT_THAT(Objections(R"({"type": "string"})", R"({"correct ? 1": 2})"),
              ElementsAre("f:1:1: o: expected text, found a mapping (quote text that contains \": \")"));
  EXPECT_THAT(Objections(R"({"type": "number", "multipleOf": 0.5})", "0.75"),
              ElementsAre("f:1:1: o: expected a number that is a multiple of 0.5, found 0.75"));
  EXPECT_THAT(Objections(R"({"type": "array", "minItems": 2})", "[1]"),
              ElementsAre("f:1:1: o: expected a list of at least 2 items, found 1"));
  EXPECT_THAT(Objections(R"({"const": 3})", "4"), ElementsAre("f:1:1: o: expected 3, found 4"));
  EXPECT_THAT(Objections(R"({"type": "string", "maxLength": 3})", R"("äöüß")"),
              ElementsAre("f:1:1: o: expected text of at most 3 characters, found \"äöüß\""));
  EXPECT_THAT(Objections(R"({"type": "string", "maxLength": 3})", R"("äöü")"), IsEmpty());
  EXPECT_THAT(Objections(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", "3"),
              ElementsAre(HasSubstr("fits more than one")));
  EXPECT_THAT(Objections(R"({"type": "object", "minProperties": 2})", R"({"a": 1})"),
              ElementsAre("f:1:1: o: expected at least 2 keys, found 1"));
}

// valijson's evaluation, which no one here wrote.
bool ValijsonAccepts(const nlohmann::json& value, const Schema& schema) {
  const nlohmann::json plain(schema);
  valijson::Schema compiled;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(plain), compiled);
  valijson::Validator validator;
  return validator.validate(compiled, valijson::adapters::NlohmannJsonAdapter(value), nullptr);
}

TEST(CheckAgainstSchema, FollowsReferences) {
  const char* schema =
      R"({"definitions": {"p": {"type": "integer", "minimum": 0}}, "type": "object", "properties": {"a": {"$ref": "#/definitions/p"}}})";
  EXPECT_THAT(Objections(schema, R"({"a": -1})"), ElementsAre("f:1:1: o.a: expected an integer >= 0, found -1"));
}

// A random value of small depth, biased to what the schemas below ask for.
nlohmann::ordered_json RandomValue(KeyedStream& random, int depth) {
  switch (random.Below(depth > 0 ? 9 : 6)) {
    case 0: return nullptr;
    case 1: return random.Below(2) == 1;
    case 2: return static_cast<int64_t>(random.Below(9)) - 2;
    case 3: return static_cast<double>(random.Below(40)) / 8 - 1;
    case 4: return std::vector<std::string>{"a", "bb", "ccc", "", "tile"}[random.Below(5)];
    case 5: return 100;
    case 6: {
      auto list = nlohmann::ordered_json::array();
      for (uint64_t i = random.Below(4); i > 0; --i) list.push_back(RandomValue(random, depth - 1));
      return list;
    }
    default: {
      auto object = nlohmann::ordered_json::object();
      for (const char* key : {"a", "b", "c"}) {
        if (random.Below(2) == 1) object[key] = RandomValue(random, depth - 1);
      }
      return object;
    }
  }
}

TEST(CheckAgainstSchema, AgreesWithValijson) {
  const char* kSchemas[] = {
      R"({"type": "integer", "minimum": 0, "maximum": 5})",
      R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2.5})",
      R"({"type": "number", "multipleOf": 0.25})",
      R"({"type": "string", "minLength": 1, "maxLength": 2})",
      R"({"type": "string", "pattern": "^[a-c]+$"})",
      R"({"enum": ["a", 3, null, true, [1]]})",
      R"({"type": ["integer", "boolean", "null"]})",
      R"({"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": {"type": "integer"}})",
      R"({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]})",
      R"({"type": "object", "required": ["a"], "additionalProperties": false, "properties": {"a": {"type": "integer"}, "b": {"enum": ["a", "bb"]}}})",
      R"({"type": "object", "additionalProperties": {"type": "number"}, "properties": {"a": {"type": "array", "items": {"minimum": 1}}}})",
      R"({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "array", "minItems": 2}, {"type": "string"}]})",
      R"({"oneOf": [{"type": "number", "minimum": 2}, {"type": "integer"}]})",
      R"({"allOf": [{"type": "number"}, {"minimum": 1}, {"maximum": 3}]})",
      R"({"type": "object", "minProperties": 2, "properties": {"c": {"type": "object", "required": ["b"]}}})",
  };
  size_t valid = 0, invalid = 0;
  for (uint64_t s = 0; s < std::size(kSchemas); ++s) {
    const Schema schema = Schema::parse(kSchemas[s]);
    KeyedStream random(11, "schema", {s});
    for (int i = 0; i < 400; ++i) {
      const nlohmann::ordered_json value = RandomValue(random, 2);
      const bool judged = ValijsonAccepts(nlohmann::json(value), schema);
      (judged ? valid : invalid) += 1;
      EXPECT_EQ(Objections(kSchemas[s], value.dump().c_str()).empty(), judged) << kSchemas[s] << " of " << value;
    }
  }
  EXPECT_GT(valid, 500U);
  EXPECT_GT(invalid, 500U);
}

TEST(FindSchemaMistakes, NamesThem) {
  const auto mistakes = [](const char* schema) { return FindSchemaMistakes(Schema::parse(schema)); };
  EXPECT_THAT(
      mistakes(
          R"({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "integer", "description": "x", "default": 1}}})"),
      IsEmpty());
  EXPECT_THAT(mistakes("[]"), ElementsAre(HasSubstr("describes a mapping")));
  EXPECT_THAT(
      mistakes(
          R"({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "integer", "minimun": 1, "description": "x"}}})"),
      ElementsAre("a: unknown keyword \"minimun\"; did you mean \"minimum\"?"));
  EXPECT_THAT(
      mistakes(
          R"({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "integer", "minimum": 2, "default": 1, "description": "x"}}})"),
      ElementsAre("a: the default is refused by its own schema: expected an integer >= 2, found 1"));
  EXPECT_THAT(
      mistakes(
          R"({"type": "object", "additionalProperties": false, "properties": {"a": {"enum": ["off", "on"], "x-profile": "no", "description": "x"}, "b": {"type": "integer", "x-seed": true, "description": "x"}}})"),
      ElementsAre(HasSubstr("a: the x-profile is refused by its own schema: expected one of \"off\", \"on\"")));
  EXPECT_THAT(mistakes(R"({"type": "object", "properties": {"a": {"type": "integer", "description": "x"}}})"),
              ElementsAre(HasSubstr("additionalProperties")));
  EXPECT_THAT(
      mistakes(R"({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "integer"}}})"),
      ElementsAre("a: has no description"));
  EXPECT_THAT(
      mistakes(
          R"({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "whole", "description": "x"}}})"),
      ElementsAre("a: \"type\" cannot be \"whole\""));
  EXPECT_THAT(
      mistakes(
          R"({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "integer", "minimum": "x", "description": "x"}}})"),
      ElementsAre("a: \"minimum\" cannot be \"x\""));
  EXPECT_THROW(RequireUsableSchema(Schema::parse(R"({"type": "object", "if": {}})")), Error);
}

TEST(Closest, FindsWhatWasMeant) {
  const std::vector<std::string> words = {"batch_size", "rounds", "max_steps", "lr"};
  EXPECT_EQ(Closest("batchsize", words), "batch_size");
  EXPECT_EQ(Closest("ruonds", words), "rounds");  // two letters swapped are one edit
  EXPECT_EQ(Closest("MAX_STEPS", words), "max_steps");
  EXPECT_EQ(Closest("rl", words), "lr");
  EXPECT_EQ(Closest("elephant", words), "");
  EXPECT_EQ(Closest("", words), "");
  EXPECT_EQ(Closest("x", {}), "");
}

}  // namespace
}  // namespace kgrpo
