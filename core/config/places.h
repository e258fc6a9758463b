// Places in UTF-8 text: of a byte of a value within its file, and as lines to show. Used by the parts that report
// errors.
#ifndef KGRPO_CONFIG_PLACES_H
#define KGRPO_CONFIG_PLACES_H

#include <cstddef>
#include <string>
#include <string_view>

#include "config/diagnostic.h"

namespace kgrpo {

// The number of characters (code points).
size_t CountCharacters(std::string_view text);

// The place of byte `column` of line `line` (both from 1) of a text whose first character is at `begin`.
Position PlaceWithin(std::string_view text, const Position& begin, size_t line, size_t column);

// The line with a caret under the column (both from 1), as two indented lines to append to a message; keys of services
// are hidden. Empty if the line is not in the text or is too long to show.
std::string ShowPlace(std::string_view text, int line, int column);

}  // namespace kgrpo
#endif
