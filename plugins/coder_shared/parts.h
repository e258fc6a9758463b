// Takes a model's answer apart: its text without thoughts, the blocks of code, and what they may be: kernels, each with
// the other blocks that it needs, or patches of the given kernel. Used by answer.cc.
#pragma once

#include "coder_shared/answer.h"
#include "coder_shared/blocks.h"
#include "coder_shared/source.h"

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_shared {

// What an answer says of a block: that it is the answer, one that may serve if there is no other, or what not to use.
enum class Standing { kAnswer, kOld, kRejected };

// A block that defines the function, with the blocks that it needs.
struct Candidate {
  std::string source;
  Omission omission = {};
  std::string stray = {};   // a character that no C++ has; empty: there is none
  std::string misfit = {};  // why its function is not the required one; empty: it is
  bool closed = true, within = false;
  Standing standing = Standing::kAnswer;
  size_t block = 0;  // of Parts::blocks
};

// The reason why a patch that the limit of tokens has cut off does not apply.
inline constexpr const char* kCutOff = "it is cut off";

// An answer taken apart.
struct Parts {
  const AnswerText& given;
  const Wanted& wanted;
  std::string function = {}, text = {};  // the text without thoughts
  std::string prose = {};                // its lines outside of fenced blocks
  std::string last = {};                 // those after the last block
  std::string plain = {};                // with plain apostrophes
  bool unfinished = false;               // it ended within thoughts
  std::vector<CodeBlock> blocks = {};
  std::vector<Candidate> candidates = {};
  std::string foreign = {};                 // what the code is written in if it is not C++
  bool patch = false;                       // the answer is a patch
  std::string patched = {}, no_patch = {};  // the kernel after it, or the reason why it does not apply
  std::string patch_doubt = {};             // as Omission::doubt
};

// Sets all but `given` and `wanted`, from these.
void TakeApart(Parts* parts);

// The code with no empty lines before it and exactly one line end after it.
std::string Tidied(std::string_view code);

// ---- disguise.cc: undoes what copying, escaping and formatting do to code ----

// The code without its disguises, each of which all of the code must show: HTML entities, line numbers, typographic
// quotes and blanks, escaped line ends. Lines of a chat window above the code go too. Other code is returned unchanged.
std::string Undisguised(std::string code);

// A whole answer without the disguises that hide its lines: carriage returns, escaped line ends, a byte order mark.
std::string WithLines(std::string_view answer);

// The text with ' for each typographic apostrophe.
std::string WithPlainApostrophes(std::string_view text);

// ---- standing.cc ----

// What the title of a block, or a comment on its first line, says of it.
Standing StandingOf(const CodeBlock& block);
bool IsAlternative(const CodeBlock& block);
bool IsRecommended(const CodeBlock& block);  // by its title: "use this"
bool IsCorrection(const CodeBlock& block);   // of an earlier one: "wait, fixed"

// What the prose after each kernel, which is remarks[i], says of it, or of one that it names: "use the first".
void ApplyRemarks(const std::vector<std::string>& remarks, std::vector<Standing>* standings);

// True if the block is an attempt, which the prose after it gives up.
bool TakesBack(const CodeBlock& block, std::string_view remark);

// ---- patch.cc: an answer that changes the given kernel: a unified diff, hunks without headers, search/replace blocks,
// their kin in XML, the edits of a tool's call in JSON ----

// One change: these lines become those.
struct Hunk {
  std::vector<std::string> old_lines, new_lines;
  size_t line = 0;    // where the old lines begin, as the patch numbers them from 1; 0: unknown
  bool text = false;  // the old lines may begin and end in the middle of the kernel's
};

// The hunks of a block; empty if it is no patch. `info`: the words after its fence; "prose" without one.
std::vector<Hunk> ReadPatch(std::string_view text, std::string_view info);

// Applies the hunks to the kernel. Old lines must occur in it exactly once, or at their stated line, but for blanks at
// the ends of lines and an indentation that all of them lack. A hunk that was applied already is skipped. A patch
// without old lines is a whole file. On failure returns an empty text and sets *why.
std::string Patched(std::string_view kernel, const std::vector<Hunk>& hunks, std::string* why);

}  // namespace kgrpo::coder_shared
