#include "config/emit.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "config/schema.h"  // JoinPath

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

// True if the text reads back as itself without quotes: letters, digits and a few harmless signs, and no other meaning.
bool IsPlain(const std::string& text) {
  const auto harmless = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-./ ").find(c) != std::string_view::npos;
  };
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.front() == '-') return false;
  if (!std::all_of(text.begin(), text.end(), harmless)) return false;
  std::vector<Diagnostic> none;
  const Node read = ParseYaml(text, "", 0, &none);
  // Words that YAML 1.1 reads as booleans are quoted too.
  static const std::vector<std::string> kYaml11 = {"yes", "no", "on", "off", "y", "n"};
  std::string lower;
  for (char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return none.empty() && read.IsString() && read.scalar.get<std::string>() == text &&
         std::find(kYaml11.begin(), kYaml11.end(), lower) == kYaml11.end();
}

// True if a literal block can hold the text: YAML takes no control characters there, and the first line fixes the
// indentation.
bool FitsLiteral(const std::string& text) {
  if (text.find('\n') == std::string::npos || text.front() == ' ' || text.front() == '\n') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\n'; }) &&
         text.find('\x7f') == std::string::npos;
}

std::string EmitScalar(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_string() && IsPlain(value.get<std::string>())) return value.get<std::string>();
  return value.dump();  // a JSON string is a double-quoted YAML one
}

// After "key:" and the indentation of the key's block.
std::string EmitLiteral(const std::string& text, const std::string& indent) {
  const size_t trailing = text.size() - (text.find_last_not_of('\n') + 1);
  std::string block = trailing == 0 ? " |-\n" : trailing == 1 ? " |\n" : " |+\n";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) block += indent + text.substr(begin, end - begin);
    block += '\n';
    begin = end + 1;
  }
  return block;
}

bool IsShortList(const Json& value) {
  if (!value.is_array()) return false;
  const bool scalars = std::all_of(value.begin(), value.end(), [](const Json& item) {
    return item.is_primitive() && !(item.is_string() && FitsLiteral(item.get<std::string>()));
  });
  return scalars && value.dump().size() <= 100;
}

std::string EmitShortList(const Json& value) {
  std::string line = "[";
  for (const Json& item : value) line += (line.size() > 1 ? ", " : "") + EmitScalar(item);
  return line + "]";
}

// The origins of values, written behind them as comments; none without a tree to read them from.
struct Origins {
  const Node* node = nullptr;
  std::string path;
  const OriginText* text = nullptr;

  Origins Of(const std::string& key) const {
    if (node == nullptr || !node->IsMapping()) return {};
    return {node->Get(key), JoinPath(path, key), text};
  }
  Origins Of(size_t item) const {
    if (node == nullptr || !node->IsList() || item >= node->items.size()) return {};
    return {&node->items[item], path + "[" + std::to_string(item) + "]", text};
  }
  // "  # pipeline.yaml:3:7", behind a line's value.
  std::string Comment() const {
    if (node == nullptr) return "";
    const std::string origin = (*text)(path, node->at);
    return origin.empty() ? "" : "  # " + origin;
  }
};

std::string Emit(const Json& value, const std::string& indent, const Origins& origins);

// The text after "key:" or "-".
std::string EmitMember(const Json& value, const std::string& indent, bool in_list, const Origins& origins) {
  if (value.is_string() && FitsLiteral(value.get<std::string>())) {
    std::string block = EmitLiteral(value.get<std::string>(), indent + "  ");
    return block.insert(block.find('\n'), origins.Comment());
  }
  if (IsShortList(value)) return " " + EmitShortList(value) + origins.Comment() + "\n";
  if (value.is_primitive()) return " " + EmitScalar(value) + origins.Comment() + "\n";
  if (value.empty()) return value.is_object() ? " {}\n" : " []" + origins.Comment() + "\n";
  const std::string inner = Emit(value, indent + "  ", origins);
  return in_list ? " " + inner.substr(indent.size() + 2) : "\n" + inner;
}

std::string Emit(const Json& value, const std::string& indent, const Origins& origins) {
  std::string text;
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      text += indent + EmitScalar(key) + ":" + EmitMember(member, indent, false, origins.Of(key));
  } else {
    for (size_t i = 0; i < value.size(); ++i) text += indent + "-" + EmitMember(value[i], indent, true, origins.Of(i));
  }
  return text;
}

}  // namespace

std::string EmitYaml(const nlohmann::ordered_json& value) {
  if (value.is_primitive()) return EmitScalar(value) + "\n";
  if (value.empty()) return value.is_object() ? "{}\n" : "[]\n";
  return Emit(value, "", {});
}

std::string EmitYamlWithOrigins(const Node& root, const OriginText& origin) {
  return Emit(root.ToJson(), "", {&root, "", &origin});
}

}  // namespace kgrpo
