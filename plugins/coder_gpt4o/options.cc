#include "coder_gpt4o/options.h"

#include "coder_gpt4o/client/secret_names.h"
#include "coder_gpt4o/recording.h"
#include "coder_shared/text.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

namespace kgrpo::coder_gpt4o {

using coder_shared::Lower;

// from_json of the options that are read unchanged.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClientOptions, base_url, allow_plain_http, api_key_header, max_concurrency, stream,
                                   total_timeout_seconds, max_attempts, max_outage_seconds)

namespace {

using Json = nlohmann::json;

// An option's text; empty if it is null or absent.
std::string TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? "" : found->get<std::string>();
}

// True if the model reasons before it answers, judged by its name, with or without a gateway's "openai/".
bool IsReasoningModel(std::string_view model) {
  model.remove_prefix(model.rfind('/') + 1);
  const bool o_series = model.size() > 1 && model[0] == 'o' && std::isdigit(static_cast<unsigned char>(model[1])) != 0;
  return o_series || model.starts_with("gpt-5");
}

bool IsVariableName(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == std::string::npos;
}

// Why the text is not a key, such as quotes or a header's name copied with it. Empty: it may be one.
std::string ObjectionToKey(const std::string& variable, std::string_view value) {
  const auto has = [&](auto which) { return std::any_of(value.begin(), value.end(), which); };
  const std::string alone = "; set it to the key alone";
  const std::string lower = Lower(value);
  for (const std::string_view scheme : {"bearer", "authorization:"}) {
    if (lower.starts_with(scheme) && lower.size() > scheme.size() &&
        !std::isalnum(static_cast<unsigned char>(lower[scheme.size()])))
      return "begins with the header's own word, which is added to the key" + alone;
  }
  if (value.starts_with(variable + "=")) return "begins with the variable's own name" + alone;
  if (has([](unsigned char c) { return c <= 0x20 || c >= 0x7f || c == '"' || c == '\'' || c == '`'; }))
    return "contains blanks, quotes, control characters or characters that are not ASCII" + alone;
  if (value.find("...") != std::string_view::npos || value.find_first_of("<>*") != std::string_view::npos)
    return "is an example's or a shortened one, not a key";
  return "";
}

// True if the value holds a text. Numbers, such as token ids, are no keys.
bool HoldsText(const Json& value) {
  if (value.is_string()) return true;
  return value.is_structured() && std::any_of(value.begin(), value.end(), HoldsText);
}

// Adds the paths of the texts in a body whose key names a secret, at any depth: "a.b.api_key".
void FindSecrets(const Json& value, const std::string& path, std::vector<std::string>& found) {
  if (value.is_array()) {
    for (const Json& element : value) FindSecrets(element, path, found);
  }
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.items()) {
    const std::string where = path.empty() ? key : path + "." + key;
    if (NamesSecret(key) && HoldsText(inner)) {
      found.push_back(where);
    } else {
      FindSecrets(inner, where, found);
    }
  }
}

class OptionsReader {
 public:
  OptionsReader(const Json& json, const Environment& environment, uint32_t ranks)
      : json_(json), environment_(environment) {
    options_.ranks = ranks;
  }

  CoderOptions Read() {
    ReadRequest();
    ReadPrompt();
    ReadMoney();
    ReadModes();
    ReadConnection();
    ReadKey();
    ReadHeaders();
    ThrowIfAny();
    return std::move(options_);
  }

 private:
  // Collects errors, one a line, in the form that the host expects: "options.seed: expected an integer".
  void Refuse(const std::string& option, const std::string& message) {
    errors_ += (errors_.empty() ? "" : "\n") + ("options." + option + ": " + message);
  }
  void ThrowIfAny() const {
    if (!errors_.empty()) throw Error(KGRPO_ERROR_INVALID, errors_);
  }

  // The variable's value without blanks at its end; nullopt if it is not set.
  std::optional<std::string> Variable(const std::string& name) const {
    const char* value = environment_(name);
    if (value == nullptr) return std::nullopt;
    std::string text = value;
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
    return text;
  }

