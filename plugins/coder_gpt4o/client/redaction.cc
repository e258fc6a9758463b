#include "coder_gpt4o/client/redaction.h"

#include <algorithm>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr std::string_view kMask = "[hidden]";

std::string PercentEncoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
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
