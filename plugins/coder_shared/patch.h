// Applies an answer that changes the given kernel: a unified diff, hunks without headers, search/replace blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_shared {

// One change: these lines become those.
struct Hunk {
  std::vector<std::string> old_lines, new_lines;
  size_t line = 0;  // where the old lines begin, as the patch numbers them from 1; 0: unknown
};

// The hunks of a block; empty if it is no patch. `info`: the words after its fence; "prose" without one.
std::vector<Hunk> ReadPatch(std::string_view text, std::string_view info);

// Applies the hunks to the kernel. Old lines must occur in it exactly once, or at their stated line, but for blanks at
// the ends of lines. A patch without old lines is a whole file. On failure
// returns an empty text and sets *why.
std::string Patched(std::string_view kernel, const std::vector<Hunk>& hunks, std::string* why);

}  // namespace kgrpo::coder_shared
