#include "config/node.h"

#include <yaml-cpp/yaml.h>

#include "config/brackets.h"
#include "config/hidden_keys.h"
#include "config/quotes.h"
#include "config/verbatim.h"
#include "config/yaml_words.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace kgrpo {
namespace {

// Limits against aliases, which can make a short file large or endless. No real pipeline reaches them.
constexpr int kMaxDepth = 64;
constexpr size_t kMaxNodes = 100'000;

// The number that a plain scalar means under YAML's core schema; nothing when it is text.
std::optional<nlohmann::json> ParseNumber(const std::string& text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x")) base = 16;
  if (digits.starts_with("0o")) base = 8;
  if (base != 10) digits.remove_prefix(2);
  const char* const end = digits.data() + digits.size();

  uint64_t integer = 0;
  auto [stop, error] = std::from_chars(digits.data(), end, integer, base);
  if (!digits.empty() && stop == end && error == std::errc()) {
    if (!negative) return nlohmann::json(integer);
    if (integer <= uint64_t{1} << 63) return nlohmann::json(static_cast<int64_t>(-integer));
  }
  // from_chars also takes "inf" and "nan", which are words here (YAML writes .inf).
  if (base != 10 || digits.empty() || digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return {};
  double real = 0;
  auto [real_stop, real_error] = std::from_chars(digits.data(), end, real);
  if (real_stop != end || real_error == std::errc::invalid_argument) return {};
  if (real_error == std::errc::result_out_of_range) real = HUGE_VAL;
  return nlohmann::json(negative ? -real : real);
}

class Converter {
 public:
  Converter(const std::string& text, const std::string& file, int rank, std::vector<Diagnostic>* diagnostics)
      : lines_(LinesOf(text)), file_(file), rank_(rank), diagnostics_(diagnostics) {}

  Position At(const YAML::Mark& mark) const {
    return mark.is_null() ? Position{file_, 1, 1, rank_} : Position{file_, mark.line + 1, mark.column + 1, rank_};
  }

  void Report(Position at, std::string path, std::string message) {
    diagnostics_->push_back({std::move(at), std::move(path), std::move(message), ""});
  }

  Node Convert(const YAML::Node& yaml, const std::string& path, int depth) {
    Node node;
    node.at = At(yaml.Mark());
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) {
      if (!too_large_) Report(node.at, "", "the file is nested too deeply or too large (an alias within itself?)");
      too_large_ = true;
      return node;
    }
    if (yaml.IsMap()) {
      ConvertMapping(yaml, path, depth, &node);
    } else if (yaml.IsSequence()) {
      node.kind = Node::Kind::kList;
      for (const YAML::Node& item : yaml) {
        node.items.push_back(Convert(item, path + "[" + std::to_string(node.items.size()) + "]", depth + 1));
        if (too_large_) break;
      }
    } else if (yaml.IsScalar()) {
      ConvertScalar(yaml, path, &node);
      if (node.IsString()) node.text = FindVerbatim(lines_, yaml.Scalar(), node.at).value_or(Position());
    }
    return node;
  }

 private:
  void ConvertMapping(const YAML::Node& yaml, const std::string& path, int depth, Node* node) {
    node->kind = Node::Kind::kMapping;
    for (const auto& pair : yaml) {
      const Position at = At(pair.first.Mark());
      if (!pair.first.IsScalar()) {
        Report(at, path, "a key must be a word, found " + Describe(Convert(pair.first, path, depth + 1)));
        continue;
      }
      const std::string& key = pair.first.Scalar();
      const std::string inner = path.empty() ? key : path + "." + key;
      Node value = Convert(pair.second, inner, depth + 1);
      if (value.IsScalar() && value.scalar.is_null()) value.at = at;  // nothing was written: point at its key
      if (const Node::Member* first = node->Find(key)) {
        Report(at, inner, "the key is written twice; first on line " + std::to_string(first->at.line));
        continue;
      }
      node->members.push_back({key, at, std::move(value)});
      if (too_large_) break;
    }
  }

  void ConvertScalar(const YAML::Node& yaml, const std::string& path, Node* node) {
    const std::string& text = yaml.Scalar();
    const std::string& tag = yaml.Tag();
    if (tag == "!" || tag == "tag:yaml.org,2002:str") {
      node->scalar = text;
      return;
    }
    if (tag != "?" && !tag.empty()) {
      Report(node->at, path, "the YAML tag \"" + tag + "\" is not known here: write the value without it");
      return;
    }
    static const std::set<std::string> kTrue = {"true", "True", "TRUE"}, kFalse = {"false", "False", "FALSE"};
    static const std::set<std::string> kNotFinite = {".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf", "+.INF",
                                                     "-.inf", "-.Inf", "-.INF", ".nan",  ".NaN",  ".NAN"};
    if (kTrue.contains(text)) {
      node->scalar = true;
    } else if (kFalse.contains(text)) {
      node->scalar = false;
    } else if (std::optional<nlohmann::json> number = ParseNumber(text)) {
      node->scalar = *number;
      if (number->is_number_float() && !std::isfinite(number->get<double>())) {
        Report(node->at, path, "the number " + text + " is too large");
        node->scalar = nullptr;
      }
    } else if (kNotFinite.contains(text)) {
      Report(node->at, path, "expected a finite number, found " + text);
    } else {
      node->scalar = text;
    }
  }

  const std::vector<std::string_view> lines_;
  std::string file_;
  int rank_;
  std::vector<Diagnostic>* diagnostics_;
  size_t nodes_ = 0;
  bool too_large_ = false;
};

// The place of the first byte that is not UTF-8 text, or is NUL.
std::optional<Position> FindBadByte(const std::string& text) {
  Position at{"", 1, 1};
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    if (length == 0 || lead == 0 || i + length > text.size()) return at;
    for (size_t j = 1; j < length; ++j) {
      if ((static_cast<unsigned char>(text[i + j]) & 0xC0) != 0x80) return at;
    }
    i += length;
    ++at.column;
    if (lead == '\n') {
      ++at.line;
      at.column = 1;
    }
  }
  return {};
}

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
  Converter converter(text, file, rank, diagnostics);
  const Position start{file, 1, 1, rank};
  if (std::optional<Position> bad = FindBadByte(text)) {
    converter.Report({file, bad->line, bad->column, rank}, "", "the file is not UTF-8 text");
    return Node::Scalar(nullptr, start);
  }
  const std::optional<QuotedText> quoted = LastQuotedText(text);
  if (quoted && !quoted->closed) {
    converter.Report({file, quoted->line, quoted->column, rank}, "",
                     "not valid YAML: this quote is never closed: all that follows is taken for text" +
                         ShowPlace(text, quoted->line, quoted->column));
    return Node::Scalar(nullptr, start);
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty()) return Node::Scalar(nullptr, start);
    if (documents.size() > 1) {
      converter.Report(converter.At(documents[1].Mark()), "",
                       "a second YAML document begins here: one file is one pipeline");
    }
    Node node = converter.Convert(documents[0], "", 0);
    if (node.IsScalar() && node.scalar.is_null()) node.at = start;
    return node;
  } catch (const YAML::Exception& error) {
    Position at = converter.At(error.mark);
    std::string message = YamlMistake(error.msg, text, at.line, at.column);
    const bool lacks_end = error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW || error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
    const std::optional<YAML::Mark> opened = lacks_end ? OpenBracket(text) : std::nullopt;
    if (opened && opened->line < error.mark.line) {  // yaml-cpp's own position would mislead
      const std::string bracket(1, text[static_cast<size_t>(opened->pos)]);
      const bool ends = text.find_first_not_of(" \t\r\n", static_cast<size_t>(error.mark.pos)) == std::string::npos;
      message = ends ? "this '" + bracket + "' is never closed"
                     : "this '" + bracket + "' is not closed, or a ',' is missing, before line " +
                           std::to_string(at.line) + ", column " + std::to_string(at.column);
      at = converter.At(*opened);
    }
    if (quoted && quoted->line < quoted->last_line && quoted->last_line == at.line)
      message += "; the text in quotes that ends on this line begins on line " + std::to_string(quoted->line) +
                 ": was a quote forgotten there?";
    converter.Report(at, "", "not valid YAML: " + message + ShowPlace(text, at.line, at.column));
    return Node::Scalar(nullptr, start);
  }
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
