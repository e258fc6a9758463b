// Shared by tokenize, score and generate: the model on the command line, and JSON lines as input.
#ifndef KGRPO_MODEL_MODEL_INPUT_H
#define KGRPO_MODEL_MODEL_INPUT_H

#include <kgrpo/sdk/error.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/default_plugins.h"
#include "cli/command.h"
#include "model/json_lines.h"
#include "plugin/instances.h"

namespace kgrpo::cli {

struct ModelOptions {
  std::string model;
  std::string plugin = KGRPO_DEFAULT_POLICY;
  std::string input = "-";
  std::string dtype;
  std::string device;
  std::vector<std::string> settings;
};

// `weights`: also adds the options for the device and the number format of the weights.
void AddModelOptions(CLI::App* command, ModelOptions* options, bool weights);

// Returns the plugin's options: those of --set, overridden by options with their own flag.
nlohmann::ordered_json PluginOptions(const ModelOptions& options);

// A chat, from {"messages": [{"role", "content", ...}]} and, optionally, "tools", "chat_template_kwargs",
// "add_generation_prompt" and "enable_thinking".
struct Chat {
  std::vector<ChatMessage> messages;
  ChatOptions options;
};

Chat ReadChat(const JsonLine& line, bool add_generation_prompt);

// Throws unless exactly one of the keys is present.
void RequireOneOf(const JsonLine& line, const std::vector<std::string>& keys);

// Runs `body` for one line of the input; an error gets the file's name and the line's number.
template <typename Body>
auto ForLine(const std::string& input, size_t number, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), InputName(input) + ":" + std::to_string(number) + ": " + error.what());
  }
}

void ThrowIfCancelled();

}  // namespace kgrpo::cli
#endif
