// Finds the position of a text in its YAML file, so that a message can point at a mistake within it (a template's).
// Literal block scalars (|) and texts on one line without escapes have such a place; folded ones (>) do not: what they
// hold is not what is written. Used by node.cc and load.cc.
#ifndef KGRPO_CONFIG_VERBATIM_H
#define KGRPO_CONFIG_VERBATIM_H

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostic.h"

namespace kgrpo {

// Of UTF-8 text: bytes that continue a character count as none.
size_t CountCharacters(std::string_view text);

// A file's lines, without their ends. They point into `text`.
std::vector<std::string_view> LinesOf(std::string_view text);

// Returns the position of the first character of `text`, given that its scalar begins at `at`: the lines of `text`
// begin in one column of consecutive lines. Returns nothing if the file does not hold the text as it is.
std::optional<Position> FindVerbatim(const std::vector<std::string_view>& lines, const std::string& text,
                                     const Position& at);

// The place of byte `column` of line `line` (both from 1) of a text that begins at `begin`.
Position PlaceWithin(const std::string& text, const Position& begin, size_t line, size_t column);

}  // namespace kgrpo
#endif
