// Reads the string literals of Python, JSON and YAML, in which an answer may give its code.
#pragma once

#include "coder_shared/blocks.h"

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_shared {

// The texts of the string literals of Python, or of a JSON text (closed as it is, or cut). Adjacent literals of Python
// are one, as are the strings of a JSON array. Escapes are undone; f-strings are left out.
std::vector<CodeBlock> Literals(std::string_view text, bool json);

// The texts of a YAML document's blocks ("code: |"), without their indentation.
std::vector<CodeBlock> YamlTexts(std::string_view text);

// The text with \n, \", \u003c and the like replaced by the characters that they stand for.
std::string Unescaped(std::string_view text);

}  // namespace kgrpo::coder_shared
