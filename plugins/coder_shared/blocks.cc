#include "coder_shared/blocks.h"

#include "coder_shared/source.h"
#include "coder_shared/text.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace kgrpo::coder_shared {
namespace {

struct Fence {
  char character = '`';
  size_t length = 0;
  size_t indentation = 0;  // bytes before it
  bool quoted = false;     // a quote mark is among them
  std::string info;
};

// The bytes of the blank, quote mark or invisible character at `at`; 0 if there is none.
size_t BlankAt(std::string_view line, size_t at) {
  for (const std::string_view blank : {" ", "\t", "\r", ">", "\u00a0", "\u200b", "\ufeff"}) {
    if (line.substr(at).starts_with(blank)) return blank.size();
  }
  return 0;
}

// The fence that the line consists of; if `at_end`, also one that ends a line of prose.
std::optional<Fence> ReadFence(std::string_view line, bool at_end) {
  Fence fence;
  while (const size_t blank = BlankAt(line, fence.indentation)) {
    fence.quoted = fence.quoted || line[fence.indentation] == '>';
    fence.indentation += blank;
  }
  size_t begin = fence.indentation;
  if (at_end && begin < line.size() && line[begin] != '~') begin = std::min(line.find("```", begin), line.size());
  if (begin >= line.size() || (line[begin] != '`' && line[begin] != '~')) return std::nullopt;
  fence.character = line[begin];
  const size_t end = std::min(line.find_first_not_of(fence.character, begin), line.size());
  fence.length = end - begin;
  fence.info = Lower(Trimmed(line.substr(end)));
  if (fence.length < 3) return std::nullopt;
  if (fence.character == '`' && fence.info.find('`') != std::string::npos) return std::nullopt;  // inline code
  if (begin > fence.indentation && fence.info.find(' ') != std::string::npos) return std::nullopt;
  return fence;
}

bool IsCode(const std::string& info) {
  const std::string language = "|" + info.substr(0, info.find_first_of(" \t:,{")) + "|";
  return Contains("|cuda|cu|c|cpp|c++|cc|cxx|h|hpp|cuh|cuda-c|cuda-cpp|", language);
}

bool EndsCode(std::string_view line) {
  line = Trimmed(line);
  return (line.ends_with('}') && !line.starts_with('\\')) || line.ends_with(';') || line.ends_with("*/") ||
         line.starts_with("//") || line.starts_with("#endif");
}

// True if a line outside of braces is prose after the code.
bool IsProse(std::string_view line) {
  if (StartsWithAny(line, "**|- |* |# |##") > 0) return true;
  return std::count(line.begin(), line.end(), ' ') >= 2 && line[0] >= 'A' && line[0] <= 'Z' &&
         line.find_first_of("{}#=/*&<>") == std::string_view::npos && !line.ends_with(';') && !line.ends_with(',') &&
         (line.find('(') == std::string_view::npos || line.ends_with('.') || line.ends_with(':'));
}

// The size of the code before the prose that follows it: 0 if no line ends code, the whole size if no prose follows.
size_t EndOfCode(std::string_view text, bool whole) {
  constexpr size_t kMostLooks = 16;  // each reads all of the code
  size_t end = 0, at = 0, looks = 0;
  bool ended = false;
  for (const std::string_view line : Lines(text)) {
    if (ended && IsProse(line) && ++looks <= kMostLooks && IsBalanced(text.substr(0, at))) return end;
    at = std::min(at + line.size() + 1, text.size());
    if (Trimmed(line).empty()) continue;
    ended = EndsCode(line);
    if (ended) end = at;
  }
  return whole ? text.size() : end;
}

class FenceReader {
 public:
  explicit FenceReader(std::string_view answer) : lines_(Lines(answer)) {
    for (const std::string_view line : lines_) fences_ += ReadFence(line, true) ? 1 : 0;
  }

