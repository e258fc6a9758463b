#include "coder_shared/parts.h"

#include "coder_shared/literals.h"
#include "coder_shared/source.h"
#include "coder_shared/text.h"
#include "coder_shared/thoughts.h"
#include "cuda_source/lexer.h"

#include <algorithm>
#include <utility>

namespace kgrpo::coder_shared {
namespace {

using cuda_source::DefinesFunction;

bool IsPython(const CodeBlock& block) {
  if (block.info.starts_with("py")) return true;
  const std::vector<std::string_view> lines = Lines(block.text);
  const auto first =
      std::find_if(lines.begin(), lines.end(), [](std::string_view line) { return !Trimmed(line).empty(); });
  if (first == lines.end() || BeginsCode(*first)) return false;
  return std::any_of(first, lines.end(), [](std::string_view line) {
    if (line.starts_with("from ")) return Contains(line, " import ");
    return (line.starts_with("import ") && !line.ends_with(';')) || line.ends_with("\"\"\"") || line.ends_with("'''");
  });
}

bool IsJson(std::string_view text) {
  text = Trimmed(text);
  const size_t inside = text.find_first_not_of("{[ \t\n");
  return !text.empty() && Contains("{[", text.substr(0, 1)) && inside != std::string_view::npos && text[inside] == '"';
}

// The JSON object within a text: a call of a tool, say. Empty if there is none.
std::string_view JsonWithin(std::string_view text) {
  const size_t last = text.rfind("\":");
  for (size_t at = text.find('{'); at < last && last != std::string_view::npos; at = text.find('{', at + 1)) {
    if (IsJson(text.substr(at, 200))) return text.substr(at);
  }
  return {};
}

// Adds the block to the parts' blocks, or the code that is text within it.
void AddBlock(CodeBlock block, Parts* parts, int depth = 0) {
  constexpr int kMostDepth = 3;
  const auto defines = [&](const CodeBlock& literal) { return Contains(literal.text, parts->function); };
  const bool json = IsJson(block.text);
  if (json && !ReadPatch(block.text, "").empty()) return parts->blocks.push_back(std::move(block));
  if (!json) block.text = Undisguised(std::move(block.text));
  if (depth < kMostDepth && !parts->function.empty() && (json || IsPython(block))) {
    std::vector<CodeBlock> literals = Literals(block.text, json);
    if (std::any_of(literals.begin(), literals.end(), defines)) {
      for (CodeBlock& literal : literals) {
        std::vector<CodeBlock> fenced = FencedBlocks(literal.text);
        if (fenced.empty()) fenced.push_back(std::move(literal));
        for (CodeBlock& inner : fenced) {
          if (inner.heading.empty()) inner.heading = block.heading;
          inner.remark += std::exchange(block.remark, "");
          AddBlock(std::move(inner), parts, depth + 1);
        }
      }
    }
    parts->foreign = json ? "JSON" : "Python";
    return;
  }
  if (std::vector<CodeBlock> texts = YamlTexts(block.text); std::any_of(texts.begin(), texts.end(), defines)) {
    for (CodeBlock& text : texts) {
      text.heading = block.heading;
      parts->blocks.push_back(std::move(text));
    }
    return;
  }
  std::vector<CodeBlock> documents = HereDocuments(block.text);
  if (std::any_of(documents.begin(), documents.end(), defines)) {
    for (CodeBlock& document : documents) parts->blocks.push_back(std::move(document));
  } else if (StartsWithAny(block.info, "sh|bash|zsh|console") > 0 && defines(block)) {
    parts->foreign = "a shell's commands";
  } else {
    parts->blocks.push_back(std::move(block));
  }
}

// The names of the files that the source includes in quotes.
std::vector<std::string> QuotedIncludes(const std::string& source) {
  std::vector<std::string> files;
  for (std::string_view line : Lines(source)) {
    if (!line.starts_with("#include \"")) continue;
    line.remove_prefix(10);
    files.emplace_back(line.substr(0, line.find('"')));
  }
  return files;
}

bool IsOnlyIncludes(const CodeBlock& block) {
  const std::vector<std::string_view> lines = Lines(block.text);
  return std::any_of(lines.begin(), lines.end(),
                     [](std::string_view line) { return line.starts_with("#include <"); }) &&
         std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
           return Trimmed(line).empty() || line[0] == '#' || line.starts_with("//");
         });
}

// The line, with its end, that defines the name in block `i` and in one of the others; empty if they differ.
std::string SameDefinition(const std::vector<CodeBlock>& blocks, const std::vector<size_t>& others, size_t i,
                           const std::string& name) {
  for (const std::string_view line : Lines(blocks[i].text)) {
    if (!Contains(line, name) || NamesOf(line).defined.count(name) == 0) continue;
    const std::string whole = std::string(line) + '\n';
    for (const size_t other : others) {
      if (other != i && Contains("\n" + blocks[other].text, "\n" + whole)) return whole;
    }
  }
  return "";
}

