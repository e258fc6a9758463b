// What the programs in tools/ print: plain tables, labelled fields, and a sign of life while work is under way.
#ifndef KGRPO_TOOLS_COMMON_TABLE_H
#define KGRPO_TOOLS_COMMON_TABLE_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kgrpo::cli {

// Columns aligned to the left, two spaces between them. On a terminal the last column is wrapped to its width. Or a
// Markdown table; with `numbers` it aligns the columns after the first to the right.
void PrintTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                bool markdown = false, bool numbers = false);

// A label in a column of its own and its text, wrapped to the terminal's width. A colour ("32": green) only shows on a
// terminal, and not if NO_COLOR is set.
void PrintField(const std::string& label, const std::string& text, const char* colour = nullptr);

// Shows on a terminal's standard error what is under way, from two seconds after it began until the object's end.
class Spinner {
 public:
  explicit Spinner(std::string what);
  ~Spinner();
  Spinner(const Spinner&) = delete;
  Spinner& operator=(const Spinner&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // absent if standard error is no terminal
};

}  // namespace kgrpo::cli
#endif
