#include "judge/problem/yaml_reader.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/closest.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kgrpo::evaluator {

void Diagnostics::Add(int line, int column, const std::string& path, const std::string& message) {
  entries_.push_back({file_, line, column, path.empty() ? message : path + ": " + message});
}

void Diagnostics::AddFile(const std::string& file, const std::string& message) {
  entries_.push_back({file, 0, 0, message});
}

void Diagnostics::ThrowIfAny() const {
  if (entries_.empty()) return;
  std::vector<Entry> sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  std::string text;
  for (const Entry& entry : sorted) {
    if (!text.empty()) text += "\n";
    text += entry.file + ":";
    if (entry.line > 0) text += std::to_string(entry.line) + ":" + std::to_string(entry.column) + ":";
    text += " " + entry.text;
  }
  throw Error(KGRPO_ERROR_INVALID, text);
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& known) {
  const std::string closest = Closest(word, known);
  return closest.empty() ? "" : "; did you mean \"" + closest + "\"?";
}

void YamlReader::Add(const YamlNode& node, const std::string& path, const std::string& message) {
  diagnostics_.Add(node.at.line, node.at.column, path, message);
}

bool YamlReader::Map(const YamlNode& node, const std::string& path, const Fields& fields,
                     const std::vector<std::string>& required, std::set<std::string>* present) {
  if (!node.IsMapping()) {
    Add(node, path, "expected a mapping of keys to values");
    return false;
  }
  std::set<std::string> seen;
  bool good = true;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& written = node.keys[i];
    if (!written.IsScalar()) {
      Add(written, path, "a key must be plain text");
      good = false;
      continue;
    }
    const std::string key = written.value;
    const std::string key_path = path.empty() ? key : path + "." + key;
    const auto field = fields.find(key);
    if (field == fields.end()) {
      std::vector<std::string> known;
      for (const auto& [name, parse] : fields) known.push_back(name);
      Add(written, key_path, "unknown key" + DidYouMean(key, known));
      good = false;
    } else if (!seen.insert(key).second) {
      Add(written, key_path, "the key is given twice");
      good = false;
    } else {
      field->second(node.values[i], key_path);
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

bool YamlReader::Text(const YamlNode& node, const std::string& path, std::string& out) {
  const bool null = node.plain && (node.value.empty() || node.value == "~" || node.value == "null");
  if (!node.IsScalar() || null) {
    Add(node, path, "expected text");
    return false;
  }
  out = node.value;
  return true;
}

bool YamlReader::Choice(const YamlNode& node, const std::string& path, const std::vector<std::string>& choices,
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

bool YamlReader::Number(const YamlNode& node, const std::string& path, double& out) {
  const std::optional<YamlNumber> number = ReadNumber(node);
  if (!number || !std::isfinite(number->real)) {
    const std::string found = node.plain ? "" : "the string ";
    Add(node, path, "expected a finite number" + (node.IsScalar() ? ", not " + found + "\"" + node.value + "\"" : ""));
    return false;
  }
  out = number->real;
  return true;
}

bool YamlReader::Boolean(const YamlNode& node, const std::string& path, bool& out) {
  const bool is_true = node.value == "true", is_false = node.value == "false";
  if (!node.IsScalar() || !node.plain || (!is_true && !is_false)) {
    Add(node, path, "expected true or false");
    return false;
  }
  out = is_true;
  return true;
}

void YamlReader::TextList(const YamlNode& node, const std::string& path, std::vector<std::string>& out) {
  if (!node.IsList()) return Add(node, path, "expected a list");
  for (size_t i = 0; i < node.values.size(); ++i) {
    std::string text;
    if (Text(node.values[i], path + "[" + std::to_string(i) + "]", text)) out.push_back(text);
  }
}

}  // namespace kgrpo::evaluator
