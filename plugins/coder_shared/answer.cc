#include "coder_shared/answer.h"

#include "coder_shared/parts.h"
#include "coder_shared/source.h"
#include "coder_shared/text.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace kgrpo::coder_shared {
namespace {

constexpr size_t kMostAnswerBytes = size_t{4} << 20;
constexpr size_t kMostSourceBytes = size_t{1} << 20;

// The outcome with the source or the message.
struct Outcome {
  kgrpo_coder_outcome outcome;
  std::string text, doubt;
};
using Found = std::optional<Outcome>;

std::string InQuotes(std::string_view text) { return "\"" + OneLine(text) + "\""; }

Found As(kgrpo_coder_outcome outcome, std::string message, bool applies = true) {
  return applies ? Found({outcome, std::move(message), ""}) : std::nullopt;
}

Found Source(std::string source, std::string doubt) {
  if (source.size() > kMostSourceBytes)
    return As(KGRPO_CODER_NO_CODE, "a kernel of " + std::to_string(source.size()) + " bytes is too long");
  if (Contains(source, std::string_view("\0", 1)))
    return As(KGRPO_CODER_NO_CODE, "the code has a byte of value 0 in it");
  return Outcome{KGRPO_CODER_OK, std::move(source), std::move(doubt)};
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

// NOT APPLICABLE outside of the blocks, in the words that were asked for: a kernel beside it is a draft.
Found SaidBesideDraft(const Parts& parts) {
  if (parts.candidates.empty()) return std::nullopt;
  for (std::string_view line : Lines(parts.prose)) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t*_#>\"'`"), line.size()));
    if (line.starts_with("NOT APPLICABLE")) return As(KGRPO_CODER_NOT_APPLICABLE, OneLine(line));
  }
  return std::nullopt;
}

Found CutOffAs(const char* what, const Parts& parts, bool applies) {
  if (!applies) return std::nullopt;
  if (IsCutOff(parts.given.finish_reason)) {
    return As(KGRPO_CODER_TRUNCATED, "the answer was cut off at the limit of its tokens (finish_reason \"" +
                                         OneLine(parts.given.finish_reason) + "\"): raise max_tokens");
  }
  return As(KGRPO_CODER_TRUNCATED,
            std::string(what) + " is incomplete, although the service does not report that it cut it off");
}

// The last complete one that is new, unless the answer says that it is another one. One that it warns of is never it.
const Candidate* Chosen(const Parts& parts) {
  const std::string given = Essence(parts.wanted.current);
  const Candidate* chosen = nullptr;
  for (auto candidate = parts.candidates.rbegin(); candidate != parts.candidates.rend(); ++candidate) {
    if (!candidate->omission.sure.empty() || !candidate->stray.empty() || !candidate->misfit.empty()) continue;
    if (candidate->standing == Standing::kRejected || (chosen != nullptr && candidate->standing == Standing::kOld))
      continue;
    const bool open = !candidate->closed && IsCutOff(parts.given.finish_reason);
    const bool must_balance = !candidate->closed || candidate->within;
    if (open || (must_balance && !IsBalanced(candidate->source)) || Essence(candidate->source) == given) continue;
    chosen = &*candidate;
    if (chosen->standing == Standing::kAnswer) break;
  }
  return chosen;
}

// A later version of the kernel that was cut off: the answer takes the earlier one back.
Found LaterCutOff(const Parts& parts) {
  const Candidate* chosen = Chosen(parts);
  const bool cut_code = FindAny(parts.last, "__global__|#include <|extern \"C\"") < parts.last.size();
  if (chosen != nullptr && IsCutOff(parts.given.finish_reason) && (parts.no_patch == kCutOff || cut_code))
    return CutOffAs("", parts, true);
  if (chosen == nullptr || parts.blocks.empty() || chosen->block + 1 >= parts.blocks.size()) return std::nullopt;
  const CodeBlock& last = parts.blocks.back();
  const std::string_view code = Trimmed(last.text);
  const bool ends = IsBalanced(code) && (code.ends_with('}') || code.ends_with(';') || code.ends_with("*/"));
  if (last.closed || (!IsCutOff(parts.given.finish_reason) && ends)) return std::nullopt;
  if (StandingOf(last) != Standing::kAnswer) return std::nullopt;
  const std::string title = Lower(last.heading);
  const bool usage =
      FindAny(title, "usage|example|test:|tests|a test|to test|testing|test program|test code|bench|how to|compile") <
      title.size();
  const Names begun = NamesOf(last.text), whole = NamesOf(chosen->source);
  const bool again = std::any_of(begun.defined.begin(), begun.defined.end(),
                                 [&](const auto& n) { return whole.defined.count(n) > 0; });
  const auto first_line = [](std::string_view text) {
    return Trimmed(Trimmed(text).substr(0, Trimmed(text).find('\n')));
  };
  const bool corrects =
      FindAny(title, "correct|fix|improv|final|better|faster|revis|updat|optimi|instead|new ") < title.size();
  return CutOffAs("a later version of the kernel", parts,
                  !usage && begun.defined.count("main") == 0 &&
                      (again || corrects || first_line(last.text) == first_line(chosen->source)));
}

Found Kernel(const Parts& parts) {
  const Candidate* chosen = Chosen(parts);
  return chosen == nullptr ? std::nullopt : Source(Tidied(chosen->source), chosen->omission.doubt);
}

Found Patch(const Parts& parts) {
  if (!parts.patch || !parts.no_patch.empty()) return std::nullopt;
  return Essence(parts.patched) == Essence(parts.wanted.current) ? std::nullopt
                                                                 : Source(Tidied(parts.patched), parts.patch_doubt);
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
  return CutOffAs("the code", parts,
                  IsCutOff(parts.given.finish_reason) ||
                      (!parts.blocks.empty() && !parts.blocks.back().closed && !IsBalanced(parts.blocks.back().text)));
}

Found Unfinished(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE, "the answer ends within its thoughts", parts.unfinished);
}

