// Answers questions about CUDA source without a compiler, by the tokens of cuda_source/lexer.h.
#pragma once

#include <set>
#include <string>
#include <string_view>

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
};
Names NamesOf(std::string_view source);

// A character of the source outside of comments and literals that no C++ has, such as a backtick; "" if there is none.
std::string StrayCharacter(std::string_view source);

// The sign that parts of the kernel are left out: a comment or line such as "// ... existing code ..." that `current`
// does not have, a launch of a kernel that is not defined, or the use of a name that only `current` defines. Empty if
// there is no sign.
std::string LeftOut(std::string_view source, std::string_view current);

}  // namespace kgrpo::coder_shared
