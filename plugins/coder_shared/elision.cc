// Finds where a kernel stands for code that it leaves out. A comment such as "// (reduction unchanged)" is judged by
// its shape, by its words and by the lines of the given kernel that are missing at its place.
#include "coder_shared/source.h"
#include "coder_shared/text.h"
#include "cuda_source/lexer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::coder_shared {
namespace {

using cuda_source::Lex, cuda_source::Token;
using std::string_view;
using Tokens = std::vector<Token>;

// How a comment, or a line of the code, stands for code.
enum class Sign {
  kNone,
  kRemark,  // it has such a word
  kPhrase,  // it says nothing else: "existing code"
  kShape,   // and has the marks of something left out: dots, brackets around it
  kSure,    // between dots: "... existing code ..."
};

// Words that say that code is as it was, or missing; words for code; words between them. English, Spanish, Portuguese,
// French, German, Italian.
constexpr string_view kSame =
    " existing changes changed same unchanged unmodified identical previous previously original originally rest "
    "remain remains remaining omitted omit elided skipped snip snipped brevity before above earlier ditto idem etc "
    "placeholder todo fixme tbd untouched resto restante igual existente omitido omitida omitidos cambios cambio "
    "mismo misma anterior anteriores reste inchange inchangé existant identique omis unverändert unveraendert "
    "unverändertem rest bestehender bestehend bisher bisherig bisheriger gleich gleicher wie zuvor oben invariato "
    "invariata inalterado inalterada mesmo alterações alteracoes mudanças weggelassen gekürzt truncated shortened "
    "abbreviated modified modification modifications continued continues précédemment usual repeated edits exercise "
    "unveränderter ongewijzigd zmian değişmedi modificaciones modificación xxx missing stub kept retained ";
constexpr string_view kCode =
    " code codes kernel kernels function functions body bodies loop loops helper helpers implementation "
    "implementations logic part parts section block definition definitions declaration declarations include "
    "includes header headers reduction reductions pass step steps stage setup initialization initialisation init "
    "computation compute calculation algorithm launch launcher launchers host device file source struct structs "
    "stuff work version lines sections line content contents things warp sum max maximum epilogue prologue code. "
    "código codigo función funcion código. implementación fonction corps suite der funktion teil schleife teile "
    "codice funzione reducción ";
constexpr string_view kGlue =
    " the of as is are was were it its in to for and all from here there this that your with your my our a an at by "
    "be been being not no nothing keep keeps leave left stay stays add fill put insert write implement implemented "
    "complete goes go see like exactly way how me bez below shown show given provided other everything else more so "
    "forth nothing stays wie bleibt up same just only still now on full entire whole actual paste reuse use based "
    "first second continue continued del de la el los las que sin como en du le les sans modification modifications "
    "comme avant et der die das den ohne änderung änderungen sem come prima o os aqui ici hier b refer ";
// Parts of words: Chinese, Japanese, Korean, Russian.
constexpr string_view kForeign =
    "不变|省略|同上|其余|其他代码|其它代码|现有|原有|原代码|原来|原始|保持|之前|既存|変更なし|同じ|そのまま|以下略|"
    "同様|残り|기존|"
    "생략|동일|그대로|나머지|변경 없음|остальн|без изменен|как раньше|существу|пропущен|"
    "тот же|то же|такой же|прежн";

constexpr string_view kInvariant = "不变量";  // "loop invariant" contains the Chinese "unchanged"

bool IsIn(string_view list, const std::string& word) { return Contains(list, " " + word + " "); }

Sign SignIn(string_view comment) {
  constexpr string_view kDots = "\u2026", kOtherDots = "\u22ee";
  constexpr size_t kMostWords = 14;
  const size_t first = comment.find_first_not_of("/*# \t\r\n-=~!");
  if (first == string_view::npos) return Sign::kNone;
  string_view inside = comment.substr(first, comment.find_last_not_of("/* \t\r\n-=~!") + 1 - first);
  if (inside.ends_with(':')) return Sign::kNone;  // the title of what follows
  const auto dots = [&](string_view text, bool at_end) {
    return at_end ? text.ends_with("...") || text.ends_with(kDots) || text.ends_with("..")
                  : text.starts_with("..") || text.starts_with(kDots) || text.starts_with(kOtherDots);
  };
  const bool begins = dots(inside, false), ends = dots(inside, true);
  bool shape = begins;
  while (inside.size() > 1 && Contains("([{<", inside.substr(0, 1)) &&
         Contains(")]}>", inside.substr(inside.size() - 1))) {
    inside = Trimmed(inside.substr(1, inside.size() - 2));
    shape = true;
  }
  shape =
      shape || dots(inside, false) || inside == "\u7565" || inside == "\u4e2d\u7565" ||
      (inside.find_first_not_of(". ?<8") == string_view::npos && std::count(inside.begin(), inside.end(), '.') != 1);
  // Letters of other alphabets belong to words.
  std::vector<std::string> words;
  bool in_word = false;
  for (const char c : Lower(inside)) {
    const bool letter = IsWord(c) || (c & 0x80) != 0;
    if (letter && !in_word) words.emplace_back();
    if (letter) words.back() += c;
    in_word = letter;
  }
  std::erase_if(words, [&](const std::string& word) { return word == kDots || word == kOtherDots; });
  if (words.empty()) return shape ? Sign::kShape : Sign::kNone;
  if (words.size() > kMostWords) return Sign::kNone;
  std::string lower = Lower(inside);
  if (const size_t at = lower.find(kInvariant); at < lower.size()) lower.erase(at, kInvariant.size());
  const bool foreign = FindAny(lower, kForeign) < lower.size();
  bool same = false, all = true;
  std::string joined = " ";
  for (const std::string& word : words) {
    const bool is_same = IsIn(kSame, word);
    same = same || is_same;
    all = all && (is_same || IsIn(kCode, word) || IsIn(kGlue, word));
    joined += word + ' ';
  }
  // What is to be written, or stands in the given kernel, which the prompt calls B.
  const bool instead =
      all && FindAny(joined,
                     " code here | goes here | here goes | your code | implement | fill in | code goes | logic here | "
                     "implementation here | not shown | paste | more code | and so on | and so forth | in b | like b | "
                     "see b | kernel b | from b | insert | put | copy | here your | do the ") < joined.size();
  const bool says =
      FindAny(joined,
              " unchanged | omitted | elided | for brevity | brevity | as before | as above | not shown | "
              "no changes | no change | left out | the same | remain the same | kept as | keep as | as is | "
              "snip | as in the original | goes here | same as | identical to | rest of the | from above ") <
      joined.size();
  const bool at_end = same && says && words.size() <= 8 && IsIn(kSame, words.back());
  if (begins && ends && (same || says || foreign)) return Sign::kSure;
  if (foreign || instead || (same && all) || at_end) {
    if (IsIn(" todo fixme ", words[0]) && !all) return Sign::kNone;
    return shape || ends ? Sign::kShape : Sign::kPhrase;
  }
  constexpr size_t kShort = 4;  // words
  if (shape && (same || says || (begins && words.size() <= kShort))) return Sign::kPhrase;
  return (same && words.size() <= 8) || says || shape || all ? Sign::kRemark : Sign::kNone;
}

// A comment of few words that gives no reason why the code at its place went.
bool IsShort(string_view comment) {
  constexpr int kFew = 6;
  const string_view text = Trimmed(comment);
  return std::count(text.begin(), text.end(), ' ') <= kFew &&
         FindAny(Lower(text),
                 "need|remov|longer|unnecess|drop|delet|redundan|skip|fuse|fold|move|merge|hoist|inline|"
                 "replac|instead|without|no |register|shuffle|one |single") == string_view::npos;
}

// A line of code without the blanks and comments on it; empty for one without a name or number.
std::string Bare(string_view line) {
  std::string bare;
  bool word = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line.substr(i, 2) == "//") break;
    if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') bare += line[i];
    word = word || IsWord(line[i]);
  }
  return word && !bare.starts_with("/*") && !bare.starts_with('*') ? bare : "";
}

