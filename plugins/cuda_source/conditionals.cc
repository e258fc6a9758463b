#include "cuda_source/conditionals.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "cuda_source/lexer.h"

namespace kgrpo::cuda_source {
namespace {

using Known = std::optional<int64_t>;  // nothing where only a compiler knows

constexpr int kDeepestExpansion = 32;
constexpr size_t kMostTokens = 4096;               // of one expression with its macros expanded
constexpr size_t kMostExpanded = size_t{4} << 20;  // bytes that all expressions of a source read, macros included

struct Macro {
  bool perhaps = false;  // defined or undefined in a branch that is not decided
  bool defined = true, function = false;
  std::string body;
};
using Macros = std::map<std::string, Macro, std::less<>>;

// The value of an expression after #if, by precedence.
class Expression {
 public:
  // `left`: bytes that may still be read; what is read is subtracted.
  Expression(const Macros& macros, std::string_view text, size_t* left) : macros_(macros), left_(left) {
    Expand(text, 0, "");
  }

  Known Value() {
    if (!complete_ || words_.size() > kMostTokens) return std::nullopt;
    const Known value = Conditional();
    return at_ == words_.size() && depth_ >= 0 ? value : std::nullopt;
  }

 private:
  static constexpr char kUnknown[] = "?unknown";  // in place of a word that only a compiler knows

  // Appends the tokens of a text with macros replaced; operators of two characters are one.
  void Expand(std::string_view text, int depth, std::string_view inside) {
    if (text.size() >= *left_) complete_ = false;
    if (!complete_) return;
    *left_ -= text.size() + 1;
    const std::vector<Token> tokens = Lex(text).tokens;
    const std::vector<size_t> closes = Closes(tokens);
    for (size_t i = 0; i < tokens.size() && words_.size() <= kMostTokens; ++i) {
      const Token& token = tokens[i];
      const auto is = [&](size_t k, std::string_view word) { return k < tokens.size() && tokens[k].Is(word); };
      if (token.Is("defined")) {
        const size_t name = is(i + 1, "(") ? i + 2 : i + 1;
        if (name >= tokens.size()) break;
        words_.push_back(Defined(tokens[name].text));
        i = name + (is(i + 1, "(") ? 1 : 0);
      } else if (token.kind == Token::Kind::kIdentifier) {
        const auto found = macros_.find(token.text);
        const bool call = is(i + 1, "(") && closes[i + 1] != 0;
        if (token.text == "true" || token.text == "false") {
          words_.emplace_back(token.text == "true" ? "1" : "0");
        } else if (const std::string op = OperatorNamed(token.text); !op.empty()) {
          words_.push_back(op);
        } else if (found == macros_.end() ? IsForeignMacro(token.text)
                                          : found->second.perhaps || found->second.function) {
          words_.emplace_back(kUnknown);
          if (call) i = closes[i + 1];
        } else if (found == macros_.end() || !found->second.defined || token.text == inside) {
          words_.emplace_back("0");
        } else if (depth == kDeepestExpansion) {
          complete_ = false;
        } else {
          Expand(found->second.body, depth + 1, token.text);
        }
      } else if (token.kind == Token::Kind::kPunctuation) {
        static constexpr std::string_view kPairs[] = {"&&", "||", "==", "!=", "<=", ">=", "<<", ">>"};
        const bool adjacent = i + 1 < tokens.size() && tokens[i + 1].begin == token.end;
        const std::string pair = std::string(token.text) + (adjacent ? std::string(tokens[i + 1].text) : "");
        const bool two = std::find(std::begin(kPairs), std::end(kPairs), pair) != std::end(kPairs);
        words_.push_back(two ? pair : std::string(token.text));
        i += two ? 1 : 0;
      } else {
        words_.emplace_back(token.kind == Token::Kind::kNumber ? token.text : kUnknown);
      }
    }
  }

  std::string Defined(std::string_view name) const {
    const auto found = macros_.find(name);
    if (found == macros_.end()) return IsForeignMacro(name) ? kUnknown : "0";
    return found->second.perhaps ? kUnknown : found->second.defined ? "1" : "0";
  }

  static std::string OperatorNamed(std::string_view word) {
    return word == "and" ? "&&" : word == "or" ? "||" : word == "not" ? "!" : word == "not_eq" ? "!=" : "";
  }

  bool Take(std::string_view word) {
    const bool there = at_ < words_.size() && words_[at_] == word;
    at_ += there ? 1 : 0;
    return there;
  }

  Known Conditional() {
    const Known condition = Binary(0);
    if (!Take("?")) return condition;
    const Known yes = Conditional();
    if (!Take(":")) depth_ = -1;
    const Known no = Conditional();
    if (!condition) return yes == no ? yes : std::nullopt;
    return *condition != 0 ? yes : no;
  }

