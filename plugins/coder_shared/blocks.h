// Finds the code of an answer: fenced blocks, here-documents, and code without a fence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_shared {

struct CodeBlock {
  std::string text;     // without the fences, and without the indentation and quote marks that the opening one has
  bool closed = true;   // false: the answer ended within it
  std::string info;     // the words after the opening fence, in lower case
  std::string heading;  // the last line of prose before it
  std::string remark;   // the other prose before it, which is about the block before
  bool within = false;  // in a literal of another language: only its brackets show that it is whole
};

// The fenced blocks of an answer, in order. A fence is three or more backticks or tildes; it opens a block at the start
// or end of a line and closes one with at least as many. A fence with words after it never closes: it opens a block
// within one of text (```markdown), and ends one of code. Fences within a comment of the code are part of it.
// Sets *prose to the lines outside of them, and *last to those after the last one.
std::vector<CodeBlock> FencedBlocks(std::string_view answer, std::string* prose = nullptr, std::string* last = nullptr);

// The files that a shell writes by here-documents, each with the command as its heading.
std::vector<CodeBlock> HereDocuments(std::string_view text);

// The code of an answer without fences: its first line of code to its last, without the prose around them.
CodeBlock UnfencedCode(std::string_view answer);

// True if code may begin at this line: CUDA lines outside functions begin like this.
bool BeginsCode(std::string_view line);

}  // namespace kgrpo::coder_shared
