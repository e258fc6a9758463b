// `kgrpo-model generate MODEL_DIR`: completions of prompts by a policy plugin, JSON lines in and out.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/keyed.h"
#include "cli/session.h"
#include "loop/rounds_in_flight.h"  // SamplingOf
#include "model/command.h"
#include "model/model_input.h"

namespace kgrpo::cli {
namespace {

struct SamplingOptions {
  SamplingConfig sampling;
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
    line.RequireKnown({"prompt", "prompt_ids", "messages", "tools", "chat_template_kwargs", "add_generation_prompt",
                       "enable_thinking"});
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
  kgrpo_sampling sampling = SamplingOf(sampling_options.sampling);

  for (Item& item : items) {
    ForLine(options.input, item.line, [&] {
      if (item.chat)
        item.ids = policy->EncodeChat(item.chat->messages, item.chat->options);
      else if (item.ids.empty())
        item.ids = policy->EncodePrompt(item.text);
      if (item.ids.empty()) throw Error(KGRPO_ERROR_INVALID, "the prompt is empty: it must be at least one token");
    });
  }
  const size_t batch = std::max<size_t>(1, sampling_options.batch);
  for (size_t begin = 0; begin < items.size(); begin += batch) {
    ThrowIfCancelled();
    std::vector<Policy::GenerateRequest> requests;
    for (size_t i = begin; i < std::min(begin + batch, items.size()); ++i) {
      // Each line has its own seed: a sequence does not depend on the other lines of the file.
      requests.push_back({items[i].ids, Keyed(sampling_options.seed, "generate", {i}, 0)});
    }
    std::vector<Completion> completions;
    try {
      completions = policy->Generate(requests, sampling);
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_INVALID) throw;
      // One request is invalid: try each, so that the error names its line.
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

void AddGenerateCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  auto sampling = std::make_shared<SamplingOptions>();
  CLI::App* command = app.add_subcommand("generate", "Completions of prompts");
  AddModelOptions(command, options.get(), true);
  command->add_option("--max-new-tokens", sampling->sampling.max_new_tokens, "Tokens at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'048'576));
  command->add_option("--temperature", sampling->sampling.temperature, "0 takes the likeliest token always")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--top-k", sampling->sampling.top_k, "Only the k likeliest; 0: all")->capture_default_str();
  command->add_option("--top-p", sampling->sampling.top_p, "Only the likeliest that reach this probability")
      ->capture_default_str()
      ->check(CLI::Range(1e-9, 1.0));
  command->add_option("--min-p", sampling->sampling.min_p, "Only those this likely relative to the likeliest")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--seed", sampling->seed, "Every line draws from its own stream of it")->capture_default_str();
  command->add_option("--batch", sampling->batch, "Lines generated together")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command->footer(
      "Reads {\"prompt\"}, {\"prompt_ids\"} or {\"messages\"} a line; writes {\"text\", \"ids\", \"logprobs\", "
      "\"finish_reason\"}.\n"
      "Example:\n  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}' | kgrpo-model generate "
      "models/qwen2-0.5b-instruct --seed 1");
  command->callback([=, &globals] { *action = [=, &globals] { return Generate(globals, *options, *sampling); }; });
}

}  // namespace kgrpo::cli
