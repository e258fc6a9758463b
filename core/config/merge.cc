#include "config/merge.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "config/hidden_keys.h"

namespace kgrpo {
namespace {

constexpr size_t kMaxFileSize = 16u << 20;

std::string Name(const Node* plugin) {
  return plugin != nullptr && plugin->IsString() ? plugin->scalar.get<std::string>() : "";
}

// Options belong to a plugin: another plugin does not inherit them.
void DropOptionsOfOtherPlugin(Node* base, const Node* plugin) {
  if (plugin == nullptr || base->Get("plugin") == nullptr) return;
  if (Name(base->Get("plugin")) != Name(plugin)) base->Erase("options");
}

// Lays `over` on `base`.
void Merge(Node* base, Node over) {
  if (!base->IsMapping() || !over.IsMapping()) {
    *base = std::move(over);
    return;
  }
  DropOptionsOfOtherPlugin(base, over.Get("plugin"));
  base->at = over.at;
  for (Node::Member& member : over.members) {
    if (Node::Member* existing = base->Find(member.key)) {
      existing->at = member.at;
      Merge(&existing->value, std::move(member.value));
    } else {
      base->members.push_back(std::move(member));
    }
  }
}

// The file's text; nothing when it cannot be read, and *reason then says why.
std::optional<std::string> ReadFile(const std::string& file, std::string* reason) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    *reason = "it is a folder";
    return {};
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    *reason = std::strerror(errno);
    return {};
  }
  std::string text;
  char buffer[1 << 16];
  while (stream.read(buffer, sizeof buffer), stream.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(stream.gcount()));
    if (text.size() > kMaxFileSize) {
      *reason = "it is larger than 16 MiB";
      return {};
    }
  }
  return text;
}

// One value to change, by --set or by a key of a file that is a path.
struct Setting {
  std::vector<std::string> path;
  std::string shown_path;
  Position at;  // place of the key
  Node value;
};

std::optional<size_t> ParseIndex(const std::string& text) {
  size_t index = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return index;
}

// The setting of a path such as "trainer[1].options.gamma", still without its value; nothing after a mistake.
std::optional<Setting> ParsePath(std::string path, const Position& at, std::vector<Diagnostic>* diagnostics) {
  Setting setting;
  setting.at = at;
  const std::string text = path;
  for (size_t bracket; (bracket = path.find('[')) != std::string::npos;) {  // a[0].b is a.0.b
    path[bracket] = '.';
    if (const size_t close = path.find(']', bracket); close != std::string::npos) path.erase(close, 1);
  }
  std::istringstream segments(path + ".");
  for (std::string segment; std::getline(segments, segment, '.');) {
    if (segment.empty()) {
      diagnostics->push_back({at, text, "the path has an empty part", ""});
      return {};
    }
    if (setting.shown_path.empty())
      setting.shown_path = segment;
    else
      setting.shown_path += ParseIndex(segment) ? "[" + segment + "]" : "." + segment;
    setting.path.push_back(segment);
  }
  return setting;
}

std::optional<Setting> ParseSetting(const std::string& text, std::vector<Diagnostic>* diagnostics) {
  const Position at{"--set", 0, 0, 0};
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    diagnostics->push_back({at, "", "expected KEY.KEY=VALUE, found " + nlohmann::json(text).dump(), ""});
    return {};
  }
  std::optional<Setting> parsed = ParsePath(text.substr(0, equals), at, diagnostics);
  if (!parsed) return {};
  Setting& setting = *parsed;
  std::vector<Diagnostic> mistakes;
  setting.value = ParseYaml(text.substr(equals + 1), "--set", 0, &mistakes);
  RefuseKeys(text.substr(0, equals), at, "", &mistakes);
  RefuseKeys(setting.value, "", &mistakes);
  for (Diagnostic& mistake : mistakes) {
    diagnostics->push_back({at, setting.shown_path, std::move(mistake.message), ""});
  }
  if (!mistakes.empty()) return {};
  // One position for all of it.
  setting.value = Node::FromJson(setting.value.ToJson(), at);
  return parsed;
}

// Takes the members whose key is a path out of a file's root.
std::vector<Setting> TakePaths(Node* root, std::vector<Diagnostic>* diagnostics) {
  std::vector<Setting> paths;
  std::vector<Node::Member> others;
  for (Node::Member& member : root->members) {
    if (member.key.find_first_of(".[") == std::string::npos) {
      others.push_back(std::move(member));
    } else if (std::optional<Setting> setting = ParsePath(member.key, member.at, diagnostics)) {
      setting->value = std::move(member.value);
      paths.push_back(*std::move(setting));
    }
  }
  root->members = std::move(others);
  return paths;
}

