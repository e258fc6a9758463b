#include "coder_shared/answer.h"

#include "coder_shared/blocks.h"
#include "coder_shared/disguise.h"
#include "coder_shared/patch.h"
#include "coder_shared/source.h"
#include "coder_shared/text.h"
#include "coder_shared/thoughts.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace kgrpo::coder_shared {
namespace {

constexpr size_t kMostAnswerBytes = size_t{4} << 20;
constexpr size_t kMostSourceBytes = size_t{1} << 20;

using Found = std::optional<std::pair<kgrpo_coder_outcome, std::string>>;  // the outcome with the source or message

// A block that defines the function, with the blocks that it needs.
struct Candidate {
  std::string source;
  std::string left_out;  // the sign that it is not complete; empty: complete
  bool closed = true, within = false, old = false;
};

// An answer taken apart.
struct Parts {
  const AnswerText& given;
  const Wanted& wanted;
  std::string function, text;  // the text without thoughts
  bool unfinished = false;     // it ended within thoughts
  std::vector<CodeBlock> blocks;
  std::vector<Candidate> candidates;
  std::string foreign;            // the other language that the code is written in
  bool patch = false;             // the answer is a patch
  std::string patched, no_patch;  // the kernel after it, or the reason why it does not apply
};

std::string InQuotes(std::string_view text) {
  return "\"" + OneLine(text) + "\"";
}

// The code with no empty lines before it and exactly one line end after it.
std::string Tidied(std::string_view code) {
  const size_t begin = code.find_first_not_of("\r\n");
  if (begin == std::string_view::npos) return "";
  code.remove_prefix(begin);
  const size_t last = code.find_last_not_of("\n ");
  return last == std::string_view::npos ? "" : std::string(code.substr(0, last + 1)) + '\n';
}

// --- Taking an answer apart.

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
  return !text.empty() && Contains("{[\"", text.substr(0, 1)) && inside != std::string_view::npos &&
         text[inside] == '"';
}

// The JSON object within a text: a call of a tool, say. Empty if there is none.
std::string_view JsonWithin(std::string_view text) {
  const size_t last = text.rfind("\":");
  for (size_t at = text.find('{'); at < last && last != std::string_view::npos; at = text.find('{', at + 1)) {
    if (IsJson(text.substr(at, 200))) return text.substr(at);
  }
  return {};
}

// The text of a shell's here-document, empty if there is none.
std::string HereDocument(std::string_view text) {
  std::string document, end;
  for (const std::string_view line : Lines(text)) {
    if (!end.empty() && Trimmed(line) == end) return document;
    if (!end.empty()) {
      document += std::string(line) + '\n';
    } else if (const size_t mark = line.find("<<"); mark != std::string_view::npos && line.starts_with("cat ")) {
      for (const char c : line.substr(mark)) end += IsWord(c) ? std::string(1, c) : "";
    }
  }
  return "";
}

// Adds the block to the parts' blocks, or the code that is text within it.
void AddBlock(CodeBlock block, Parts* parts, int depth = 0) {
  constexpr int kMostDepth = 3;
  const auto defines = [&](const CodeBlock& literal) { return Contains(literal.text, parts->function); };
  const bool json = IsJson(block.text);
  if (!json) block.text = Undisguised(std::move(block.text));
  if (depth < kMostDepth && !parts->function.empty() && (json || IsPython(block))) {
    std::vector<CodeBlock> literals = Literals(block.text, json);
    if (std::any_of(literals.begin(), literals.end(), defines)) {
      for (CodeBlock& literal : literals) {
        std::vector<CodeBlock> fenced = FencedBlocks(literal.text);
        if (fenced.empty()) fenced.push_back(std::move(literal));
        for (CodeBlock& inner : fenced) AddBlock(std::move(inner), parts, depth + 1);
      }
    }
    parts->foreign = json ? "JSON" : "Python";
    return;
  }
  if (std::string document = HereDocument(block.text); !document.empty()) block.text = std::move(document);
  parts->blocks.push_back(std::move(block));
}

