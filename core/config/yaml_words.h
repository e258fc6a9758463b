// Turns yaml-cpp's errors into messages that name the likely mistake. Used by node.cc.
#ifndef KGRPO_CONFIG_YAML_WORDS_H
#define KGRPO_CONFIG_YAML_WORDS_H

#include <string>
#include <string_view>

namespace kgrpo {

// One sentence without a full stop for yaml-cpp's `message` at `line` and `column` (from 1) of `text`.
std::string YamlMistake(const std::string& message, std::string_view text, int line, int column);

// That line with a caret under the column, as two indented lines to append to a message; keys of services are hidden.
// Empty where the line is not in the text or is too long to show.
std::string ShowPlace(std::string_view text, int line, int column);

}  // namespace kgrpo

#endif  // KGRPO_CONFIG_YAML_WORDS_H
