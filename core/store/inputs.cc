#include "store/inputs.h"

#include "base/files.h"
#include "store/database.h"
#include "store/json.h"
#include "store/readable.h"
#include "store/run_folder.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/sha256.h>
#include <kgrpo/support/sqlite.h>

#include <algorithm>
#include <sstream>
#include <system_error>
#include <utility>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Files = std::map<std::string, fs::path>;  // by the name that counts for the digest

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The parts of a text between `separators`.
std::vector<std::string> PartsOf(const std::string& text, std::string_view separators) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (separators.find(c) == std::string_view::npos)
      parts.back() += c;
    else if (!parts.back().empty())
      parts.emplace_back();
  }
  return parts;
}

void AddModule(const fs::path& folder, const std::string& name, Files* files);

// Adds a file of a command, and the modules beside it that a Python script imports.
void AddScript(const fs::path& file, Files* files) {
  if (!files->emplace(file.lexically_normal().string(), file).second || file.extension() != ".py") return;
  std::istringstream lines(ReadFile(file));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> names = PartsOf(line, " \t\r.,;()");
    if (names.front() != "import" && names.front() != "from") continue;
    for (const std::string& name : names) AddModule(file.parent_path(), name, files);
  }
}

void AddModule(const fs::path& folder, const std::string& name, Files* files) {
  if (name.empty() || name.find('/') != std::string::npos) return;
  if (IsFile(folder / (name + ".py"))) return AddScript(folder / (name + ".py"), files);
  if (!IsFile(folder / name / "__init__.py") && !IsFile(folder / name / "__main__.py")) return;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder / name)) {
    if (entry.path().extension() == ".py") AddScript(entry.path(), files);
  }
}

// Adds the files among the words of a command, but no program of the system.
void AddCommand(const Json& command, Files* files) {
  bool module = false;
  for (const Json& argument : command) {
    if (!argument.is_string()) continue;
    for (const std::string& word : PartsOf(argument.get<std::string>(), " \t\n='\"`;|&<>(),")) {  // of a shell, too
      if (std::exchange(module, word == "-m")) AddModule(".", word.substr(0, word.find('.')), files);
      std::error_code error;
      if (IsFile(word) && !fs::canonical(word, error).string().starts_with("/usr/")) AddScript(word, files);
    }
  }
}

// Adds a file, or the files of a folder, and those of the model that an adapter there is for.
void AddPath(const fs::path& path, const std::string& prefix, Files* files) {
  if (IsFile(path)) {
    files->emplace(prefix + path.filename().string(), path);
    return;
  }
  if (!IsFolder(path) || prefix.size() > 100) return;
  for (auto entry = fs::recursive_directory_iterator(path); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.') || name == "__pycache__") {
      entry.disable_recursion_pending();
    } else if (IsFile(entry->path())) {
      files->emplace(prefix + fs::relative(entry->path(), path).string(), entry->path());
    }
  }
  const fs::path adapter = path / "adapter_config.json";
  if (!IsFile(adapter)) return;
  const Json config = Json::parse(ReadFile(adapter), nullptr, /*allow_exceptions=*/false);
  const Json base = config.is_object() ? config.value("base_model_name_or_path", Json()) : Json();
  if (base.is_string()) AddPath(base.get<std::string>(), prefix + "base/", files);
}

Files FilesOf(const Input& input) {
  Files files;
  if (input.value.is_array())
    AddCommand(input.value, &files);
  else if (input.value.is_string() && !input.value.get_ref<const std::string&>().empty())
    AddPath(input.value.get<std::string>(), "", &files);
  return files;
}

bool IsRun(const Json& value) { return value.is_string() && IsFile(fs::path(value.get<std::string>()) / "run.sqlite"); }

// A run's configuration and what it has recorded; finished_at tells two runs of one configuration apart.
std::string DigestOfRun(const fs::path& folder) {
  RequireRecord(folder);
  Database database(folder / "run.sqlite", Database::ToRead(folder / "run.sqlite"));
  std::string recorded;
  for (const char* question : {"SELECT value FROM run WHERE key = 'resolved_yaml'",
                               "SELECT group_concat(step || ' ' || finished_at) FROM "
                               "(SELECT * FROM steps ORDER BY step)",
                               "SELECT count(*) FROM rounds"}) {
    Statement select(database, question);
    if (select.Step() && !select.IsNull(0)) recorded += select.Text(0) + "\n";
  }
  return Sha256(recorded);
}

