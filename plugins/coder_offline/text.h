// Text templates for the kernels that the skeletons write.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kgrpo::coder_offline {

// The text for a placeholder. A number stands for its digits.
struct Value : std::string {
  using std::string::string;
  Value() = default;
  Value(std::string text) : std::string(std::move(text)) {}
  Value(int number) : std::string(std::to_string(number)) {}
};
using Values = std::map<std::string, Value>;

// Replaces every @name@ in `pattern` by its value. A placeholder alone on its line may stand for any number of lines:
// each takes the placeholder's indentation, and an empty value removes the line. A leading newline of the pattern is
// dropped, so that raw strings may start on a line of their own. Throws std::logic_error for a name without a value.
std::string Fill(std::string_view pattern, const Values& values);

std::vector<std::string> SplitLines(std::string_view text);

// "a, b, c" from {"a", "b", "c"}.
std::string Join(const std::vector<std::string>& parts, std::string_view separator);

// The text without spaces, tabs and newlines at both ends.
std::string Trim(std::string_view text);

// The lines of C++ with two blanks for each open brace, from `depth` braces on; directives begin their lines.
std::string Indented(std::string_view text, int depth);

// Replaces whole-word occurrences of the identifier `from` by `to`.
std::string ReplaceWord(std::string text, std::string_view from, std::string_view to);

}  // namespace kgrpo::coder_offline
