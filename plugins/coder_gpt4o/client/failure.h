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
    kRetry,   // it may pass
    kGiveUp,  // this request will never be answered; others may
    kFatal,   // no request will be
  };
  Remedy remedy = Remedy::kRetry;
  bool overload = false;   // the service asks for less: 429, 503, 529
  bool alive = false;      // the service is there and minded the request: no sign of an outage
  bool forbidden = false;  // a 403: of the key, or of this one prompt where the service has answered others
  // For metrics: rate_limited, server_error, connection, timeout, invalid_answer, too_long, rejected, unauthorized,
  // quota, not_found, certificate, configuration. The client adds outage and cancelled.
  std::string word;
  std::string message;  // may hold a secret that the service sent back: redact it
};

// An HTTP answer that is none: a status that is no success, or an error object, with any status.
Failure FailureOfAnswer(const ResponseHeaders& headers, const ServiceError& error);

// True if the service declined to answer this prompt by an error instead of an answer: a content filter, as Azure's.
bool IsContentFilter(const ResponseHeaders& headers, const ServiceError& error);

// A transfer that curl ended. `detail`: curl's own words, of CURLOPT_ERRORBUFFER.
Failure FailureOfTransfer(CURLcode code, const std::string& detail);

}  // namespace kgrpo::coder_gpt4o
#endif
