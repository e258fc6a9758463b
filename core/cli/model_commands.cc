// `kgrpo-host tokenize | score | generate MODEL_DIR`: a policy plugin by hand, JSON lines in and out.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/json_lines.h"
#include "cli/session.h"
#include "host/cancel.h"
#include "random/keyed.h"

namespace kgrpo::cli {
namespace {

// Options that the three share.
struct ModelOptions {
  std::string model;
  std::string plugin = "policy_qwen";
  std::string input = "-";
  std::string dtype;
  std::string device;
  std::vector<std::string> settings;
};

void AddModelOptions(CLI::App* command, ModelOptions* options, bool weights) {
  command->add_option("MODEL_DIR", options->model, "A Hugging Face folder")->required();
  command->add_option("--input", options->input, "JSON lines; - is standard input")->type_name("FILE");
  command->add_option("--plugin", options->plugin, "The policy plugin")->capture_default_str();
  AddSetOption(command, &options->settings, "An option of the policy plugin");
  if (!weights) return;
  command->add_option("--dtype", options->dtype, "fp32 or bf16")->type_name("DTYPE");
  command->add_option("--device", options->device, "cpu, cuda, cuda:1");
}

// The plugin's options: --set, and over them what has a name of its own here.
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

// A chat, from {"messages": [{"role", "content"}], "add_generation_prompt", "enable_thinking"}.
struct Chat {
  std::vector<ChatMessage> messages;
  ChatOptions options;
};

Chat ReadChat(const JsonLine& line, bool add_generation_prompt) {
  Chat chat;
  const nlohmann::json& messages = line.Get("messages");
  if (!messages.is_array() || messages.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "\"messages\": expected a list of {\"role\", \"content\"}");
  }
  for (const nlohmann::json& message : messages) {
    const std::string where = "\"messages\"[" + std::to_string(chat.messages.size()) + "]";
    const auto text = [&](const char* key) {
      if (!message.is_object() || !message.contains(key) || !message[key].is_string()) {
        throw Error(KGRPO_ERROR_INVALID, where + ": expected {\"role\": text, \"content\": text}");
      }
      return message[key].get<std::string>();
    };
    chat.messages.push_back({text("role"), text("content")});
  }
  chat.options.add_generation_prompt =
      line.Has("add_generation_prompt") ? line.Flag("add_generation_prompt") : add_generation_prompt;
  if (line.Has("enable_thinking")) chat.options.enable_thinking = line.Flag("enable_thinking");
  return chat;
}

// One of several ways to say something; throws unless exactly one is there.
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

// What went wrong with one line, once the file has been read.
template <typename Body>
auto ForLine(const std::string& input, size_t number, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), InputName(input) + ":" + std::to_string(number) + ": " + error.what());
  }
}

void ThrowIfCancelled() {
  if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "interrupted");
}

// ---- tokenize -----------------------------------------------------------------------------------

int Tokenize(const Globals& globals, const ModelOptions& options) {
  struct Item {
    size_t line;
    std::string text;
    std::optional<Chat> chat;
  };
  std::vector<Item> items;
  ReadJsonLines(options.input, [&](const JsonLine& line) {
    line.RequireKnown({"text", "messages", "add_generation_prompt", "enable_thinking"});
    RequireOneOf(line, {"text", "messages"});
    if (line.Has("text"))
      items.push_back({line.number(), line.Text("text"), {}});
    else
      items.push_back({line.number(), "", ReadChat(line, false)});
  });
  Session session(globals);
  session.StartServices(0);
  nlohmann::ordered_json plugin_options = PluginOptions(options);
  // Reading text needs no weights; a policy without such a switch loads them.
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
        const std::vector<int32_t> ids = policy->Encode(item.text);
        WriteJsonLine({{"ids", ids}, {"text", policy->Decode(ids)}});
      }
    });
  }
  return kFine;
}

// ---- score --------------------------------------------------------------------------------------

