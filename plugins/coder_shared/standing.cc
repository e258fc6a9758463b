// Reads what an answer says of each of its blocks: which one is the answer, which one is an alternative, or is shown to
// warn of it.
#include "coder_shared/parts.h"
#include "coder_shared/text.h"

#include <algorithm>
#include <utility>

namespace kgrpo::coder_shared {
namespace {

using std::string_view;

// Of the block that follows: not to be used, whatever else is said; the answer; faulty; an earlier one; another one.
constexpr string_view kWarns =
    "not work|n't work|do not use|don't use|should not be used|must not be used|do not submit|don't submit|do not "
    "do|don't do|not to do|not to use|not to write|do not write|don't write|do not copy|never | avoid this| avoid:| "
    "avoid the|not recommend|n't recommend|not valid|not correct|n't correct|not compile|n't compile|not like this|"
    "not this|what not|instead of this|is not safe|not the answer|not my answer|not what|without the fix|should not "
    "|not for use|do not ship|not like so|ignore |negative example|not pass|n't pass|nothing useful|is not it|not "
    "good|not thread|less efficient|"
    "before the fix|without the optimi|unfixed|incomplete|with the race|n't copy";
constexpr string_view kPraises =
    " new | optimi|improved|updated| after|faster|modified version|final|fixed|revised| correct|better|use this|"
    "working|recommended|the answer|submission| fix|solution|rewritten|second thought|second attempt|"
    "third attempt|attempt 2|attempt 3|second try|third try|try 2|try 3|changed version|new attempt|another attempt|"
    "another try";
constexpr string_view kBlames =
    "wrong|incorrect|broken|buggy|faulty|a bug|the bug|breaks for|breaks when|breaks if|non-working|would not do| "
    "slow |bad |bad:|has a bug|fails|failing|race condition|a race|racy|deadlock|counterexample|counter-example|"
    "anti-pattern|antipattern|contrast|rejected|discard|illegal|invalid|unsafe|slower|worse|pitfall|mistake|"
    "erroneous|flawed|inefficient|crash|abandoned|failed|scrapped|hang|ruled out|instead of:|\u274c|\u2717|\u2718|"
    "dead end|undefined|suboptimal|sub-optimal|outdated|deprecated|trap:| nan|out-of-bounds|out of bounds";
constexpr string_view kOlds =
    "your kernel|input kernel|given kernel|you gave|original|before|baseline|old |old:|previous|for reference|for "
    "comparison|unmodified|current kernel|naive|starting point|started from|illustrat|first attempt|first try|first "
    "draft|draft|rough|sketch|attempt|unoptimi|to compare|earlier|we had|reference implementation|"
    "initial|starting|prior ";
// They turn a fault into a merit: "without a race".
constexpr string_view kNegates = " no |without|avoid|remov|eliminat|prevent|fewer|less |resolv|instead of a";
// After another patch, they say besides that it is for the given kernel alone.
constexpr string_view kOtherPatches =
    "another |variant|or instead|possibility|instead of the|not both|different approach|plan b|could also|if that|if "
    "this";
constexpr string_view kAlternatives =
    "alternativ|option b|option 2|option c|option 3|variant b|variant 2|or:|or,|another way|another option|another "
    "version|another variant|second option|if you prefer|if you'd rather|otherwise|optional";
// Of the block above: with one of the first, one of the second.
constexpr string_view kAbove =
    "this|that|it |it's|above|first|version|previous|wait|actually|oops|no,|hmm|which|code|kernel";
constexpr string_view kFaults =
    "is wrong|was wrong|'s wrong|is incorrect|'s incorrect|is broken|'s broken|not correct|n't correct|not work|n't "
    "work|has a bug|a bug|a race|is buggy|deadlocks|would deadlock|do not use|don't use|not compile|n't compile|"
    "ignore this|ignore it|ignore the|discard|a mistake|is invalid|is slower|is flawed|is racy|hangs|not safe|not "
    "right|n't right|not what";

// True if one of the phrases stands in the text where a word begins: "change" has no "hang". "n't" is within one.
bool Has(string_view text, string_view phrases) {
  for (size_t end = 0; !phrases.empty(); phrases.remove_prefix(std::min(end + 1, phrases.size()))) {
    end = std::min(phrases.find('|'), phrases.size());
    const string_view phrase = phrases.substr(0, end);
    for (size_t at = text.find(phrase); at < text.size(); at = text.find(phrase, at + 1)) {
      if (at == 0 || !IsLetter(text[at - 1]) || !IsLetter(phrase[0]) || phrase.starts_with("n't")) return true;
    }
  }
  return false;
}

// The sentences of a text in lower case; clauses too.
std::vector<string_view> Sentences(string_view text) {
  std::vector<string_view> sentences;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool ends =
        i == text.size() || text[i] == '\n' ||
        (Contains(".!?;,", text.substr(i, 1)) && (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n'));
    if (!ends) continue;
    const string_view sentence = Trimmed(text.substr(begin, std::min(i + 1, text.size()) - begin));
    if (!sentence.empty()) sentences.push_back(sentence);
    begin = i + 1;
  }
  return sentences;
}

// Which of the kernels a clause names: "the first", "option B", "version 2", "the last block"; npos: none.
size_t Ordinal(string_view clause, size_t kernels) {
  if (Has(clause, "the last|the final block|the final kernel")) return kernels - 1;
  constexpr string_view kNames[] = {
      "first|option a|option 1|version 1|version a|variant a|variant 1|kernel 1|kernel a|former|1st",
      "second|option b|option 2|version 2|version b|variant b|variant 2|kernel 2|kernel b|latter|2nd",
      "third|option c|option 3|version 3|version c|variant c|variant 3|kernel 3|3rd"};
  for (size_t i = 0; i < 3; ++i) {
    if (Has(clause, kNames[i])) return i;
  }
  return string_view::npos;
}

// The title in lower case, with blanks for its marks.
std::string TitleOf(const CodeBlock& block) {
  std::string title = " " + Lower(block.heading) + " ";
  for (char& c : title) c = Contains("*_#()\"`", std::string_view(&c, 1)) ? ' ' : c;
  const auto blanks = [](char a, char b) { return a == ' ' && b == ' '; };
  title.erase(std::unique(title.begin(), title.end(), blanks), title.end());
  return title;
}

}  // namespace

bool IsAlternative(const CodeBlock& block) {
  return Has(TitleOf(block), kAlternatives) || Has(TitleOf(block), kOtherPatches);
}

// The words of a title decide in this order; a comment on the code's first line may only make it an old one.
Standing StandingOf(const CodeBlock& block) {
  const std::string title = TitleOf(block);
  if (Has(title, kWarns)) return Standing::kRejected;
  if (Has(title, kAlternatives) && !Has(title, "better|faster|final|recommended|preferred")) return Standing::kOld;
  std::string comment = Lower(block.text.substr(0, block.text.find('\n')));
  comment = StartsWithAny(Trimmed(comment), "//|/*") > 0 ? " " + comment + " " : "";
  const bool blames_above = Has(title, "oops|hmm|wait|sorry|that's|that was|the above");
  if (Has(title, kPraises) || blames_above || (!Has(title, kBlames) && Has(comment, kPraises)))
    return Standing::kAnswer;
  if (Has(title, kBlames) && !Has(title, kNegates)) return Standing::kRejected;
  if (Has(comment, kWarns) || Has(comment, "wrong:|broken:|buggy:|bad:") || Has(title, kOlds) || Has(comment, kOlds))
    return Standing::kOld;
  return Standing::kAnswer;
}

bool IsRecommended(const CodeBlock& block) {
  return Has(TitleOf(block), "use this|use the following|submit this|my answer|final answer|recommended") &&
         StandingOf(block) == Standing::kAnswer;
}

bool IsCorrection(const CodeBlock& block) {
  return Has(TitleOf(block), kPraises) || Has(TitleOf(block), "wait|actually|oops|hmm|sorry|again|correct|now|instead");
}

void ApplyRemarks(const std::vector<std::string>& remarks, std::vector<Standing>* standings) {
  size_t chosen = string_view::npos;
  for (size_t i = 0; i < remarks.size(); ++i) {  // remarks[i] follows kernel i
    const std::string remark = Lower(remarks[i]);
    for (const string_view sentence : Sentences(remark)) {
      const size_t named = remarks.size() > 1 ? Ordinal(sentence, remarks.size()) : string_view::npos;
      const bool faulty = Has(sentence, kFaults) && !Has(" " + std::string(sentence), kNegates);
      if (named < remarks.size()) {
        if (faulty) {
          (*standings)[named] = Standing::kRejected;
        } else if (Has(sentence,
                       "use |recommend|prefer|choose|pick|go with|best|final|submit|answer is|my answer|the "
                       "answer|take "
                       "|faster|fastest|better")) {
          chosen = named;
        } else if (Has(sentence, "original|comparison|baseline|unmodified|reference")) {
          (*standings)[named] = Standing::kOld;
        }
      } else if (faulty && Has(sentence, kAbove) && remarks.size() > 1) {
        (*standings)[i] = Standing::kRejected;
      }
    }
  }
  for (size_t i = 0; i < standings->size() && chosen < standings->size(); ++i) {
    if (i != chosen && (*standings)[i] == Standing::kAnswer) (*standings)[i] = Standing::kOld;
    if (i == chosen) (*standings)[i] = Standing::kAnswer;
  }
}

bool TakesBack(const CodeBlock& block, std::string_view remark) {
  return Has(Lower(block.heading), "try|draft|attempt|maybe|could|would|let me|what if|look like|sketch|idea|first") &&
         Has(Lower(remark),
             "brings nothing|would keep it|i'd keep|keep the original|keep the current|keep the kernel|i decline|gains "
             "nothing|stick with the original|leave the kernel as|not worth|no benefit|does not help|doesn't help");
}

}  // namespace kgrpo::coder_shared
