#include "coder_gpt4o/client/failure.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "coder_gpt4o/client/excerpt.h"
#include "coder_shared/text.h"

namespace kgrpo::coder_gpt4o {

using coder_shared::FindAny, coder_shared::Lower;
namespace {

using Remedy = Failure::Remedy;

constexpr size_t kRequestIdBytes = 100;
constexpr int kAnyError = 0;  // every status from 400 on
constexpr int kClient = 4;    // 400 to 499

// One kind of report. A row matches if its status does, and one of its names is the error's code or type or one of its
// phrases stands in the error's text; both are in lower case, separated by "|". A row without any matches by its
// status.
struct Row {
  int status;
  Remedy remedy;
  const char* word;
  std::string_view names = "", says = "";
  const char* advice = "";  // ends the message
};

constexpr const char* kNoMoney = ". Waiting does not help: the account's budget is used up";
constexpr const char* kBadKey = ". Check the key that api_key_env names, and its permissions";
constexpr const char* kBlocked =
    ". A firewall or a proxy before the service blocks the requests: check base_url, the network and its proxies";
constexpr const char* kOption = ". Every request would be refused: ";  // AdviceOn completes it
constexpr const char* kCheckUrl = ". Check base_url: POST {base_url}/chat/completions must exist";
constexpr const char* kCheckModel = ". Check base_url and model";
constexpr const char* kTooLong =
    ". The prompt is too long for the model: shorten it (prompt.user), lower max_tokens, or give the server a longer "
    "context";
constexpr const char* kNoSystem =
    ". The model takes no system message: set prompt.system_role to user, which puts prompt.system at the beginning of "
    "the user's message, or leave prompt.system empty";

// The first match counts. What a gateway passes on has the gateway's own status and code, so that text decides first.
const Row kRows[] = {
    // No money left: OpenAI, Moonshot, Zhipu (1113), LiteLLM, one-api, SiliconFlow (30001), MiniMax (1008), DashScope.
    {kAnyError, Remedy::kFatal, "quota",
     "insufficient_quota|exceeded_current_quota_error|billing_hard_limit_reached|billing_not_active|insufficient_"
     "balance|"
     "insufficient_user_quota|budget_exceeded|1113|30001|1008|arrearage|accountoverdueerror",
     "insufficient_quota|exceeded_current_quota|balance is too low|per-day|key limit exceeded|insufficient balance|"
     "insufficient credit|used all available credits|spending limit|spending cap|any credits yet|budget has been "
     "exceeded|exceededbudget|balance is insufficient|monthly included credits|billing hard limit|weekly limit|weekly "
     "usage|weekly rate|weekly quota|session limit|session usage|monthly limit|monthly usage|monthly quota|monthly "
     "spend|limit exhausted|quota exhausted|limit will reset|quota will reset|"
     "assigned quota|free trial|trial has ended|trial has expired|trial credit|trial limit|depleted|out of credits|"
     "credit limit|credits exhausted|no credits|not enough credits|daily limit|daily quota|5-hour limit|billing cycle",
     kNoMoney},
    {402, Remedy::kFatal, "quota", "", "", kNoMoney},
    // Google reports a limit per minute in the words of OpenAI's empty account, with the time until the next request.
    {429, Remedy::kRetry, "rate_limited", "resource_exhausted", "resource_exhausted"},
    {kAnyError, Remedy::kRetry, "rate_limited", "rate_limit_exceeded|rate_limit_error",
     "retry in |try again in |retrydelay|per minute|per-min|perminute|per second|too many requests|rate limit exceeded|"
     "rate limit reached"},
    {kAnyError, Remedy::kFatal, "quota", "",
     "exceeded your current quota|usage limit|usage cap|limit resets|quota resets|resets at", kNoMoney},

    // A prompt that is too long, whatever the status: llama.cpp answers 400 or 500, gateways what they like.
    {kAnyError, Remedy::kGiveUp, "context",
     "context_length_exceeded|exceed_context_size_error|context_window_exceeded|string_above_max_length",
     "maximum context length|context length exceeded|context_length_exceeded|context window|context size|exceeds the "
     "context|exceed context|exceeds the model's|prompt is too long|input is too long|too many input tokens|reduce the "
     "length of|contextwindowexceeded",
     kTooLong},

    // A page of a firewall or of a sign-in: it says nothing of the key.
    {403, Remedy::kFatal, "blocked", "", "<!doctype html|<html", kBlocked},
    {401, Remedy::kFatal, "blocked", "", "<!doctype html|<html", kBlocked},
    {kAnyError, Remedy::kFatal, "blocked", "",
     "attention required!|you have been blocked|error code: 1020|error 1020|captcha", kBlocked},

    // A parameter that the model does not take.
    {kAnyError, Remedy::kFatal, "configuration", "unsupported_parameter|unsupported_value|unknown_parameter",
     "unsupported parameter|unsupported value|unsupported_parameter|unsupported_value|unsupportedparams|is deprecated "
     "for "
     "this model|is not supported with this model|is not supported by this model|not supported for this model|does not "
     "support parameters|does not support the parameter|unrecognized request argument|use 'max_completion_tokens'|use "
     "max_completion_tokens|only the default (1)|max_tokens is too large|max_tokens must be|max_tokens: ",
     kOption},

    // Content filters: Azure, OpenRouter, Zhipu (1301), DashScope, DeepSeek, xAI.
    {kClient, Remedy::kRefused, "",
     "content_filter|content_policy_violation|data_inspection_failed|sensitive|1301|responsibleaipolicyviolation",
     "responsibleaipolicyviolation|contentpolicyviolationerror|requires moderation|content exists risk|violates usage "
     "guidelines"},

    // A chat template without a system role, as Gemma's: vLLM answers 400, llama.cpp 500.
    {kAnyError, Remedy::kFatal, "configuration", "",
     "system role not supported|system role is not supported|only user and assistant roles|roles must "
     "alternate|developer "
     "instruction is not enabled|does not support system",
     kNoSystem},

    // A wrong key with another status: Google and LiteLLM answer 400.
    {400, Remedy::kFatal, "unauthorized", "invalid_api_key|auth_error|no_db_connection",
     "api key not valid|api_key_invalid|invalid api key|incorrect api key", kBadKey},
    {401, Remedy::kFatal, "unauthorized", "", "", kBadKey},
    {403, Remedy::kFatal, "unauthorized", "", "", kBadKey},
    {407, Remedy::kFatal, "unauthorized", "", "", ". The proxy wants a user and password"},

    {404, Remedy::kFatal, "not_found", "", "", kCheckModel},
    {kClient, Remedy::kFatal, "not_found", "model_not_found|invalid_model", "invalid model name passed", kCheckModel},
    {405, Remedy::kFatal, "configuration", "", "", kCheckUrl},
    {410, Remedy::kFatal, "configuration", "", "", kCheckUrl},
    {415, Remedy::kFatal, "configuration", "", "", kCheckUrl},
    {501, Remedy::kFatal, "configuration", "", "", kCheckUrl},
    {505, Remedy::kFatal, "configuration", "", "", kCheckUrl},

    {408, Remedy::kRetry, "timeout"},
    {409, Remedy::kRetry, "server_error"},
    {425, Remedy::kRetry, "server_error"},
    {429, Remedy::kRetry, "rate_limited"},
    {424, Remedy::kRetry, "server_error"},   // Hugging Face: the model's server failed
    {498, Remedy::kRetry, "server_error"},   // Groq: no capacity
    {499, Remedy::kRetry, "server_error"},   // the gateway closed the request
    {kClient, Remedy::kGiveUp, "rejected"},  // may be due to this prompt, for example its length
    {kAnyError, Remedy::kRetry, "server_error"},
};

bool IsOneOf(std::string_view names, const std::string& name) {
  return !name.empty() && ("|" + std::string(names) + "|").find("|" + Lower(name) + "|") != std::string::npos;
}

bool Matches(const Row& row, int status, const ServiceError& error) {
  const bool of_status = row.status == kAnyError ? status >= 400
                         : row.status == kClient ? status >= 400 && status < 500
                                                 : status == row.status;
  if (!of_status || (row.names.empty() && row.says.empty())) return of_status;
  return IsOneOf(row.names, error.code) || IsOneOf(row.names, error.type) ||
         FindAny(error.text, row.says) < error.text.size();
}

// Gateways answer 200 and put the upstream's status into an error object.
int StatusOfError(const ResponseHeaders& headers, const ServiceError& error) {
  if (headers.status < 200 || headers.status >= 300) return headers.status;
  int code = 0;
  const char* end = error.code.data() + error.code.size();
  if (std::from_chars(error.code.data(), end, code).ptr == end && code >= 400 && code < 600) return code;
  const auto one_of = [&](std::string_view names) { return IsOneOf(names, error.code) || IsOneOf(names, error.type); };
  if (one_of("rate_limit_exceeded|rate_limit_error|requests|tokens")) return 429;
  if (one_of("invalid_request_error|sensitive|content_filter")) return 400;
  if (one_of("insufficient_system_resource|engine_overloaded_error|overloaded_error")) return 503;
  return 500;
}

std::string Words(const ResponseHeaders& headers, const ServiceError& error) {
  std::string words = "the service answered " + std::to_string(headers.status);
  if (!error.message.empty()) words += ": " + error.message;
  if (!error.code.empty() || !error.type.empty()) words += " (" + (error.code.empty() ? error.type : error.code) + ")";
  if (!headers.request_id.empty()) words += " [request " + Excerpt(headers.request_id, kRequestIdBytes) + "]";
  return words;
}

// The limit that a 429 reports: " of tokens", " of requests", or "" if unknown.
std::string WhichLimit(const ResponseHeaders& headers, const ServiceError& error) {
  const std::string message = Lower(error.message);
  const auto says = [&](std::string_view word) { return message.find(word) != std::string::npos; };
  const auto used_up = [](const LimitSnapshot& limit) { return limit.remaining && *limit.remaining < 1; };
  for (const std::string_view word : {error.type, error.code}) {
    if (word == "tokens" || word == "requests") return " of " + std::string(word);
  }
  if (says("tokens per") || says("(tpm)") || says("(tpd)")) return " of tokens";
  if (says("requests per") || says("(rpm)") || says("(rpd)")) return " of requests";
  if (used_up(headers.requests) != used_up(headers.tokens)) {
    return used_up(headers.tokens) ? " of tokens" : " of requests";
  }
  return "";
}

// Seconds of "Please retry in 36.5s", "try again in 6m0s", "after 1 second" or Google's "retryDelay": "2s".
std::optional<double> WaitNamed(std::string_view text) {
  for (const std::string_view phrase : {"retry in ", "try again in ", "retry after ", "again after ", "retrydelay"}) {
    const size_t at = text.find(phrase);
    if (at == std::string_view::npos) continue;
    text.remove_prefix(at + phrase.size());
    if (phrase == "retrydelay") text.remove_prefix(std::min(text.find_first_not_of("\": "), text.size()));
    const std::string_view number = text.substr(0, text.find_first_not_of("0123456789."));
    for (const auto& [unit, seconds] :
         {std::pair{" second", 1.0}, {" minute", 60.0}, {" hour", 3600.0}, {" day", 86400.0}}) {
      if (text.substr(number.size()).starts_with(unit)) return ParseDuration(number).value_or(0) * seconds;
    }
    text = text.substr(0, text.find_first_not_of("0123456789.hms"));
    while (text.ends_with('.')) text.remove_suffix(1);
    return text.ends_with('s') || text.ends_with('m') || text.ends_with('h') ? ParseDuration(text) : std::nullopt;
  }
  return std::nullopt;
}

// The option that cures a refused parameter.
const char* AdviceOn(std::string_view text) {
  const auto says = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (says("max_completion_tokens")) return "set extra_body: {max_completion_tokens: N}, which replaces max_tokens";
  if (says("temperature")) return "set temperature: null, which sends none";
  if (says("max_tokens") || says("max_output_tokens")) return "set another max_tokens";
  if (says("stream")) return "set stream: false";
  if (says("seed")) return "set seed: none";
  return "change the coder's options";
}

Failure Make(Remedy remedy, std::string word, std::string message) {
  Failure failure;
  failure.remedy = remedy;
  failure.word = std::move(word);
  failure.message = std::move(message);
  return failure;
}

}  // namespace

Failure FailureOfAnswer(const ResponseHeaders& headers, const ServiceError& error) {
  const int status = StatusOfError(headers, error);
  const std::string words = Words(headers, error);
  if (status >= 300 && status < 400) {
    return Make(Remedy::kFatal, "configuration",
                words + ", a redirection to '" + Excerpt(headers.location) +
                    "', which is not followed: the key would go along. Set base_url to the right place");
  }
  const Row* row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) { return Matches(one, status, error); });
  if (row == std::end(kRows))
    return Make(Remedy::kRetry, "invalid_answer", words + ", which is not a status that was expected");
  Failure failure = Make(row->remedy, row->word, words + row->advice);
  if (row->advice == kOption) failure.message += AdviceOn(error.text);
  if (failure.word == "quota" && headers.retry_after)
    failure.message +=
        ". It resets in " + std::to_string(static_cast<long>(std::min(*headers.retry_after, 1e9))) + " s";
  if (failure.remedy == Remedy::kRetry) failure.wait = WaitNamed(error.text);
  failure.overload = failure.remedy == Remedy::kRetry &&
                     (failure.word == "rate_limited" || status == 498 || status == 503 || status == 529);
  failure.alive = failure.word == "rejected" || failure.word == "context";
  failure.forbidden = status == 403 && (failure.word == "unauthorized" || failure.word == "blocked");
  if (failure.word == "rate_limited")
    failure.message = "the service's rate limit" + WhichLimit(headers, error) + " was hit: " + words;
  // x-should-retry decides for one request; it does not override a failure that ends the run.
  if (headers.should_retry == false && failure.remedy == Remedy::kRetry) failure.remedy = Remedy::kGiveUp;
  if (headers.should_retry == true && failure.remedy == Remedy::kGiveUp) failure.remedy = Remedy::kRetry;
  return failure;
}

