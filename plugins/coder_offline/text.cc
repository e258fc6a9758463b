#include "coder_offline/text.h"

#include <algorithm>

#include <cctype>
#include <stdexcept>

namespace kgrpo::coder_offline {
namespace {

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

const Value& ValueOf(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) throw std::logic_error("kernel template: no value for @" + name + "@");
  return found->second;
}

// Replaces the placeholders inside one line.
std::string FillLine(std::string_view line, const Values& values) {
  std::string filled;
  size_t at = 0;
  while (at < line.size()) {
    const size_t open = line.find('@', at);
    const size_t close = open == std::string_view::npos ? open : line.find('@', open + 1);
    if (close == std::string_view::npos) break;
    filled += line.substr(at, open - at);
    filled += ValueOf(values, std::string(line.substr(open + 1, close - open - 1)));
    at = close + 1;
  }
  filled += line.substr(at);
  return filled;
}

}  // namespace

std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (const std::string& part : parts) {
    if (!joined.empty()) joined += separator;
    joined += part;
  }
  return joined;
}

std::string Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::string Fill(std::string_view pattern, const Values& values) {
  if (!pattern.empty() && pattern.front() == '\n') pattern.remove_prefix(1);
  std::string text;
  for (const std::string& line : SplitLines(pattern)) {
    const std::string word = Trim(line);
    const bool alone = word.size() > 2 && word.front() == '@' && word.find('@', 1) == word.size() - 1;
    if (!alone) {
      text += FillLine(line, values) + "\n";
      continue;
    }
    const std::string indentation = line.substr(0, line.find('@'));
    for (const std::string& inner : SplitLines(ValueOf(values, word.substr(1, word.size() - 2)))) {
      text += inner.empty() ? "\n" : indentation + inner + "\n";
    }
  }
  return text;
}

std::string Indented(std::string_view text, int depth) {
  std::string result;
  for (const std::string& line : SplitLines(text)) {
    const std::string words = Trim(line);
    const auto opens = static_cast<int>(std::count(words.begin(), words.end(), '{'));
    const auto closes = static_cast<int>(std::count(words.begin(), words.end(), '}'));
    const int at = depth - (words.starts_with("}") ? 1 : 0);
    const bool flat = words.empty() || words.starts_with("#");
    result += std::string(flat ? 0 : static_cast<size_t>(2 * std::max(at, 0)), ' ') + words + "\n";
    depth += opens - closes;
  }
  return result;
}

std::string ReplaceWord(std::string text, std::string_view from, std::string_view to) {
  size_t at = 0;
  while ((at = text.find(from, at)) != std::string::npos) {
    const size_t end = at + from.size();
    const bool starts = at == 0 || !IsWordCharacter(text[at - 1]);
    const bool ends = end == text.size() || !IsWordCharacter(text[end]);
    if (starts && ends) {
      text.replace(at, from.size(), to);
      at += to.size();
    } else {
      at = end;
    }
  }
  return text;
}

}  // namespace kgrpo::coder_offline