  std::vector<CodeBlock> Run() {
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      const std::string_view line = lines_[at_];
      const std::optional<Fence> fence = ReadFence(line, open_.empty());
      if (fence || ReadFence(line, true)) --fences_;
      if (open_.empty()) {
        if (fence) {
          Open(*fence);
        } else if (!Trimmed(line).empty()) {
          Take(line);
          prose_ += std::string(line) + '\n';
        }
      } else if (!fence || !TakeFence(*fence)) {
        Append(line);
      }
    }
    // A block that no fence closes ends at one that is too short or of the other kind, or before prose.
    while (!open_.empty()) {
      std::string& text = Top().text;
      const size_t end = std::min(text.find("\n```\n"), text.find("\n~~~\n"));
      Top().closed = !open_.back().container && end != std::string::npos && !EndsInComment(text.substr(0, end));
      if (!open_.back().container) text.resize(Top().closed ? end + 1 : EndOfCode(text, /*whole=*/true));
      open_.pop_back();
    }
    return std::move(blocks_);
  }

  const std::string& prose() const { return prose_; }
  // The prose after the last block.
  std::string last() const { return remark_ + heading_; }

 private:
  struct Level {
    Fence fence;
    size_t block;
    bool container;  // text around other blocks, so far
  };

  CodeBlock& Top() { return blocks_[open_.back().block]; }

  void Open(const Fence& fence) {
    open_.push_back({fence, blocks_.size(), !IsCode(fence.info)});
    // A title may follow other sentences on its line: "That is wrong. Fixed:". A sentence may be no title.
    if ((heading_.ends_with('.') || heading_.ends_with('!')) &&
        StartsWithAny(Lower(heading_),
                      "that |this |it |wait|actually|oops|hmm|no,|but |however|the above|unfortunately") > 0)
      remark_ += std::exchange(heading_, "") + '\n';
    if (const size_t end = heading_.find_last_of(".!?;", heading_.size() - std::min<size_t>(heading_.size(), 2));
        heading_.ends_with(':') && end < heading_.size() && heading_[end + 1] == ' ') {
      remark_ += heading_.substr(0, end + 1) + '\n';
      heading_.erase(0, end + 2);
    }
    blocks_.push_back({"", false, fence.info, std::move(heading_), std::move(remark_)});
    heading_.clear();
    remark_.clear();
  }

  void Take(std::string_view line) {
    if (!heading_.empty()) remark_ += heading_ + '\n';
    heading_ = Trimmed(line);
  }

  void Close() {
    Top().closed = true;
    open_.pop_back();
  }

  // Takes a fence within a block; false if it is part of the block's text.
  bool TakeFence(const Fence& fence) {
    const Fence open = open_.back().fence;
    const bool bare = fence.info.empty(), container = open_.back().container;
    const bool closes = bare && fence.character == open.character && fence.length >= open.length;
    // Text that ends in an opening fence again is a container although its first inner fence could close it.
    const bool inner = container && bare && closes && fences_ >= 2 && Top().info.starts_with("m");
    if (closes && !inner) {
      if (!SkipComment(fence)) Close();
      return true;
    }
    if (bare ? !(inner || (container && !closes)) : fence.length < open.length && !container) return false;
    if (!container) {
      if (SkipComment(fence)) return true;
      open_.pop_back();  // its closing fence is missing
    }
    Open(fence);
    return true;
  }

  // Appends the lines up to the end of the comment that the fence is in, with all of its fences; false if it is in
  // none. In a comment fences come in pairs, of which the second is bare.
  bool SkipComment(const Fence& first) {
    constexpr size_t kMostComments = 100;  // each is looked for in the whole block
    if (comments_ >= kMostComments || Top().text.find("/*") == std::string::npos) return false;
    size_t count = 1, end = at_;
    for (bool closed = false; !closed;) {
      if (lines_[end].find("*/") != std::string_view::npos) break;
      if (++end == lines_.size()) return false;
      const std::optional<Fence> fence = ReadFence(lines_[end], false);
      if (fence && ++count % 2 == 0 && !fence->info.empty()) return false;
    }
    const bool paired = count % 2 == 0 || (count == 1 && first.info.empty() && IsCode(Top().info));
    if (!paired || !EndsInComment(Top().text)) return false;
    ++comments_;
    fences_ -= static_cast<int64_t>(count) - 1;
    for (; at_ < end; ++at_) Append(lines_[at_]);
    Append(lines_[at_]);
    return true;
  }

