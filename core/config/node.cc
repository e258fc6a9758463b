#include "config/node.h"

#include <kgrpo/support/yaml.h>

#include "config/hidden_keys.h"
#include "config/places.h"

#include <cmath>
#include <optional>
#include <set>
#include <utility>

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

Node Node::Scalar(nlohmann::json value, Position at) {
  Node node;
  node.at = std::move(at);
  node.scalar = std::move(value);
  return node;
}

Node Node::Mapping(Position at) {
  Node node;
  node.kind = Kind::kMapping;
  node.at = std::move(at);
  return node;
}

Node Node::FromJson(const nlohmann::ordered_json& json, const Position& at) {
  Node node;
  node.at = at;
  if (json.is_object()) {
    node.kind = Kind::kMapping;
    for (const auto& [key, value] : json.items()) node.members.push_back({key, at, FromJson(value, at)});
  } else if (json.is_array()) {
    node.kind = Kind::kList;
    for (const auto& value : json) node.items.push_back(FromJson(value, at));
  } else {
    node.scalar = nlohmann::json(json);
  }
  return node;
}

const Node::Member* Node::Find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

Node::Member* Node::Find(std::string_view key) {
  return const_cast<Member*>(static_cast<const Node*>(this)->Find(key));
}

const Node* Node::Get(std::string_view key) const {
  const Member* member = Find(key);
  return member == nullptr ? nullptr : &member->value;
}

Node* Node::Get(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->Get(key));
}

void Node::Erase(std::string_view key) {
  std::erase_if(members, [&](const Member& member) { return member.key == key; });
}

nlohmann::ordered_json Node::ToJson() const {
  if (IsScalar()) return nlohmann::ordered_json(scalar);
  if (IsList()) {
    auto json = nlohmann::ordered_json::array();
    for (const Node& item : items) json.push_back(item.ToJson());
    return json;
  }
  auto json = nlohmann::ordered_json::object();
  for (const Member& member : members) json[member.key] = member.value.ToJson();
  return json;
}

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

std::string Describe(const Node& node) {
  if (node.IsMapping()) return "a mapping";
  if (node.IsList()) return "a list";
  if (node.scalar.is_null()) return "nothing";
  if (!node.scalar.is_string()) return node.scalar.dump();
  constexpr size_t kMaxShown = 60;
  std::string text = node.scalar.get<std::string>();
  HideKeys(&text);  // before cutting and escaping, after which a key may not be recognised
  if (text.size() <= kMaxShown) return nlohmann::json(text).dump();
  // Cut between characters, not within one.
  size_t end = kMaxShown;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return nlohmann::json(text.substr(0, end)).dump() + "...";
}

}  // namespace kgrpo
