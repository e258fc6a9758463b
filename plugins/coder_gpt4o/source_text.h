// Answers questions about CUDA source without a compiler: does it define a function, is it cut off, is it the same
// kernel as another one? Used by answer.cc, which picks the kernel out of an answer.
#ifndef KGRPO_CODER_GPT4O_SOURCE_TEXT_H
#define KGRPO_CODER_GPT4O_SOURCE_TEXT_H

#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// The function's name in a C declaration: "launch" for `extern "C" void launch(const float* x, int n)`. Empty if there
// is none.
std::string FunctionName(std::string_view signature);

// True if the source has a body for the function: its name, arguments in parentheses, "{". Comments and literals do not
// count.
bool Defines(std::string_view source, std::string_view function);

// True if every open brace, bracket and parenthesis is closed: truncated code is seldom balanced.
bool IsBalanced(std::string_view source);

// Source without its comments and its layout: kernels with the same essence are the same.
std::string Essence(std::string_view source);

}  // namespace kgrpo::coder_gpt4o

#endif