// The block at `at` with those that define what it uses, in order; a block that needs nothing of it goes before it.
// `names`: of each block, empty if blocks are not to be joined.
Candidate WithNeeded(const Parts& parts, const std::vector<Names>& names, size_t at) {
  const std::vector<CodeBlock>& blocks = parts.blocks;
  Candidate candidate{.source = blocks[at].text,
                      .closed = blocks[at].closed,
                      .within = blocks[at].within,
                      .standing = StandingOf(blocks[at]),
                      .block = at};
  std::vector<size_t> chosen = {at}, before, after;
  NameSet defined, given;  // names; files that a block stands for
  const auto is_chosen = [&](size_t i) { return std::count(chosen.begin(), chosen.end(), i) > 0; };
  const auto may_join = [&](size_t i) {
    return !is_chosen(i) && !names[i].runs && names[i].defined.count("main") == 0 &&
           !DefinesFunction(blocks[i].text, parts.function);
  };
  constexpr size_t kMostSame = 32;
  std::vector<std::string> again;  // lines that define a name once more, in the same way
  const auto take = [&](size_t i) {
    for (const std::string& name : names[i].defined) {
      if (defined.insert(name).second) continue;
      const std::string line = again.size() < kMostSame ? SameDefinition(blocks, chosen, i, name) : "";
      if (line.empty()) candidate.omission.sure = "two of its blocks define " + name;
      again.push_back(line);
    }
    if (i != at) chosen.push_back(i);
  };
  if (!names.empty()) take(at);
  for (size_t next = 0; next < chosen.size() && !names.empty(); ++next) {
    for (const std::string& name : names[chosen[next]].used) {
      for (size_t i = names.size(); i-- > 0 && defined.count(name) == 0;) {
        if (names[i].defined.count(name) > 0 && may_join(i)) take(i);
      }
    }
    for (const std::string& file : QuotedIncludes(blocks[chosen[next]].text)) {
      for (size_t i = 0; i < names.size(); ++i) {
        const std::string_view first = std::string_view(blocks[i].text).substr(0, blocks[i].text.find('\n'));
        if (!Contains(blocks[i].heading, file) && !Contains(blocks[i].info, Lower(file)) &&
            !Contains(first, "// " + file))
          continue;
        if (may_join(i)) take(i);
        if (is_chosen(i)) given.insert(file);
      }
    }
  }
  for (size_t i = 0; i < at && !names.empty(); ++i) {
    if (IsOnlyIncludes(blocks[i]) && !is_chosen(i)) chosen.push_back(i);
  }
  if (chosen.size() > 1) {
    std::sort(chosen.begin(), chosen.end());
    for (const size_t i : chosen) {
      const NameSet& own = names[at].defined;
      const bool needs =
          std::any_of(own.begin(), own.end(), [&](const auto& name) { return names[i].used.count(name) > 0; });
      if (i != at) (i > at && needs ? after : before).push_back(i);
      candidate.closed = candidate.closed && blocks[i].closed;
    }
    before.push_back(at);
    before.insert(before.end(), after.begin(), after.end());
    candidate.source.clear();
    for (const size_t i : before) candidate.source += Tidied(blocks[i].text) + (i == before.back() ? "" : "\n");
    for (const std::string& line : again) {
      const size_t first = line.empty() ? std::string::npos : candidate.source.find(line);
      const size_t second = first == std::string::npos ? first : candidate.source.find(line, first + line.size());
      if (second != std::string::npos) candidate.source.erase(second, line.size());
    }
    for (const std::string& file : given) {
      const std::string line = "#include \"" + file + "\"\n";
      for (size_t place; (place = candidate.source.find(line)) != std::string::npos;)
        candidate.source.erase(place, line.size());
    }
  }
  if (candidate.omission.sure.empty()) candidate.omission = LeftOut(candidate.source, parts.wanted.current);
  candidate.stray = StrayCharacter(candidate.source);
  candidate.misfit = Misfit(candidate.source, parts.wanted.signature);
  return candidate;
}

bool IsKernel(const Parts& parts, std::string_view code) {
  return parts.function.empty() ? !Trimmed(code).empty() : DefinesFunction(code, parts.function);
}

