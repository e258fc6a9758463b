// Classifies a failed attempt: retry, give this request up, or end the run. Used by transfer.cc, which judges each
// attempt, and by dispatcher.cc, which acts on it.
#ifndef KGRPO_CODER_GPT4O_CLIENT_FAILURE_H
#define KGRPO_CODER_GPT4O_CLIENT_FAILURE_H

#include <curl/curl.h>

#include <string>

#include "coder_gpt4o/client/response_headers.h"
#include "coder_gpt4o/client/response_reader.h"

namespace kgrpo::coder_gpt4o {

struct Failure {
  enum class Remedy {
    kRetry,   // the failure may be temporary
    kGiveUp,  // this request will never be answered; others may
    kFatal,   // no request will be answered
  };
  Remedy remedy = Remedy::kRetry;
  bool overload = false;   // the service asks for less: 429, 503, 529
  bool alive = false;      // the service processed the request: no sign of an outage
  bool forbidden = false;  // a 403: the key is refused, or only this prompt if the service has answered others
  // For the recording's column `failure`: rate_limited, server_error, connection, timeout, invalid_answer, too_long,
  // rejected, unauthorized, quota, not_found, certificate, configuration. The client adds outage and cancelled.
  std::string word;
  std::string message;  // may hold a secret that the service sent back: redact it
};

// The failure reported by an HTTP response: a status other than 2xx, or an error object with any status.
Failure FailureOfAnswer(const ResponseHeaders& headers, const ServiceError& error);

// True if the service declined to answer this prompt by an error instead of an answer: a content filter, as Azure's.
bool IsContentFilter(const ResponseHeaders& headers, const ServiceError& error);

// The failure of a transfer that curl ended. `detail`: the text of CURLOPT_ERRORBUFFER.
Failure FailureOfTransfer(CURLcode code, const std::string& detail);

}  // namespace kgrpo::coder_gpt4o
#endif
