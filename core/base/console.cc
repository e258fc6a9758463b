#include "base/console.h"

#include <kgrpo/support/number_text.h>  // Format, FormatDollars
#include "base/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <utility>

namespace kgrpo {
namespace {

// "  no kernel 3%  coder errors 25%".
std::string FurtherRates(const StepLine& line) {
  std::string text;
  for (const auto& [name, rate] : line.further_rates) text += "  " + name + Format(" %.0f%%", std::ceil(100 * rate));
  return text;
}

// A step on a pipe: everything on one line.
std::string StepText(const StepLine& line, const std::string& time_left) {
  const int width = static_cast<int>(std::to_string(line.steps).size());
  std::string text = Format("step %*llu/%llu  ", width, static_cast<unsigned long long>(line.step),
                            static_cast<unsigned long long>(line.steps)) +
                     (time_left.empty() ? "" : time_left + "  ") + line.stage;
  if (line.has_rollouts) {
    text += line.reward ? Format("  reward %6.3f", *line.reward) : "  reward   none";
    text += Format("  correct %3.0f%%", 100 * line.correct_rate);
    text += Format("  failed %2.0f%%  n/a %2.0f%%  unclear %2.0f%%", 100 * line.failed_rate,
                   100 * line.not_applicable_rate, 100 * line.unclear_rate);
    text += line.speedup > 0 ? Format("  speedup %5.2fx%s", line.speedup, line.modelled ? " (modelled)" : "")
                             : "  speedup   none";
    text += Format("  favourite %2.0f%%  entropy %.1f", 100 * line.favourite_share, line.entropy);
    text += FurtherRates(line);
  }
  if (line.cost > 0) text += "  " + FormatDollars(line.cost);
  if (line.has_loss && !line.has_rollouts) text += Format("  loss %.4f", line.loss);
  text += Format("  %.1f s", line.seconds);
  std::string parts;
  for (const auto& [name, seconds] : line.parts) {
    if (seconds >= 0.05) parts += (parts.empty() ? "" : ", ") + name + Format(" %.1f", seconds);
  }
  if (!parts.empty()) text += " (" + parts + ")";
  if (line.generated_per_second > 0) text += Format("  generates %.0f tokens/s", line.generated_per_second);
  if (line.trained_per_second > 0)
    text += Format("  trains %.0f tokens/s, %.3g TFLOP/s", line.trained_per_second, line.train_tflops);
  return text;
}

constexpr size_t kBlockLines = 3;  // lines of the block that moves on a terminal
// Limits of the estimate of the time left. A stage's first steps are slow (caches are empty, all kernels are new), so
// no estimate is shown for them.
constexpr size_t kStepsBeforeAnEstimate = 20;
constexpr size_t kStepsOfAnEstimate = 12;
constexpr std::chrono::seconds kProgressEvery{5};  // on a pipe

// The first `columns` characters.
std::string Cut(const std::string& text, size_t columns) {
  size_t end = 0, taken = 0;
  for (; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
    if (begins && taken++ == columns) break;
  }
  return text.substr(0, end);
}

// Shares of the rounds as one bar: correct, not applicable or unclear, failed.
std::string RoundsBar(const StepLine& line, size_t width) {
  const auto cells = [width](double share) {
    return static_cast<size_t>(std::lround(share * static_cast<double>(width)));
  };
  const size_t correct = std::min(width, cells(line.correct_rate));
  const size_t failed = std::min(width - correct, cells(line.failed_rate));
  std::string bar;
  for (size_t i = 0; i < width; ++i) bar += i < correct ? "\u2588" : i < width - failed ? "\u2591" : "\u2592";
  return bar;
}

// Time left: "3 min 20 s left", "18 s left in this stage". Computed from the median of `seconds`, the times of the
// stage's last steps, so that one step with a checkpoint does not change it. Empty before the stage has had enough
// steps.
std::string TimeLeft(const StepLine& line, size_t stage_steps, std::vector<double> seconds) {
  if (line.stage_end < line.step || stage_steps < kStepsBeforeAnEstimate) return "";
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>((seconds.size() - 1) / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return FormatDuration(*middle * static_cast<double>(line.stage_end - line.step)) +
         (line.stage_end < line.steps ? " left in this stage" : " left");
}

// Lines of the block: position in the run, reward or loss, outcomes of the step's rounds.
std::vector<std::string> BlockLines(const StepLine& line, const std::vector<double>& rewards,
                                    const std::string& time_left, size_t columns) {
  std::vector<std::string> lines(kBlockLines);
  lines[0] = Format("step %llu/%llu  ", static_cast<unsigned long long>(line.step),
                    static_cast<unsigned long long>(line.steps)) +
             (time_left.empty() ? "" : time_left + "  ") + line.stage +
             Format(line.seconds < 0.1 ? "  %.2f s a step" : "  %.1f s a step", line.seconds);
  if (line.cost > 0) lines[0] += "  " + FormatDollars(line.cost);
  if (!line.has_rollouts) {
    if (line.has_loss) lines[1] = Format("  loss    %.4f", line.loss);
    return lines;
  }
  lines[1] = line.reward ? Format("  reward  %6.3f  ", *line.reward) : "  reward    none  ";
  lines[1] += Sparkline(rewards, columns > Columns(lines[1]) + 1 ? columns - Columns(lines[1]) - 1 : 0);
  const std::string shares =
      Format("  correct %.0f%%  failed %.0f%%  n/a %.0f%%  unclear %.0f%%  ", 100 * line.correct_rate,
             100 * line.failed_rate, 100 * line.not_applicable_rate, 100 * line.unclear_rate) +
      (line.speedup > 0 ? Format("%.2fx%s", line.speedup, line.modelled ? " modelled" : "") : "no speedup") +
      FurtherRates(line);
  const size_t used = 10 + Columns(shares) + 1;
  lines[2] = "  rounds  " + (columns > used + 4 ? RoundsBar(line, std::min<size_t>(20, columns - used)) : "") + shares;
  return lines;
}

}  // namespace

size_t Columns(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void ProgressLine::Show(const std::string& what, size_t done, size_t total) {
  if (terminal_) {
    Clear();
    moving_ = done < total;
    if (moving_) out_ << what << ' ' << done << '/' << total << std::flush;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (done >= total) {
    written_.reset();
  } else if (!written_ || now - *written_ >= kProgressEvery) {
    out_ << what << ' ' << done << '/' << total << '\n' << std::flush;
    written_ = now;
  }
}

void ProgressLine::Clear() {
  if (std::exchange(moving_, false)) out_ << "\r\033[K" << std::flush;
}

Console::Console(std::ostream& out, bool terminal, size_t columns)
    : out_(out), terminal_(terminal), columns_(columns), progress_(out, terminal) {}

void Console::Clear() {
  progress_.Clear();
  // Moves to the block's first line and erases everything from there on.
  if (moving_ > 0) out_ << '\r' << (moving_ > 1 ? "\033[" + std::to_string(moving_ - 1) + "A" : "") << "\033[J";
  moving_ = 0;
}

void Console::Draw() {
  Clear();
  std::vector<std::string> lines = block_;
  if (!under_way_.empty()) lines.push_back(under_way_);
  for (size_t i = 0; i < lines.size(); ++i)
    out_ << (i > 0 ? "\n" : "") << Cut(PrintableText(lines[i]), columns_ > 0 ? columns_ - 1 : 0);
  out_ << std::flush;
  moving_ = lines.size();
}

void Console::UnderWay(const std::string& text) {
  if (!terminal_) return;
  under_way_ = "  now     " + text;
  Draw();
}

void Console::Redraw(std::vector<std::string> lines) {
  if (!terminal_) return;
  block_ = std::move(lines);
  under_way_.clear();
  Draw();
}

void Console::Finish() {
  if (also_ != nullptr) also_->Finish();
  if (std::exchange(moving_, 0) > 0) out_ << '\n';
  block_.clear();
  under_way_.clear();
  out_.flush();
}

void Console::Header(const std::string& title, const std::vector<std::pair<std::string, std::string>>& lines) {
  if (also_ != nullptr) also_->Header(title, lines);
  Clear();
  out_ << PrintableText(title) << '\n';
  size_t width = 0;
  for (const auto& line : lines) width = std::max(width, line.first.size());
  for (const auto& [name, text] : lines) {
    std::string indented;
    for (const char c : PrintableText(text)) {
      indented += c;
      if (c == '\n') indented.append(width + 4, ' ');
    }
    out_ << "  " << name << std::string(width - name.size() + 2, ' ') << indented << '\n';
  }
  out_.flush();
}

void Console::Step(const StepLine& line) {
  if (also_ != nullptr) also_->Step(line);
  // Two stages in a row may have one trainer, so the name alone does not tell them apart.
  if (std::exchange(stage_, {line.stage, line.stage_end}) != std::pair(line.stage, line.stage_end)) {
    seconds_.clear();
    stage_steps_ = 0;
  }
  ++stage_steps_;
  if (seconds_.size() == kStepsOfAnEstimate) seconds_.erase(seconds_.begin());
  seconds_.push_back(line.seconds);
  const std::string left = TimeLeft(line, stage_steps_, seconds_);
  if (!terminal_) {
    out_ << StepText(line, left) << '\n' << std::flush;
    return;
  }
  if (line.has_rollouts && line.reward) rewards_.push_back(*line.reward);
  Redraw(BlockLines(line, rewards_, left, columns_));
}

void Console::Progress(const std::string& what, size_t done, size_t total) {
  if (also_ != nullptr) also_->Progress(what, done, total);
  Clear();
  progress_.Show(what, done, total);
}

void Console::Note(const std::string& text) {
  if (also_ != nullptr) also_->Note(text);
  Clear();
  out_ << PrintableText(text) << '\n' << std::flush;
}

void Console::Table(const std::string& title, const std::vector<std::string>& columns,
                    const std::vector<std::vector<std::string>>& rows) {
  if (also_ != nullptr) also_->Table(title, columns, rows);
  Clear();
  std::vector<size_t> widths(columns.size());
  std::vector<bool> numbers(columns.size(), true);  // columns that hold only numbers are aligned to the right
  for (size_t i = 0; i < columns.size(); ++i) {
    widths[i] = Columns(columns[i]);
    for (const auto& row : rows) {
      widths[i] = std::max(widths[i], Columns(row[i]));
      if (row[i].empty() || (row[i][0] != '-' && std::isdigit(static_cast<unsigned char>(row[i][0])) == 0))
        numbers[i] = false;
    }
  }
  const auto write = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - std::min(widths[i], Columns(row[i])), ' ');
      const std::string cell = PrintableText(row[i]);
      line += "  " + (numbers[i] ? padding + cell : cell + padding);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out_ << line << '\n';
  };
  if (!title.empty()) out_ << title << '\n';
  write(columns);
  for (const auto& row : rows) write(row);
  out_.flush();
}

std::string Sparkline(const std::vector<double>& values, size_t width) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t count = std::min(width, values.size());
  if (count == 0) return "";
  const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
  const auto [least, greatest] = std::minmax_element(first, values.end());
  std::string line;
  for (auto value = first; value != values.end(); ++value) {
    const double share = *greatest > *least ? (*value - *least) / (*greatest - *least) : 0;
    line += kBars[std::min<size_t>(7, static_cast<size_t>(share * 8))];
  }
  return line;
}

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return Format("%lld s", whole);
  if (whole < 3600) return Format("%lld min %lld s", whole / 60, whole % 60);
  return Format("%lld h %lld min", whole / 3600, whole % 3600 / 60);
}

size_t TerminalColumns() {
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

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

Console StandardConsole() {
  const size_t columns = TerminalColumns();
  return Console(std::cout, isatty(STDOUT_FILENO) != 0, columns > 0 ? columns : 80);
}

}  // namespace kgrpo
