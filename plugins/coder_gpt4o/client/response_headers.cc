#include "coder_gpt4o/client/response_headers.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>
#include <utility>

#include "coder_shared/text.h"

namespace kgrpo::coder_gpt4o {

using coder_shared::Lower, coder_shared::Trimmed;
namespace {

// Parses a finite number that is not negative; `rest` gets the text after it.
std::optional<double> LeadingNumber(std::string_view text, std::string_view& rest,
                                    std::chars_format format = std::chars_format::fixed) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, format);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<double> Number(std::string_view text) {
  std::string_view rest;
  const std::optional<double> value = LeadingNumber(text, rest, std::chars_format::general);  // LiteLLM: 9.75e-05
  return value && rest.empty() ? value : std::nullopt;
}

// "2026-11-26T20:00:00.5Z" or with an offset, "+01:00". curl_getdate reads neither.
std::optional<double> IsoDate(const std::string& text) {
  std::tm date = {};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &date);
  if (rest == nullptr) return std::nullopt;
  auto time = static_cast<double>(timegm(&date));
  if (*rest == '.') rest += 1 + std::strspn(rest + 1, "0123456789");
  int hours = 0, minutes = 0;
  if (*rest == '+' || *rest == '-') {
    if (std::sscanf(rest + 1, "%2d:%2d", &hours, &minutes) != 2) return std::nullopt;
    time -= (*rest == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
  }
  return time;
}

int StatusOf(std::string_view status_line) {
  const size_t space = status_line.find(' ');
  if (space == std::string_view::npos) return 0;
  const std::string_view digits = Trimmed(status_line.substr(space)).substr(0, 3);
  int status = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), status);
  return status;
}

}  // namespace

std::optional<double> ParseDuration(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};  // "ms" before "m"
  text = Trimmed(text);
  if (text.empty()) return std::nullopt;
  double total = 0;
  for (bool first = true; !text.empty(); first = false) {
    std::string_view rest;
    const std::optional<double> value = LeadingNumber(text, rest);
    if (!value) return std::nullopt;
    if (rest.empty()) return first ? value : std::nullopt;  // a bare number means seconds
    const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                    [&](const auto& one) { return rest.starts_with(one.first); });
    if (unit == std::end(kUnits)) return std::nullopt;
    total += *value * unit->second;
    text = rest.substr(unit->first.size());
  }
  return total;
}

std::optional<double> SecondsUntil(std::string_view text, double unix_now) {
  constexpr double kSeconds = 1e9, kMilliseconds = 1e12;  // no duration: 31 years. Dates from 2001 to 2286
  text = Trimmed(text);
  std::optional<double> date;
  if (const std::optional<double> duration = ParseDuration(text)) {
    if (*duration < kSeconds || *duration >= 10 * kMilliseconds) return duration;
    if (*duration >= 10 * kSeconds && *duration < kMilliseconds) return duration;
    date = *duration >= kMilliseconds ? *duration / 1000 : *duration;
  } else {
    date = IsoDate(std::string(text));
    if (const time_t http = date ? -1 : curl_getdate(std::string(text).c_str(), nullptr); http != -1)
      date = static_cast<double>(http);
  }
  if (!date) return std::nullopt;
  return std::max(0.0, *date - unix_now);
}

void ResponseHeaders::Take(std::string_view line, double unix_now) {
  if (line.starts_with("HTTP/")) {
    *this = {};
    status = StatusOf(line);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = Lower(Trimmed(line.substr(0, colon)));
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (name == "location") {
    location = value;
  } else if (name == "x-request-id") {
    request_id = value;
  } else if (name == "retry-after-ms") {
    if (const auto milliseconds = Number(value)) retry_after = *milliseconds / 1000;
  } else if (name == "retry-after") {
    if (!retry_after) retry_after = SecondsUntil(value, unix_now);
  } else if (name == "x-should-retry") {
    if (value == "true" || value == "false") should_retry = value == "true";
  } else if (name == "x-litellm-response-cost") {
    cost = Number(value);
  } else if (name.starts_with("x-ratelimit-")) {
    const size_t dash = name.find('-', sizeof "x-ratelimit-" - 1);
    const std::string_view what = std::string_view(name).substr(0, dash).substr(sizeof "x-ratelimit-" - 1);
    const std::string_view of = dash == std::string::npos ? "requests" : std::string_view(name).substr(dash + 1);
    if (of != "requests" && of != "tokens") return;
    LimitSnapshot& limit = of == "tokens" ? tokens : requests;
    if (what == "limit") limit.limit = Number(value);
    if (what == "remaining") limit.remaining = Number(value);
    if (what == "reset") limit.reset = SecondsUntil(value, unix_now);
  }
}

}  // namespace kgrpo::coder_gpt4o
