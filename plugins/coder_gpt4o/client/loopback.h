// Recognises hosts that are this machine: requests to them need neither TLS nor a proxy. Used by endpoint.cc and by the
// plugin's secrets.cc.
#ifndef KGRPO_CODER_GPT4O_CLIENT_LOOPBACK_H
#define KGRPO_CODER_GPT4O_CLIENT_LOOPBACK_H

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

}  // namespace kgrpo::coder_gpt4o
#endif
