#include "coder_gpt4o/client/response_headers.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
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
  std::optional<double> time = ParseDuration(text);
  if (!time) {
    const time_t date = curl_getdate(std::string(Trimmed(text)).c_str(), nullptr);
    if (date == -1) return std::nullopt;
    time = static_cast<double>(date);
  } else if (*time >= kMilliseconds && *time < 10 * kMilliseconds) {
    *time /= 1000;
  } else if (*time < kSeconds || *time >= 10 * kSeconds) {
    return time;
  }
  return std::max(0.0, *time - unix_now);
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
