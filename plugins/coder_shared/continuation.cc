#include "coder_shared/continuation.h"

#include "coder_shared/blocks.h"
#include "coder_shared/source.h"
#include "coder_shared/text.h"

#include <algorithm>

namespace kgrpo::coder_shared {
namespace {

constexpr size_t kLeastRepeated = 16;  // bytes; shorter repetitions of lines occur in any code
constexpr size_t kMostRepeated = 4096;

std::string_view FirstLine(std::string_view text) {
  return text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
}

// "Continuing from where I stopped:"
bool IsRemark(std::string_view line) {
  line = line.substr(0, line.find_last_not_of(" \t\n") + 1);
  return !line.empty() && line[0] >= 'A' && line[0] <= 'Z' && line.find(' ') != std::string_view::npos &&
         line.find_first_of(";{}=") == std::string_view::npos &&
         std::string_view(":.!").find(line.back()) != std::string_view::npos;
}

// The bytes at the beginning of `rest` that repeat the end of `begun`: whole lines, whatever the indentation of the
// first; or a part of the last line that begins and ends with a word, which code cannot repeat without a blank.
size_t Repeated(std::string_view begun, std::string_view rest) {
  begun.remove_prefix(begun.size() - std::min(begun.size(), kMostRepeated));
  const size_t indentation = std::min(rest.find_first_not_of(" \t"), rest.size());
  for (size_t at = 0; at < begun.size(); ++at) {
    const std::string_view end = begun.substr(at);
    const size_t line = at == 0 ? 0 : begun.rfind('\n', at - 1) + 1;  // npos + 1 is 0
    const bool first_of_line = begun.substr(line, at - line).find_first_not_of(" \t") == std::string_view::npos;
    const size_t skipped = first_of_line ? indentation : 0;
    if (!rest.substr(skipped).starts_with(end)) continue;
    const bool words = end.size() > 1 && end.find('\n') == std::string_view::npos &&
                       (at == line || !IsWord(begun[at - 1])) && IsWord(end.back()) &&
                       (IsLetter(end[0]) || end[0] == '_') && std::any_of(end.begin(), end.end(), IsLetter) &&
                       (skipped == 0 || skipped == at - line);
    if (words || (first_of_line && end.size() >= kLeastRepeated)) return skipped + end.size();
  }
  return 0;
}

// The rest without the prose and the fence before it; empty with *again set if it begins the block again.
std::string_view WithoutOpening(const CodeBlock& block, std::string_view rest, bool* again) {
  std::string_view after = rest;
  bool remarks = false;
  const std::string_view last = std::string_view(block.text).substr(block.text.rfind('\n', block.text.size() - 2) + 1);
  const bool comment =
      last.find("//") != std::string_view::npos || EndsInComment(block.text);  // it may be prose itself
  while (!comment && !after.empty() && (IsRemark(FirstLine(after)) || Trimmed(FirstLine(after)).empty())) {
    remarks = remarks || IsRemark(FirstLine(after));
    after.remove_prefix(FirstLine(after).size());
  }
  if (after.empty() || FencedBlocks(FirstLine(after)).empty()) return remarks ? after : rest;
  const std::vector<CodeBlock> blocks = FencedBlocks(after);
  const std::string_view old_code = Trimmed(block.text), code = Trimmed(blocks[0].text);
  const size_t common = static_cast<size_t>(
      std::mismatch(old_code.begin(), old_code.end(), code.begin(), code.end()).first - old_code.begin());
  *again = common >= kLeastRepeated || (common > 0 && common == old_code.size());
  // A bare fence closes the open block, unless it is followed by code that another fence closes.
  if (blocks[0].info.empty() && !blocks.back().closed) return rest;
  after.remove_prefix(FirstLine(after).size());
  return after;
}

}  // namespace

std::string JoinAnswer(std::string begun, std::string_view rest) {
  const std::vector<CodeBlock> blocks = FencedBlocks(begun);
  if (!blocks.empty() && !blocks.back().closed) {
    bool again = false;
    const std::string_view code = WithoutOpening(blocks.back(), rest, &again);
    if (again) return std::string(rest);
    rest = code;
  }
  rest.remove_prefix(Repeated(begun, rest));
  begun += rest;
  return begun;
}

}  // namespace kgrpo::coder_shared
