#include "coder_gpt4o/client/failure.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>

#include "coder_gpt4o/client/ascii.h"
#include "coder_gpt4o/client/excerpt.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Remedy = Failure::Remedy;

constexpr size_t kRequestIdBytes = 100;

bool OneOf(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Gateways answer 200 and put the upstream's status into an error object.
int StatusOfError(const ResponseHeaders& headers, const ServiceError& error) {
  if (headers.status < 200 || headers.status >= 300) return headers.status;
  int code = 0;
  const char* end = error.code.data() + error.code.size();
  if (std::from_chars(error.code.data(), end, code).ptr == end && code >= 400 && code < 600) return code;
  if (OneOf(error.code, {"rate_limit_exceeded"}) || OneOf(error.type, {"rate_limit_error", "requests", "tokens"})) {
    return 429;
  }
  if (OneOf(error.type, {"invalid_request_error"})) return 400;
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

Failure Make(Remedy remedy, std::string word, std::string message) {
  Failure failure;
  failure.remedy = remedy;
  failure.word = std::move(word);
  failure.message = std::move(message);
  return failure;
}

// For 4xx: the service understood the request and refuses it.
Failure Rejected(int status, const ServiceError& error, const std::string& words) {
  // Errors caused by the options, which affect every request. Any other 400 may be due to this prompt (too long, say).
  const bool of_options = OneOf(error.code, {"unsupported_parameter", "unsupported_value", "unknown_parameter",
                                             "model_not_found", "invalid_model"});
  if (status == 404 || error.code == "model_not_found" || error.code == "invalid_model") {
    return Make(Remedy::kFatal, "not_found", words + ". Check base_url and model");
  }
  if (of_options) {
    return Make(Remedy::kFatal, "configuration",
                words + ". Every request would be refused: change the coder's options");
  }
  if (status == 405 || status == 410 || status == 415) {
    return Make(Remedy::kFatal, "configuration",
                words + ". Check base_url: POST {base_url}/chat/completions must exist");
  }
  return Make(Remedy::kGiveUp, "rejected", words);
}

Failure ByStatus(const ResponseHeaders& headers, const ServiceError& error) {
  const int status = StatusOfError(headers, error);
  const std::string words = Words(headers, error);
  if (status >= 300 && status < 400) {
    return Make(Remedy::kFatal, "configuration",
                words + ", a redirection to '" + Excerpt(headers.location) +
                    "', which is not followed: the key would go along. Set base_url to the right place");
  }
  if (status == 401 || status == 403) {
    Failure failure =
        Make(Remedy::kFatal, "unauthorized", words + ". Check the key that api_key_env names, and its permissions");
    failure.forbidden = status == 403;
    return failure;
  }
  if (status == 407) return Make(Remedy::kFatal, "unauthorized", words + ". The proxy wants a user and password");
  const bool quota = OneOf(error.code, {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}) ||
                     error.type == "insufficient_quota";
  if (status == 402 || (status == 429 && quota)) {
    return Make(Remedy::kFatal, "quota", words + ". Waiting does not help: the account's budget is used up");
  }
  if (status == 429 || status == 503 || status == 529) {
    Failure failure = Make(Remedy::kRetry, "server_error", words);
    failure.overload = true;
    if (status == 429) {
      failure.word = "rate_limited";
      failure.message = "the service's rate limit" + WhichLimit(headers, error) + " was hit: " + words;
    }
    return failure;
  }
  if (status == 408) return Make(Remedy::kRetry, "timeout", words);
  if (status == 409 || status == 425) return Make(Remedy::kRetry, "server_error", words);
  if (status >= 400 && status < 500) {
    Failure failure = Rejected(status, error, words);
    failure.alive = true;
    return failure;
  }
  if (status == 501 || status == 505) {
    return Make(Remedy::kFatal, "configuration", words + ". Check base_url: the server does not know this call");
  }
  if (status >= 500) {
    return Make(Remedy::kRetry, "server_error", words);
  }
  return Make(Remedy::kRetry, "invalid_answer", words + ", which is no status that was expected");
}

}  // namespace

bool IsContentFilter(const ResponseHeaders& headers, const ServiceError& error) {
  const int status = StatusOfError(headers, error);
  return (status == 400 || status == 403) &&
         (OneOf(error.code, {"content_filter", "content_policy_violation"}) || error.type == "content_filter");
}

Failure FailureOfAnswer(const ResponseHeaders& headers, const ServiceError& error) {
  Failure failure = ByStatus(headers, error);
  // x-should-retry decides for one request; it does not override a failure that ends the run.
  if (headers.should_retry == false && failure.remedy == Remedy::kRetry) failure.remedy = Remedy::kGiveUp;
  if (headers.should_retry == true && failure.remedy == Remedy::kGiveUp) failure.remedy = Remedy::kRetry;
  return failure;
}

Failure FailureOfTransfer(CURLcode code, const std::string& detail) {
  const std::string words = detail.empty() ? std::string(curl_easy_strerror(code)) : detail;
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Make(Remedy::kRetry, "timeout", "no answer in time: " + words);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return Make(Remedy::kFatal, "certificate",
                  "the server's certificate is not trusted: " + words +
                      ". Set ca_file to the certificate of your own authority; nothing was sent");
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
    case CURLE_PROXY:
      return Make(Remedy::kRetry, "connection", "the service cannot be reached: " + words);
    case CURLE_UNSUPPORTED_PROTOCOL:  // HTTP/0.9: bytes without a status line
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return Make(Remedy::kRetry, "invalid_answer", "the server does not speak HTTP: " + words);
    default:
      return Make(Remedy::kRetry, "connection", "the connection broke: " + words);
  }
}

}  // namespace kgrpo::coder_gpt4o