// The lines of the given kernel, to see what is missing at a place of another.
class GivenLines {
 public:
  explicit GivenLines(string_view given) {
    for (const string_view line : Lines(given)) {
      if (std::string bare = Bare(line); !bare.empty()) lines_.push_back(std::move(bare));
    }
    for (size_t i = 0; i < lines_.size(); ++i) places_.emplace(lines_[i], i);
  }

  enum class Lack { kUnknown, kNothing, kLines };

  // What of the given kernel the other lacks between its code lines before and after `at`.
  Lack At(string_view source, size_t begin, size_t end) const {
    const std::string before = Near(source.substr(0, begin), false), after = Near(source.substr(end), true);
    if (before.empty() || after.empty()) return Lack::kUnknown;
    Lack lack = Lack::kUnknown;
    const auto [first, last] = places_.equal_range(after);
    size_t looks = 0;
    for (auto place = first; place != last && ++looks <= kMostLooks; ++place) {
      for (size_t i = place->second; i-- > 0 && ++looks <= kMostLooks;) {
        if (lines_[i] != before) continue;
        if (i + 1 == place->second) return Lack::kNothing;
        const auto barrier = [&](const std::string& line) { return line.starts_with("__sync") || line[0] == '#'; };
        const bool barriers = std::all_of(lines_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                          lines_.begin() + static_cast<std::ptrdiff_t>(place->second), barrier);
        lack = barriers ? Lack::kUnknown : Lack::kLines;
        break;
      }
    }
    return lack;
  }

