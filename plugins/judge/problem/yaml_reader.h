// Typed access to the nodes of a YAML file that collects every mistake with its position. Used by the parsers of
// problem files.
#pragma once

#include <kgrpo/support/yaml.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "judge/problem/diagnostics.h"

namespace kgrpo::evaluator {

// Each function writes what it read to `out`, or notes a mistake at the node's position, under `path`
// ("parameters[0].shape"), and returns false.
class YamlReader {
 public:
  explicit YamlReader(std::string file) : diagnostics_(std::move(file)) {}
  Diagnostics& diagnostics() { return diagnostics_; }

 protected:
  using Fields = std::map<std::string, std::function<void(const YamlNode&, const std::string& path)>>;

  void Add(const YamlNode& node, const std::string& path, const std::string& message);

  // Calls the field of each key. Unknown, repeated and missing keys are mistakes; `present`: the keys that are there.
  bool Map(const YamlNode& node, const std::string& path, const Fields& fields,
           const std::vector<std::string>& required, std::set<std::string>* present = nullptr);
  bool Text(const YamlNode& node, const std::string& path, std::string& out);
  void TextList(const YamlNode& node, const std::string& path, std::vector<std::string>& out);
  // `out`: the index of the choice.
  bool Choice(const YamlNode& node, const std::string& path, const std::vector<std::string>& choices, size_t& out);
  bool Number(const YamlNode& node, const std::string& path, double& out);  // finite
  bool Boolean(const YamlNode& node, const std::string& path, bool& out);

 private:
  Diagnostics diagnostics_;
};

}  // namespace kgrpo::evaluator
