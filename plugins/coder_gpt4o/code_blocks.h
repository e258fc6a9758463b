// Finds the fenced code blocks of an answer written in Markdown. Used by answer.cc and continuation.cc.
#ifndef KGRPO_CODER_GPT4O_CODE_BLOCKS_H
#define KGRPO_CODER_GPT4O_CODE_BLOCKS_H

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_gpt4o {

struct CodeBlock {
  std::string text;    // without the fences, and without the indentation that the opening one has
  bool closed = true;  // false: the answer ended within it
};

// The code blocks of an answer, in order. A fence opens with three or more backticks or tildes at the start of a line,
// indented or not, with any words after it. At least as many of them alone on a line close it.
std::vector<CodeBlock> CodeBlocks(std::string_view answer);

// True if the answer ends within a block.
bool EndsInCodeBlock(std::string_view answer);

// True if the line opens a block.
bool OpensCodeBlock(std::string_view line);

}  // namespace kgrpo::coder_gpt4o

#endif