void Apply(const Setting& setting, Node* root, std::vector<Diagnostic>* diagnostics) {
  const Position& at = setting.at;
  Node* node = root;
  for (size_t i = 0; i < setting.path.size(); ++i) {
    const std::string& key = setting.path[i];
    const bool last = i + 1 == setting.path.size();
    const auto refuse = [&](std::string message) {
      diagnostics->push_back({at, setting.shown_path, std::move(message), ""});
    };
    if (node->IsList()) {
      const std::optional<size_t> index = ParseIndex(key);
      if (!index || *index >= node->items.size()) {
        return refuse("\"" + key + "\" is not an item of the list, which has " + std::to_string(node->items.size()) +
                      " (counted from 0)");
      }
      node = &node->items[*index];
    } else {
      if (node->IsScalar() && node->scalar.is_null()) *node = Node::Mapping(at);
      if (!node->IsMapping())
        return refuse("\"" + setting.path[i - 1] + "\" is " + Describe(*node) + ": it has no keys");
      if (last && key == "plugin") DropOptionsOfOtherPlugin(node, &setting.value);
      if (node->Find(key) == nullptr) node->members.push_back({key, at, last ? Node() : Node::Mapping(at)});
      Node::Member* member = node->Find(key);
      if (last) member->at = at;
      node = &member->value;
    }
  }
  if (at.line > 0)
    Merge(node, setting.value);  // a setting of a file
  else
    *node = setting.value;
}

Node ReadChain(const std::string& file, std::vector<std::string>* chain, std::vector<std::string>* files,
               std::vector<Diagnostic>* diagnostics, const Position& asked_at) {
  const auto report = [&](const Position& at, std::string message) {
    diagnostics->push_back({at, at.line == 0 ? "" : "extends", std::move(message), ""});
    return Node::Mapping(at);
  };
  std::error_code error;
  const std::string identity = std::filesystem::weakly_canonical(file, error).string();
  if (std::find(chain->begin(), chain->end(), identity) != chain->end()) {
    return report(asked_at, "the files extend each other in a circle: " + file + " is being read already");
  }
  std::string reason;
  const std::optional<std::string> text = ReadFile(file, &reason);
  if (!text) return report(asked_at, "cannot read " + file + ": " + reason);

  const int rank = static_cast<int>(files->size());
  files->push_back(file);
  Node node = ParseYaml(*text, file, rank, diagnostics);
  RefuseKeys(node, "", diagnostics);
  if (node.IsScalar() && node.scalar.is_null()) {
    const bool said_why =
        std::any_of(diagnostics->begin(), diagnostics->end(), [&](const Diagnostic& d) { return d.at.rank == rank; });
    if (!said_why) diagnostics->push_back({node.at, "", "the file is empty", ""});
    return Node::Mapping(node.at);
  }
  if (!node.IsMapping()) {
    diagnostics->push_back(
        {node.at, "", "expected a mapping (name: ..., policy: ..., ...), found " + Describe(node), ""});
    return Node::Mapping(node.at);
  }
  const Node* extends = node.Get("extends");
  if (extends == nullptr) {
    for (const Setting& setting : TakePaths(&node, diagnostics)) {
      diagnostics->push_back({setting.at, setting.shown_path,
                              "a key that is a path changes a value of the file that this one `extends`, and it "
                              "extends none: write the keys within each other",
                              ""});
    }
    return node;
  }
  if (!extends->IsString()) {
    report(extends->at, "expected the path of a pipeline file, found " + Describe(*extends));
    node.Erase("extends");
    return node;
  }
  const std::filesystem::path base_file =
      std::filesystem::path(file).parent_path() / extends->scalar.get<std::string>();
  const Position extends_at = extends->at;
  node.Erase("extends");
  chain->push_back(identity);
  Node base = ReadChain(base_file.lexically_normal().string(), chain, files, diagnostics, extends_at);
  chain->pop_back();
  const std::vector<Setting> paths = TakePaths(&node, diagnostics);
  Merge(&base, std::move(node));
  for (const Setting& setting : paths) Apply(setting, &base, diagnostics);
  return base;
}

}  // namespace

Node ReadWithBases(const std::string& file, std::vector<std::string>* files, std::vector<Diagnostic>* diagnostics) {
  std::vector<std::string> chain;
  return ReadChain(file, &chain, files, diagnostics, {file, 0, 0, 0});
}

std::vector<std::string> ApplySettings(const std::vector<std::string>& settings, Node* root,
                                       std::vector<Diagnostic>* diagnostics) {
  std::vector<Setting> parsed;
  for (const std::string& text : settings) {
    if (std::optional<Setting> setting = ParseSetting(text, diagnostics)) parsed.push_back(*std::move(setting));
  }
  std::stable_partition(parsed.begin(), parsed.end(),
                        [](const Setting& setting) { return setting.path.back() == "plugin"; });
  std::vector<std::string> paths;
  for (const Setting& setting : parsed) {
    Apply(setting, root, diagnostics);
    paths.push_back(setting.shown_path);
  }
  return paths;
}

}  // namespace kgrpo