  // Operators from the loosest to the tightest.
  Known Binary(size_t level) {
    static const std::vector<std::vector<std::string_view>> kLevels = {
        {"||"},       {"&&"},     {"|"},          {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"},
        {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == kLevels.size()) return Unary();
    Known left = Binary(level + 1);
    for (;;) {
      const auto op = std::find_if(kLevels[level].begin(), kLevels[level].end(),
                                   [this](std::string_view word) { return Take(word); });
      if (op == kLevels[level].end()) return left;
      left = Apply(*op, left, Binary(level + 1));
    }
  }

  static Known Apply(std::string_view op, Known a, Known b) {
    // One operand decides these, whatever the other is.
    if (op == "&&") {
      if ((a && *a == 0) || (b && *b == 0)) return 0;
      return a && b ? Known(1) : std::nullopt;
    }
    if (op == "||") {
      if ((a && *a != 0) || (b && *b != 0)) return 1;
      return a && b ? Known(0) : std::nullopt;
    }
    if (!a || !b) return std::nullopt;
    const auto x = static_cast<uint64_t>(*a), y = static_cast<uint64_t>(*b);
    const auto wrapped = [](uint64_t value) { return Known(static_cast<int64_t>(value)); };
    if (op == "|") return *a | *b;
    if (op == "^") return *a ^ *b;
    if (op == "&") return *a & *b;
    if (op == "==") return *a == *b;
    if (op == "!=") return *a != *b;
    if (op == "<=") return *a <= *b;
    if (op == ">=") return *a >= *b;
    if (op == "<") return *a < *b;
    if (op == ">") return *a > *b;
    if (op == "+") return wrapped(x + y);
    if (op == "-") return wrapped(x - y);
    if (op == "*") return wrapped(x * y);
    if (op == "<<" || op == ">>") {
      if (y > 63) return std::nullopt;
      return op == "<<" ? wrapped(x << y) : Known(*a >> y);
    }
    if (*b == 0 || *b == -1) return std::nullopt;
    return op == "/" ? *a / *b : *a % *b;
  }

  Known Unary() {
    constexpr int kDeepest = 200;
    if (depth_ < 0 || ++depth_ > kDeepest || at_ >= words_.size()) {
      depth_ = -1;
      return std::nullopt;
    }
    const Known value = Operand();
    if (depth_ > 0) --depth_;
    return value;
  }

  Known Operand() {
    if (Take("!")) {
      const Known value = Unary();
      return value ? Known(*value == 0) : std::nullopt;
    }
    if (Take("+")) return Unary();
    if (Take("-")) return Apply("-", 0, Unary());
    if (Take("~")) return Apply("^", -1, Unary());
    if (Take("(")) {
      const Known value = Conditional();
      if (!Take(")")) depth_ = -1;
      return value;
    }
    return Number(words_[at_++]);
  }

  static Known Number(std::string word) {
    word.erase(std::remove(word.begin(), word.end(), '\''), word.end());
    while (!word.empty() && std::string_view("uUlLzZ").find(word.back()) != std::string_view::npos) word.pop_back();
    const bool binary = word.size() > 2 && word[0] == '0' && (word[1] == 'b' || word[1] == 'B');
    char* end = nullptr;
    const uint64_t value = std::strtoull(word.c_str() + (binary ? 2 : 0), &end, binary ? 2 : 0);
    return word.empty() || *end != '\0' ? std::nullopt : Known(static_cast<int64_t>(value));
  }

  const Macros& macros_;
  size_t* const left_;
  std::vector<std::string> words_;
  size_t at_ = 0;
  int depth_ = 0;  // -1: not an expression
  bool complete_ = true;
};

enum class Activity { kInactive, kPerhaps, kActive };

Activity ActivityOf(Known condition) {
  return !condition ? Activity::kPerhaps : *condition != 0 ? Activity::kActive : Activity::kInactive;
}

class Follower {
 public:
  Activity now() const { return branches_.empty() ? Activity::kActive : branches_.back().now; }

  // Returns whether the directive is a conditional's.
  bool Take(const Directive& directive) {
    const auto& [word, rest] = directive;
    if (word.starts_with("if")) {
      const Activity condition = now() == Activity::kInactive ? Activity::kInactive : Condition(word, rest);
      branches_.push_back({now(), std::min(now(), condition), condition});
    } else if (word == "else" || word.starts_with("elif")) {
      if (branches_.empty()) return true;
      Branch& branch = branches_.back();
      Activity condition = Activity::kInactive;
      if (branch.outside != Activity::kInactive && branch.taken != Activity::kActive)
        condition = word == "else" ? Activity::kActive : Condition(word.substr(2), rest);
      branch.now = std::min(branch.outside, condition);
      if (branch.taken == Activity::kPerhaps) branch.now = std::min(branch.now, Activity::kPerhaps);
      branch.taken = std::max(branch.taken, condition);
    } else if (word == "endif") {
      if (!branches_.empty()) branches_.pop_back();
    } else {
      if (now() != Activity::kInactive && (word == "define" || word == "undef")) Define(word == "define", rest);
      return false;
    }
    return true;
  }

 private:
  struct Branch {
    Activity outside, now;
    Activity taken;  // one of the branches up to this one
  };

  // `word`: "if", "ifdef", "ifndef", or "def" and "ndef" of "elifdef".
  Activity Condition(std::string_view word, std::string_view rest) {
    const std::string name = "defined " + std::string(rest.substr(0, rest.find_first_of(" \t\r\n/")));
    if (word.ends_with("ndef")) return ActivityOf(Expression(macros_, "!" + name, &left_).Value());
    return ActivityOf(Expression(macros_, word.ends_with("def") ? name : std::string(rest), &left_).Value());
  }

  void Define(bool defined, std::string_view rest) {
    size_t end = 0;
    while (end < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[end])) != 0 || rest[end] == '_')) ++end;
    Macro macro = {now() == Activity::kPerhaps, defined, rest.substr(end).starts_with("("),
                   std::string(rest.substr(end))};
    macros_.insert_or_assign(std::string(rest.substr(0, end)), std::move(macro));
  }

