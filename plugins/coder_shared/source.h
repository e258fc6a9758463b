// Answers questions about CUDA source without a compiler, by the tokens of cuda_source/lexer.h.
#pragma once

#include "cuda_source/lexer.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_shared {

// True if every brace, bracket, parenthesis and comment is closed: truncated code is seldom balanced.
bool IsBalanced(std::string_view source);

// True if the source ends within a comment /* ... */.
bool EndsInComment(std::string_view source);

// Source without its comments and its layout: kernels with the same essence are the same.
std::string Essence(std::string_view source);

using NameSet = std::set<std::string, std::less<>>;

// Identifiers of a source.
struct Names {
  NameSet defined;        // at namespace scope, with a body or a constant value; macros too
  NameSet used;           // outside comments, literals and directives, but as members
  NameSet declared;       // by a type before them: variables, parameters, functions
  NameSet prototypes;     // functions at namespace scope without a body
  bool runs = false;      // statements stand outside functions: it is an example, not a part of a file
  NameSet only_launched;  // kernels that are launched and occur nowhere else
  NameSet idle;           // functions of the device that nothing calls
};
Names NamesOf(std::string_view source);

// A character of the source outside of comments and literals that no C++ has, such as a backtick; "" if there is none.
std::string StrayCharacter(std::string_view source);

struct Comment {
  size_t begin, end;
};

// The comments, which are the text between tokens. Sets *open if the last one does not end.
std::vector<Comment> CommentsOf(std::string_view source, const std::vector<cuda_source::Token>& tokens,
                                bool* open = nullptr);

// True if the brace at `at` belongs to a namespace or extern "C".
bool OpensScope(const std::vector<cuda_source::Token>& tokens, size_t at);

// ---- signature.cc ----

// Why the source's definition of the function is not the one of the signature: it has other parameters, is a method, or
// is written in another language. Empty if one fits, which may take tensors instead, or if there is none.
std::string Misfit(std::string_view source, std::string_view signature);

// ---- elision.cc ----

// Signs that parts of a kernel are left out; empty if there is none.
struct Omission {
  std::string sure;   // parts are missing
  std::string doubt;  // it reads so: if the kernel turns out to be wrong, its coder left something out
};

// Compares with the kernel that was given: a comment that stands in place of its lines, such as "// ... existing code
// ...", a launch of a kernel that is not defined, the use of a name that only `current` defines.
Omission LeftOut(std::string_view source, std::string_view current);

}  // namespace kgrpo::coder_shared
