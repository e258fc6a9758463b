#include "coder_shared/thoughts.h"

#include "coder_shared/text.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace kgrpo::coder_shared {
namespace {

using std::string_view;

// The names of thoughts contain one of these.
constexpr string_view kWords =
    "think|thought|reason|reflect|scratchpad|analysis|planning|monologue|deliberat|ponder|draft";

// A mark around thoughts: <think>, </mm:think>, <thinking id="1">, <|end_of_thought|>, [THINK], (thinking), <details>
// whose summary is "Thought process", <!-- thinking -->, <unused94>thought.
struct Mark {
  size_t begin, end;
  char kind;  // '<', '[' of brackets, 'd' of <details>, 's': a special token with a name after it, and the next one
  bool closes;
};

// The end of a line before `at`, and the beginning of one from there.
constexpr size_t kMostOfLine = 200;
string_view LineUpTo(string_view text, size_t at) {
  text = text.substr(at - std::min(at, kMostOfLine), std::min(at, kMostOfLine));
  return text.substr(text.rfind('\n') + 1);  // npos + 1 is 0
}
string_view LineFrom(string_view text, size_t at) {
  text = text.substr(at, kMostOfLine);
  return text.substr(0, text.find('\n'));
}

bool StartsLine(string_view text, size_t at) {
  return LineUpTo(text, at).find_first_not_of(" \t>*`#") == string_view::npos;
}

bool IsNameOfTag(string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return IsWord(c) || c == ':' || c == '-' || (c & 0x80) != 0; });
}

// Reads the mark at `at` of a text in lower case; false if there is none.
bool ReadMark(string_view text, size_t at, Mark* mark) {
  constexpr size_t kMostBytes = 120;
  constexpr std::pair<string_view, string_view> kPairs[] = {
      {"<!--", "-->"}, {"<", ">"}, {"[[", "]]"}, {"[", "]"}, {"(", ")"}, {"{", "}"}, {"\u25c1", "\u25b7"}};
  constexpr string_view kWideBar = "\uff5c";
  string_view rest = text.substr(at, kMostBytes);
  const auto pair =
      std::find_if(std::begin(kPairs), std::end(kPairs), [&](const auto& one) { return rest.starts_with(one.first); });
  if (pair == std::end(kPairs)) return false;
  const size_t end = rest.find(pair->second);
  if (end == string_view::npos) return false;
  string_view inside = rest.substr(0, end);
  inside.remove_prefix(pair->first.size());
  if (inside.find_first_of("\n<") != string_view::npos || inside.ends_with("/")) return false;
  inside = Trimmed(inside);
  const bool bracket = Contains("[({", rest.substr(0, 1));
  *mark = {at, at + end + pair->second.size(), bracket ? '[' : '<', false};
  const bool special = !bracket && (inside.starts_with('|') || inside.ends_with('|') || inside.starts_with("unused"));
  for (bool again = true; again;) {
    again = false;
    for (const string_view around : {string_view("|"), kWideBar, string_view("/"), string_view(" ")}) {
      if (!inside.starts_with(around)) continue;
      mark->closes = mark->closes || around == "/";
      inside.remove_prefix(around.size());
      again = true;
    }
  }
  while (inside.ends_with('|') || inside.ends_with(kWideBar))
    inside.remove_suffix(inside.ends_with('|') ? 1 : kWideBar.size());
  const size_t blank = std::min(inside.find_first_of(" \t"), inside.size());
  const string_view name = inside.substr(0, blank), attributes = inside.substr(blank);
  if (name == "details") {
    mark->kind = 'd';
    if (mark->closes) return true;
    string_view summary = Trimmed(text.substr(mark->end, 200));
    summary = summary.starts_with("<summary") ? summary.substr(0, summary.find("</summary")) : string_view();
    return IsThoughtful(attributes) || IsThoughtful(summary);
  }
  if (special && !IsThoughtful(name)) {  // <|channel>thought ... <channel|>
    string_view word = text.substr(mark->end, 20);
    word = word.substr(0, word.find_first_of(" \n<"));
    mark->kind = 's';
    mark->closes = !IsThoughtful(word);
    if (!mark->closes) mark->end += word.size();
    return true;
  }
  if (!IsNameOfTag(name) || !IsThoughtful(name)) return false;
  if (bracket) {  // an index, a citation or a remark has other text on its line
    const string_view after = LineFrom(text, mark->end);
    const bool alone = pair->first.starts_with('[') || Trimmed(after).empty();
    mark->closes = mark->closes || name.starts_with("end");
    return StartsLine(text, at) && alone && std::count(attributes.begin(), attributes.end(), ' ') <= 2 &&
           !after.starts_with('(');
  }
  if (!attributes.empty() && attributes.find('=') == string_view::npos && pair->first != "<!--") return false;
  const size_t ends = name.find("end");  // end_of_thought, thinking_end
  mark->closes = mark->closes || (ends < name.size() && (ends == 0 || ends + 3 == name.size()));
  return true;
}

