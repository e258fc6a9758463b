// `kgrpo-model score MODEL_DIR`: log-probabilities of given completions by a policy plugin, JSON lines in and out.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/session.h"
#include "model/command.h"
#include "model/model_input.h"

namespace kgrpo::cli {
namespace {

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
      if (item.prompt.empty()) item.prompt = policy->EncodePrompt(item.prompt_text);
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
      // One sequence is invalid: try each, so that the error names its line.
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

}  // namespace

void AddScoreCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  auto temperature = std::make_shared<double>(1.0);
  CLI::App* command = app.add_subcommand("score", "Log-probabilities of given completions");
  AddModelOptions(command, options.get(), true);
  command->add_option("--temperature", *temperature, "Of logits / temperature")
      ->capture_default_str()
      ->check(CLI::Range(1e-9, 100.0));
  command->footer(
      "Reads {\"prompt_ids\", \"completion_ids\"} or {\"prompt\", \"completion\"} a line; writes {\"logprobs\"}, one a "
      "token.\n"
      "Example:\n  echo '{\"prompt\": \"1, 2,\", \"completion\": \" 3\"}' | kgrpo-model score "
      "models/qwen2-0.5b-instruct --dtype fp32");
  command->callback([=, &globals] { *action = [=, &globals] { return Score(globals, *options, *temperature); }; });
}

}  // namespace kgrpo::cli
