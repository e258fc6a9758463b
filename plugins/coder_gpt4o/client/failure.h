// Classifies a failed attempt: retry, refusal, failure of this request, or the end of the run. failure.cc holds the
// table of what services report. Used by transfer.cc, which evaluates each attempt, and by dispatcher.cc, which acts.
#pragma once

#include <curl/curl.h>

#include <optional>
#include <string>

#include "coder_gpt4o/client/response_headers.h"
#include "coder_gpt4o/client/response_reader.h"

namespace kgrpo::coder_gpt4o {

struct Failure {
  enum class Remedy {
    kRetry,    // the failure may be temporary
    kRefused,  // the service declined this prompt: an answer, and no failure
    kGiveUp,   // this request will never be answered; others may
    kFatal,    // no request will be answered
  };
  Remedy remedy = Remedy::kRetry;
  bool overload = false;   // the service asks for less: 429, 503, 529
  bool alive = false;      // the service processed the request: no sign of an outage
  bool forbidden = false;  // a 403: the key is refused, or only this prompt if the service has answered others
  // For the recording's column `failure`: rate_limited, server_error, connection, timeout, invalid_answer, too_long,
  // rejected, context, unauthorized, blocked, quota, not_found, certificate, configuration. The client adds outage and
  // cancelled.
  std::string word;
  std::string message;         // may contain a secret that the service sent back: redact it
  std::optional<double> wait;  // seconds that the error's text asks for: "Please retry in 36.5s"
};

// The failure reported by an HTTP response: a status other than 2xx, or an error object with any status.
Failure FailureOfAnswer(const ResponseHeaders& headers, const ServiceError& error);

// The failure of a transfer that curl ended. `detail`: the text of CURLOPT_ERRORBUFFER.
Failure FailureOfTransfer(CURLcode code, const std::string& detail);

}  // namespace kgrpo::coder_gpt4o
