#include "validate/catalog.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "plugin/child.h"

namespace kgrpo {
namespace {

using Json = nlohmann::json;

constexpr int kSecondsToLoad = 60;

// The plugin's description of itself, read in a child process.
Json Ask(const std::filesystem::path& path) {
  const ChildResult child = RunInChild(
      [&](const auto& write) {
        Json answer;
        try {
          const PluginLibrary library(path);
          answer = {{"name", library.name()}, {"version", library.version()}, {"summary", library.summary()}};
          answer["roles"] = Json::array();
          for (Role role : kRoles) {
            if (library.Plays(role)) answer["roles"].push_back(RoleName(role));
          }
          if (library.transport() != nullptr) answer["roles"].push_back("transport");
          if (answer["roles"].empty()) answer["error"] = "it offers no interface that this host knows";
        } catch (const std::exception& error) {
          answer = {{"error", error.what()}};
        }
        write(DumpJson(answer));
      },
      kSecondsToLoad);
  if (!child.failure.empty()) return {{"error", "loading it " + child.failure}};
  return Json::parse(child.output);
}

PluginSummary ReadAnswer(const std::filesystem::path& path, const Json& answer) {
  return {path,
          answer.value("name", path.stem().string()),
          answer.value("version", ""),
          answer.value("summary", ""),
          answer.value("roles", std::vector<std::string>()),
          answer.value("error", "")};
}

}  // namespace

std::vector<PluginSummary> ListPlugins(const PluginLoader& loader) {
  std::vector<PluginSummary> plugins;
  for (const std::filesystem::path& path : loader.Scan()) plugins.push_back(ReadAnswer(path, Ask(path)));
  return plugins;
}

}  // namespace kgrpo