  Macros macros_;
  size_t left_ = kMostExpanded;
  std::vector<Branch> branches_;
};

}  // namespace

bool IsForeignMacro(std::string_view name) {
  // The first words of the macros in headers that candidates may include, as `nvcc -E -Xcompiler -dM` lists them.
  static constexpr std::string_view kBeginnings =
      " ADJ AIO AT ATOMIC BC BIG BOOL BUFSIZ BYTE C10 CCCL CHAR CHARCLASS CLOCK CLOCKS CLONE COLL CPU CSIGNAL CU CUB "
      "CUBLAS CUDNN CUFFT CURAND CUSOLVER CUSPARSE CUTE CUTLASS DBL DECIMAL DELAYTIMER FD FILENAME FLT FOPEN FP HOST "
      "HUGE IF INFINITY INT INT16 INT32 INT64 INT8 INTMAX INTPTR IOV KGRPO L LC LDBL LIBCUDACXX LINE LITTLE LLONG "
      "LOGIN LONG M MATH MAX MAXFLOAT MB MOD MQ NAME NAN NCCL NFDBITS NGROUPS NL NULL NV NVTX NZERO P PATH PDP PIPE "
      "PTHREAD PTRDIFF RAND RE RENAME RESOURCE RTSIG SCHAR SCHED SEEK SEM SHRT SIG SIZE SSIZE STA THRUST TIME TIMER "
      "TMP TORCH TTY UCHAR UINT UINT16 UINT32 UINT64 UINT8 UINTMAX UINTPTR ULLONG ULONG USHRT WCHAR WCONTINUED WEOF "
      "WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WINT WNOHANG WNOWAIT WORD WSTOPPED WSTOPSIG "
      "WTERMSIG WUNTRACED XATTR ";
  if (name.empty() || name[0] == '_' || std::islower(static_cast<unsigned char>(name[0])) != 0) return true;
  for (const char* start : {"CUDA", "E", "PRI", "SCN", "SNAN"}) {  // EINVAL, PRIu64
    if (name.starts_with(start)) return true;
  }
  const std::string_view beginning = name.substr(0, name.find('_'));
  return kBeginnings.find(" " + std::string(beginning) + " ") != std::string_view::npos;
}

ActiveSource WithoutInactive(std::string_view source) {
  ActiveSource active = {std::string(source)};
  if (source.find("if") == std::string_view::npos) return active;
  Follower follower;
  size_t begin = 0;  // of an inactive range
  bool blank = false;
  for (const Token& token : Lex(source).tokens) {
    if (token.kind != Token::Kind::kDirective) continue;
    const std::string line = RemoveSplices(token.text);
    if (!follower.Take(ReadDirective(line))) continue;
    if (blank) {
      std::replace_if(
          active.text.begin() + static_cast<std::ptrdiff_t>(begin),
          active.text.begin() + static_cast<std::ptrdiff_t>(token.begin), [](char c) { return c != '\n'; }, ' ');
    }
    blank = follower.now() == Activity::kInactive;
    begin = token.end;
    if (follower.now() == Activity::kPerhaps && active.undecided == std::string_view::npos)
      active.undecided = token.begin;
  }
  return active;
}

}  // namespace kgrpo::cuda_source