 private:
  static constexpr size_t kMostLooks = 2000;

  // The first or last line of code.
  static std::string Near(string_view text, bool first) {
    constexpr int kMostLines = 64;
    for (int looks = 0; !text.empty() && looks < kMostLines; ++looks) {
      const size_t cut = first ? text.find('\n') : text.rfind('\n');
      const string_view line = cut == string_view::npos ? text : first ? text.substr(0, cut) : text.substr(cut + 1);
      if (std::string bare = Bare(line); !bare.empty()) return bare;
      if (cut == string_view::npos) break;
      text = first ? text.substr(cut + 1) : text.substr(0, cut);
    }
    return "";
  }

  std::vector<std::string> lines_;
  std::multimap<std::string, size_t> places_;
};

// Tells whether places, each after the last one, are within a function or a type.
class Bodies {
 public:
  explicit Bodies(const Tokens& tokens) : tokens_(tokens) {}

  bool Contain(size_t place) {
    for (; next_ < tokens_.size() && tokens_[next_].begin < place; ++next_) {
      if (tokens_[next_].Is("{") && (depth_ > 0 || !OpensScope(tokens_, next_))) ++depth_;
      if (tokens_[next_].Is("}") && depth_ > 0) --depth_;
    }
    return depth_ > 0;
  }
  // The token before the last place; "" if there is none.
  string_view Last() const { return next_ == 0 ? string_view() : tokens_[next_ - 1].text; }

 private:
  const Tokens& tokens_;
  size_t next_ = 0;
  int depth_ = 0;
};

// True if nothing but blanks, or a brace that opens, stands before `at` on its line.
bool BeginsLine(string_view source, size_t at) {
  while (at > 0 && (source[at - 1] == ' ' || source[at - 1] == '\t')) --at;
  return at == 0 || source[at - 1] == '\n' || source[at - 1] == '{';
}

// True for #include "file".
bool IncludesOwn(const Token& token) {
  return token.kind == Token::Kind::kDirective && Contains(token.text, "include") && Contains(token.text, "\"");
}

// A capitalised name that the source uses as a type and does not define; "" if there is none.
std::string UndefinedType(const Tokens& tokens) {
  NameSet defined;
  const auto name = [&](size_t i) { return i < tokens.size() && tokens[i].kind == Token::Kind::kIdentifier; };
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    for (const string_view keyword : {"struct", "class", "union", "enum", "typename", "using", "define"})
      if (tokens[i].Is(keyword)) defined.emplace(tokens[i + 1].text);
    const bool may_define = tokens[i].text.find("define") < 12 || IncludesOwn(tokens[i]);
    if ((tokens[i].kind == Token::Kind::kDirective && may_define) || tokens[i].Is("typedef")) return "";
  }
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const string_view type = tokens[i].text;
    if (!name(i) || !name(i + 1) || type[0] < 'A' || type[0] > 'Z' || defined.count(type) > 0) continue;
    if (i > 0 && (tokens[i - 1].Is("::") || tokens[i - 1].Is("."))) continue;
    if (type.find_first_of("abcdefghijklmnopqrstuvwxyz") != string_view::npos) return std::string(type);
  }
  return "";
}

// True if a function has a variable that it never uses.
bool HasUnusedVariable(const Tokens& tokens) {
  std::map<string_view, size_t> count;
  for (const Token& token : tokens) ++count[token.text];
  Bodies bodies(tokens);
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    const bool declared = tokens[i].kind == Token::Kind::kIdentifier && count[tokens[i].text] == 1 &&
                          (tokens[i - 1].kind == Token::Kind::kIdentifier || tokens[i - 1].Is("*")) &&
                          (tokens[i + 1].Is("=") || tokens[i + 1].Is(";") || tokens[i + 1].Is("["));
    if (declared && bodies.Contain(tokens[i].begin) && !tokens[i - 1].Is("return")) return true;
  }
  return false;
}

}  // namespace

