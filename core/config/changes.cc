#include "config/changes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string>
#include <utility>

#include "config/diagnostic.h"
#include "config/emit.h"
#include "config/node.h"
#include "config/schema.h"  // JoinPath

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOptions = ".options.";

// Why a resumed run keeps a key.
constexpr std::array<std::pair<std::string_view, const char*>, 6> kReasons = {
    {{"name", "the run is recorded under it"},
     {"seed", "every random draw follows from it"},
     {"problems", "a step draws its problems by their places in these lists"},
     {"prompt", "the recorded samples answer it"},
     {"loop.max_steps", "it sets the steps of an earlier stage, too"},
     {"output_dir", "a run's folder is moved by renaming it"}}};

bool IsWithin(std::string_view path, std::string_view key) {
  return path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.' || path[key.size()] == '[');
}

// True if --set can name the key: --set splits a path at these characters.
bool CanBeNamed(const std::string& key) { return !key.empty() && key.find_first_of(".[]=") == std::string::npos; }

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
    const bool other_plugin = before.value("plugin", Json()) != after.value("plugin", Json());
    for (const auto& [key, value] : after.items()) {
      const bool differs = !before.contains(key) || before[key] != value;
      if (!differs) continue;
      named = named && CanBeNamed(key);
      if (!before.contains(key))
        inner.push_back({JoinPath(path, key), value, {}});
      else if (other_plugin)  // the options of another plugin have another meaning
        inner.push_back({JoinPath(path, key), value, before[key]});
      else
        Compare(before[key], value, JoinPath(path, key), &inner);
    }
    if (path.empty()) {
      for (const auto& [key, value] : before.items()) {
        if (!after.contains(key)) inner.push_back({key, {}, value});
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
  changes->push_back({path, after, before});
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

// The last step of each stage.
std::vector<uint64_t> StageEnds(const Node& root) {
  const auto steps_of = [](const Node* holder, const char* key) {
    const Node* steps = holder == nullptr ? nullptr : holder->Get(key);
    const bool is_number = steps != nullptr && steps->IsScalar() && steps->scalar.is_number_unsigned();
    return is_number ? std::optional(steps->scalar.get<uint64_t>()) : std::nullopt;
  };
  const uint64_t shared = steps_of(root.Get("loop"), "max_steps").value_or(0);
  const Node* trainer = root.Get("trainer");
  std::vector<uint64_t> ends;
  const auto add = [&](const Node& stage) {
    ends.push_back((ends.empty() ? 0 : ends.back()) +
                   (stage.IsMapping() ? steps_of(&stage, "steps") : std::nullopt).value_or(shared));
  };
  if (trainer != nullptr && trainer->IsMapping()) add(*trainer);
  if (trainer != nullptr && trainer->IsList()) std::ranges::for_each(trainer->items, add);
  return ends;
}

// Erases the key from a mapping of the record of an earlier version, if it had the value that is in force now.
void EraseRemoved(const RemovedKey& key, Node* root) {
  std::string names = key.path;
  std::ranges::replace_if(
      names, [](char c) { return c == '.' || c == '[' || c == ']'; }, ' ');
  std::istringstream stream(names);
  Node* node = root;
  std::string name, next;
  for (stream >> name; stream >> next && node != nullptr; name = next) {
    const bool index = node->IsList() && name.find_first_not_of("0123456789") == std::string::npos;
    node = !index ? node->Get(name) : std::stoul(name) < node->items.size() ? &node->items[std::stoul(name)] : nullptr;
  }
  const Node* value = node == nullptr ? nullptr : node->Get(name);
  if (value != nullptr && nlohmann::json(value->ToJson()) == key.meaning) node->Erase(name);
}

// On one line, as --set reads it.
std::string ValueText(const Json& value) {
  if (value.is_structured()) return value.dump();
  std::string text = EmitYaml(value);
  text.pop_back();  // the line break
  return text;
}

}  // namespace

std::optional<std::vector<Change>> ChangesBetween(const std::string& before, const std::string& after,
                                                  const std::vector<RemovedKey>& removed) {
  std::vector<Diagnostic> mistakes;
  Node old = ParseYaml(before, "", 0, &mistakes);
  Node now = ParseYaml(after, "", 0, &mistakes);
  if (!mistakes.empty() || !old.IsMapping() || !now.IsMapping()) return {};
  for (Node* node : {&old, &now}) node->Erase("output_dir");
  for (const RemovedKey& key : removed) EraseRemoved(key, &old);
  std::vector<Change> changes;
  Compare(old.ToJson(), now.ToJson(), "", &changes);
  return changes;
}

std::vector<std::string> KeysThatMayChange() {
  return {"coder.options", "reward",   "loop.generation_batch", "loop.workers", "loop.hang_seconds", "evaluation",
          "checkpoint",    "observers"};
}

std::string StepsKey(const Node& root) {
  constexpr const char* kAll = "loop.max_steps";
  const Node* trainer = root.Get("trainer");
  if (trainer == nullptr || trainer->IsMapping())
    return trainer != nullptr && trainer->Get("steps") != nullptr ? "trainer.steps" : kAll;
  if (!trainer->IsList() || trainer->items.empty()) return kAll;
  const auto shared = std::ranges::find_if(
      trainer->items, [](const Node& stage) { return !stage.IsMapping() || stage.Get("steps") == nullptr; });
  return shared == trainer->items.end() - 1 ? kAll : "trainer[" + std::to_string(trainer->items.size() - 1) + "].steps";
}

std::string StepsKey(const std::string& resolved_yaml) {
  std::vector<Diagnostic> mistakes;
  return StepsKey(ParseYaml(resolved_yaml, "", 0, &mistakes));
}

std::optional<uint64_t> EndOfFinishedStage(const Node& root, const std::string& path, uint64_t done) {
  const std::vector<uint64_t> ends = StageEnds(root);
  for (size_t i = 0; i < ends.size() && ends[i] <= done; ++i) {
    if (IsWithin(path, "trainer[" + std::to_string(i) + "]")) return ends[i];
  }
  return {};
}

bool AreAhead(const std::string& resolved_yaml, const std::vector<Change>& changes, uint64_t done) {
  std::vector<Diagnostic> mistakes;
  const Node root = ParseYaml(resolved_yaml, "", 0, &mistakes);
  const std::vector<uint64_t> ends = StageEnds(root);
  const bool ends_later = ends.empty() || ends.back() >= done;
  return ends_later && std::ranges::none_of(changes, [&](const Change& change) {
           return EndOfFinishedStage(root, change.path, done).has_value();
         });
}

bool MayChangeOnResume(std::string_view path, const std::vector<std::string>& may_change) {
  return std::ranges::any_of(may_change, [&](const std::string& key) { return IsWithin(path, key); });
}

std::string ReasonToKeep(const std::string& path, const std::vector<std::string>& may_change) {
  const size_t options = path.find(kOptions);
  // For an option: those of the same plugin that may change. For another key: the keys of the file.
  const std::string part = options == std::string::npos ? "" : path.substr(0, options + kOptions.size());
  std::string names;
  for (const std::string& key : may_change) {
    const bool is_option = key.find(kOptions) != std::string::npos;
    if (part.empty() ? is_option : !key.starts_with(part)) continue;
    names += (names.empty() ? "" : ", ") + key.substr(part.size());
  }
  const char* reason = "the recorded steps depend on it";
  for (const auto& [key, why] : kReasons) {
    if (IsWithin(path, key)) reason = why;
  }
  if (path.starts_with("trainer") && path.ends_with(".steps")) reason = "only the last stage can get other steps";
  if (!part.empty()) reason = "its plugin does not mark it as an option that may change";
  return std::string("a resumed run keeps it: ") + reason +
         (names.empty() ? "" : "; what may change" + std::string(part.empty() ? "" : " there") + ": " + names);
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

std::string ResumeSettingsFor(const std::vector<Change>& changes, const std::vector<std::string>& may_change) {
  const auto allowed = [&](const Change& change) { return change.value && MayChangeOnResume(change.path, may_change); };
  if (!std::ranges::all_of(changes, allowed)) return "";
  const std::string settings = SettingsFor(changes);
  return settings.empty() ? "--set KEY=VALUE, once for each of them" : settings;
}

}  // namespace kgrpo
