// A YAML file as a tree of texts with their places, parsed by yaml-cpp. Used by core/config and by the plugins that
// read YAML files; both decide for themselves which type a text has.
#ifndef KGRPO_SUPPORT_YAML_H
#define KGRPO_SUPPORT_YAML_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo {

// Line and column in characters, both from 1; line 0: not in the file.
struct YamlPlace {
  int line = 0;
  int column = 0;
};

struct YamlNode {
  enum class Kind { kScalar, kList, kMapping };

  Kind kind = Kind::kScalar;
  YamlPlace at;     // of the first character; of a value that is not written: its key's
  YamlPlace text;   // of a scalar's first character, without quotes, if the file has the text as it is in `value`
  std::string tag;  // "" or the whole tag, such as "tag:yaml.org,2002:str"
  std::string value;
  bool plain = false;            // a scalar without quotes that is not a block ('|', '>')
  std::vector<YamlNode> keys;    // of a mapping
  std::vector<YamlNode> values;  // of a list; of a mapping: one for each key

  bool IsScalar() const { return kind == Kind::kScalar; }
  bool IsList() const { return kind == Kind::kList; }
  bool IsMapping() const { return kind == Kind::kMapping; }

  // The first value of a key; NULL if the key is missing or this is not a mapping.
  const YamlNode* Get(std::string_view key) const;
};

struct YamlNumber {
  std::optional<int64_t> integer;  // a whole number without a point or exponent that fits
  std::optional<uint64_t> large;   // one of 2^63 or more
  double real = 0;                 // the number in any case; infinite if it is too large
};

// The number that a plain scalar is under YAML's core schema (12, -0x1F, 0o17, 1e-3; not .inf); nothing for other
// nodes.
std::optional<YamlNumber> ReadNumber(const YamlNode& node);

struct YamlError {
  YamlPlace at;
  std::string message;  // without a full stop
  bool is_text = true;  // false: the file is not UTF-8 text, or has a NUL byte
};

struct YamlFile {
  std::vector<YamlNode> documents;  // those before the error; aliases are replaced by copies
  // Bytes that are not UTF-8 text, syntax, an unknown alias, nesting beyond 64, or more than 100,000 nodes.
  std::optional<YamlError> error;
};

// Reads a text as YAML 1.2. Does not throw but std::bad_alloc; any number of threads may call it.
YamlFile ReadYaml(const std::string& text);

}  // namespace kgrpo
#endif
