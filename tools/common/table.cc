#include "common/table.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/console.h"  // Columns, TerminalColumns, Wrap
#include "base/log.h"

namespace kgrpo::cli {
namespace {

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
  const size_t columns = TerminalColumns(), width = columns > kLabel + 20 ? columns - kLabel : 0;
  const bool coloured = colour != nullptr && columns > 0 && (plain == nullptr || *plain == '\0');
  const std::string begin = coloured ? "\033[" + std::string(colour) + "m" : "", end_colour = coloured ? "\033[0m" : "";
  std::string rest = PrintableText(text);
  for (std::string head = label; !rest.empty() || !head.empty(); head.clear()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    for (const std::string& line : Wrap(rest.substr(0, end), width)) {
      std::printf("%-*s%s%s%s\n", static_cast<int>(kLabel), head.c_str(), begin.c_str(), line.c_str(),
                  end_colour.c_str());
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
