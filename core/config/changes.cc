#include "config/changes.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "config/diagnostic.h"
#include "config/emit.h"
#include "config/node.h"
#include "config/schema.h"  // JoinPath

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 6> kMayChange = {
    "coder.options", "evaluator.options.servers", "loop.workers", "loop.hang_seconds", "checkpoint", "observers"};

// True if --set can name the key: --set splits a path at these characters.
bool CanBeNamed(const std::string& key) {
  return !key.empty() && key.find_first_of(".[]=") == std::string::npos;
}

bool HasAllOf(const Json& mapping, const Json& keys) {
  for (const auto& [key, value] : keys.items()) {
    if (!mapping.contains(key)) return false;
  }
  return true;
}

void Compare(const Json& before, const Json& after, const std::string& path, std::vector<Change>* changes) {
  if (before == after) return;
  const bool mappings = before.is_object() && after.is_object();
  if (mappings && (path.empty() || HasAllOf(after, before))) {
    std::vector<Change> inner;
    bool named = true;
    for (const auto& [key, value] : after.items()) {
      const bool differs = !before.contains(key) || before[key] != value;
      if (!differs) continue;
      named = named && CanBeNamed(key);
      if (before.contains(key))
        Compare(before[key], value, JoinPath(path, key), &inner);
      else
        inner.push_back({JoinPath(path, key), value});
    }
    if (path.empty()) {
      for (const auto& [key, value] : before.items()) {
        if (!after.contains(key)) inner.push_back({key, {}});
      }
    }
    if (named || path.empty()) {
      changes->insert(changes->end(), inner.begin(), inner.end());
      return;
    }
  }
  // Lists of equally many stages are compared stage by stage.
  if (before.is_array() && after.is_array() && before.size() == after.size() &&
      std::all_of(after.begin(), after.end(), [](const Json& item) { return item.is_object(); })) {
    for (size_t i = 0; i < after.size(); ++i)
      Compare(before[i], after[i], path + "[" + std::to_string(i) + "]", changes);
    return;
  }
  changes->push_back({path, after});
}

// Adds single quotes if a shell would read the text as something else.
std::string ForShell(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// On one line, as --set reads it.
std::string ValueText(const Json& value) {
  if (value.is_structured()) return value.dump();
  std::string text = EmitYaml(value);
  text.pop_back();  // its line break
  return text;
}

}  // namespace

std::optional<std::vector<Change>> ChangesBetween(const std::string& before, const std::string& after) {
  std::vector<Diagnostic> mistakes;
  Node old = ParseYaml(before, "", 0, &mistakes);
  Node now = ParseYaml(after, "", 0, &mistakes);
  if (!mistakes.empty() || !old.IsMapping() || !now.IsMapping()) return {};
  for (Node* node : {&old, &now}) node->Erase("output_dir");
  std::vector<Change> changes;
  Compare(old.ToJson(), now.ToJson(), "", &changes);
  return changes;
}

bool MayChangeOnResume(std::string_view path) {
  return std::any_of(kMayChange.begin(), kMayChange.end(), [&](std::string_view key) {
    return path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.' || path[key.size()] == '[');
  });
}

void CheckResumeSettings(const std::vector<std::string>& settings) {
  const Position at{"--set", 0, 0, 0};
  std::vector<Diagnostic> mistakes;
  for (const std::string& setting : settings) {
    const std::string path = setting.substr(0, setting.find('='));
    if (MayChangeOnResume(path)) continue;
    mistakes.push_back({at, path,
                        "a resumed run keeps the value that it began with; what can be changed is all of "
                        "coder.options, evaluator.options.servers, loop.workers, loop.hang_seconds, all of checkpoint "
                        "and of observers",
                        ""});
  }
  if (!mistakes.empty()) throw ConfigError(std::move(mistakes));
}

std::string NamesOf(const std::vector<Change>& changes) {
  constexpr size_t kShown = 3;
  const size_t shown = std::min(changes.size(), kShown);
  const size_t more = changes.size() - shown;
  std::string names;
  for (size_t i = 0; i < shown; ++i) {
    const char* const between = i == 0 ? "" : i + 1 == shown && more == 0 ? " and " : ", ";
    names += between + changes[i].path;
  }
  return more == 0 ? names : names + " and " + std::to_string(more) + (more == 1 ? " other key" : " other keys");
}

std::string SettingsFor(const std::vector<Change>& changes) {
  constexpr size_t kLongest = 500;  // longer values, such as prompts, are not repeated
  std::string settings;
  for (const Change& change : changes) {
    if (!change.value) return "";
    settings += (settings.empty() ? "--set " : " --set ") + ForShell(change.path + "=" + ValueText(*change.value));
  }
  return settings.size() <= kLongest ? settings : "";
}

std::string ResumeSettingsFor(const std::vector<Change>& changes) {
  const auto may_change = [](const Change& change) { return change.value && MayChangeOnResume(change.path); };
  if (!std::ranges::all_of(changes, may_change)) return "";
  const std::string settings = SettingsFor(changes);
  return settings.empty() ? "--set KEY=VALUE, once for each of them" : settings;
}

}  // namespace kgrpo
