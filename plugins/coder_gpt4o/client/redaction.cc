#include "coder_gpt4o/client/redaction.h"

#include <curl/curl.h>

#include <algorithm>
#include <new>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr std::string_view kMask = "[hidden]";

std::string PercentEncoded(std::string_view text) {
  char* encoded = curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size()));
  if (encoded == nullptr) throw std::bad_alloc();
  const std::string copy = encoded;
  curl_free(encoded);
  return copy;
}

}  // namespace

void Redaction::Hide(std::string_view secret) {
  if (secret.size() < kShortest) return;
  for (std::string form : {std::string(secret), PercentEncoded(secret)}) {
    if (std::find(secrets_.begin(), secrets_.end(), form) == secrets_.end()) secrets_.push_back(std::move(form));
  }
  std::sort(secrets_.begin(), secrets_.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

void Redaction::Apply(std::string& text) const {
  for (const std::string& secret : secrets_) {
    for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + kMask.size())) {
      text.replace(at, secret.size(), kMask);
    }
  }
}

void Redaction::ApplyToCut(std::string& text) const {
  Apply(text);
  size_t cut = 0;
  for (const std::string& secret : secrets_) {
    for (size_t length = std::min(secret.size() - 1, text.size()); length > cut; --length) {
      if (std::string_view(text).ends_with(std::string_view(secret).substr(0, length))) cut = length;
    }
  }
  text.resize(text.size() - cut);
}

}  // namespace kgrpo::coder_gpt4o
