// kgrpo/support/yaml.h: values, places and limits. Messages: tests/config/broken.
#include <kgrpo/support/yaml.h>
#include "test.h"

namespace kgrpo {
namespace {

// "KIND line:column" and, if the file has the text as it is, " text line:column"; then what it contains.
std::string Outline(const YamlNode& node) {
  const auto place = [](const YamlPlace& at) { return std::to_string(at.line) + ":" + std::to_string(at.column); };
  if (node.kind == YamlNode::Kind::kScalar)
    return "'" + node.value + "' " + place(node.at) + (node.text.line > 0 ? " text " + place(node.text) : "") +
           (node.plain ? "" : " not plain");
  std::string inner;
  for (size_t i = 0; i < node.values.size(); ++i) {
    if (i > 0) inner += ", ";
    if (i < node.keys.size()) inner += node.keys[i].value + ": ";
    inner += Outline(node.values[i]);
  }
  return place(node.at) + (node.kind == YamlNode::Kind::kList ? " [" + inner + "]" : " {" + inner + "}");
}

std::string OutlineOf(const std::string& text) {
  const YamlFile file = ReadYaml(text);
  if (file.error) return "error " + std::to_string(file.error->at.line) + ":" + std::to_string(file.error->at.column);
  return file.documents.size() == 1 ? Outline(file.documents[0]) : std::to_string(file.documents.size()) + " documents";
}

TEST(ReadYaml, KnowsEachPlaceInCharacters) {
  EXPECT_EQ(OutlineOf("a: b"), "1:1 {a: 'b' 1:4 text 1:4}");
  EXPECT_EQ(OutlineOf("größe: \"ü\" # c"), "1:1 {größe: 'ü' 1:8 text 1:9 not plain}");
  EXPECT_EQ(OutlineOf("\xEF\xBB\xBF{a: 'b'}"), "1:1 {a: 'b' 1:5 text 1:6 not plain}");
  EXPECT_EQ(OutlineOf("a:\n- b\n-  c"), "1:1 {a: 2:1 ['b' 2:3 text 2:3, 'c' 3:4 text 3:4]}");
  EXPECT_EQ(OutlineOf("k:\nl: 1"), "1:1 {k: '' 1:1, l: '1' 2:4 text 2:4}");
  EXPECT_EQ(OutlineOf("just text"), "'just text' 1:1 text 1:1");
}

// A place within a text can be shown only if the file has the text as it is.
TEST(ReadYaml, KnowsWhichTextsStandInTheFileAsTheyAre) {
  EXPECT_EQ(OutlineOf("a: \"x\\n\""), "1:1 {a: 'x\n' 1:4 not plain}");
  EXPECT_EQ(OutlineOf("a: 'it''s'"), "1:1 {a: 'it's' 1:4 not plain}");
  EXPECT_EQ(OutlineOf("a: x\n  y"), "1:1 {a: 'x y' 1:4}");
  EXPECT_EQ(OutlineOf("a: >\n  x\n  y\n"), "1:1 {a: 'x y\n' 1:4 not plain}");
  EXPECT_EQ(OutlineOf("'a|': | # c | d\n    x\n\n      y\n"), "1:1 {a|: 'x\n\n  y\n' 1:7 text 2:5 not plain}");
  EXPECT_EQ(OutlineOf("a: |2\r\n    x\r\n"), "1:1 {a: '  x\n' 1:4 text 2:3 not plain}");
}

TEST(ReadYaml, CopiesAliases) {
  EXPECT_EQ(OutlineOf("a: &x {b: 1}\nc: *x"), "1:1 {a: 1:7 {b: '1' 1:11 text 1:11}, c: 1:7 {b: '1' 1:11 text 1:11}}");
  EXPECT_EQ(OutlineOf("a: *x"), "error 1:4");
  EXPECT_EQ(OutlineOf("a: &x [*x]"), "error 1:8");
  EXPECT_EQ(OutlineOf("--- {a: &x 1}\n--- [*x]"), "error 2:6");  // names end with their document
}

TEST(ReadYaml, RefusesBytesThatAreNoText) {
  EXPECT_EQ(OutlineOf("a: 1\nü: \xE9"), "error 2:4");
  EXPECT_EQ(OutlineOf(std::string("a: 1\n\0b: 2\n", 11)), "error 2:1");
  EXPECT_FALSE(ReadYaml("\xC3").error->is_text);
  EXPECT_TRUE(ReadYaml("[").error->is_text);
}

// yaml-cpp itself takes a quote that no quote closes.
TEST(ReadYaml, KnowsWhereAnErrorBegan) {
  EXPECT_EQ(OutlineOf("a: 1\nb: 'it''s\n"), "error 2:4");
  EXPECT_EQ(OutlineOf("a: \"b\\\"\n"), "error 1:4");
  EXPECT_EQ(OutlineOf("k: [1, 2"), "error 1:4");
  EXPECT_EQ(OutlineOf("k: {a: 1,\nb: 2\n"), "error 1:4");
  EXPECT_EQ(OutlineOf("k: [1 {2}]"), "error 1:7");
  EXPECT_EQ(OutlineOf("a: \"b\" c"), "error 1:8");
  EXPECT_EQ(OutlineOf("a\nb: 1"), "error 1:1");
}

TEST(ReadYaml, CountsDocuments) {
  EXPECT_EQ(OutlineOf(""), "0 documents");
  EXPECT_EQ(OutlineOf("# nothing"), "0 documents");
  EXPECT_EQ(OutlineOf("---\na: 1\n---\nb: 2\n"), "2 documents");
}

TEST(ReadYaml, KeepsTags) {
  const YamlFile file = ReadYaml("[!!str 5, !own x, 5]");
  ASSERT_EQ(file.documents.size(), 1U);
  EXPECT_EQ(file.documents[0].values[0].tag, "tag:yaml.org,2002:str");
  EXPECT_EQ(file.documents[0].values[1].tag, "!own");
  EXPECT_EQ(file.documents[0].values[2].tag, "");
}

// Brackets may close in the column of their key, and JSON is YAML.
TEST(ReadYaml, TakesBracketsInAnyColumn) {
  EXPECT_EQ(OutlineOf("a: {\n  b: 1\n}"), "1:1 {a: 1:4 {b: '1' 2:6 text 2:6}}");
  EXPECT_EQ(OutlineOf("{\"a\":[1,\n2]}"), "1:1 {a: 1:6 ['1' 1:7 text 1:7, '2' 2:1 text 2:1]}");
}

TEST(ReadYaml, RefusesWhatExhaustsMemoryOrTheStack) {
  EXPECT_EQ(OutlineOf(std::string(64, '[') + std::string(64, ']')).substr(0, 5), "1:1 [");
  EXPECT_EQ(OutlineOf(std::string(65, '[') + std::string(65, ']')), "error 1:65");
  EXPECT_THAT(OutlineOf(std::string(1'000'000, '[')), StartsWith("error 1:"));
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    const std::string name = "a" + std::to_string(i), of = "*a" + std::to_string(i - 1);
    laughs += name + ": &" + name + " [" + of;
    for (int k = 1; k < 10; ++k) laughs += ", " + of;
    laughs += "]\n";
  }
  EXPECT_EQ(OutlineOf(laughs).substr(0, 5), "error");
}

}  // namespace
}  // namespace kgrpo
