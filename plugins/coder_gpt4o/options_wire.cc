#include "coder_gpt4o/options_wire.h"

#include "coder_gpt4o/client/ascii.h"
#include "coder_gpt4o/secrets.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace kgrpo::coder_gpt4o {

// from_json of the options that are read unchanged. Options that may be null, or depend on another option, are read
// below.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClientOptions, base_url, api_key_header, max_concurrency, requests_per_minute,
                                   tokens_per_minute, stream, stream_usage, connect_timeout_seconds,
                                   idle_timeout_seconds, total_timeout_seconds, max_answer_bytes, max_attempts,
                                   backoff_base_seconds, backoff_cap_seconds, retry_budget_ratio,
                                   retry_budget_per_second, retry_budget_reserve, breaker_failures,
                                   breaker_pause_seconds, breaker_pause_cap_seconds, max_outage_seconds,
                                   max_first_outage_seconds)

namespace {

using Json = nlohmann::json;

bool IsVariableName(const std::string& name) {
  if (name.empty() || name.size() > 64 || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
           std::isupper(static_cast<unsigned char>(c)) != 0;
  });
}

std::string WithoutBlanksAtTheEnd(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

// The reason why the variable's value is no key, such as quotes or a header's name copied with it. Empty: it may be
// one.
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
  if (has([](char c) { return c == '"' || c == '\'' || c == '`'; })) return "has quotes in it" + alone;
  if (has([](unsigned char c) { return c >= 0x80; }))
    return "has characters in it that are not ASCII, as a dash or a quote that a word processor made" + alone;
  if (has([](unsigned char c) { return c <= 0x20 || c == 0x7f; }))
    return "has blanks or control characters in it" + alone;
  if (value.find("...") != std::string_view::npos || value.find_first_of("<>*") != std::string_view::npos)
    return "is an example's or a shortened one, not a key";
  return "";
}

void ReadKey(const Json& json, const Environment& environment, CoderOptions& options, OptionMistakes& mistakes) {
  const Json& name = json.at("api_key_env");
  if (name.is_null()) return;
  const std::string variable = name.get<std::string>();
  if (!IsVariableName(variable)) {
    mistakes.Add("api_key_env",
                 "expected the name of an environment variable in capitals, such as OPENAI_API_KEY; what stands "
                 "there is not repeated here, for it may be a key. A key belongs in the variable, not in a file: "
                 "one that stood in a file should be revoked");
    return;
  }
  if (options.mode == Mode::kReplay) return;  // no service is used
  const char* key = environment(variable);
  const std::string value = WithoutBlanksAtTheEnd(key == nullptr ? "" : key);
  if (value.empty()) {
    mistakes.Add("api_key_env",
                 "the environment variable " + variable + (key == nullptr ? " is not set" : " is empty") +
                     ": export it with the service's key, name another one, or write null for a service that "
                     "wants none");
  }
  if (const std::string objection = ObjectionToKey(variable, value); !objection.empty())
    mistakes.Add("api_key_env", "the value of " + variable + " " + objection);
  options.client.api_key = value;
}

void ReadHeaders(const Json& json, ClientOptions& client, OptionMistakes& mistakes) {
  for (const auto& [option, header] :
       {std::pair{"organization", "OpenAI-Organization"}, std::pair{"project", "OpenAI-Project"}}) {
    if (const std::string value = TextOr(json, option, ""); !value.empty()) client.headers.emplace_back(header, value);
  }
  for (const auto& [header, value] : json.at("extra_headers").items()) {
    if (NamesSecret(header)) {
      mistakes.Add("extra_headers",
                   header +
                       " is a place for a key, and keys stand in no file: put the key into a variable, "
                       "name that by api_key_env and the header by api_key_header");
    } else if (!value.is_string()) {
      mistakes.Add("extra_headers", header + ": expected text");
    } else {
      client.headers.emplace_back(header, value.get<std::string>());
    }
  }
}

}  // namespace

void OptionMistakes::Add(const std::string& option, const std::string& message) {
  text_ += (text_.empty() ? "" : "\n") + ("options." + option + ": " + message);
}

void OptionMistakes::ThrowIfAny() const {
  if (!text_.empty()) throw Error(KGRPO_ERROR_INVALID, text_);
}

std::string TextOr(const Json& json, const char* key, const std::string& otherwise) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? otherwise : found->get<std::string>();
}

bool IsReasoningModel(const std::string& model) {
  const bool o_series = model.size() > 1 && model[0] == 'o' && std::isdigit(static_cast<unsigned char>(model[1])) != 0;
  return o_series || model.starts_with("gpt-5");
}

void RefuseKeys(const Json& json, const Environment& environment, OptionMistakes& mistakes) {
  Json others = json;
  others.erase("api_key_env");  // has a message of its own
  const Json& name = json.at("api_key_env");
  const std::string variable = name.is_string() ? name.get<std::string>() : "";
  const char* key = IsVariableName(variable) ? environment(variable) : nullptr;
  for (const std::string& place : KeysIn(others, key == nullptr ? "" : WithoutBlanksAtTheEnd(key))) {
    mistakes.Add(
        place,
        (key == nullptr ? "it holds" : "it holds the value of " + variable + ", or") +
            std::string(
                " what looks like a key (not repeated here): a key belongs in the variable that api_key_env names; "
                "one that stood in a file should be revoked"));
  }
}

void ReadWire(const Json& json, const Environment& environment, CoderOptions& options, OptionMistakes& mistakes) {
  ClientOptions& client = options.client;
  from_json(json, client);
  ReadKey(json, environment, options, mistakes);
  ReadHeaders(json, client, mistakes);
  if (HasUser(client.base_url)) mistakes.Add("base_url", "it holds a user or a password; keys go by api_key_env");
  for (const std::string& name : SecretsInQuery(client.base_url)) {
    mistakes.Add("base_url", "its query has a parameter " + name +
                                 ", which looks like a place for a key: keys stand in no file; see api_key_env and "
                                 "api_key_header");
  }
  if (!client.api_key.empty() && !json.at("allow_plain_http").get<bool>() && IsReadableOnTheWay(client.base_url)) {
    mistakes.Add("base_url",
                 "the key would go to another machine over http, where all on the way can read it: use https, or write "
                 "allow_plain_http: true where the network is your own (api_key_env: null for a service that wants no "
                 "key)");
  }
  if (const Json& proxy = json.at("proxy"); !proxy.is_null()) {
    client.proxy = proxy.get<std::string>();
    if (HasUser(*client.proxy))
      mistakes.Add("proxy",
                   "it holds a user or a password: set https_proxy in the environment instead, and leave proxy out");
  }
  client.ca_file = TextOr(json, "ca_file", "");
  client.ca_directory = TextOr(json, "ca_directory", "");
  if (const Json& response = json.at("response_timeout_seconds"); !response.is_null()) {
    client.response_timeout_seconds = response.get<double>();
  } else if (IsReasoningModel(options.model)) {
    client.response_timeout_seconds = client.total_timeout_seconds;  // they send nothing while reasoning
  }
}

}  // namespace kgrpo::coder_gpt4o