std::vector<Mark> MarksOf(string_view lower) {
  std::vector<Mark> marks;
  for (size_t at = 0; (at = lower.find_first_of("<[({\xe2", at)) != string_view::npos;) {
    Mark mark{};
    if (ReadMark(lower, at, &mark)) marks.push_back(mark);
    at = std::max(at + 1, mark.end > at && !marks.empty() && marks.back().begin == at ? mark.end : at + 1);
  }
  return marks;
}

// Tells whether places, each after the last one, are within a fenced block.
class Fences {
 public:
  explicit Fences(string_view text) : text_(text) {}

  bool Contain(size_t place) {
    while (at_ < place) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      const string_view line = Trimmed(text_.substr(at_, std::min(end, place) - at_));
      if (line.starts_with("```") || line.starts_with("~~~")) open_ = !open_;
      at_ = end + 1;
    }
    return open_;
  }
  void Skip(size_t place) { at_ = std::max(at_, place), open_ = false; }

 private:
  string_view text_;
  size_t at_ = 0;
  bool open_ = false;
};

// The final channel of gpt-oss; also without its special tokens, which some servers take out of the text.
std::string FinalChannel(const std::string& answer, bool* unfinished) {
  constexpr string_view kChannel = "<|channel|>", kFinal = "<|channel|>final", kMessage = "<|message|>",
                        kPlainFinal = "assistantfinal";
  if (answer.find(kChannel) == std::string::npos) {
    const size_t plain = answer.starts_with("analysis") ? answer.find(kPlainFinal) : std::string::npos;
    return plain == std::string::npos ? answer : answer.substr(plain + kPlainFinal.size());
  }
  const size_t final_channel = answer.rfind(kFinal);
  const size_t message = final_channel == std::string::npos ? final_channel : answer.find(kMessage, final_channel);
  *unfinished = message == std::string::npos;
  if (*unfinished) return "";
  const size_t begin = message + kMessage.size();
  const size_t end =
      std::min({answer.find("<|end|>", begin), answer.find("<|return|>", begin), answer.find("<|start|>", begin)});
  return answer.substr(begin, end - begin);
}

// The texts of an answer that is a list of content parts: [{"type": "thinking", ...}, {"type": "text", "text": ...}].
std::string TextOfParts(std::string answer) {
  if (!Trimmed(answer).starts_with('[')) return answer;
  const nlohmann::json parts = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  const auto is_part = [](const nlohmann::json& part) {
    return part.is_object() && part.contains("type") && part["type"].is_string();
  };
  if (!parts.is_array() || !std::all_of(parts.begin(), parts.end(), is_part)) return answer;
  std::string text;
  for (const nlohmann::json& part : parts) {
    if (part["type"] == "text" && part.contains("text") && part["text"].is_string())
      text += part["text"].get<std::string>() + '\n';
  }
  return text;
}

}  // namespace

bool IsThoughtful(std::string_view name) { return FindAny(name, kWords) < name.size(); }

std::string WithoutThoughts(std::string answer, bool* unfinished) {
  *unfinished = false;
  answer = FinalChannel(TextOfParts(std::move(answer)), unfinished);
  const std::string lower = Lower(answer);
  const std::vector<Mark> marks = MarksOf(lower);
  // For each mark the next one that closes thoughts of its kind.
  std::vector<size_t> closing(marks.size(), marks.size());
  std::map<char, size_t> next;
  for (size_t i = marks.size(); i-- > 0;) {
    closing[i] = next.emplace(marks[i].kind, marks.size()).first->second;
    if (marks[i].closes) next[marks[i].kind] = i;
  }
  Fences fences(lower);
  std::string kept;
  size_t at = 0;
  for (size_t i = 0; i < marks.size(); ++i) {
    const Mark& mark = marks[i];
    if (mark.begin < at) continue;
    const string_view before = LineUpTo(lower, mark.begin);
    const string_view after = LineFrom(lower, mark.end);
    // Code has such marks in its comments.
    const bool in_code = fences.Contain(mark.begin) || before.find("//") != string_view::npos;
    if (in_code && !(Trimmed(before).empty() && Trimmed(after).empty())) continue;
    if (mark.closes) {
      if (mark.kind == 'd' || mark.kind == 's') continue;
      kept.clear();  // without an opening, all before it is thought
      at = mark.end;
    } else if (closing[i] < marks.size()) {
      kept.append(answer, at, mark.begin - at);
      at = marks[closing[i]].end;
    } else if (StartsLine(lower, mark.begin) && (mark.kind != '[' || (after.empty() && lower[mark.begin] == '['))) {
      kept.append(answer, at, mark.begin - at);
      at = answer.size();
      *unfinished = true;
    } else {
      continue;
    }
    fences.Skip(at);
  }
  answer = kept + answer.substr(at);
  // Marks of the end of a turn, which some servers leave in the text.
  for (const string_view end : {"</s>", "<|im_end|>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<end_of_turn>"}) {
    if (Trimmed(answer).ends_with(end)) answer.erase(answer.rfind(end));
  }
  return answer;
}

}  // namespace kgrpo::coder_shared