Omission LeftOut(string_view source, string_view current) {
  constexpr size_t kMostLine = 400;  // bytes that each token looks at
  static const NameSet kDirectives = {"include", "define", "undef", "if",     "ifdef", "ifndef", "elif",
                                      "else",    "endif",  "error", "pragma", "line",  "warning"};
  Omission omission;
  const Tokens tokens = Lex(source).tokens;
  const Names names = NamesOf(source);
  const NameSet old = NamesOf(current).defined;
  // What a comment may stand for: the call of a function that the given kernel lacks, the use of a variable.
  const bool idle = !names.idle.empty(), unused = HasUnusedVariable(tokens);
  const bool new_idle =
      std::any_of(names.idle.begin(), names.idle.end(), [&](const auto& name) { return old.count(name) == 0; });
  const GivenLines given(current);
  Bodies bodies(tokens);
  bool above = false;  // something seems to be left out at namespace scope
  for (const Comment& comment : CommentsOf(source, tokens)) {
    const bool in_body = bodies.Contain(comment.begin), between = Contains("{};", bodies.Last());
    const string_view text = Trimmed(source.substr(comment.begin, comment.end - comment.begin));
    const Sign sign = SignIn(text);
    const size_t next = std::min(source.find_first_not_of(" \t\r\n", comment.end), source.size());
    const auto lack = [&] { return given.At(source, comment.begin, comment.end); };
    constexpr size_t kLeast = 5;  // bytes: "//" stands in most kernels
    const bool was_there = text.size() >= kLeast && Contains(current, text);
    if (!BeginsLine(source, comment.begin)) {
      if (!in_body || sign < Sign::kPhrase) continue;
      if (between && !was_there && lack() == GivenLines::Lack::kLines) return {OneLine(text), ""};
      if (between || !text.starts_with("/*")) continue;
      // As an argument or a value it stands for what does not compile without it.
      if (Contains("(,=[", bodies.Last()) && Contains(")],;", source.substr(next, 1))) return {OneLine(text), ""};
      omission.doubt = OneLine(text);
      continue;
    }
    if (was_there) continue;
    const bool at_end = next == source.size() || source[next] == '}';
    bool doubtful = sign >= Sign::kPhrase;
    if (!in_body && sign != Sign::kSure && !(at_end && sign != Sign::kNone)) {
      above = above || doubtful;
    } else {
      const GivenLines::Lack found = lack();
      if (found == GivenLines::Lack::kNothing && !at_end) continue;  // all of the given kernel is there
      const bool lacks = found == GivenLines::Lack::kLines, is_short = IsShort(text);
      if (doubtful || (sign == Sign::kRemark && (at_end || lacks || idle)) || (lacks && idle && is_short))
        return {OneLine(text), ""};
      doubtful =
          new_idle || ((lacks || idle) && is_short) || ((lacks || unused) && sign != Sign::kNone) || (lacks && idle);
    }
    if (doubtful && omission.doubt.empty()) omission.doubt = OneLine(text);
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    string_view line = source.substr(tokens[i].begin, kMostLine);
    line = line.substr(0, line.find('\n'));
    if (tokens[i].kind == Token::Kind::kDirective) {  // "# rest of the code"
      const Tokens words = Lex(tokens[i].text.substr(1)).tokens;
      const bool word = !words.empty() && words[0].kind == Token::Kind::kIdentifier;
      if (word && kDirectives.count(words[0].text) == 0) return {OneLine(line), ""};
    }
    if (!line.starts_with("...") && !line.starts_with("\u2026") && !line.starts_with("# ...")) continue;
    const bool instead =
        i > 0 && (tokens[i - 1].Is("{") || tokens[i - 1].Is(";") || tokens[i - 1].Is("}") || tokens[i - 1].Is("<<<"));
    if (instead || (BeginsLine(source, tokens[i].begin) && SignIn(line) >= Sign::kPhrase)) return {OneLine(line), ""};
  }
  if (!names.only_launched.empty())
    return {"it launches " + *names.only_launched.begin() + ", which it does not define", ""};
  for (const std::string& name : old) {
    const bool declared = names.declared.count(name) > 0 && names.prototypes.count(name) == 0;
    if (names.used.count(name) > 0 && names.defined.count(name) == 0 && !declared)
      return {"it uses " + name + ", which only the given kernel defines", ""};
  }
  if (const std::string type = above ? UndefinedType(tokens) : ""; !type.empty())
    return {omission.doubt + ": it uses " + type + ", which it does not define", ""};
  return omission;
}

}  // namespace kgrpo::coder_shared
