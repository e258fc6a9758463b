// Reads an answer's headers: the status, the type, when to retry and how much of the rate limits is left. Used by
// transfer.cc, which feeds them as they arrive.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// One rate limit as the service reports it: x-ratelimit-limit-*, -remaining-*, -reset-*, or without an ending, as
// OpenRouter does, of requests.
struct LimitSnapshot {
  std::optional<double> limit;      // requests or tokens in all
  std::optional<double> remaining;  // requests or tokens left
  std::optional<double> reset;      // seconds until the whole limit is available again
};

struct ResponseHeaders {
  int status = 0;
  std::string location;               // of a redirection
  std::string request_id;             // the service's id of the exchange, for its support
  std::optional<double> retry_after;  // seconds; from retry-after-ms or retry-after
  std::optional<bool> should_retry;   // x-should-retry: the service's advice
  std::optional<double> cost;         // US dollars; x-litellm-response-cost
  LimitSnapshot requests;
  LimitSnapshot tokens;

  // Takes one line as curl delivers it, with its line end. A status line clears everything: 100 Continue and a proxy's
  // response come before the real one. `unix_now`: the present time, for dates.
  void Take(std::string_view line, double unix_now);
};

// Parses "20ms", "1s", "6m0s", "1h2m3.5s" or a bare number of seconds into seconds; nullopt for anything else.
std::optional<double> ParseDuration(std::string_view text);

// Seconds from `unix_now` to the time that a header names: a duration as above, or a date, given as Unix time in
// seconds or milliseconds or in HTTP's form. 0 for a date that has passed.
std::optional<double> SecondsUntil(std::string_view text, double unix_now);

}  // namespace kgrpo::coder_gpt4o
