// Recognises names of headers, query parameters and keys of a body that stand for a secret. Used by endpoint.cc and by
// the plugin's options.cc.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "coder_shared/text.h"

namespace kgrpo::coder_gpt4o {

using coder_shared::Lower;

inline bool NamesSecret(std::string_view name) {
  const std::string lower = Lower(name);
  if (lower.starts_with("max_") || lower.ends_with("_tokens") || lower == "prompt_cache_key") return false;
  // "auth" and "key" count as whole words only, so that "author" and "x-portkey-provider" are no secrets; "key" also at
  // the name's end.
  const auto is_letter = [&](size_t i) { return i < lower.size() && lower[i] >= 'a' && lower[i] <= 'z'; };
  for (const std::string_view word : {"auth", "key", "keys"}) {
    for (size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
      if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
    }
  }
  constexpr std::string_view kParts[] = {"authorization", "apikey",     "token",  "secret",
                                         "password",      "credential", "cookie", "signature"};
  return lower == "sig" || lower.ends_with("key") ||
         std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

}  // namespace kgrpo::coder_gpt4o
