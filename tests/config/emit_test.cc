// EmitYaml: whatever is written reads back as the same value.
#include "config/emit.h"

#include "base/keyed.h"
#include "config/node.h"
#include "test.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

Json ReadBack(const std::string& yaml) {
  std::vector<Diagnostic> diagnostics;
  const Node node = ParseYaml(yaml, "f", 0, &diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) ADD_FAILURE() << diagnostic.ToString() << "\n" << yaml;
  return node.ToJson();
}

TEST(EmitYaml, IsWhatAPersonWouldWrite) {
  const Json value = {{"name", "first run"},
                      {"rate", 1e-5},
                      {"steps", 100},
                      {"on", true},
                      {"none", nullptr},
                      {"list", {1, 2.5, "x"}},
                      {"empty", Json::object()},
                      {"text", "one\ntwo\n"},
                      {"stages", {{{"plugin", "a"}, {"options", {{"k", 1}}}}, {{"plugin", "b"}}}}};
  EXPECT_EQ(EmitYaml(value),
            "name: first run\nrate: 1e-05\nsteps: 100\n\"on\": true\nnone: null\nlist: [1, 2.5, x]\nempty: {}\ntext: "
            "|\n  one\n  two\n"
            "stages:\n  - plugin: a\n    options:\n      k: 1\n  - plugin: b\n");
}

TEST(EmitYaml, KeepsTextsThatLookLikeSomethingElse) {
  std::istringstream texts(
      "|yes|no|null|~|true|3|1e5|.inf|0x1F| x|x |- a|a: b|#c|'q'|\"q\"|\n|a\n|a\nb|\na\n|a\n\n\n| a\nb\n|"
      "a\n b\n  c|tab\there\nb|ä ö|\xE2\x80\xA8|\x01\x7f|{{code}}|*a|&a|!t|%d|@x|`x`|a\\b|---|...|?|a\r\nb|<<|"
      "key:\n  - x\n|trailing \nspace\n");
  for (std::string text; std::getline(texts, text, '|');) {
    const Json value = {{"k", text}, {"list", {text, "x"}}, {"deep", {{{"inner", text}}}}, {text, 1}};
    EXPECT_EQ(ReadBack(EmitYaml(value)), value) << EmitYaml(value);
  }
}

TEST(EmitYaml, KeepsNumbers) {
  for (const Json& number : {Json(0), Json(-1), Json(18446744073709551615U), Json(INT64_MIN), Json(0.1), Json(1e300),
                             Json(1e-300), Json(5e-324), Json(3.0), Json(-0.0)}) {
    const Json back = ReadBack(EmitYaml({{"n", number}}))["n"];
    EXPECT_EQ(back, number);
    EXPECT_EQ(back.type() == Json::value_t::number_float, number.is_number_float()) << number;
  }
}

Json RandomTree(KeyedStream& random, int depth) {
  const std::string alphabet = "ab \n:#-\"'{}[],|>\t!&*0.";
  if (depth > 0 && random.Below(2) == 0) {
    Json value = random.Below(2) == 0 ? Json::array() : Json::object();
    for (uint64_t i = random.Below(4); i > 0; --i) {
      if (value.is_array())
        value.push_back(RandomTree(random, depth - 1));
      else
        value["k" + std::to_string(i)] = RandomTree(random, depth - 1);
    }
    return value;
  }
  if (random.Below(4) == 0) return random.Below(1000);
  std::string text;
  for (uint64_t i = random.Below(12); i > 0; --i) text += alphabet[random.Below(alphabet.size())];
  return text;
}

TEST(EmitYaml, KeepsWhateverItIsGiven) {
  KeyedStream random(3, "emit", {});
  for (int i = 0; i < 3000; ++i) {
    const Json value = {{"root", RandomTree(random, 3)}};
    ASSERT_EQ(ReadBack(EmitYaml(value)), value) << EmitYaml(value);
  }
}

}  // namespace
}  // namespace kgrpo