Found NotCpp(const Parts& parts) {
  for (const Candidate& candidate : parts.candidates) {
    if (!candidate.stray.empty())
      return As(KGRPO_CODER_NO_CODE, "the code is not C++: it contains " + InQuotes(candidate.stray));
  }
  return std::nullopt;
}

Found PartsLeftOut(const Parts& parts) {
  for (const Candidate& candidate : parts.candidates) {
    if (!candidate.omission.sure.empty())
      return As(KGRPO_CODER_NO_CODE, "parts of the kernel are left out: " + candidate.omission.sure);
  }
  return std::nullopt;
}

Found OtherFunction(const Parts& parts) {
  for (const Candidate& candidate : parts.candidates) {
    if (!candidate.misfit.empty())
      return As(KGRPO_CODER_NO_CODE, "the answer's " + parts.function + " is " + candidate.misfit);
  }
  return std::nullopt;
}

Found Rejected(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE, "the answer itself rejects its kernel",
            std::any_of(parts.candidates.begin(), parts.candidates.end(),
                        [](const Candidate& one) { return one.standing == Standing::kRejected; }));
}

Found PatchFails(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE, "the answer is a patch that does not apply to the kernel: " + parts.no_patch,
            !parts.no_patch.empty());
}

Found Unchanged(const Parts& parts) {
  const std::string given = Essence(parts.wanted.current);
  const bool same = std::any_of(parts.candidates.begin(), parts.candidates.end(),
                                [&](const Candidate& one) { return Essence(one.source) == given; });
  return As(KGRPO_CODER_NOT_APPLICABLE, "the coder answered with the kernel as it was: nothing was changed",
            same || (parts.patch && parts.no_patch.empty()));
}

// The same words in a sentence, of an answer without a kernel.
Found SaidInASentence(const Parts& parts) {
  const std::string lower = Lower(parts.plain);
  const size_t not_applicable = FindAny(
      lower,
      "not applicable|not_applicable|inapplicable|n't applicable|cannot be applied|can't be applied|does not apply|"
      "doesn't apply|already applied|already been applied|already been made|already in place|already implemented|"
      "kernel already|already uses|no change is|no changes are|nothing to change|no modification is|"
      "no modification needed|not make sense|not possible to apply|brings nothing|would keep it|keep it as it is");
  const size_t unclear = FindAny(lower, "is unclear|unclear what|unclear which|unclear:");
  const size_t first = std::min(not_applicable, unclear);
  if (first == std::string::npos) return std::nullopt;
  const size_t line = lower.rfind('\n', first) + 1;  // npos + 1 is 0
  return As(unclear < not_applicable ? KGRPO_CODER_UNCLEAR : KGRPO_CODER_NOT_APPLICABLE,
            OneLine(std::string_view(parts.plain).substr(line, lower.find('\n', first) - line)));
}

Found Declined(const Parts& parts) {
  return As(KGRPO_CODER_REFUSED, "the coder declined: " + InQuotes(parts.text),
            parts.blocks.empty() && StartsWithAny(Lower(Trimmed(parts.plain).substr(0, 16)),
                                                  "i'm sorry|i am sorry|sorry, |sorry but|i can't|i cannot|i'm unable|"
                                                  "i am unable|i'm not able|i am not able|as an ai") > 0);
}

Found OtherLanguage(const Parts& parts) {
  return As(KGRPO_CODER_NO_CODE,
            "the code is in " + parts.foreign + ", and no string in it is a whole definition of " + parts.function,
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
                           {"said beside a draft", SaidBesideDraft},
                           {"later version cut off", LaterCutOff},
                           {"kernel", Kernel},
                           {"patch", Patch},
                           {"said", Said},
                           {"cut off", CutOff},
                           {"unfinished thoughts", Unfinished},
                           {"parts left out", PartsLeftOut},
                           {"not C++", NotCpp},
                           {"other function", OtherFunction},
                           {"patch that does not apply", PatchFails},
                           {kUnchanged, Unchanged},
                           {"said in a sentence", SaidInASentence},
                           {"rejected", Rejected},
                           {"declined", Declined},
                           {"other language", OtherLanguage},
                           {"no kernel", NoKernel}};

}  // namespace

bool IsCutOff(std::string_view finish_reason) {
  return finish_reason == "length" || Lower(finish_reason) == "max_tokens" || finish_reason == "model_length";
}

ReadAnswer ReadKernel(const AnswerText& answer, const Wanted& wanted) {
  Parts parts{.given = answer, .wanted = wanted};
  if (answer.text.size() <= kMostAnswerBytes) TakeApart(&parts);
  for (const Form& form : kForms) {
    Found found = form.read(parts);
    if (!found) continue;
    if (found->outcome == KGRPO_CODER_OK)
      return {KGRPO_CODER_OK, std::move(found->text), "", form.name, std::move(found->doubt)};
    return {found->outcome, "", std::move(found->text), form.name, ""};
  }
  return {};
}

}  // namespace kgrpo::coder_shared