  void Append(std::string_view line) {
    const Fence& open = open_.back().fence;
    for (size_t at = 0; at < open.indentation && !line.empty();) {
      const size_t blank = BlankAt(line, 0);
      if (blank == 0 || (line[0] == '>' && !open.quoted)) break;
      line.remove_prefix(blank);
      at += blank;
    }
    if (line.find_first_of(";{}") != std::string_view::npos && !Top().info.starts_with("m"))
      open_.back().container = false;
    if (open_.back().container && !Trimmed(line).empty()) Take(line);
    // A closing fence may stand at the end of the last line of code.
    const size_t last = line.find_last_not_of(" \t\r");
    const size_t code = last == std::string_view::npos ? last : line.find_last_not_of(open.character, last);
    if (!open_.back().container && code != std::string_view::npos && last - code >= open.length &&
        line.find("//") == std::string_view::npos) {
      Top().text += std::string(line.substr(0, code + 1)) + '\n';
      return Close();
    }
    Top().text += line;
    Top().text += '\n';
  }

  const std::vector<std::string_view> lines_;
  size_t at_ = 0, comments_ = 0;
  int64_t fences_ = 0;  // lines to come that are fences
  std::vector<Level> open_;
  std::vector<CodeBlock> blocks_;
  std::string heading_, remark_, prose_;
};

}  // namespace

std::vector<CodeBlock> FencedBlocks(std::string_view answer, std::string* prose, std::string* last) {
  FenceReader reader(answer);
  std::vector<CodeBlock> blocks = reader.Run();
  if (prose != nullptr) *prose = reader.prose();
  if (last != nullptr) *last = reader.last();
  return blocks;
}

std::vector<CodeBlock> HereDocuments(std::string_view text) {
  std::vector<CodeBlock> documents;
  std::string end;
  for (const std::string_view line : Lines(text)) {
    if (!end.empty() && Trimmed(line) == end) {
      documents.back().closed = true;
      end.clear();
    } else if (!end.empty()) {
      documents.back().text += std::string(line) + '\n';
    } else if (const size_t mark = line.find("<<");
               mark < line.size() && StartsWithAny(line, "cat |tee |cd |sudo |mkdir ") > 0) {
      const size_t begin = std::min(line.find_first_not_of("<-'\" \\", mark), line.size());
      end = line.substr(begin, line.find_first_of("'\" >|;&", begin) - begin);
      if (!end.empty()) documents.push_back({"", false, "", std::string(line), ""});
    }
  }
  return documents;
}

bool BeginsCode(std::string_view line) {
  return StartsWithAny(Trimmed(line),
                       "#include|#define|#pragma|#if|#undef|//|/*|extern \"|__|template<|template <|using |namespace|"
                       "static |constexpr |const |struct |typedef |inline |void |enum ") > 0;
}

CodeBlock UnfencedCode(std::string_view answer) {
  while (!answer.empty()) {
    std::string_view line = answer.substr(0, answer.find('\n'));
    for (size_t tag = line.starts_with('<') ? line.find('>') : line.npos; tag < line.size();
         tag = line.find('>', tag + 1)) {
      if (BeginsCode(line.substr(tag + 1))) line.remove_prefix(std::exchange(tag, line.size()) + 1);
    }
    if (BeginsCode(line)) {
      answer.remove_prefix(static_cast<size_t>(line.data() - answer.data()));
      break;
    }
    answer.remove_prefix(std::min(answer.find('\n'), answer.size() - 1) + 1);
  }
  if (const size_t tag = answer.find("}</"); tag < answer.size()) answer = answer.substr(0, tag + 1);
  return {std::string(answer.substr(0, EndOfCode(answer, /*whole=*/false))), false, "", "", ""};
}

}  // namespace kgrpo::coder_shared
