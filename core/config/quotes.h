// Finds the unclosed quote: yaml-cpp reads the rest of the file as text and reports nothing, or an error far from the
// quote. Used by config/node.cc.
#ifndef KGRPO_CONFIG_QUOTES_H
#define KGRPO_CONFIG_QUOTES_H

#include <optional>
#include <string>

namespace kgrpo {

// A text in quotes, by places in its file: lines and columns in characters, from 1.
struct QuotedText {
  int line = 0, column = 0;  // of the quote that opens it
  int last_line = 0;         // of the one that closes it
  bool closed = false;       // false: none does
};

// The last text in quotes that YAML finds before the file ends or cannot be read any further; nothing without one. Does
// not throw.
std::optional<QuotedText> LastQuotedText(const std::string& yaml);

}  // namespace kgrpo
#endif