// True if the words before a block, or its first line, say that its code is not the answer.
bool IsOld(const CodeBlock& block) {
  const std::string words = " " + Lower(block.heading) + " " + Lower(block.text.substr(0, block.text.find('\n'))) + " ";
  return FindAny(words,
                 "original|before|baseline|old |previous|for reference|for comparison|unmodified|current kernel") <
             words.size() &&
         FindAny(words, "new |optimi|improved|updated|after|faster|modified version|final|fixed|revised") >=
             words.size();
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

// True if the code has a backtick outside comments and literals, which no C++ has.
bool HasBacktick(std::string_view code) {
  return Contains(Essence(code), "`");
}

// The block at `at` with those that define what it uses, in order; a block that needs nothing of it goes before it.
// `names`: of each block, empty if blocks are not to be joined.
Candidate WithNeeded(const Parts& parts, const std::vector<Names>& names, size_t at) {
  const std::vector<CodeBlock>& blocks = parts.blocks;
  Candidate candidate{blocks[at].text, "", blocks[at].closed, blocks[at].within, IsOld(blocks[at])};
  std::vector<size_t> chosen = {at}, before, after;
  NameSet defined, given;  // names; files that a block stands for
  const auto is_chosen = [&](size_t i) { return std::count(chosen.begin(), chosen.end(), i) > 0; };
  const auto may_join = [&](size_t i) {
    return !is_chosen(i) && !names[i].runs && names[i].defined.count("main") == 0 &&
           !Defines(blocks[i].text, parts.function);
  };
  const auto take = [&](size_t i) {
    for (const std::string& name : names[i].defined) {
      if (!defined.insert(name).second) candidate.left_out = "two of its blocks define " + name;
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
    for (const std::string& file : given) {
      const std::string line = "#include \"" + file + "\"\n";
      for (size_t place; (place = candidate.source.find(line)) != std::string::npos;)
        candidate.source.erase(place, line.size());
    }
  }
  if (candidate.left_out.empty()) candidate.left_out = LeftOut(candidate.source, parts.wanted.current);
  return candidate;
}

bool IsKernel(const Parts& parts, std::string_view code) {
  return parts.function.empty() ? !Trimmed(code).empty() : Defines(code, parts.function);
}

// Of a string of load_inline also that it is not a function of tensors.
bool IsKernel(const Parts& parts, const CodeBlock& block) {
  return IsKernel(parts, block.text) && !(block.within && Contains(block.text, "Tensor " + parts.function + "("));
}

// Reads the patches among the blocks and takes them out.
void TakePatches(Parts* parts) {
  std::string kernel(parts->wanted.current);
  std::erase_if(parts->blocks, [&](const CodeBlock& block) {
    const std::vector<Hunk> hunks = ReadPatch(block.text, block.info);
    if (hunks.empty()) return false;
    parts->patch = true;
    if (parts->no_patch.empty() && !block.closed && IsCutOff(parts->given.finish_reason))
      parts->no_patch = "it is cut off";
    if (parts->no_patch.empty()) kernel = Patched(kernel, hunks, &parts->no_patch);
    return true;
  });
  if (!parts->patch || !parts->no_patch.empty()) return;
  parts->no_patch = LeftOut(kernel, parts->wanted.current);
  if (!IsKernel(*parts, kernel)) parts->no_patch = "the result does not define " + parts->function;
  if (IsBalanced(parts->wanted.current) && !IsBalanced(kernel)) parts->no_patch = "brackets of the result do not close";
  parts->patched = std::move(kernel);
}

void TakeApart(Parts* parts) {
  constexpr size_t kMostBlocks = 64;  // that are compared with each other
  parts->text = WithoutThoughts(WithLines(std::string(parts->given.text)), &parts->unfinished);
  parts->function = FunctionName(parts->wanted.signature);
  const std::string& text = parts->text;
  std::vector<CodeBlock> blocks = FencedBlocks(text);
  const bool fenced = !blocks.empty();
  if (!fenced) blocks = HtmlBlocks(text);
  for (CodeBlock& block : blocks) AddBlock(std::move(block), parts);
  const auto found = [&] {
    return std::any_of(parts->blocks.begin(), parts->blocks.end(),
                       [&](const CodeBlock& b) { return IsKernel(*parts, b); });
  };
  const CodeBlock whole{text, false, "prose", ""};
  if (!fenced && !found()) {
    if (!ReadPatch(text, whole.info).empty()) {
      parts->blocks = {whole};
    } else if (IsPython(whole)) {
      AddBlock(whole, parts);
    } else if (const std::string_view json = IsJson(text) ? std::string_view(text) : JsonWithin(text); !json.empty()) {
      AddBlock({std::string(json), false, "", ""}, parts);
    }
  }
  TakePatches(parts);
  if (!parts->patch && parts->foreign != "Python" && !found()) {
    CodeBlock code = UnfencedCode(Undisguised(text));
    // Fences are within comments of the code, or they end it.
    if (IsKernel(*parts, code.text) && !HasBacktick(code.text)) AddBlock(std::move(code), parts);
  }
  std::vector<Names> names;
  if (parts->blocks.size() > 1 && parts->blocks.size() <= kMostBlocks && !parts->function.empty()) {
    for (const CodeBlock& block : parts->blocks) names.push_back(NamesOf(block.text));
  }
  for (size_t i = parts->blocks.size(); i-- > 0 && parts->candidates.size() < kMostBlocks;) {
    if (IsKernel(*parts, parts->blocks[i])) parts->candidates.push_back(WithNeeded(*parts, names, i));
  }
  std::reverse(parts->candidates.begin(), parts->candidates.end());
}

// --- The forms of an answer.

Found As(kgrpo_coder_outcome outcome, std::string message, bool applies = true) {
  return applies ? Found(std::in_place, outcome, std::move(message)) : std::nullopt;
}

Found Source(std::string source) {
  if (source.size() > kMostSourceBytes)
    return As(KGRPO_CODER_NO_CODE, "a kernel of " + std::to_string(source.size()) + " bytes is too long");
  if (Contains(source, std::string_view("\0", 1)))
    return As(KGRPO_CODER_NO_CODE, "the code has a byte of value 0 in it");
  return As(KGRPO_CODER_OK, std::move(source));
}

Found Refused(const Parts& parts) {
  if (!parts.given.refusal.empty())
    return As(KGRPO_CODER_REFUSED, "the service declined: " + InQuotes(parts.given.refusal));
  return As(KGRPO_CODER_REFUSED, "the service's content filter stopped the answer",
            parts.given.finish_reason == "content_filter");
}

Found TooLong(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE, "an answer of " + std::to_string(parts.given.text.size()) + " bytes is no kernel",
            parts.given.text.size() > kMostAnswerBytes);
}

// The last complete one that is new and not called the old one.
Found Kernel(const Parts& parts) {
  const std::string given = Essence(parts.wanted.current);
  const Candidate* chosen = nullptr;
  for (auto candidate = parts.candidates.rbegin(); candidate != parts.candidates.rend(); ++candidate) {
    if (!candidate->left_out.empty() || (chosen != nullptr && candidate->old)) continue;
    const bool open = !candidate->closed && IsCutOff(parts.given.finish_reason);
    const bool must_balance = !candidate->closed || candidate->within || parts.given.joined;
    if (open || (must_balance && !IsBalanced(candidate->source)) || Essence(candidate->source) == given) continue;
    chosen = &*candidate;
    if (!chosen->old) break;
  }
  return chosen == nullptr ? std::nullopt : Source(Tidied(chosen->source));
}

Found Patch(const Parts& parts) {
  if (!parts.patch || !parts.no_patch.empty()) return std::nullopt;
  return Essence(parts.patched) == Essence(parts.wanted.current) ? std::nullopt : Source(Tidied(parts.patched));
}

// "NOT APPLICABLE: why" and "UNCLEAR: why" at the start of a line, whatever marks stand around it.
Found Said(const Parts& parts) {
  constexpr std::string_view kMarks = " \t*_#>-/\"'`\u201c\u201d\u2018";  // bytes of typographic quotes too
  for (std::string_view line : Lines(parts.text)) {
    for (int i = 0; i < 2; ++i) {
      while (!line.empty() && Contains(kMarks, line.substr(0, 1))) line.remove_prefix(1);
      line.remove_prefix(StartsWithAny(Lower(line.substr(0, 16)), "answer:|result:|verdict:|final answer:"));
    }
    const std::string start = Lower(line.substr(0, 16));
    const size_t size = StartsWithAny(start, "not applicable|not_applicable|not-applicable|n/a|unclear");
    if (size == 0 || (line.size() > size && IsWord(line[size]))) continue;
    return As(start[0] == 'u' ? KGRPO_CODER_UNCLEAR : KGRPO_CODER_NOT_APPLICABLE, OneLine(line));
  }
  return std::nullopt;
}

Found CutOff(const Parts& parts) {
  if (IsCutOff(parts.given.finish_reason)) {
    return As(KGRPO_CODER_TRUNCATED, "the answer was cut off at the limit of its tokens (finish_reason \"" +
                                         OneLine(parts.given.finish_reason) +
                                         "\"): raise max_tokens, or set continuations");
  }
  return As(KGRPO_CODER_TRUNCATED, "the code is incomplete, although the service does not report that it cut it off",
            !parts.blocks.empty() && !parts.blocks.back().closed && !IsBalanced(parts.blocks.back().text));
}

Found Unfinished(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE, "the answer ends within its thoughts", parts.unfinished);
}