Failure FailureOfTransfer(CURLcode code, const std::string& detail) {
  const std::string words = detail.empty() ? std::string(curl_easy_strerror(code)) : detail;
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT: return Make(Remedy::kRetry, "timeout", "no answer in time: " + words);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS: {
      // OpenSSL: "no alternative certificate subject name matches target host name"; GnuTLS: "does not match".
      if (words.find("subject name") != std::string::npos || words.find("match") != std::string::npos)
        return Make(Remedy::kFatal, "certificate",
                    "the server's certificate is of another host: " + words +
                        ". Check the host in base_url, and whether a proxy answers in its place; nothing was sent");
      return Make(Remedy::kFatal, "certificate",
                  "the server's certificate is not trusted: " + words +
                      ". Set SSL_CERT_FILE to the certificate of your own authority; nothing was sent");
    }
    case CURLE_URL_MALFORMAT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_CIPHER:
    case CURLE_UNKNOWN_OPTION:
    case CURLE_BAD_FUNCTION_ARGUMENT:
      return Make(Remedy::kFatal, "configuration", "the transfer cannot be set up: " + words);
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY: return Make(Remedy::kRetry, "connection", "the service cannot be reached: " + words);
    case CURLE_BAD_CONTENT_ENCODING:
      return Make(Remedy::kRetry, "invalid_answer", "the answer's compression cannot be read: " + words);
    case CURLE_UNSUPPORTED_PROTOCOL:  // HTTP/0.9: bytes without a status line
    case CURLE_WEIRD_SERVER_REPLY:
      return Make(Remedy::kRetry, "invalid_answer", "the server does not speak HTTP: " + words);
    default: return Make(Remedy::kRetry, "connection", "the connection broke: " + words);
  }
}

}  // namespace kgrpo::coder_gpt4o
