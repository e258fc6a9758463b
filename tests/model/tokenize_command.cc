// `kgrpo-model tokenize MODEL_DIR`: texts and chats to token ids by a policy plugin, JSON lines in and out.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "model/command.h"
#include "model/model_input.h"

namespace kgrpo::cli {
namespace {

int Tokenize(const Globals& globals, const ModelOptions& options) {
  struct Item {
    size_t line;
    std::string text;
    std::optional<Chat> chat;
  };
  std::vector<Item> items;
  ReadJsonLines(options.input, [&](const JsonLine& line) {
    line.RequireKnown(
        {"text", "messages", "tools", "chat_template_kwargs", "add_generation_prompt", "enable_thinking"});
    RequireOneOf(line, {"text", "messages"});
    if (line.Has("text"))
      items.push_back({line.number(), line.Text("text"), {}});
    else
      items.push_back({line.number(), "", ReadChat(line, false)});
  });
  Session session(globals);
  session.StartServices(0);
  nlohmann::ordered_json plugin_options = PluginOptions(options);
  // Tokenizing needs no weights; a policy without this option loads them anyway.
  const Schema schema = session.loader().Load(options.plugin).OptionsSchema(Role::kPolicy);
  if (schema.value("properties", Schema::object()).contains("tokenizer_only")) plugin_options["tokenizer_only"] = true;
  const std::unique_ptr<Policy> policy = session.MakePolicy(options.plugin, plugin_options);
  for (const Item& item : items) {
    ThrowIfCancelled();
    ForLine(options.input, item.line, [&] {
      if (item.chat) {
        const std::vector<int32_t> ids = policy->EncodeChat(item.chat->messages, item.chat->options);
        WriteJsonLine({{"ids", ids}, {"text", policy->RenderChat(item.chat->messages, item.chat->options)}});
      } else {
        const std::vector<int32_t> ids = policy->EncodePrompt(item.text);
        WriteJsonLine({{"ids", ids}, {"text", policy->Decode(ids)}});
      }
    });
  }
  return kFine;
}

}  // namespace

void AddTokenizeCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Text and chats to token ids (the tokenizer's files suffice)");
  AddModelOptions(command, options.get(), false);
  command->footer(
      "Reads {\"text\"} or {\"messages\", \"tools\", \"chat_template_kwargs\", \"add_generation_prompt\", "
      "\"enable_thinking\"} a line; writes {\"ids\", "
      "\"text\"}.\n"
      "Example:\n  echo '{\"text\": \"hello\"}' | kgrpo-model tokenize models/qwen2-0.5b-instruct");
  command->callback([=, &globals] { *action = [=, &globals] { return Tokenize(globals, *options); }; });
}

}  // namespace kgrpo::cli
