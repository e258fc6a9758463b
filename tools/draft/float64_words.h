// Words of CUDA C++ and what they are in an oracle, which computes in double. Used by oracle_text.cc.
#ifndef KGRPO_TOOLS_DRAFT_FLOAT64_WORDS_H
#define KGRPO_TOOLS_DRAFT_FLOAT64_WORDS_H

#include <map>
#include <string>

#include "cuda_source/lexer.h"

namespace kgrpo::evaluator {

using cuda_source::Token;

// Functions that the standard library has, by CUDA's name: {"__expf", "exp"}.
const std::map<std::string, std::string>& MathFunctions();

// The definition of a function that it has not, such as rsqrtf; "" where there is none.
std::string HelperText(const std::string& name);

bool IsFloatType(const Token& token);  // of any precision but double
bool IsDeclaring(const Token& token);  // begins the declaration of a number
bool IsKnownWord(const Token& token);  // a keyword or type that stands in an oracle as it is

}  // namespace kgrpo::evaluator

#endif
