// Makes text of a server or an option safe and short enough to quote in a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// The first `most` bytes or so of `text` on one line, without HTML's tags, control characters and broken UTF-8.
std::string Excerpt(std::string_view text, size_t most = 300);

}  // namespace kgrpo::coder_gpt4o
