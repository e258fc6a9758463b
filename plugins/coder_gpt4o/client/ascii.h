// Names of headers, hosts and options, whose letters are ASCII whatever the locale says. Used by response_headers.cc,
// loopback.h and the plugin's secrets.cc.
#ifndef KGRPO_CODER_GPT4O_CLIENT_ASCII_H
#define KGRPO_CODER_GPT4O_CLIENT_ASCII_H

#include <algorithm>
#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

inline std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

}  // namespace kgrpo::coder_gpt4o
#endif
