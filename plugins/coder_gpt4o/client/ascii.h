// ASCII case and blanks, independent of the locale, for the text of headers, hosts, options and answers.
// Used throughout the client and by the plugin's options.cc.
#pragma once

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

// Without blanks and line ends around it.
inline std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace kgrpo::coder_gpt4o
