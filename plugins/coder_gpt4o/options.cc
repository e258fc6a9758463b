#include "coder_gpt4o/options.h"

#include "coder_gpt4o/options_wire.h"
#include "coder_gpt4o/prompt.h"
#include "coder_gpt4o/recording.h"
#include "coder_gpt4o/secrets.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace kgrpo::coder_gpt4o {
namespace {

using Json = nlohmann::json;

// True if a mustache tag of the template prints the variable: {{name}}, {{{name}}} or {{& name}}.
bool Mentions(std::string_view text, std::string_view variable) {
  for (size_t at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at)) {
    at += 2;
    const size_t begin = text.find_first_not_of("{& \t\n", at);
    if (begin == std::string_view::npos) return false;
    if (!text.substr(begin).starts_with(variable)) continue;
    const size_t end = text.find_first_not_of(" \t\n", begin + variable.size());
    if (end != std::string_view::npos && text[end] == '}') return true;
  }
  return false;
}

class OptionsReader {
 public:
  OptionsReader(const Json& json, const Environment& environment, uint32_t ranks)
      : json_(json), environment_(environment) {
    options_.ranks = ranks;
  }

  CoderOptions Read() {
    RefuseKeys(json_, environment_, mistakes_);
    // Thrown before the other checks, whose messages would repeat a key.
    mistakes_.ThrowIfAny();
    ReadRequest();
    ReadPrompt();
    ReadMoney();
    ReadModes();
    ReadWire(json_, environment_, options_, mistakes_);
    mistakes_.ThrowIfAny();
    return std::move(options_);
  }

 private:
  void ReadRequest() {
    options_.model = json_.at("model").get<std::string>();
    if (const Json& temperature = json_.at("temperature"); !temperature.is_null())
      options_.temperature = temperature.get<double>();
    options_.max_tokens = json_.at("max_tokens").get<uint64_t>();
    options_.max_tokens_field = json_.at("max_tokens_field").get<std::string>();
    if (options_.max_tokens_field == "auto")
      options_.max_tokens_field = IsReasoningModel(options_.model) ? "max_completion_tokens" : "max_tokens";
    if (const Json& seed = json_.at("seed"); seed.is_number()) {
      options_.seed = seed.get<int64_t>();
    } else if (seed.is_string()) {
      options_.seed_of_sample = seed == "sample";
      if (!options_.seed_of_sample) mistakes_.Add("seed", "expected an integer, \"sample\" or null");
    }
    options_.continuations = json_.at("continuations").get<uint32_t>();
    options_.extra_body = json_.at("extra_body");
    constexpr std::array<std::string_view, 9> kOurs = {
        "model", "messages", "temperature",    "max_tokens", "max_completion_tokens",
        "seed",  "stream",   "stream_options", "n"};
    for (const auto& [key, value] : options_.extra_body.items()) {
      if (key == "n") {
        mistakes_.Add("extra_body", "n: one answer is read of each request; more would be paid for and thrown away");
      } else if (std::find(kOurs.begin(), kOurs.end(), key) != kOurs.end()) {
        mistakes_.Add("extra_body",
                      key + " is the plugin's own: " +
                          (key == "messages" ? "write prompt.system and prompt.user" : "use the option of that name"));
      }
    }
    for (const std::string& place : SecretsIn(options_.extra_body))
      mistakes_.Add("extra_body", place + " looks like a place for a key: keys stand in no file; see api_key_env");
  }

  void ReadPrompt() {
    const Json& prompt = json_.at("prompt");
    options_.system_template = TextOr(prompt, "system", kDefaultSystem);
    options_.user_template = TextOr(prompt, "user", kDefaultUser);
    options_.diagnosis_bytes = prompt.at("diagnosis_limit").get<size_t>();
    for (const auto& [name, text] :
         {std::pair{"prompt.system", &options_.system_template}, std::pair{"prompt.user", &options_.user_template}}) {
      for (const std::string& mistake : CheckPrompt(*text)) mistakes_.Add(name, mistake);
    }
    for (const char* variable : {"code_b", "suggestion"}) {
      if (Mentions(options_.system_template, variable) || Mentions(options_.user_template, variable)) continue;
      if (options_.user_template.empty()) continue;
      mistakes_.Add("prompt.user",
                    std::string("it mentions {{") + variable + "}} nowhere, and prompt.system neither: the " +
                        "model would not know " +
                        (variable == std::string("code_b") ? "the kernel to improve" : "what to do with it"));
    }
    if (options_.user_template.empty())
      mistakes_.Add("prompt.user", "it is empty: the model would not know what to do");
  }

