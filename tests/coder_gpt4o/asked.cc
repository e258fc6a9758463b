#include "asked.h"

#include "config/load.h"
#include "config/schema.h"

namespace kgrpo::coder_gpt4o {

nlohmann::json DefaultOptions() {
  return CheckOptions(nlohmann::ordered_json::object(), nlohmann::ordered_json::parse(OptionsSchema()), "options",
                      "test");
}

CoderOptions OptionsWith(const nlohmann::json& changes) {
  nlohmann::json options = DefaultOptions();
  options.merge_patch(changes);
  for (const auto& [key, value] : changes.items()) {
    if (value.is_null()) options[key] = nullptr;  // which a patch would remove
  }
  return ReadOptions(options.dump(), [](const std::string&) { return "secret-key"; });
}

std::filesystem::path TestFolder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(KGRPO_BINARY_DIR) / "test_runs" / ("coder_gpt4o_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace kgrpo::coder_gpt4o
