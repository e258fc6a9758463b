// Takes a model's answer apart: its text without thoughts, the blocks of code, and what they may be: kernels, each with
// the other blocks that it needs, or patches of the given kernel. Used by answer.cc.
#pragma once

#include "coder_shared/answer.h"
#include "coder_shared/blocks.h"

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_shared {

// A block that defines the function, with the blocks that it needs.
struct Candidate {
  std::string source;
  std::string left_out;  // the sign that it is not complete; empty: complete
  std::string stray;     // a character that no C++ has; empty: there is none
  bool closed = true, within = false, old = false;
};

// An answer taken apart.
struct Parts {
  const AnswerText& given;
  const Wanted& wanted;
  std::string function = {}, text = {};  // the text without thoughts
  std::string prose = {};                // its lines outside of fenced blocks
  std::string plain = {};                // with plain apostrophes
  bool unfinished = false;               // it ended within thoughts
  std::vector<CodeBlock> blocks = {};
  std::vector<Candidate> candidates = {};
  std::string foreign = {};                 // what the code is written in if it is not C++
  bool patch = false;                       // the answer is a patch
  std::string patched = {}, no_patch = {};  // the kernel after it, or the reason why it does not apply
};

// Sets all but `given` and `wanted`, from these.
void TakeApart(Parts* parts);

// The code with no empty lines before it and exactly one line end after it.
std::string Tidied(std::string_view code);

}  // namespace kgrpo::coder_shared
