#include "common/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/console.h"  // Columns
#include "base/log.h"

namespace kgrpo::cli {
namespace {

// Columns of the terminal; 0 where the output is not a terminal.
size_t TerminalColumns() {
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

// Lines of at most `width` characters, broken at spaces; one line where width is 0.
std::vector<std::string> Wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines = {""};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    std::string& line = lines.back();
    if (width > 0 && !line.empty() && Columns(line) + 1 + Columns(word) > width)
      lines.push_back(word);
    else
      line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return lines;
}

void PrintMarkdown(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                   bool numbers) {
  const auto print = [](const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& cell : cells) {
      line += ' ';
      for (const char c : PrintableText(cell)) line += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
      line += " |";
    }
    std::printf("%s\n", line.c_str());
  };
  print(header);
  std::string rule = "|---|";
  for (size_t i = 1; i < header.size(); ++i) rule += numbers ? "---:|" : "---|";
  std::printf("%s\n", rule.c_str());
  for (const auto& row : rows) print(row);
}

}  // namespace

void PrintTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                bool markdown, bool numbers) {
  if (markdown) return PrintMarkdown(header, rows, numbers);
  std::vector<std::vector<std::string>> all = {header};
  all.insert(all.end(), rows.begin(), rows.end());
  std::vector<size_t> widths(header.size(), 0);
  for (auto& row : all) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = PrintableText(row[i]);
      std::replace(row[i].begin(), row[i].end(), '\n', ' ');
      widths[i] = std::max(widths[i], Columns(row[i]));
    }
  }
  size_t before = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + 2;
  const size_t columns = TerminalColumns();
  const size_t last_width = columns > before + 20 ? columns - before : 0;
  for (const auto& row : all) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) line += row[i] + std::string(widths[i] + 2 - Columns(row[i]), ' ');
    const std::vector<std::string> last = Wrap(row.back(), last_width);
    for (size_t i = 0; i < last.size(); ++i) {
      std::string text = (i == 0 ? line : std::string(before, ' ')) + last[i];
      text.erase(text.find_last_not_of(' ') + 1);
      std::printf("%s\n", text.c_str());
    }
  }
}

void PrintField(const std::string& label, const std::string& text, const char* colour) {
  constexpr size_t kLabel = 11;
  const char* plain = std::getenv("NO_COLOR");
  const bool coloured = colour != nullptr && TerminalColumns() > 0 && (plain == nullptr || *plain == '\0');
  const size_t columns = TerminalColumns(), width = columns > kLabel + 20 ? columns - kLabel : 0;
  std::string rest = PrintableText(text);
  for (std::string head = label; !rest.empty() || !head.empty(); head.clear()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    for (const std::string& line : Wrap(rest.substr(0, end), width)) {
      std::printf("%-*s%s%s%s\n", static_cast<int>(kLabel), head.c_str(),
                  coloured ? ("\033[" + std::string(colour) + "m").c_str() : "", line.c_str(),
                  coloured ? "\033[0m" : "");
      head.clear();
    }
    rest.erase(0, end + 1);
  }
}

Spinner::Spinner(std::string what) {
  if (isatty(STDERR_FILENO) == 0) return;
  thread_ = std::thread([this, what = std::move(what)] {
    constexpr const char* kSigns[] = {"|", "/", "-", "\\"};
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(2), [&] { return over_; })) return;
    for (size_t turn = 0; !over_; ++turn) {
      std::fprintf(stderr, "\r%s %s  %zu s\033[K", kSigns[turn % std::size(kSigns)], what.c_str(), 2 + turn / 4);
      changed_.wait_for(lock, std::chrono::milliseconds(250), [&] { return over_; });
    }
    std::fputs("\r\033[K", stderr);
  });
}

Spinner::~Spinner() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace kgrpo::cli
