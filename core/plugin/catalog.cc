#include "plugin/catalog.h"

#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <system_error>

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
        write(answer.dump(-1, ' ', false, Json::error_handler_t::replace));
      },
      kSecondsToLoad);
  if (!child.failure.empty()) return {{"error", "loading it " + child.failure}};
  return Json::parse(child.output);
}

// Identifies a build of a library: some value changes when it is built anew.
Json Stamp(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const auto time = std::filesystem::last_write_time(path, error).time_since_epoch();
  return {static_cast<uint64_t>(size), std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(),
          KGRPO_ABI_MAJOR, KGRPO_ABI_MINOR};
}

Json ReadCache(const std::filesystem::path& file) {
  std::ifstream stream(file);
  Json cache = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  return cache.is_object() ? cache : Json::object();
}

void WriteCache(const std::filesystem::path& file, const Json& cache) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  const std::filesystem::path fresh = file.string() + "." + std::to_string(getpid());
  bool written = false;
  {
    std::ofstream stream(fresh);
    stream << cache.dump(1) << '\n';
    written = static_cast<bool>(stream.flush());
  }
  if (written)
    std::filesystem::rename(fresh, file, ignored);
  else
    std::filesystem::remove(fresh, ignored);
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

std::vector<PluginSummary> ListPlugins(const PluginLoader& loader, const std::filesystem::path& cache_file) {
  Json cache = cache_file.empty() ? Json::object() : ReadCache(cache_file);
  bool changed = false;
  std::vector<PluginSummary> plugins;
  for (const std::filesystem::path& path : loader.Scan()) {
    const Json stamp = Stamp(path);
    const std::string key = path.string();
    const auto known = cache.find(key);
    if (known != cache.end() && known->is_object() && known->value("stamp", Json()) == stamp &&
        known->contains("answer")) {
      try {
        plugins.push_back(ReadAnswer(path, known->at("answer")));
        continue;
      } catch (const Json::exception&) {
        // The cache entry has another form: query the plugin again.
      }
    }
    const Json answer = Ask(path);
    plugins.push_back(ReadAnswer(path, answer));
    // Failures are not cached: their cause may lie outside the file (a library that is installed later).
    if (answer.contains("error")) continue;
    cache[key] = {{"stamp", stamp}, {"answer", answer}};
    changed = true;
  }
  if (changed && !cache_file.empty()) WriteCache(cache_file, cache);
  return plugins;
}

}  // namespace kgrpo
