#include "evaluator_shared/yaml_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kgrpo::evaluator {

void YamlReader::Add(const YAML::Node& node, const std::string& path, const std::string& message) {
  const YAML::Mark mark = node.Mark();
  diagnostics_.Add(mark.line + 1, mark.column + 1, path, message);
}

bool YamlReader::Map(const YAML::Node& node, const std::string& path, const Fields& fields,
                     const std::vector<std::string>& required, std::set<std::string>* present) {
  if (!node.IsMap()) {
    Add(node, path, "expected a mapping of keys to values");
    return false;
  }
  std::set<std::string> seen;
  bool good = true;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) {
      Add(entry.first, path, "a key must be plain text");
      good = false;
      continue;
    }
    const std::string key = entry.first.Scalar();
    const std::string key_path = path.empty() ? key : path + "." + key;
    const auto field = fields.find(key);
    if (field == fields.end()) {
      std::vector<std::string> known;
      for (const auto& [name, parse] : fields) known.push_back(name);
      Add(entry.first, key_path, "unknown key" + DidYouMean(key, known));
      good = false;
    } else if (!seen.insert(key).second) {
      Add(entry.first, key_path, "the key is given twice");
      good = false;
    } else {
      field->second(entry.second, key_path);
    }
  }
  for (const std::string& key : required) {
    if (seen.count(key) == 0) {
      Add(node, path.empty() ? key : path + "." + key, "is missing");
      good = false;
    }
  }
  if (present != nullptr) *present = std::move(seen);
  return good;
}

bool YamlReader::Text(const YAML::Node& node, const std::string& path, std::string& out) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    Add(node, path, "expected text");
    return false;
  }
  out = node.Scalar();
  return true;
}

bool YamlReader::Choice(const YAML::Node& node, const std::string& path, const std::vector<std::string>& choices,
                        size_t& out) {
  std::string text;
  if (!Text(node, path, text)) return false;
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) {
    std::string list;
    for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
    Add(node, path, "\"" + text + "\" is not one of " + list + DidYouMean(text, choices));
    return false;
  }
  out = static_cast<size_t>(found - choices.begin());
  return true;
}

bool YamlReader::Number(const YAML::Node& node, const std::string& path, double& out) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value)) {
    Add(node, path, "expected a finite number" + (node.IsScalar() ? ", not \"" + node.Scalar() + "\"" : std::string()));
    return false;
  }
  out = value;
  return true;
}

bool YamlReader::Boolean(const YAML::Node& node, const std::string& path, bool& out) {
  if (!node.IsScalar() || !YAML::convert<bool>::decode(node, out)) {
    Add(node, path, "expected true or false");
    return false;
  }
  return true;
}

void YamlReader::TextList(const YAML::Node& node, const std::string& path, std::vector<std::string>& out) {
  if (!node.IsSequence()) return Add(node, path, "expected a list");
  for (size_t i = 0; i < node.size(); ++i) {
    std::string text;
    if (Text(node[i], path + "[" + std::to_string(i) + "]", text)) out.push_back(text);
  }
}

}  // namespace kgrpo::evaluator
