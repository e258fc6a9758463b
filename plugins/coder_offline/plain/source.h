// Reads an ordinary CUDA source by its tokens: functions with their parameters, launches, and named numbers. It needs
// no schedule line and ignores comments and strings. Used by the techniques of this folder. Templates are read as they
// are written. Macros that hide what a kernel does are expanded first (macros.cc).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_source/lexer.h"

namespace kgrpo::coder_offline {

// Tokens [begin, end).
struct Range {
  size_t begin = 0, end = 0;
  bool Holds(size_t i) const { return begin <= i && i < end; }
};

struct PlainParameter {
  std::string type;  // without const, * and __restrict__: "float", "unsigned int"
  std::string name;
  bool pointer = false, constant = false, restrict = false;
  Range tokens;
};

struct PlainFunction {
  std::string name;
  bool global = false, device = false;  // both false: a host function
  size_t first = 0, name_token = 0;
  std::vector<PlainParameter> parameters;
  Range body;  // between its braces
};

// kernel<<<grid, block, shared>>>(arguments). `host`: the index of the function that contains it.
struct PlainLaunch {
  std::string kernel;
  size_t host = 0;
  Range template_arguments;  // k<256><<<...>>>; empty without them
  Range grid, block, shared;
  std::vector<Range> arguments;
};

// The source with its macros expanded in device functions, if they hide accesses, barriers or assignments there. Such a
// macro that can't be expanded (defined twice, with # or ..., or to more than 1 MiB in all) adds its name to *hidden.
std::string ExpandMacros(std::string text, std::set<std::string, std::less<>>* hidden);

// A whole number and the place of its digits: where it is used, or where its name is defined.
struct PlainNumber {
  int value = 0;
  size_t begin = 0, end = 0;  // offsets in the text
};

struct Edit {
  size_t begin, end;  // offsets in the text
  std::string text;
};

// for (start; condition; step)
struct ForHead {
  Range start, condition, step;
  size_t close = 0;  // the token )
};

// True if `words` has the word.
inline bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class PlainSource {
 public:
  // Sets *why to the reason why this source can't be changed, or to an empty text.
  PlainSource(std::string text, std::string* why);
  PlainSource(const PlainSource&) = delete;
  PlainSource& operator=(const PlainSource&) = delete;

  const std::vector<PlainFunction>& functions() const { return functions_; }
  const std::vector<PlainLaunch>& launches() const { return launches_; }
  const PlainFunction* Find(std::string_view name) const;
  std::vector<const PlainLaunch*> LaunchesOf(const PlainFunction& kernel) const;

  size_t size() const { return tokens_.size(); }
  const cuda_source::Token& At(size_t i) const { return tokens_[i]; }
  // True if the tokens from `i` on are these; false beyond the end.
  bool Follows(size_t i, std::initializer_list<std::string_view> words) const;
  bool IsName(size_t i) const { return i < size() && At(i).kind == cuda_source::Token::Kind::kIdentifier; }
  bool Has(Range range, std::string_view word) const;
  // The names of a template's parameters, as of template <typename T, int BLOCK = 256>. Empty for other functions.
  std::vector<std::string> TemplateParameters(const PlainFunction& function) const;
  // True if the expression at [begin, end) is assigned to, or its address taken.
  bool Written(size_t begin, size_t end) const;
  size_t Close(size_t open) const;       // the bracket that closes the one at `open`
  std::string Text(Range range) const;   // the source's text, unchanged
  std::string Plain(Range range) const;  // tokens without blanks and without casts to numbers
  // The three parts of the head of the `for` at token `i`; nullopt unless two semicolons divide it.
  std::optional<ForHead> ForAt(size_t i) const;
  std::string Indentation(size_t token) const;
  std::vector<Range> Split(Range range) const;     // at the commas outside of brackets
  std::optional<int> Value(size_t token) const;    // of a whole number without a decimal point
  std::optional<PlainNumber> Number(Range) const;  // a literal, `dim3(256)`, or a name defined as one of them
  std::optional<Range> Initializer(Range body, std::string_view name) const;  // of `type name = ...;`
  // The name of a pointer argument of a launch, `x` or `(float*)x`; empty for any other expression, such as x + 1.
  std::string PointerName(Range argument) const;
  // The threads of a launch's block, over all axes; nullopt if they are not numbers.
  std::optional<int> Threads(const PlainLaunch& launch) const;
  std::string Fresh(std::string name) const;  // adds underscores until the name is unused
  std::string Edited(std::vector<Edit> edits) const;
  // True if two pointers of this kernel may point to the same element in some launch.
  bool MayAlias(const PlainFunction& kernel) const;

 private:
  void ReadFunctions(std::string* why);
  std::string WhyNotBodies(const std::set<std::string, std::less<>>& hidden) const;
  void ReadLaunches(std::string* why);
  PlainParameter ReadParameter(Range range) const;

  std::string text_;
  std::vector<cuda_source::Token> tokens_;
  std::vector<PlainFunction> functions_;
  std::vector<PlainLaunch> launches_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace kgrpo::coder_offline
