// Escapes untrusted text (kernels, compilers' output, third parties' metrics) for a web page. Used by everything in
// report/ that writes HTML or SVG.
#pragma once

#include <string>
#include <string_view>

namespace kgrpo::evaluator {

// `text` for an element's content or an attribute in quotes. What is no UTF-8, control characters other than tabs and
// newlines, and characters that turn the direction of what follows become U+FFFD.
std::string EscapeHtml(std::string_view text);

}  // namespace kgrpo::evaluator
