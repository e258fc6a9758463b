#include "cli/line_diff.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kgrpo::cli {
namespace {

constexpr size_t kContext = 3;

// Splits text into lines, each with its line break; the last may have none.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

struct Edit {
  char mark;  // ' ', '-' or '+'
  std::string_view line;
};

// Returns a shortest list of edits, by the longest common subsequence of the lines between the common head and tail.
std::vector<Edit> Edits(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  size_t head = 0, tail = 0;
  const size_t shorter = std::min(a.size(), b.size());
  while (head < shorter && a[head] == b[head]) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const size_t rows = a.size() - head - tail, columns = b.size() - head - tail;
  // common[i][j]: length of the longest common subsequence of a from line i and b from line j, after the common head.
  std::vector<uint32_t> common((rows + 1) * (columns + 1));
  const auto at = [&](size_t i, size_t j) -> uint32_t& { return common[i * (columns + 1) + j]; };
  for (size_t i = rows; i-- > 0;) {
    for (size_t j = columns; j-- > 0;)
      at(i, j) = a[head + i] == b[head + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  }
  std::vector<Edit> edits;
  for (size_t i = 0; i < head; ++i) edits.push_back({' ', a[i]});
  for (size_t i = 0, j = 0; i < rows || j < columns;) {
    if (i < rows && j < columns && a[head + i] == b[head + j]) {
      edits.push_back({' ', a[head + i++]});
      ++j;
    } else if (i < rows && (j == columns || at(i + 1, j) >= at(i, j + 1))) {
      edits.push_back({'-', a[head + i++]});
    } else {
      edits.push_back({'+', b[head + j++]});
    }
  }
  for (size_t i = a.size() - tail; i < a.size(); ++i) edits.push_back({' ', a[i]});
  return edits;
}

// "12,7"; a range of no lines names the line before it.
std::string Range(size_t first, size_t count) {
  return std::to_string(count == 0 ? first : first + 1) + "," + std::to_string(count);
}

}  // namespace

std::string UnifiedDiff(const std::string& from, const std::string& to, const std::string& from_name,
                        const std::string& to_name) {
  if (from == to) return "";
  const std::vector<Edit> edits = Edits(LinesOf(from), LinesOf(to));
  std::string diff = "--- " + from_name + "\n+++ " + to_name + "\n";
  const auto changed = [&](size_t i) { return edits[i].mark != ' '; };
  size_t from_line = 0, to_line = 0;  // of edits[i]
  for (size_t i = 0; i < edits.size();) {
    // A hunk runs from the context before a change to the first gap of at least 2 * kContext unchanged lines.
    size_t next = i;
    while (next < edits.size() && !changed(next)) ++next;
    if (next == edits.size()) break;
    const size_t first = next - std::min(next - i, kContext);
    from_line += first - i;
    to_line += first - i;
    size_t last = next;  // the last change
    for (size_t k = next; k < edits.size() && k <= last + 2 * kContext; ++k) {
      if (changed(k)) last = k;
    }
    const size_t end = std::min(last + kContext + 1, edits.size());
    std::string lines;
    size_t from_count = 0, to_count = 0;
    for (size_t k = first; k < end; ++k) {
      if (edits[k].mark != '+') ++from_count;
      if (edits[k].mark != '-') ++to_count;
      lines += edits[k].mark + std::string(edits[k].line);
      if (!edits[k].line.ends_with('\n')) lines += "\n\\ No newline at end of file\n";
    }
    diff += "@@ -" + Range(from_line, from_count) + " +" + Range(to_line, to_count) + " @@\n" + lines;
    from_line += from_count;
    to_line += to_count;
    i = end;
  }
  return diff;
}

}  // namespace kgrpo::cli