std::string Shown(const std::string& digest) {
  constexpr size_t kDigits = 16;
  return "sha256 " + digest.substr(0, kDigits);
}

std::string DigestOf(const Input& input) {
  const auto path = input.value.is_string() ? fs::path(input.value.get<std::string>()) : fs::path();
  if (IsFile(path / "run.sqlite")) return DigestOfRun(path);
  if (IsFile(path)) return Sha256OfFile(path);
  std::string digest;
  for (const auto& [name, file] : FilesOf(input)) {
    const std::string counted = input.value.is_array() ? file.filename().string() : name;
    digest = Sha256OfParts({digest, counted, Sha256OfFile(file)});
  }
  return digest;
}

}  // namespace

InputDigests DigestsOf(const std::vector<Input>& inputs) {
  InputDigests digests;
  for (const Input& input : inputs) {
    if (!input.content) continue;
    if (const std::string digest = DigestOf(input); !digest.empty()) digests[input.key + kContent] = Shown(digest);
  }
  return digests;
}

std::string StableDescription(const std::string& described) {
  std::istringstream lines(described);
  std::string stable;
  for (std::string line; std::getline(lines, line);)
    stable += (stable.empty() ? "" : "\n") + line.substr(0, line.find(';'));
  return stable;
}

InputDigests RecordedInputs(RunDatabase& database) {
  if (const auto text = database.Get("inputs")) return Json::parse(*text).get<InputDigests>();
  InputDigests digests;
  for (const Json& one : Json::parse(database.Get("plugins").value_or("[]"))) {
    const auto role = one.at("role").get<std::string>();
    if (role.starts_with("observers")) continue;
    digests[role + ".plugin" + kContent] = Shown(one.value("sha256", ""));
  }
  return digests;
}

std::string AtStep(const std::string& key, const std::string& last, uint64_t step,
                   const std::vector<SettingChange>& changes) {
  for (const SettingChange& change : changes) {  // by step
    if (change.key == key && change.after_step >= step) return Json::parse(change.before).get<std::string>();
  }
  return last;
}

std::vector<Change> ChangedInputs(const InputDigests& before, const InputDigests& now) {
  std::vector<Change> changed;
  for (const auto& [key, digest] : now) {
    const auto old = before.find(key);
    if (old != before.end() && old->second != digest) changed.push_back({key, digest, old->second});
  }
  return changed;
}

void RequireResumable(const std::vector<Change>& changed, const std::vector<std::string>& may_change) {
  for (const Change& change : changed) {
    if (!change.path.ends_with(kContent)) continue;  // the evaluator's description
    const std::string key = change.path.substr(0, change.path.size() - std::string_view(kContent).size());
    if (key.ends_with(".plugin") || key.find(".from[") != std::string::npos || MayChangeOnResume(key, may_change))
      continue;
    throw Error(KGRPO_ERROR_INVALID, "what " + key +
                                         " reads has another content than when the run did its last step; " +
                                         ReasonToKeep(key, {}) + ". Put the content back, or start a new run");
  }
}

std::string ReadFromOverwritten(const std::vector<Input>& inputs, const fs::path& folder) {
  std::error_code error;
  const fs::path own = fs::weakly_canonical(folder, error);
  const auto goes = [&](const fs::path& path) {
    const fs::path within = fs::weakly_canonical(path, error).lexically_relative(own);
    return !within.empty() && (within == "." || RunFolder::IsOurs(within.begin()->string()));
  };
  for (const Input& input : inputs) {
    std::vector<fs::path> paths;
    if (input.value.is_string()) paths.emplace_back(input.value.get<std::string>());
    for (const auto& [name, file] : IsRun(input.value) ? Files() : FilesOf(input)) paths.push_back(file);
    const auto found = std::ranges::find_if(
        paths, [&](const fs::path& path) { return !path.empty() && fs::exists(path, error) && goes(path); });
    if (found != paths.end()) return input.key + " reads " + found->string();
  }
  return "";
}

}  // namespace kgrpo
