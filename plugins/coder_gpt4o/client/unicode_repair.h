// Reads JSON with characters that a server cut in two: half of a surrogate pair, or some of a character's UTF-8 bytes,
// at the end of one streamed event and the rest in the next. A JSON parser takes neither. Used by response_reader.cc.
#pragma once

#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// The JSON text with a placeholder, a private character, for each unpaired surrogate's escape and each byte that is not
// part of a UTF-8 character. Equal to the text if it has neither.
std::string WithPlaceholders(std::string_view json);

// Turns the placeholders in a text, now whole, into the characters that they form together; others become U+FFFD.
void RepairUnicode(std::string& text);

}  // namespace kgrpo::coder_gpt4o