  void ReadRequest() {
    options_.model = json_.at("model").get<std::string>();
    if (const Json& temperature = json_.at("temperature"); !temperature.is_null())
      options_.temperature = temperature.get<double>();
    options_.max_tokens = json_.at("max_tokens").get<uint64_t>();
    options_.max_tokens_field = IsReasoningModel(options_.model) ? "max_completion_tokens" : "max_tokens";
    if (const Json& seed = json_.at("seed"); seed.is_number()) {
      options_.seed = seed.get<int64_t>();
    } else if (seed.is_string()) {
      options_.seed_of_sample = seed == "sample";
      if (!options_.seed_of_sample) Refuse("seed", "expected an integer, \"sample\" or null");
    }
    options_.extra_body = json_.at("extra_body");
    // In place of max_tokens, for a reasoning model that has another name.
    if (const auto most = options_.extra_body.find("max_completion_tokens"); most != options_.extra_body.end()) {
      if (!most->is_number_unsigned() || *most == 0)
        Refuse("extra_body", "max_completion_tokens: expected a number");
      else
        options_.max_tokens = most->get<uint64_t>();
      options_.max_tokens_field = "max_completion_tokens";
    }
    for (const std::string key :
         {"model", "messages", "temperature", "max_tokens", "seed", "stream", "stream_options", "n"}) {
      if (!options_.extra_body.contains(key)) continue;
      Refuse("extra_body", key == "n" ? "n: one answer is read of each request; more would be paid for and thrown away"
                                      : key + " is the plugin's own: " +
                                            (key == "messages" ? "write prompt.system and prompt.user"
                                                               : "use the option of that name"));
    }
    std::vector<std::string> secrets;
    FindSecrets(options_.extra_body, "", secrets);
    for (const std::string& place : secrets)
      Refuse("extra_body", place + " looks like a place for a key: keys stand in no file; see api_key_env");
  }

  void ReadPrompt() {
    options_.prompt = coder_shared::ReadPromptOptions(
        json_.at("prompt"), [this](const std::string& option, const std::string& error) { Refuse(option, error); });
  }

  void ReadMoney() {
    const Json& prices = json_.at("prices");
    if (const auto price = prices.find(options_.model); price != prices.end()) {
      options_.price = {price->at("prompt").get<double>(), price->at("completion").get<double>()};
      if (price->contains("cached_prompt")) options_.price.cached_prompt = price->at("cached_prompt").get<double>();
      options_.price_known = true;
    }
    if (const Json& limit = json_.at("max_cost"); !limit.is_null()) {
      options_.max_cost = limit.get<double>() / options_.ranks;
      const double answer = options_.price.Of(0, options_.max_tokens);
      const bool pays = json_.at("mode") != "replay";
      if (pays && options_.price_known && answer > *options_.max_cost) {
        Refuse("max_cost", (options_.ranks == 1 ? "it" : "a rank's equal share of it") +
                               std::string(" has room for no call: an answer of max_tokens (") +
                               std::to_string(options_.max_tokens) + ") alone can cost " + Dollars(answer) +
                               "; raise it, or lower max_tokens");
      } else if (pays && !options_.price_known) {
        Refuse("max_cost", "the price of " + options_.model +
                               " is not known, so its cost cannot be limited: add prices: {" + options_.model +
                               ": {prompt: ..., completion: ...}}, in US dollars a million tokens");
      }
    }
  }

  void ReadModes() {
    const std::string mode = json_.at("mode").get<std::string>();
    options_.mode = mode == "replay" ? Mode::kReplay : mode == "cache" ? Mode::kCache : Mode::kLive;
    options_.recording = TextOf(json_, "recording");
    if (options_.mode == Mode::kReplay && options_.recording.empty())
      Refuse("recording", "mode replay needs it: a recording's file, or the folder of the run that made it");
    if (options_.mode == Mode::kLive && !options_.recording.empty())
      Refuse("recording", "mode live reads none: choose mode replay or cache, or leave recording out");
    if (options_.mode == Mode::kReplay && !options_.recording.empty() &&
        !std::filesystem::exists(RecordingFile(options_.recording)))
      Refuse("recording", "there is no recording at " + RecordingFile(options_.recording).string());
    if (options_.mode == Mode::kCache && !options_.recording.empty()) RefuseARunsRecording();
  }