int Score(const Globals& globals, const ModelOptions& options, double temperature) {
  struct Item {
    std::vector<int32_t> prompt, completion;
    std::string prompt_text, completion_text;  // where ids are absent
    size_t line;
  };
  std::vector<Item> items;
  ReadJsonLines(options.input, [&](const JsonLine& line) {
    line.RequireKnown({"prompt_ids", "completion_ids", "prompt", "completion"});
    RequireOneOf(line, {"prompt_ids", "prompt"});
    RequireOneOf(line, {"completion_ids", "completion"});
    Item item;
    item.line = line.number();
    if (line.Has("prompt_ids"))
      item.prompt = line.Ids("prompt_ids");
    else
      item.prompt_text = line.Text("prompt");
    if (line.Has("completion_ids"))
      item.completion = line.Ids("completion_ids");
    else
      item.completion_text = line.Text("completion");
    items.push_back(std::move(item));
  });
  Session session(globals);
  session.StartServices(0);
  const std::unique_ptr<Policy> policy = session.MakePolicy(options.plugin, PluginOptions(options));
  for (Item& item : items) {
    ForLine(options.input, item.line, [&] {
      if (item.prompt.empty()) item.prompt = policy->Encode(item.prompt_text);
      if (item.completion.empty()) item.completion = policy->Encode(item.completion_text);
      if (item.prompt.empty() || item.completion.empty()) {
        throw Error(KGRPO_ERROR_INVALID, "prompt and completion must each be at least one token");
      }
    });
  }
  constexpr size_t kAtATime = 64;
  for (size_t begin = 0; begin < items.size(); begin += kAtATime) {
    ThrowIfCancelled();
    const size_t end = std::min(begin + kAtATime, items.size());
    std::vector<kgrpo_sequence> sequences;
    for (size_t i = begin; i < end; ++i) {
      const Item& item = items[i];
      sequences.push_back({item.prompt.data(), item.prompt.size(), item.completion.data(), item.completion.size()});
    }
    std::vector<float> logprobs;
    try {
      logprobs = policy->LogProbabilities(sequences, temperature);
    } catch (const Error&) {
      // One of them is at fault: find out which, so that its line can be named.
      for (size_t i = begin; i < end; ++i) {
        ForLine(options.input, items[i].line,
                [&] { policy->LogProbabilities(std::span(&sequences[i - begin], 1), temperature); });
      }
      throw;
    }
    for (size_t i = begin, offset = 0; i < end; ++i) {
      const size_t count = items[i].completion.size();
      WriteJsonLine({{"logprobs", std::vector<float>(logprobs.begin() + static_cast<std::ptrdiff_t>(offset),
                                                     logprobs.begin() + static_cast<std::ptrdiff_t>(offset + count))}});
      offset += count;
    }
  }
  return kFine;
}

// ---- generate -----------------------------------------------------------------------------------

struct SamplingOptions {
  uint32_t max_new_tokens = 256;
  double temperature = 1.0;
  uint32_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  uint64_t seed = 0;
  size_t batch = 64;
};

int Generate(const Globals& globals, const ModelOptions& options, const SamplingOptions& sampling_options) {
  struct Item {
    std::vector<int32_t> ids;
    std::string text;
    std::optional<Chat> chat;
    size_t line;
  };
  std::vector<Item> items;
  ReadJsonLines(options.input, [&](const JsonLine& line) {
    line.RequireKnown({"prompt", "prompt_ids", "messages", "add_generation_prompt", "enable_thinking"});
    RequireOneOf(line, {"prompt", "prompt_ids", "messages"});
    Item item;
    item.line = line.number();
    if (line.Has("prompt_ids"))
      item.ids = line.Ids("prompt_ids");
    else if (line.Has("prompt"))
      item.text = line.Text("prompt");
    else
      item.chat = ReadChat(line, true);
    items.push_back(std::move(item));
  });
  Session session(globals);
  session.StartServices(sampling_options.seed);
  const std::unique_ptr<Policy> policy = session.MakePolicy(options.plugin, PluginOptions(options));
  kgrpo_sampling sampling{};
  sampling.struct_size = sizeof(sampling);
  sampling.max_new_tokens = sampling_options.max_new_tokens;
  sampling.temperature = sampling_options.temperature;
  sampling.top_k = sampling_options.top_k;
  sampling.top_p = sampling_options.top_p;
  sampling.min_p = sampling_options.min_p;

  for (Item& item : items) {
    ForLine(options.input, item.line, [&] {
      if (item.chat)
        item.ids = policy->EncodeChat(item.chat->messages, item.chat->options);
      else if (item.ids.empty())
        item.ids = policy->Encode(item.text);
      if (item.ids.empty()) throw Error(KGRPO_ERROR_INVALID, "the prompt is empty: it must be at least one token");
    });
  }
  const size_t batch = std::max<size_t>(1, sampling_options.batch);
  for (size_t begin = 0; begin < items.size(); begin += batch) {
    ThrowIfCancelled();
    std::vector<kgrpo_generate_request> requests;
    for (size_t i = begin; i < std::min(begin + batch, items.size()); ++i) {
      // The seed is the line's own: a sequence does not depend on what else is in the file.
      requests.push_back({items[i].ids.data(), items[i].ids.size(), Keyed(sampling_options.seed, "generate", {i}, 0)});
    }
    std::vector<Completion> completions;
    try {
      completions = policy->Generate(requests, sampling);
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_INVALID) throw;
      // One of them is at fault: find out which, so that its line can be named.
      sampling.max_new_tokens = 1;
      for (size_t i = 0; i < requests.size(); ++i) {
        ForLine(options.input, items[begin + i].line, [&] { policy->Generate(std::span(&requests[i], 1), sampling); });
      }
      throw;
    }
    for (const Completion& completion : completions) {
      WriteJsonLine({{"text", completion.text},
                     {"ids", completion.ids},
                     {"logprobs", completion.logprobs},
                     {"finish_reason", FinishReasonName(completion.finish_reason)}});
    }
    std::fflush(stdout);
  }
  return kFine;
}

}  // namespace

void AddTokenizeCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Text and chats to token ids (the tokenizer's files suffice)");
  AddModelOptions(command, options.get(), false);
  command->footer(
      "Reads {\"text\"} or {\"messages\", \"add_generation_prompt\", \"enable_thinking\"} a line; writes {\"ids\", "
      "\"text\"}.\n"
      "Example:\n  echo '{\"text\": \"hello\"}' | kgrpo-host tokenize models/qwen2-0.5b-instruct");
  command->callback([=, &globals] { *action = [=, &globals] { return Tokenize(globals, *options); }; });
}

void AddScoreCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  auto temperature = std::make_shared<double>(1.0);
  CLI::App* command = app.add_subcommand("score", "Log-probabilities of given completions");
  AddModelOptions(command, options.get(), true);
  command->add_option("--temperature", *temperature, "Of logits / temperature")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->footer(
      "Reads {\"prompt_ids\", \"completion_ids\"} or {\"prompt\", \"completion\"} a line; writes {\"logprobs\"}, one a "
      "token.\n"
      "Example:\n  echo '{\"prompt\": \"1, 2,\", \"completion\": \" 3\"}' | kgrpo-host score "
      "models/qwen2-0.5b-instruct --dtype fp32");
  command->callback([=, &globals] { *action = [=, &globals] { return Score(globals, *options, *temperature); }; });
}

void AddGenerateCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  auto sampling = std::make_shared<SamplingOptions>();
  CLI::App* command = app.add_subcommand("generate", "Completions of prompts");
  AddModelOptions(command, options.get(), true);
  command->add_option("--max-new-tokens", sampling->max_new_tokens, "Tokens at most")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--temperature", sampling->temperature, "0 takes the likeliest token always")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--top-k", sampling->top_k, "Only the k likeliest; 0: all")->capture_default_str();
  command->add_option("--top-p", sampling->top_p, "Only the likeliest that reach this probability")
      ->capture_default_str()
      ->check(CLI::Range(1e-9, 1.0));
  command->add_option("--min-p", sampling->min_p, "Only those this likely relative to the likeliest")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--seed", sampling->seed, "Every line draws from its own stream of it")->capture_default_str();
  command->add_option("--batch", sampling->batch, "Lines generated together")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->footer(
      "Reads {\"prompt\"}, {\"prompt_ids\"} or {\"messages\"} a line; writes {\"text\", \"ids\", \"logprobs\", "
      "\"finish_reason\"}.\n"
      "Example:\n  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}' | kgrpo-host generate "
      "models/qwen2-0.5b-instruct --seed 1");
  command->callback([=, &globals] { *action = [=, &globals] { return Generate(globals, *options, *sampling); }; });
}

}  // namespace kgrpo::cli
