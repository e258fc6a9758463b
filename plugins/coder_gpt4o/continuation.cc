#include "coder_gpt4o/continuation.h"

#include "coder_gpt4o/code_blocks.h"

#include <algorithm>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr size_t kLeastRepeated = 16;  // bytes; shorter repetitions occur in any code
constexpr size_t kMostRepeated = 4096;

// The number of bytes at the end of `begun` that `rest` repeats at its beginning.
size_t Repeated(std::string_view begun, std::string_view rest) {
  for (size_t size = std::min({begun.size(), rest.size(), kMostRepeated}); size >= kLeastRepeated; --size) {
    if (begun.ends_with(rest.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

std::string JoinAnswer(std::string begun, std::string_view rest) {
  if (EndsInCodeBlock(begun)) {
    const size_t first = rest.find_first_not_of("\r\n");
    const size_t line = first == std::string_view::npos ? std::string_view::npos : rest.find('\n', first);
    if (line != std::string_view::npos && OpensCodeBlock(rest.substr(first, line - first)) &&
        EndsInCodeBlock(rest.substr(0, line + 1))) {
      // A bare fence closes the open block, unless it is followed by code that another fence closes.
      const bool names_language =
          rest.substr(first, line - first).find_first_not_of("`~ \t\r") != std::string_view::npos;
      if (names_language || !EndsInCodeBlock(rest)) rest.remove_prefix(line + 1);
    }
  }
  rest.remove_prefix(Repeated(begun, rest));
  begun += rest;
  return begun;
}

}  // namespace kgrpo::coder_gpt4o
