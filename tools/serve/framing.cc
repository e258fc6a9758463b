#include "serve/framing.h"

#include <strings.h>

#include <algorithm>
#include <cstring>

namespace kgrpo::serve {

bool IsOfCharacters(const std::string& text, const char* others) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && std::strchr(others, c) != nullptr);
  });
}

std::string FramingFault(const httplib::Request& request) {
  constexpr size_t kMostDigits = 18;
  for (const auto& [name, value] : request.headers) {
    if (!IsOfCharacters(name, "!#$%&'*+-.^_`|~")) return "a header's name with blanks or signs";
  }
  const size_t lengths = request.get_header_value_count("Content-Length");
  const size_t encodings = request.get_header_value_count("Transfer-Encoding");
  const std::string length = request.get_header_value("Content-Length");
  const bool whole = !length.empty() && length.find_first_not_of("0123456789") == std::string::npos;
  if (lengths > 1) return "more than one Content-Length";
  if (lengths == 1 && encodings > 0) return "both Content-Length and Transfer-Encoding";
  if (lengths == 1 && (!whole || length.size() > kMostDigits)) return "a Content-Length that is no whole number";
  if (encodings > 1 ||
      (encodings == 1 && strcasecmp(request.get_header_value("Transfer-Encoding").c_str(), "chunked") != 0))
    return "a Transfer-Encoding other than chunked";
  return "";
}

}  // namespace kgrpo::serve
