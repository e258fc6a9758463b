// Undoes what copying, escaping and formatting do to code.
#pragma once

#include <string>
#include <string_view>

namespace kgrpo::coder_shared {

// The code without its disguises, each of which all of the code must show: HTML entities, line numbers, typographic
// quotes and blanks, escaped line ends. Lines of a chat window above the code go too. Other code is returned unchanged.
std::string Undisguised(std::string code);

// A whole answer without the disguises that hide its lines: carriage returns, escaped line ends, a byte order mark.
std::string WithLines(std::string_view answer);

// The text with ' for each typographic apostrophe.
std::string WithPlainApostrophes(std::string_view text);

}  // namespace kgrpo::coder_shared
