// A run's output on the terminal: a header, a line a step (or, on a terminal, a block of three lines that is redrawn),
// the figures on held-out problems, and a summary. Plain text on a pipe: no carriage returns, no colours. Used by the
// loop; one thread.
//
// Text from models, coders and compilers is data: control characters in it are shown as text.
#ifndef KGRPO_BASE_CONSOLE_H
#define KGRPO_BASE_CONSOLE_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// The figures shown for a step.
struct StepLine {
  uint64_t step = 0, steps = 0;
  uint64_t stage_end = 0;  // the last step of its stage; the time of later stages is unknown before they begin
  std::string stage;
  bool has_rollouts = false;
  std::optional<double> reward;  // nothing if no round has a score
  // Shares of the rounds: the kernel was correct; it was wrong, or did not compile or run; the suggestion did not
  // apply; it was not understood.
  double correct_rate = 0, failed_rate = 0, not_applicable_rate = 0, unclear_rate = 0;
  double speedup = 0;  // geometric mean over correct kernels; 0 where there is none
  // Shares that are shown where above 0: of answers that failed ("coder errors", 0.25), of rounds without a kernel.
  std::vector<std::pair<std::string, double>> further_rates;
  double cost = 0;  // the coder's cost in the run so far, US dollars; shown if above 0
  double favourite_share = 0;
  double entropy = 0;  // entropy of the suggestions, in nats
  double loss = 0;     // shown where there are no rollouts
  bool has_loss = false;
  double seconds = 0;
  std::vector<std::pair<std::string, double>> parts;  // the seconds by part; parts that round to 0.0 are not shown
  double generated_per_second = 0, trained_per_second = 0;  // tokens; shown where above 0
  double train_tflops = 0;                                  // floating-point operations of training, 1e12 a second
  bool modelled = false;                                    // speedups are of modelled times
};

// Progress of work that takes seconds: one line that is redrawn and erased on a terminal, a line every few seconds on a
// pipe.
class ProgressLine {
 public:
  ProgressLine(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  // "opening problems 12/39"; `done` equal to `total` ends it.
  void Show(const std::string& what, size_t done, size_t total);
  // Erases the moving line.
  void Clear();

 private:
  std::ostream& out_;
  bool terminal_;
  bool moving_ = false;
  std::optional<std::chrono::steady_clock::time_point> written_;  // on a pipe: time of the last line
};

class Console {
 public:
  // `terminal`: `out` is a terminal, `columns` wide.
  Console(std::ostream& out, bool terminal, size_t columns = 80);

  // Another console that shows all of this too: the run's log. Outlives this one; null for none.
  void AlsoTo(Console* other) { also_ = other; }

  // Prints named settings: {"evaluator", "..."}. The later lines of a text are indented.
  void Header(const std::string& title, const std::vector<std::pair<std::string, std::string>>& lines);
  void Step(const StepLine& line);
  // On a terminal shows a line below the last step's block about the work in progress; the next block replaces it. Does
  // nothing on a pipe.
  void UnderWay(const std::string& text);
  // On a terminal shows these lines in place of the block. Does nothing on a pipe.
  void Redraw(std::vector<std::string> lines);
  // Returns true on a terminal, where lines can be redrawn.
  bool moves() const { return terminal_; }
  // Shows the progress of the work before a stage's first step, as ProgressLine does.
  void Progress(const std::string& what, size_t done, size_t total);
  // A line that stays, about something that happened: a new stage, a checkpoint, a stop.
  void Note(const std::string& text);
  // Each row has a cell a column. Columns of numbers are aligned to the right.
  void Table(const std::string& title, const std::vector<std::string>& columns,
             const std::vector<std::vector<std::string>>& rows);
  // Ends the moving block, if there is one.
  void Finish();

 private:
  void Clear();
  void Draw();

  std::ostream& out_;
  Console* also_ = nullptr;
  bool terminal_;
  size_t columns_;
  ProgressLine progress_;
  size_t moving_ = 0;               // lines of the moving block, which is the last output written; 0: no block
  std::vector<std::string> block_;  // the lines drawn there, without under_way_
  std::string under_way_;
  std::vector<double> rewards_;
  std::pair<std::string, uint64_t> stage_;  // name and end of the last step
  size_t stage_steps_ = 0;                  // shown of that stage
  std::vector<double> seconds_;             // durations of the stage's last steps
};

// Bars of eight heights, one a value, from the least to the greatest of the last `width`: "▁▂▅█".
std::string Sparkline(const std::vector<double>& values, size_t width);

// How many columns a text takes: bytes that continue a UTF-8 character take none.
size_t Columns(const std::string& text);

// Columns of the terminal on standard output; 0 if that is no terminal.
size_t TerminalColumns();

// Lines of at most `width` columns, broken at spaces; one line if width is 0. A longer word has a line to itself.
std::vector<std::string> Wrap(const std::string& text, size_t width);

// "45 s", "3 min 20 s", "2 h 5 min".
std::string FormatDuration(double seconds);

// A console on standard output, and whether that is a terminal.
Console StandardConsole();

}  // namespace kgrpo
#endif
