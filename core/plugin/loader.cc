#include "plugin/loader.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <kgrpo/support/closest.h>
#include "base/directories.h"

namespace kgrpo {
namespace {

void AppendPaths(const std::string& list, std::vector<std::filesystem::path>* paths) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) {
      const auto path = std::filesystem::absolute(list.substr(begin, end - begin)).lexically_normal();
      if (std::find(paths->begin(), paths->end(), path) == paths->end()) paths->push_back(path);
    }
    begin = end + 1;
  }
}

std::string PluginNameOf(const std::filesystem::path& library) {
  std::string name = library.stem().string();
  if (name.starts_with("lib")) name.erase(0, 3);
  return name;
}

// The plugins that the folder's build knows, built or not: cmake/Kgrpo.cmake writes the file.
std::vector<std::string> ShippedPlugins(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::ifstream file(directory / "shipped_plugins");
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

// Returns the text to write instead if `path` is a script; else empty.
std::string WayOfScript(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char begin[2] = {};
  const bool interpreted = file.read(begin, 2) && begin[0] == '#' && begin[1] == '!';
  const bool python = path.ends_with(".py") && std::filesystem::is_regular_file(path);
  if (!interpreted && !python) return "";
  return "it is no shared library; for a script set plugin: ROLE_program (ROLE: reward, coder or evaluator), options: "
         "{command: [" +
         std::string(python ? "python3, " : "") + path + "]}";
}

}  // namespace

std::vector<std::filesystem::path> PluginDirectories(const std::vector<std::string>& given) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& list : given) AppendPaths(list, &paths);
  if (const char* variable = std::getenv("KGRPO_PLUGIN_PATH")) AppendPaths(variable, &paths);
  const std::filesystem::path host = HostFolder();
  if (!host.empty()) AppendPaths((host / ".." / "lib" / "kgrpo").string(), &paths);
  return paths;
}

const PluginLibrary& PluginLoader::Open(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path identity = std::filesystem::weakly_canonical(path, error);
  if (error) identity = path;
  auto known = opened_.find(identity);
  if (known == opened_.end()) known = opened_.emplace(identity, std::make_unique<PluginLibrary>(path)).first;
  return *known->second;
}

const PluginLibrary& PluginLoader::Load(const std::string& plugin) {
  if (plugin.find('/') != std::string::npos || plugin.ends_with(".so")) {
    try {
      return Open(plugin);
    } catch (const Error& error) {
      const std::string script = WayOfScript(plugin);
      throw Error(error.code(), "cannot load the plugin " +
                                    std::filesystem::absolute(plugin).lexically_normal().string() + ": " +
                                    (script.empty() ? error.what() : script));
    }
  }
  std::string tried;
  for (const std::filesystem::path& directory : directories_) {
    for (const std::string& file : {plugin + ".so", "lib" + plugin + ".so"}) {
      const std::filesystem::path path = directory / file;
      std::error_code ignored;
      if (!std::filesystem::exists(path, ignored)) {
        tried += "\n    " + path.string() + ": no such file";
        continue;
      }
      try {
        return Open(path);
      } catch (const Error& error) {
        // A broken plugin is an error: falling back to another one of the same name would hide which one runs.
        throw Error(error.code(), "cannot load the plugin \"" + plugin + "\"; tried" + tried + "\n    " +
                                      path.string() + ": " + error.what());
      }
    }
  }
  throw NotFound(plugin);
}

Error PluginLoader::NotFound(const std::string& plugin) const {
  std::string tried;
  std::vector<std::string> names;
  for (const std::filesystem::path& directory : directories_) {
    for (const std::string& file : {plugin + ".so", "lib" + plugin + ".so"})
      tried += "\n    " + (directory / file).string() + ": no such file";
    for (std::string& name : ShippedPlugins(directory)) names.push_back(std::move(name));
  }
  if (std::find(names.begin(), names.end(), plugin) != names.end()) {
    return Error(KGRPO_ERROR_NOT_FOUND,
                 "\"" + plugin + "\" is a shipped plugin that this build leaves out: run scripts/setup; tried" + tried);
  }
  for (const std::filesystem::path& path : Scan()) names.push_back(PluginNameOf(path));
  const std::string closest = Closest(plugin, names);
  if (tried.empty()) tried = " nothing: there is no plugin folder; name one with --plugin-path or KGRPO_PLUGIN_PATH";
  return Error(KGRPO_ERROR_NOT_FOUND, "there is no plugin \"" + plugin + "\"" +
                                          (closest.empty() ? "" : "; did you mean \"" + closest + "\"?") + "; tried" +
                                          tried);
}

std::vector<std::filesystem::path> PluginLoader::Scan() const {
  std::vector<std::filesystem::path> libraries;
  for (const std::filesystem::path& directory : directories_) {
    std::vector<std::filesystem::path> found;
    std::error_code error;
    for (auto entry = std::filesystem::directory_iterator(directory, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      if (entry->path().extension() == ".so") found.push_back(entry->path());
    }
    std::sort(found.begin(), found.end());
    libraries.insert(libraries.end(), found.begin(), found.end());
  }
  return libraries;
}

}  // namespace kgrpo