  void ReadMoney() {
    const Json& prices = json_.at("prices");
    if (const auto price = prices.find(options_.model); price != prices.end()) {
      options_.price = {price->at("prompt").get<double>(), price->at("completion").get<double>()};
      options_.price_known = true;
    }
    if (const Json& limit = json_.at("max_cost"); !limit.is_null()) {
      options_.max_cost = limit.get<double>() / options_.ranks;
      const double answer = options_.price.Of(0, options_.max_tokens);
      const bool pays = json_.at("mode") != "replay";
      if (pays && options_.price_known && answer > *options_.max_cost) {
        mistakes_.Add("max_cost", (options_.ranks == 1 ? "it" : "a rank's equal share of it") +
                                      std::string(" has room for no call: an answer of max_tokens (") +
                                      std::to_string(options_.max_tokens) + ") alone can cost " + Dollars(answer) +
                                      "; raise it, or lower max_tokens");
      } else if (pays && !options_.price_known) {
        mistakes_.Add("max_cost", "the price of " + options_.model +
                                      " is not known, so its cost cannot be limited: add prices: {" + options_.model +
                                      ": {prompt: ..., completion: ...}}, in US dollars a million tokens");
      }
    }
  }

  void ReadModes() {
    const std::string mode = json_.at("mode").get<std::string>();
    options_.mode = mode == "replay" ? Mode::kReplay : mode == "cache" ? Mode::kCache : Mode::kLive;
    options_.recording = TextOr(json_, "recording", "");
    options_.record = json_.at("record").get<bool>();
    if (options_.mode == Mode::kReplay && options_.recording.empty())
      mistakes_.Add("recording", "mode replay needs it: a recording's file, or the folder of the run that made it");
    if (options_.mode == Mode::kLive && !options_.recording.empty())
      mistakes_.Add("recording", "mode live reads none: choose mode replay or cache, or leave recording out");
    if (options_.mode == Mode::kReplay && !options_.recording.empty() &&
        !std::filesystem::exists(RecordingFile(options_.recording)))
      mistakes_.Add("recording", "there is no recording at " + RecordingFile(options_.recording).string());
    if (options_.mode == Mode::kCache && !options_.recording.empty()) RefuseARunsRecording();
  }

  // A run's recording cannot be a cache: entries added by this run would count as the other run's own.
  void RefuseARunsRecording() {
    namespace fs = std::filesystem;
    const fs::path file = RecordingFile(options_.recording).lexically_normal();
    if (file.parent_path().filename() != "coder" || file.parent_path().parent_path().filename() != "artifacts") return;
    mistakes_.Add("recording",
                  file.string() +
                      " is the recording of a run, and mode cache adds to its file: name a file of its own (a "
                      "copy of that one, to begin with), or choose mode replay");
  }

  const Json& json_;
  const Environment& environment_;
  CoderOptions options_;
  OptionMistakes mistakes_;
};

// Formats a price as it would stand in a file: "10", "0.15".
std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

std::string PriceWarning(const CoderOptions& options) {
  constexpr double kSuspicious = 0.01;  // US dollars a million tokens; no service is this cheap
  const double price = options.price.completion;
  if (!options.price_known || options.mode == Mode::kReplay || price > kSuspicious) return "";
  if (price <= 0) {
    if (!options.max_cost) return "";
    return "prices: completions of " + options.model + " cost nothing by them, so max_cost has no effect";
  }
  // The price is taken for that of a thousand tokens if this gives a plausible price, otherwise for that of one token.
  constexpr double kLeast = 0.1;
  const bool of_thousand = price * 1e3 >= kLeast;
  return "prices: they are US dollars a million tokens, and " + Number(price) + " for the completions of " +
         options.model + " would make an answer of " + std::to_string(options.max_tokens) + " tokens cost " +
         Dollars(options.price.Of(0, options.max_tokens)) + "; if it is the price of " +
         (of_thousand ? "a thousand tokens, write " : "one token, write ") + Number(price * (of_thousand ? 1e3 : 1e6)) +
         (options.max_cost ? ": max_cost limits nothing otherwise" : "");
}

CoderOptions ReadOptions(std::string_view text, const Environment& environment, uint32_t ranks) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw Error(KGRPO_ERROR_INVALID, "the options are no JSON object");
  try {
    return OptionsReader(json, environment, ranks).Read();
  } catch (const Json::exception&) {  // its message may repeat a value
    throw Error(KGRPO_ERROR_INVALID,
                "an option is missing or of the wrong kind: they must satisfy the schema, defaults filled in");
  }
}

}  // namespace kgrpo::coder_gpt4o