  // A run's recording cannot be a cache: entries added by this run would count as the other run's own.
  void RefuseARunsRecording() {
    namespace fs = std::filesystem;
    const fs::path file = RecordingFile(options_.recording).lexically_normal();
    if (file.parent_path().filename() != "coder" || file.parent_path().parent_path().filename() != "artifacts") return;
    Refuse("recording", file.string() +
                            " is the recording of a run, and mode cache adds to its file: name a file of its own (a "
                            "copy of that one, to begin with), or choose mode replay");
  }

  void ReadConnection() {
    ClientOptions& client = options_.client;
    from_json(json_, client);
    client.max_first_outage_seconds = std::min(client.max_first_outage_seconds, client.max_outage_seconds);
    // They send nothing while reasoning.
    if (IsReasoningModel(options_.model)) client.response_timeout_seconds = client.total_timeout_seconds;
  }

  // An option with a variable's name instead of its value. Returns the value, "" if there is none.
  std::string ReadVariable(const std::string& option, const std::string& variable) {
    if (!IsVariableName(variable)) {
      Refuse(
          option,
          "expected the name of an environment variable in capitals, such as OPENAI_API_KEY; what stands there is "
          "not repeated here, for it may be a key. A key belongs in the variable, not in a file: one that stood in a "
          "file should be revoked");
      return "";
    }
    if (options_.mode == Mode::kReplay) return "";  // no service is used
    const std::optional<std::string> value = Variable(variable);
    if (value.value_or("").empty()) {
      Refuse(option, "the environment variable " + variable + (value ? " is empty" : " is not set") +
                         ": export it with the service's key" +
                         (option == "api_key_env" ? ", name another one, or write null for a service that wants none"
                                                  : ", or name another one"));
      return "";
    }
    if (const std::string objection = ObjectionToKey(variable, *value); !objection.empty())
      Refuse(option, "the value of " + variable + " " + objection);
    return *value;
  }

  void ReadKey() {
    ClientOptions& client = options_.client;
    client.api_key_command = TextOf(json_, "api_key_command");
    if (client.api_key_command.empty() && !json_.at("api_key_env").is_null())
      client.api_key = ReadVariable("api_key_env", json_.at("api_key_env").get<std::string>());
  }

  void ReadHeaders() {
    ClientOptions& client = options_.client;
    for (const auto& [header, value] : json_.at("extra_headers").items()) {
      const bool of_variable =
          value.is_object() && value.size() == 1 && value.contains("env") && value["env"].is_string();
      if (of_variable) {
        client.secrets.push_back(ReadVariable("extra_headers." + header, value["env"].get<std::string>()));
        client.headers.emplace_back(header, client.secrets.back());
      } else if (NamesSecret(header)) {
        Refuse("extra_headers", header +
                                    " is a place for a key, and keys stand in no file: put the key into a variable and "
                                    "name that by " +
                                    header + ": {env: VARIABLE}");
      } else if (!value.is_string()) {
        Refuse("extra_headers", header + ": expected text, or {env: VARIABLE}");
      } else {
        client.headers.emplace_back(header, value.get<std::string>());
      }
    }
  }

  const Json& json_;
  const Environment& environment_;
  CoderOptions options_;
  std::string errors_;
};

}  // namespace

std::string PriceWarning(const CoderOptions& options) {
  constexpr double kSuspicious = 0.01;  // US dollars per million tokens; no service is this cheap
  const double price = options.price.completion;
  if (!options.price_known || options.mode == Mode::kReplay || price > kSuspicious) return "";
  if (price > 0)
    return "prices: they are US dollars per million tokens, and by them an answer of " +
           std::to_string(options.max_tokens) + " tokens of " + options.model + " costs " +
           Dollars(options.price.Of(0, options.max_tokens)) + "; is it the price of a thousand tokens, or of one?";
  return options.max_cost
             ? "prices: completions of " + options.model + " cost nothing by them, so max_cost has no effect"
             : "";
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