Found NotJoined(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE, "the parts of the continued answer do not join to a kernel",
            parts.given.joined && !parts.candidates.empty());
}

Found PartsLeftOut(const Parts& parts) {
  for (const Candidate& candidate : parts.candidates) {
    if (!candidate.left_out.empty())
      return As(KGRPO_CODER_NO_CODE, "parts of the kernel are left out: " + candidate.left_out);
  }
  return std::nullopt;
}

Found PatchFails(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE, "the answer is a patch that does not apply to the kernel: " + parts.no_patch,
            !parts.no_patch.empty());
}

Found Unchanged(const Parts& parts) {
  return As(KGRPO_CODER_NOT_APPLICABLE, "the coder answered with the kernel as it was: nothing was changed",
            !parts.candidates.empty() || parts.patch);
}

// The same words in a sentence, of an answer without a kernel.
Found SaidInASentence(const Parts& parts) {
  const std::string lower = Lower(parts.text);
  const size_t not_applicable = FindAny(
      lower,
      "not applicable|not_applicable|inapplicable|n't applicable|cannot be applied|can't be applied|"
      "can\u2019t be applied|does not apply|doesn't apply|doesn\u2019t apply|already applied|already been applied|"
      "already in place|already implemented|kernel already|already uses|no change is|no changes are|nothing to change");
  const size_t unclear = FindAny(lower, "is unclear|unclear what|unclear which|unclear:");
  const size_t first = std::min(not_applicable, unclear);
  if (first == std::string::npos) return std::nullopt;
  const size_t line = parts.text.rfind('\n', first) + 1;  // npos + 1 is 0
  return As(unclear < not_applicable ? KGRPO_CODER_UNCLEAR : KGRPO_CODER_NOT_APPLICABLE,
            OneLine(std::string_view(parts.text).substr(line, parts.text.find('\n', first) - line)));
}

