#include "judge/report/source_notes.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>
#include <string_view>

namespace kgrpo::evaluator {
namespace {

constexpr std::string_view kLine = "line ";

// Line numbers that stand directly behind `before` and in front of `after`.
void FindLines(std::string_view text, std::string_view before, std::string_view after, std::vector<unsigned>* lines) {
  for (size_t at = text.find(before); at != std::string_view::npos; at = text.find(before, at + 1)) {
    if (at > 0 && before == kLine && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0)
      continue;  // "outline 4"
    const std::string_view rest = text.substr(at + before.size());
    unsigned line = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), line);
    if (error != std::errc() || line == 0) continue;
    if (!rest.substr(static_cast<size_t>(end - rest.data())).starts_with(after)) continue;
    if (std::find(lines->begin(), lines->end(), line) == lines->end()) lines->push_back(line);
  }
}

}  // namespace

std::map<unsigned, std::vector<std::string>> NotesByLine(const std::string& diagnosis) {
  std::map<unsigned, std::vector<std::string>> notes;
  for (const std::string& text : SplitLines(diagnosis)) {
    std::vector<unsigned> lines;
    FindLines(text, kLine, "", &lines);
    FindLines(text, ".cu(", ")", &lines);
    FindLines(text, ".cu:", ":", &lines);
    for (const unsigned line : lines) {
      const size_t first = text.find_first_not_of(" \t|");
      notes[line].push_back(first == std::string::npos ? text : text.substr(first));
    }
  }
  return notes;
}

std::vector<std::string> SplitLines(const std::string& source) {
  std::vector<std::string> lines;
  std::istringstream stream(source);
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace kgrpo::evaluator
