#include "config/refuse_keys.h"

#include <algorithm>
#include <optional>

#include "config/hidden_keys.h"
#include "config/places.h"
#include "config/schema.h"  // JoinPath

namespace kgrpo {
namespace {

// The place of byte `offset` of a scalar's text: its own where the file holds the text as it is, else the scalar's.
Position PlaceOf(const Node& scalar, const std::string& text, size_t offset) {
  if (scalar.text.line == 0) return scalar.at;
  const size_t line_begin = text.substr(0, offset).rfind('\n') + 1;  // npos + 1 is 0
  const auto line =
      static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
  return PlaceWithin(text, scalar.text, line + 1, offset - line_begin + 1);
}

// "[hidden]" in a message makes ConfigError add that the key should be revoked.
void Report(const Position& at, const std::string& path, std::vector<Diagnostic>* diagnostics) {
  diagnostics->push_back(
      {at, path,
       "found \"[hidden]\": keys of services stand in variables of the environment, which a plugin's "
       "option NAME_env names, in no file and on no command line; if it is none, write it otherwise",
       ""});
}

}  // namespace

void RefuseKeys(const std::string& text, const Position& at, const std::string& path,
                std::vector<Diagnostic>* diagnostics) {
  if (FindKey(text)) Report(at, path, diagnostics);
}

void RefuseKeys(const Node& node, const std::string& path, std::vector<Diagnostic>* diagnostics) {
  if (node.IsString()) {
    const auto& text = node.scalar.get_ref<const std::string&>();
    if (const std::optional<size_t> key = FindKey(text)) Report(PlaceOf(node, text, *key), path, diagnostics);
  }
  for (size_t i = 0; i < node.items.size(); ++i)
    RefuseKeys(node.items[i], path + "[" + std::to_string(i) + "]", diagnostics);
  for (const Node::Member& member : node.members) {
    const std::string inner = JoinPath(path, member.key);
    RefuseKeys(member.key, member.at, inner, diagnostics);
    RefuseKeys(member.value, inner, diagnostics);
  }
}

}  // namespace kgrpo
