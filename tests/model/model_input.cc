#include "model/model_input.h"

#include "base/cancel.h"
#include "cli/session.h"

namespace kgrpo::cli {

void AddModelOptions(CLI::App* command, ModelOptions* options, bool weights) {
  command->add_option("MODEL_DIR", options->model, "A Hugging Face folder")->required();
  command->add_option("--input", options->input, "JSON lines; - is standard input")->type_name("FILE");
  command->add_option("--plugin", options->plugin, "The policy plugin")->capture_default_str();
  AddSetOption(command, &options->settings, "An option of the policy plugin");
  if (!weights) return;
  command->add_option("--dtype", options->dtype, "fp32 or bf16")->type_name("DTYPE");
  command->add_option("--device", options->device, "cpu, cuda, cuda:1");
}

nlohmann::ordered_json PluginOptions(const ModelOptions& options) {
  nlohmann::ordered_json json = OptionsFromSettings(options.settings);
  json["model"] = options.model;
  if (!options.dtype.empty()) {
    const bool fp32 = options.dtype == "fp32" || options.dtype == "float32";
    const bool bf16 = options.dtype == "bf16" || options.dtype == "bfloat16";
    if (!fp32 && !bf16)
      throw Error(KGRPO_ERROR_INVALID, "--dtype: expected fp32 or bf16, found \"" + options.dtype + "\"");
    json["dtype"] = fp32 ? "float32" : "bfloat16";
  }
  if (!options.device.empty()) json["device"] = options.device;
  return json;
}

Chat ReadChat(const JsonLine& line, bool add_generation_prompt) {
  Chat chat;
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  const nlohmann::ordered_json& messages = line.Get("messages");
  if (!messages.is_array() || messages.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "\"messages\": expected a list of {\"role\", \"content\"}");
  }
  for (const nlohmann::ordered_json& message : messages) {
    const auto text = [&](const char* key) {
      return message.contains(key) && message[key].is_string() ? message[key].get<std::string>() : "";
    };
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      throw Error(KGRPO_ERROR_INVALID, "\"messages\"[" + std::to_string(chat.messages.size()) +
                                           "]: expected {\"role\": text, \"content\": text}");
    }
    nlohmann::ordered_json members = message;
    members.erase("role");
    if (members["content"].is_string()) members.erase("content");  // null if it is absent
    chat.messages.push_back({text("role"), text("content"), members.empty() ? "" : members.dump()});
  }
  if (line.Has("tools")) arguments["tools"] = line.Get("tools");
  if (line.Has("chat_template_kwargs")) {
    const nlohmann::ordered_json& given = line.Get("chat_template_kwargs");
    if (!given.is_object()) throw Error(KGRPO_ERROR_INVALID, "\"chat_template_kwargs\": expected an object");
    arguments.update(given);
  }
  if (!arguments.empty()) chat.options.arguments = arguments.dump();
  chat.options.add_generation_prompt =
      line.Has("add_generation_prompt") ? line.Flag("add_generation_prompt") : add_generation_prompt;
  if (line.Has("enable_thinking")) chat.options.enable_thinking = line.Flag("enable_thinking");
  return chat;
}

void RequireOneOf(const JsonLine& line, const std::vector<std::string>& keys) {
  size_t present = 0;
  std::string list;
  for (const std::string& key : keys) {
    present += line.Has(key);
    list += (list.empty() ? "\"" : ", \"") + key + "\"";
  }
  if (present != 1)
    throw Error(KGRPO_ERROR_INVALID, "expected exactly one of " + list + ", found " + std::to_string(present));
}

void ThrowIfCancelled() {
  if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "interrupted");
}

}  // namespace kgrpo::cli
