// Lines, case and blanks of an answer's text. ASCII only, independent of the locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_shared {

std::string Lower(std::string_view text);

// Without blanks and line ends around it.
std::string_view Trimmed(std::string_view text);

// The lines of a text, without their line ends.
std::vector<std::string_view> Lines(std::string_view text);

// The text as one line of at most `bytes`, for messages; control characters become blanks.
std::string OneLine(std::string_view text, size_t bytes = 240);

// The first place of one of the phrases, which "|" separates; npos if there is none.
size_t FindAny(std::string_view text, std::string_view phrases);

// The bytes of the phrase with which the text begins; 0 if there is none.
size_t StartsWithAny(std::string_view text, std::string_view phrases);

inline bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Unlike std::isalpha and std::isalnum these take any char.
inline bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsWord(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }

}  // namespace kgrpo::coder_shared
