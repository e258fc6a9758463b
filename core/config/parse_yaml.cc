// Part of node.h: a YAML file as a Node.
#include <kgrpo/support/yaml.h>

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "config/diagnostic.h"
#include "config/node.h"

namespace kgrpo {
namespace {

class Converter {
 public:
  Converter(const std::string& file, int rank, std::vector<Diagnostic>* diagnostics)
      : file_(file), rank_(rank), diagnostics_(diagnostics) {}

  Position At(const YamlPlace& place) const { return {file_, place.line, place.column, rank_}; }

  void Report(const YamlPlace& at, std::string path, std::string message) {
    diagnostics_->push_back({At(at), std::move(path), std::move(message), ""});
  }

  Node Convert(const YamlNode& yaml, const std::string& path) {
    Node node;
    node.at = At(yaml.at);
    if (yaml.IsMapping()) {
      ConvertMapping(yaml, path, &node);
    } else if (yaml.IsList()) {
      node.kind = Node::Kind::kList;
      for (const YamlNode& item : yaml.values)
        node.items.push_back(Convert(item, path + "[" + std::to_string(node.items.size()) + "]"));
    } else {
      ConvertScalar(yaml, path, &node);
      if (node.IsString() && yaml.text.line > 0) node.text = At(yaml.text);
    }
    return node;
  }

 private:
  void ConvertMapping(const YamlNode& yaml, const std::string& path, Node* node) {
    node->kind = Node::Kind::kMapping;
    for (size_t i = 0; i < yaml.keys.size(); ++i) {
      const YamlNode& written = yaml.keys[i];
      if (!written.IsScalar()) {
        Report(written.at, path, "a key must be a word, found " + Describe(Convert(written, path)));
        continue;
      }
      const std::string& key = written.value;
      const std::string inner = path.empty() ? key : path + "." + key;
      Node value = Convert(yaml.values[i], inner);
      if (const Node::Member* first = node->Find(key)) {
        Report(written.at, inner, "the key is written twice; first on line " + std::to_string(first->at.line));
        continue;
      }
      node->members.push_back({key, At(written.at), std::move(value)});
    }
  }

  void ConvertScalar(const YamlNode& yaml, const std::string& path, Node* node) {
    static const std::set<std::string> kNull = {"", "~", "null", "Null", "NULL"};
    static const std::set<std::string> kTrue = {"true", "True", "TRUE"}, kFalse = {"false", "False", "FALSE"};
    static const std::set<std::string> kNotFinite = {".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf", "+.INF",
                                                     "-.inf", "-.Inf", "-.INF", ".nan",  ".NaN",  ".NAN"};
    const std::string& text = yaml.value;
    const bool is_text = yaml.tag == "!" || yaml.tag == "tag:yaml.org,2002:str" || (yaml.tag.empty() && !yaml.plain);
    node->scalar = nullptr;
    if (is_text) {
      node->scalar = text;
    } else if (!yaml.tag.empty()) {
      Report(yaml.at, path, "the YAML tag \"" + yaml.tag + "\" is not known here: write the value without it");
    } else if (kTrue.contains(text)) {
      node->scalar = true;
    } else if (kFalse.contains(text)) {
      node->scalar = false;
    } else if (const std::optional<YamlNumber> number = ReadNumber(yaml)) {
      if (!std::isfinite(number->real)) Report(yaml.at, path, "the number " + text + " is too large");
      if (number->integer && *number->integer >= 0)
        node->scalar = static_cast<uint64_t>(*number->integer);  // as nlohmann::json reads them
      else if (number->integer)
        node->scalar = *number->integer;
      else if (number->large)
        node->scalar = *number->large;
      else if (std::isfinite(number->real))
        node->scalar = number->real;
    } else if (!kNull.contains(text)) {
      if (kNotFinite.contains(text)) Report(yaml.at, path, "expected a finite number, found " + text);
      node->scalar = text;
    }
  }

  std::string file_;
  int rank_;
  std::vector<Diagnostic>* diagnostics_;
};

}  // namespace

Node ParseYaml(const std::string& text, const std::string& file, int rank, std::vector<Diagnostic>* diagnostics) {
  Converter converter(file, rank, diagnostics);
  constexpr YamlPlace kStart{1, 1};
  const Node nothing = Node::Scalar(nullptr, converter.At(kStart));
  const YamlFile yaml = ReadYaml(text);
  if (yaml.error) {
    const auto& [at, message, is_text] = *yaml.error;
    converter.Report(at, "", is_text ? "not valid YAML: " + message + ShowPlace(text, at.line, at.column) : message);
    return nothing;
  }
  if (yaml.documents.empty()) return nothing;
  if (yaml.documents.size() > 1)
    converter.Report(yaml.documents[1].at, "", "a second YAML document begins here: one file is one pipeline");
  return converter.Convert(yaml.documents[0], "");
}

}  // namespace kgrpo