// Reads the patches among the blocks and takes them out.
void TakePatches(Parts* parts) {
  std::string kernel(parts->wanted.current);
  const std::string given = "\n" + kernel + "\n";
  std::erase_if(parts->blocks, [&](const CodeBlock& block) {
    // Lines of the kernel that are marked as removed make it a patch, whatever its tag says.
    const std::vector<std::string_view> lines = Lines(block.text);
    const bool marked = std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
      return line.starts_with('-') && !Trimmed(line.substr(1)).empty() &&
             Contains(given, "\n" + std::string(line.substr(1)) + "\n");
    });
    const std::vector<Hunk> hunks = ReadPatch(block.text, marked && block.info != "prose" ? "diff" : block.info);
    if (hunks.empty()) return false;
    const bool other = parts->patch && IsAlternative(block);
    parts->patch = true;
    if (other || StandingOf(block) == Standing::kRejected || !parts->no_patch.empty()) return true;
    if (!block.closed && IsCutOff(parts->given.finish_reason)) {
      parts->no_patch = kCutOff;
      return true;
    }
    std::string patched = Patched(kernel, hunks, &parts->no_patch);
    // A later version of an earlier patch applies to the given kernel.
    std::string why;
    if (patched.empty() && kernel != parts->wanted.current) patched = Patched(parts->wanted.current, hunks, &why);
    if (patched.empty()) return true;
    kernel = std::move(patched);
    if (why.empty() && block.closed) parts->no_patch.clear();
    return true;
  });
  if (!parts->patch || !parts->no_patch.empty()) return;
  Omission omission = LeftOut(kernel, parts->wanted.current);
  parts->no_patch = std::move(omission.sure);
  parts->patch_doubt = std::move(omission.doubt);
  if (!IsKernel(*parts, kernel)) parts->no_patch = "the result does not define " + parts->function;
  if (IsBalanced(parts->wanted.current) && !IsBalanced(kernel)) parts->no_patch = "brackets of the result do not close";
  parts->patched = std::move(kernel);
}

}  // namespace

std::string Tidied(std::string_view code) {
  const size_t begin = code.find_first_not_of("\r\n");
  if (begin == std::string_view::npos) return "";
  code.remove_prefix(begin);
  const size_t last = code.find_last_not_of("\n ");
  return last == std::string_view::npos ? "" : std::string(code.substr(0, last + 1)) + '\n';
}

void TakeApart(Parts* parts) {
  constexpr size_t kMostBlocks = 64;  // that are compared with each other
  parts->text = WithoutThoughts(WithLines(parts->given.text), &parts->unfinished);
  parts->function = cuda_source::FunctionName(parts->wanted.signature);
  const std::string& text = parts->text;
  parts->plain = WithPlainApostrophes(text);
  std::vector<CodeBlock> blocks = FencedBlocks(text, &parts->prose, &parts->last);
  const bool fenced = !blocks.empty();
  const bool thoughts = std::erase_if(blocks, [](const CodeBlock& block) { return IsThoughtful(block.info); }) > 0;
  for (CodeBlock& block : blocks) AddBlock(std::move(block), parts);
  const auto found = [&] {
    return std::any_of(parts->blocks.begin(), parts->blocks.end(),
                       [&](const CodeBlock& b) { return IsKernel(*parts, b.text); });
  };
  const CodeBlock whole{text, false, "prose", "", ""};
  if (!fenced && !found()) {
    if (!ReadPatch(text, whole.info).empty()) {
      parts->blocks = {whole};
    } else if (IsPython(whole)) {
      AddBlock(whole, parts);
    } else if (const std::string_view json = IsJson(text) ? std::string_view(text) : JsonWithin(text); !json.empty()) {
      AddBlock({std::string(json), false, "", "", ""}, parts);
    }
  }
  TakePatches(parts);
  if (!parts->patch && parts->foreign != "Python" && !thoughts && !found()) {
    CodeBlock code = UnfencedCode(Undisguised(text));
    // Fences are within comments of the code, or they end it.
    if (IsKernel(*parts, code.text) && StrayCharacter(code.text).empty()) AddBlock(std::move(code), parts);
  }
  std::vector<Names> names;
  if (parts->blocks.size() > 1 && parts->blocks.size() <= kMostBlocks && !parts->function.empty()) {
    for (const CodeBlock& block : parts->blocks) names.push_back(NamesOf(block.text));
  }
  for (size_t i = parts->blocks.size(); i-- > 0 && parts->candidates.size() < kMostBlocks;) {
    if (IsKernel(*parts, parts->blocks[i].text)) parts->candidates.push_back(WithNeeded(*parts, names, i));
  }
  std::reverse(parts->candidates.begin(), parts->candidates.end());
  // What stands between a kernel and the next one is said of the first.
  std::vector<std::string> remarks;
  std::vector<Standing> standings;
  for (size_t i = 0; i < parts->candidates.size(); ++i) {
    const bool last = i + 1 == parts->candidates.size();
    std::string& remark = remarks.emplace_back();
    for (size_t k = parts->candidates[i].block;
         ++k <= (last ? parts->blocks.size() - 1 : parts->candidates[i + 1].block);)
      remark += parts->blocks[k].remark;
    if (last) remark += parts->last;
    standings.push_back(TakesBack(parts->blocks[parts->candidates[i].block], remark) ? Standing::kRejected
                                                                                     : parts->candidates[i].standing);
  }
  ApplyRemarks(remarks, &standings);
  // A recommended kernel is the answer, unless a later one corrects it.
  bool recommended = false;
  for (size_t i = 0; i < standings.size(); ++i) {
    const CodeBlock& block = parts->blocks[parts->candidates[i].block];
    if (standings[i] != Standing::kAnswer) continue;
    if (recommended && !IsRecommended(block) && !IsCorrection(block)) standings[i] = Standing::kOld;
    recommended = recommended || IsRecommended(block);
  }
  for (size_t i = 0; i < standings.size(); ++i) parts->candidates[i].standing = standings[i];
}

}  // namespace kgrpo::coder_shared
