// Reads a source file together with the headers of its author, and tells which file and line a line of such a text
// comes from. Used by `eval kernel` and `optimize`, by drafts of problems and by evaluators' messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::cuda_source {

// Returns the text of `file` with its own headers in place of the #include lines, between #line directives. Own headers
// are those that lie beside the including file, if included by quotes, or in one of `folders`. Other #include lines
// stay. No conditional is decided here: a header in a branch that no compiler reads is in the text, and the lines after
// that branch have their numbers. Throws Error(KGRPO_ERROR_NOT_FOUND).
std::string ReadWithOwnHeaders(const std::string& file, const std::vector<std::string>& folders);

// The same for a kernel to judge, which a model may have written: #include lines that lead out of its folder and of
// `folders`, also by links, stay, so that no other file's text gets into a compiler's messages. The #line directives
// name the file "kernel.cu", as evaluators do, and headers relative to their folder. *written: the file as it is.
std::string ReadKernelWithOwnHeaders(const std::string& file, const std::vector<std::string>& folders,
                                     std::string* written = nullptr);

struct SourcePlace {
  std::string file;
  int line = 0;
};

// The place of each line of a text by its #line directives; lines before the first are of `file`.
std::vector<SourcePlace> PlacesOfLines(std::string_view text, const std::string& file);

}  // namespace kgrpo::cuda_source
