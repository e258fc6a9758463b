// A YAML value in which each key and value knows where it was written. Made by ParseYaml, merged by merge.h, checked by
// schema.h, read into a PipelineConfig by read.cc.
#ifndef KGRPO_CONFIG_NODE_H
#define KGRPO_CONFIG_NODE_H

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/diagnostic.h"

namespace kgrpo {

struct Node {
  enum class Kind { kScalar, kList, kMapping };
  struct Member;

  Kind kind = Kind::kScalar;
  Position at;
  nlohmann::json scalar;  // value of a kScalar: null, a boolean, a number or a string
  Position text;  // place of a string's first character, without quotes; line 0 if the file has it in another form
                  // (escapes, folding)
  std::vector<Node> items;      // elements of a kList
  std::vector<Member> members;  // entries of a kMapping, in the order written

  static Node Scalar(nlohmann::json value, Position at);
  static Node Mapping(Position at);
  static Node FromJson(const nlohmann::ordered_json& json, const Position& at);

  bool IsMapping() const { return kind == Kind::kMapping; }
  bool IsList() const { return kind == Kind::kList; }
  bool IsScalar() const { return kind == Kind::kScalar; }
  bool IsString() const { return IsScalar() && scalar.is_string(); }

  // A member of a mapping; NULL when there is none, or this is no mapping.
  const Member* Find(std::string_view key) const;
  Member* Find(std::string_view key);
  const Node* Get(std::string_view key) const;
  Node* Get(std::string_view key);
  void Erase(std::string_view key);

  nlohmann::ordered_json ToJson() const;
};

struct Node::Member {
  std::string key;
  Position at;  // place of the key
  Node value;
};

// A key that a schema lists as removed, where a mapping could have it.
struct RemovedKey {
  std::string path;        // "trainer[0].demonstrations.from"
  nlohmann::json meaning;  // the value in force now
};

// Parses one YAML document (YAML 1.2's core schema: yes, no, on and off are text). `file` and `rank` go into the
// positions. Mistakes (syntax, keys written twice, values that JSON cannot express) are appended to *diagnostics; what
// could be read is returned all the same.
Node ParseYaml(const std::string& text, const std::string& file, int rank, std::vector<Diagnostic>* diagnostics);

// As a person would name the value in a message: `"many"`, 2.5, `true`, "nothing", "a list", "a mapping".
std::string Describe(const Node& node);

}  // namespace kgrpo
#endif
