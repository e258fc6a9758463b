#include "coder_gpt4o/client/response_headers.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "coder_gpt4o/client/ascii.h"

namespace kgrpo::coder_gpt4o {
namespace {

// Parses a finite number that is not negative; `rest` gets the text after it.
std::optional<double> LeadingNumber(std::string_view text, std::string_view& rest) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<double> Number(std::string_view text) {
  std::string_view rest;
  const std::optional<double> value = LeadingNumber(text, rest);
  return value && rest.empty() ? value : std::nullopt;
}

std::optional<double> RetryAfter(std::string_view text, double unix_now) {
  if (const auto seconds = Number(text)) return seconds;
  const time_t date = curl_getdate(std::string(text).c_str(), nullptr);
  if (date == -1) return std::nullopt;
  return std::max(0.0, static_cast<double>(date) - unix_now);
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
    if (!retry_after) retry_after = RetryAfter(value, unix_now);
  } else if (name == "x-should-retry") {
    if (value == "true" || value == "false") should_retry = value == "true";
  } else if (name.ends_with("-requests") || name.ends_with("-tokens")) {
    LimitSnapshot& limit = name.ends_with("-tokens") ? tokens : requests;
    if (name.starts_with("x-ratelimit-limit-")) limit.limit = Number(value);
    if (name.starts_with("x-ratelimit-remaining-")) limit.remaining = Number(value);
    if (name.starts_with("x-ratelimit-reset-")) limit.reset = ParseDuration(value);
  }
}

}  // namespace kgrpo::coder_gpt4o