Found Declined(const Parts& parts) {
  return As(KGRPO_CODER_REFUSED, "the coder declined: " + InQuotes(parts.text),
            StartsWithAny(Lower(Trimmed(parts.text).substr(0, 16)),
                          "i'm sorry|i\u2019m sorry|i am sorry|sorry|i can't|i can\u2019t|i cannot|i'm unable|"
                          "i\u2019m unable|i am unable") > 0);
}

Found OtherLanguage(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE, "the answer is " + parts.foreign + ", and no string in it defines " + parts.function,
            !parts.foreign.empty());
}

Found NoKernel(const Parts& parts) {
  if (Trimmed(parts.text).empty()) return As(KGRPO_CODER_NO_CODE, "the answer is empty");
  const std::string missing = parts.function.empty() ? "is code" : "defines " + parts.function;
  return As(KGRPO_CODER_NO_CODE, "nothing in the answer " + missing + "; it begins: " + InQuotes(parts.text));
}

// The forms of an answer, in the order in which they are tried: the first that applies decides. The last always does.
struct Form {
  const char* name;
  Found (*read)(const Parts& parts);
};
constexpr Form kForms[] = {{"refused", Refused},
                           {"too long", TooLong},
                           {"kernel", Kernel},
                           {"patch", Patch},
                           {"said", Said},
                           {"cut off", CutOff},
                           {"unfinished thoughts", Unfinished},
                           {"not joined", NotJoined},
                           {"parts left out", PartsLeftOut},
                           {"patch that does not apply", PatchFails},
                           {"unchanged", Unchanged},
                           {"said in a sentence", SaidInASentence},
                           {"declined", Declined},
                           {"other language", OtherLanguage},
                           {"no kernel", NoKernel}};

}  // namespace

bool IsCutOff(std::string_view finish_reason) {
  return finish_reason == "length" || Lower(finish_reason) == "max_tokens" || finish_reason == "model_length";
}

ReadAnswer ReadKernel(const AnswerText& answer, const Wanted& wanted) {
  Parts parts{answer, wanted, "", "", false, {}, {}, "", false, "", ""};
  if (answer.text.size() <= kMostAnswerBytes) TakeApart(&parts);
  for (const Form& form : kForms) {
    Found found = form.read(parts);
    if (!found) continue;
    if (found->first == KGRPO_CODER_OK) return {KGRPO_CODER_OK, std::move(found->second), "", form.name};
    return {found->first, "", std::move(found->second), form.name};
  }
  return {};
}

}  // namespace kgrpo::coder_shared
