#include "coder_gpt4o/code_blocks.h"

#include <optional>

namespace kgrpo::coder_gpt4o {
namespace {

struct Fence {
  char character = '`';
  size_t length = 0;
  size_t indentation = 0;
  bool bare = false;  // nothing follows it on the line
};

std::optional<Fence> ReadFence(std::string_view line) {
  Fence fence;
  fence.indentation = line.find_first_not_of(" \t");
  if (fence.indentation == std::string_view::npos) return std::nullopt;
  fence.character = line[fence.indentation];
  if (fence.character != '`' && fence.character != '~') return std::nullopt;
  size_t end = line.find_first_not_of(fence.character, fence.indentation);
  if (end == std::string_view::npos) end = line.size();
  fence.length = end - fence.indentation;
  if (fence.length < 3) return std::nullopt;
  const std::string_view words = line.substr(end);
  if (fence.character == '`' && words.find('`') != std::string_view::npos) return std::nullopt;  // inline code
  fence.bare = words.find_first_not_of(" \t\r") == std::string_view::npos;
  return fence;
}

bool Closes(const Fence& fence, const Fence& open) {
  return fence.bare && fence.character == open.character && fence.length >= open.length;
}

// Closes a block whose closing fence stands at the end of the last line of code and not on its own line.
void CloseAtEnd(const Fence& open, CodeBlock* block) {
  const size_t last = block->text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return;
  size_t begin = last + 1;
  while (begin > 0 && block->text[begin - 1] == open.character) --begin;
  if (last + 1 - begin < open.length) return;
  block->text.resize(begin);
  block->text += '\n';
  block->closed = true;
}

}  // namespace

std::vector<CodeBlock> CodeBlocks(std::string_view answer) {
  std::vector<CodeBlock> blocks;
  std::optional<Fence> open;
  for (size_t begin = 0; begin < answer.size();) {
    size_t end = answer.find('\n', begin);
    end = end == std::string_view::npos ? answer.size() : end + 1;
    std::string_view line = answer.substr(begin, end - begin);
    begin = end;
    const std::string_view words = line.ends_with('\n') ? line.substr(0, line.size() - 1) : line;
    const std::optional<Fence> fence = ReadFence(words);
    if (!open) {
      if (!fence) continue;
      open = fence;
      blocks.push_back({"", false});
    } else if (fence && Closes(*fence, *open)) {
      blocks.back().closed = true;
      open.reset();
    } else {
      size_t indentation = line.find_first_not_of(" \t");
      if (indentation == std::string_view::npos) indentation = 0;
      line.remove_prefix(indentation < open->indentation ? indentation : open->indentation);
      blocks.back().text += line;
    }
  }
  if (open) CloseAtEnd(*open, &blocks.back());
  return blocks;
}

bool EndsInCodeBlock(std::string_view answer) {
  const std::vector<CodeBlock> blocks = CodeBlocks(answer);
  return !blocks.empty() && !blocks.back().closed;
}

bool OpensCodeBlock(std::string_view line) {
  return ReadFence(line).has_value();
}

}  // namespace kgrpo::coder_gpt4o
