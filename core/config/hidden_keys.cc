#include "config/hidden_keys.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "config/diagnostic.h"
#include "config/schema.h"  // JoinPath

namespace kgrpo {
namespace {

constexpr std::string_view kHidden = "[hidden]";

bool IsLetterOrDigit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool IsKeyCharacter(char c) { return IsLetterOrDigit(c) || c == '-' || c == '_'; }

// Prefixes of the keys of services, the least number of characters after them, and whether these include dashes and
// underscores: hf_SmolLM2-135M-Instruct-tuned is a folder, since an hf_ key has neither.
struct Prefix {
  std::string_view text;
  size_t least;
  bool dashes;
};
constexpr std::array<Prefix, 8> kPrefixes = {{{"sk-", 16, true},
                                              {"sk_", 16, true},
                                              {"gsk_", 24, false},
                                              {"hf_", 24, false},
                                              {"xai-", 24, false},
                                              {"ghp_", 24, false},
                                              {"nvapi-", 24, true},
                                              {"AIza", 24, true}}};

// Length of the key that begins at `at`; 0: none does.
size_t KeyLength(std::string_view text, size_t at) {
  if (at > 0 && IsKeyCharacter(text[at - 1])) return 0;  // within a word: task-
  text.remove_prefix(at);
  for (const auto& [prefix, least, dashes] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    const std::string_view rest = text.substr(prefix.size());
    bool (*const is_part)(char) = dashes ? IsKeyCharacter : IsLetterOrDigit;
    const auto length = static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), is_part) - rest.begin());
    if (length >= least) return prefix.size() + length;
  }
  return 0;
}

// True if a part without dashes or underscores has 16 letters and digits and a digit among them: keys are drawn at
// random, while sk-attention-fused-v2 is a name.
bool IsDrawn(std::string_view key) {
  constexpr size_t kLongest = 16;
  size_t length = 0;
  bool digit = false;
  for (const char c : key) {
    length = IsLetterOrDigit(c) ? length + 1 : 0;
    digit = length > 0 && (digit || std::isdigit(static_cast<unsigned char>(c)) != 0);
    if (length >= kLongest && digit) return true;
  }
  return false;
}

// Values of the environment variables that are named like keys, the longest first, because one may contain another. A
// value below 8 characters is taken for a word.
std::vector<std::string_view> KeysOfTheEnvironment() {
  constexpr size_t kShortest = 8;
  constexpr std::array<std::string_view, 4> kNames = {"KEY", "TOKEN", "SECRET", "PASSWORD"};
  std::vector<std::string_view> keys;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view assignment = *variable;
    const size_t equals = assignment.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = assignment.substr(0, equals);
    std::string_view value = assignment.substr(equals + 1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())) != 0) value.remove_suffix(1);
    const bool secret =
        std::any_of(kNames.begin(), kNames.end(), [&](std::string_view end) { return name.ends_with(end); });
    if (secret && value.size() >= kShortest) keys.push_back(value);
  }
  std::sort(keys.begin(), keys.end(), [](std::string_view a, std::string_view b) { return a.size() > b.size(); });
  return keys;
}

}  // namespace

bool HideKeys(std::string* text) {
  bool hidden = text->find(kHidden) != std::string::npos;
  for (const std::string_view key : KeysOfTheEnvironment()) {
    for (size_t at = text->find(key); at != std::string::npos; at = text->find(key, at + kHidden.size())) {
      text->replace(at, key.size(), kHidden);
      hidden = true;
    }
  }
  for (size_t at = 0; at < text->size(); ++at) {
    const size_t length = KeyLength(*text, at);
    if (length == 0) continue;
    text->replace(at, length, kHidden);
    hidden = true;
  }
  return hidden;
}

std::optional<size_t> FindKey(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t length = KeyLength(text, at);
    if (length > 0 && IsDrawn(text.substr(at, length))) return at;
  }
  for (const std::string_view key : KeysOfTheEnvironment()) {
    if (const size_t at = text.find(key); at != std::string_view::npos && IsDrawn(key)) return at;
  }
  return {};
}

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
