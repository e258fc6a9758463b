// Recognises hosts that are treated specially: this machine, to which requests need neither TLS nor a proxy, and Azure.
// Used by endpoint.cc and by the plugin's secrets.cc and options.
#ifndef KGRPO_CODER_GPT4O_CLIENT_HOSTS_H
#define KGRPO_CODER_GPT4O_CLIENT_HOSTS_H

#include <string>
#include <string_view>

#include "coder_gpt4o/client/ascii.h"

namespace kgrpo::coder_gpt4o {

// `name`: the host of a URL, without its port; IPv6 in brackets.
inline bool IsLoopback(std::string_view name) {
  const std::string host = Lower(name);
  const bool numbers = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "[::1]" || host == "localhost" || host.ends_with(".localhost") ||
         (numbers && host.starts_with("127."));
}

inline constexpr const char* kAzureAddress =
    "base_url: https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=VERSION, with the name of the "
    "deployment, not of the model";

// True for a URL of Azure's OpenAI service.
inline bool IsAzure(std::string_view url) {
  const std::string host = Lower(url.substr(0, url.find_first_of("/?#", std::string_view("https://").size())));
  return host.find(".openai.azure.") != std::string::npos ||
         host.find(".cognitiveservices.azure.") != std::string::npos;
}

// True if the URL of an Azure service names a deployment and api-version, or the newer path that needs neither.
inline bool IsCompleteAzure(std::string_view url) {
  const std::string lower = Lower(url);
  return lower.find("/openai/v1") != std::string::npos ||
         (lower.find("/openai/deployments/") != std::string::npos && lower.find("api-version=") != std::string::npos);
}

}  // namespace kgrpo::coder_gpt4o
#endif
