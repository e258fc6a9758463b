#include "coder_gpt4o/options.h"

#include "coder_gpt4o/prompt.h"
#include "coder_gpt4o/recording.h"
#include "coder_gpt4o/secrets.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <vector>

namespace kgrpo::coder_gpt4o {
namespace {

using Json = nlohmann::json;

bool IsVariableName(const std::string& name) {
  if (name.empty() || name.size() > 64 || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
           std::isupper(static_cast<unsigned char>(c)) != 0;
  });
}

std::string TextOr(const Json& json, const char* key, const std::string& otherwise) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? otherwise : found->get<std::string>();
}

bool IsReasoningModel(const std::string& model) {
  const bool o_series = model.size() > 1 && model[0] == 'o' && std::isdigit(static_cast<unsigned char>(model[1])) != 0;
  return o_series || model.starts_with("gpt-5");
}

// Whether a mustache tag of the template shows the variable: {{name}}, {{{name}}} or {{& name}}.
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

std::string WithoutBlanksAtTheEnd(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

class OptionsReader {
 public:
  OptionsReader(const Json& json, const Environment& environment) : json_(json), environment_(environment) {}

  CoderOptions Read() {
    RefuseKeys();
    // Alone: the others' messages would repeat a key.
    if (!mistakes_.empty()) throw Error(KGRPO_ERROR_INVALID, mistakes_);
    ReadRequest();
    ReadPrompt();
    ReadMoney();
    ReadModes();
    ReadWire();
    if (!mistakes_.empty()) throw Error(KGRPO_ERROR_INVALID, mistakes_);
    return std::move(options_);
  }

 private:
  void Mistake(const std::string& option, const std::string& message) {
    mistakes_ += (mistakes_.empty() ? "" : "\n") + ("options." + option + ": " + message);
  }

  void RefuseKeys() {
    Json others = json_;
    others.erase("api_key_env");  // has a message of its own
    const Json& name = json_.at("api_key_env");
    const std::string variable = name.is_string() ? name.get<std::string>() : "";
    const char* key = IsVariableName(variable) ? environment_(variable) : nullptr;
    for (const std::string& place : KeysIn(others, key == nullptr ? "" : WithoutBlanksAtTheEnd(key))) {
      Mistake(
          place,
          (key == nullptr ? "it holds" : "it holds the value of " + variable + ", or") +
              std::string(
                  " what looks like a key (not repeated here): a key belongs in the variable that api_key_env names; "
                  "one that stood in a file should be revoked"));
    }
  }

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
      if (!options_.seed_of_sample) Mistake("seed", "expected an integer, \"sample\" or null");
    }
    options_.continuations = json_.at("continuations").get<uint32_t>();
    options_.extra_body = json_.at("extra_body");
    constexpr std::array<std::string_view, 9> kOurs = {
        "model", "messages", "temperature",    "max_tokens", "max_completion_tokens",
        "seed",  "stream",   "stream_options", "n"};
    for (const auto& [key, value] : options_.extra_body.items()) {
      if (key == "n") {
        Mistake("extra_body", "n: one answer is read of each request; more would be paid for and thrown away");
      } else if (std::find(kOurs.begin(), kOurs.end(), key) != kOurs.end()) {
        Mistake("extra_body",
                key + " is the plugin's own: " +
                    (key == "messages" ? "write prompt.system and prompt.user" : "use the option of that name"));
      }
    }
    for (const std::string& place : SecretsIn(options_.extra_body))
      Mistake("extra_body", place + " looks like a place for a key: keys stand in no file; see api_key_env");
  }

  void ReadPrompt() {
    const Json& prompt = json_.at("prompt");
    options_.system_template = TextOr(prompt, "system", kDefaultSystem);
    options_.user_template = TextOr(prompt, "user", kDefaultUser);
    options_.diagnosis_bytes = prompt.at("diagnosis_limit").get<size_t>();
    for (const auto& [name, text] :
         {std::pair{"prompt.system", &options_.system_template}, std::pair{"prompt.user", &options_.user_template}}) {
      for (const std::string& mistake : CheckPrompt(*text)) Mistake(name, mistake);
    }
    for (const char* variable : {"code_b", "suggestion"}) {
      if (Mentions(options_.system_template, variable) || Mentions(options_.user_template, variable)) continue;
      if (options_.user_template.empty()) continue;
      Mistake("prompt.user", std::string("it mentions {{") + variable + "}} nowhere, and prompt.system neither: the " +
                                 "model would not know " +
                                 (variable == std::string("code_b") ? "the kernel to improve" : "what to do with it"));
    }
    if (options_.user_template.empty()) Mistake("prompt.user", "it is empty: the model would not know what to do");
  }

  void ReadMoney() {
    const Json& prices = json_.at("prices");
    if (const auto price = prices.find(options_.model); price != prices.end()) {
      options_.price = {price->at("prompt").get<double>(), price->at("completion").get<double>()};
      options_.price_known = true;
    }
    if (const Json& limit = json_.at("max_cost"); !limit.is_null()) {
      options_.max_cost = limit.get<double>();
      const double answer = options_.price.Of(0, options_.max_tokens);
      if (json_.at("mode") == "replay") {  // nothing is paid
      } else if (options_.price_known && answer > *options_.max_cost) {
        Mistake("max_cost", "it has room for no call: an answer of max_tokens (" + std::to_string(options_.max_tokens) +
                                ") alone can cost $" + Json(answer).dump() + "; raise it, or lower max_tokens");
      } else if (!options_.price_known) {
        Mistake("max_cost", "the price of " + options_.model +
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
      Mistake("recording", "mode replay needs it: a recording's file, or the folder of the run that made it");
    if (options_.mode == Mode::kLive && !options_.recording.empty())
      Mistake("recording", "mode live reads none: choose mode replay or cache, or leave recording out");
    if (options_.mode == Mode::kReplay && !options_.recording.empty() &&
        !std::filesystem::exists(RecordingFile(options_.recording)))
      Mistake("recording", "there is no recording at " + RecordingFile(options_.recording).string());
    if (options_.mode == Mode::kCache && !options_.recording.empty()) RefuseARunsRecording();
  }

  // What another run added to it would be taken for that run's own.
  void RefuseARunsRecording() {
    namespace fs = std::filesystem;
    const fs::path file = RecordingFile(options_.recording).lexically_normal();
    if (file.parent_path().filename() != "coder" || file.parent_path().parent_path().filename() != "artifacts") return;
    Mistake("recording", file.string() +
                             " is the recording of a run, and mode cache adds to its file: name a file of its own (a "
                             "copy of that one, to begin with), or choose mode replay");
  }

  void ReadKey() {
    const Json& name = json_.at("api_key_env");
    if (name.is_null()) return;
    const std::string variable = name.get<std::string>();
    if (!IsVariableName(variable)) {
      Mistake("api_key_env",
              "expected the name of an environment variable in capitals, such as OPENAI_API_KEY; what stands "
              "there is not repeated here, for it may be a key. A key belongs in the variable, not in a file: "
              "one that stood in a file should be revoked");
      return;
    }
    if (options_.mode == Mode::kReplay) return;  // nobody is asked
    const char* key = environment_(variable);
    const std::string value = WithoutBlanksAtTheEnd(key == nullptr ? "" : key);
    if (value.empty()) {
      Mistake("api_key_env",
              "the environment variable " + variable + (key == nullptr ? " is not set" : " is empty") +
                  ": export it with the service's key, name another one, or write null for a service that "
                  "wants none");
    }
    const bool printable =
        std::all_of(value.begin(), value.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
    if (!printable) Mistake("api_key_env", "the value of " + variable + " has blanks or control characters in it");
    options_.client.api_key = value;
  }

  void ReadHeaders() {
    ClientOptions& client = options_.client;
    client.api_key_header = json_.at("api_key_header").get<std::string>();
    for (const auto& [option, header] :
         {std::pair{"organization", "OpenAI-Organization"}, std::pair{"project", "OpenAI-Project"}}) {
      if (const std::string value = TextOr(json_, option, ""); !value.empty())
        client.headers.emplace_back(header, value);
    }
    for (const auto& [header, value] : json_.at("extra_headers").items()) {
      if (NamesSecret(header)) {
        Mistake("extra_headers", header +
                                     " is a place for a key, and keys stand in no file: put the key into a variable, "
                                     "name that by api_key_env and the header by api_key_header");
      } else if (!value.is_string()) {
        Mistake("extra_headers", header + ": expected text");
      } else {
        client.headers.emplace_back(header, value.get<std::string>());
      }
    }
  }

  void ReadWire() {
    ReadKey();
    ReadHeaders();
    ClientOptions& client = options_.client;
    client.base_url = json_.at("base_url").get<std::string>();
    if (HasUser(client.base_url)) Mistake("base_url", "it holds a user or a password; keys go by api_key_env");
    for (const std::string& name : SecretsInQuery(client.base_url)) {
      Mistake("base_url", "its query has a parameter " + name +
                              ", which looks like a place for a key: keys stand in no file; see api_key_env and "
                              "api_key_header");
    }
    if (!client.api_key.empty() && !json_.at("allow_plain_http").get<bool>() && IsReadableOnTheWay(client.base_url)) {
      Mistake("base_url",
              "the key would go to another machine over http, where all on the way can read it: use https, or write "
              "allow_plain_http: true where the network is your own (api_key_env: null for a service that wants no "
              "key)");
    }
    if (const Json& proxy = json_.at("proxy"); !proxy.is_null()) {
      client.proxy = proxy.get<std::string>();
      if (HasUser(*client.proxy))
        Mistake("proxy",
                "it holds a user or a password: set https_proxy in the environment instead, and leave proxy out");
    }
    client.ca_file = TextOr(json_, "ca_file", "");
    client.ca_directory = TextOr(json_, "ca_directory", "");
    client.stream = json_.at("stream").get<bool>();
    client.stream_usage = json_.at("stream_usage").get<bool>();
    client.max_concurrency = json_.at("max_concurrency").get<uint32_t>();
    client.requests_per_minute = json_.at("requests_per_minute").get<double>();
    client.tokens_per_minute = json_.at("tokens_per_minute").get<double>();
    client.connect_timeout_seconds = json_.at("connect_timeout_seconds").get<double>();
    client.idle_timeout_seconds = json_.at("idle_timeout_seconds").get<double>();
    client.total_timeout_seconds = json_.at("total_timeout_seconds").get<double>();
    if (const Json& response = json_.at("response_timeout_seconds"); !response.is_null()) {
      client.response_timeout_seconds = response.get<double>();
    } else if (IsReasoningModel(options_.model)) {
      client.response_timeout_seconds = client.total_timeout_seconds;  // silent while they think
    }
    client.max_attempts = json_.at("max_attempts").get<uint32_t>();
    client.backoff_base_seconds = json_.at("backoff_base_seconds").get<double>();
    client.backoff_cap_seconds = json_.at("backoff_cap_seconds").get<double>();
    client.retry_budget_ratio = json_.at("retry_budget_ratio").get<double>();
    client.retry_budget_per_second = json_.at("retry_budget_per_second").get<double>();
    client.retry_budget_reserve = json_.at("retry_budget_reserve").get<double>();
    client.breaker_failures = json_.at("breaker_failures").get<uint32_t>();
    client.breaker_pause_seconds = json_.at("breaker_pause_seconds").get<double>();
    client.breaker_pause_cap_seconds = json_.at("breaker_pause_cap_seconds").get<double>();
    client.max_outage_seconds = json_.at("max_outage_seconds").get<double>();
    client.max_first_outage_seconds = json_.at("max_first_outage_seconds").get<double>();
    client.max_answer_bytes = json_.at("max_answer_bytes").get<uint64_t>();
  }

  const Json& json_;
  const Environment& environment_;
  CoderOptions options_;
  std::string mistakes_;
};

}  // namespace

CoderOptions ReadOptions(std::string_view text, const Environment& environment) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw Error(KGRPO_ERROR_INVALID, "the options are no JSON object");
  try {
    return OptionsReader(json, environment).Read();
  } catch (const Json::exception&) {  // its message may repeat a value
    throw Error(KGRPO_ERROR_INVALID,
                "an option is missing or of the wrong kind: they must satisfy the schema, defaults filled in");
  }
}

}  // namespace kgrpo::coder_gpt4o
