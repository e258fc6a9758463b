// Collects mistakes of a file, so that all of them are reported at once as `file:line:column: path: message`.
// Used by the problem parser.
#pragma once

#include <string>
#include <vector>

namespace kgrpo::evaluator {

class Diagnostics {
 public:
  explicit Diagnostics(std::string file) : file_(std::move(file)) {}

  // `line` and `column` count from 1; 0 for both speaks of the file as a whole. `path` is "sizes.visible[0].n" or "".
  void Add(int line, int column, const std::string& path, const std::string& message);

  // Of another file than the one given above, as a whole.
  void AddFile(const std::string& file, const std::string& message);

  bool empty() const { return entries_.empty(); }

  // Throws Error(KGRPO_ERROR_INVALID) with all of them in order of position, a line each; does nothing when there are
  // none.
  void ThrowIfAny() const;

 private:
  struct Entry {
    std::string file;
    int line, column;
    std::string text;
  };
  std::string file_;
  std::vector<Entry> entries_;
};

// ` did you mean "x"?` with a leading `;` where one of `known` is near enough to `word`, else "".
std::string DidYouMean(const std::string& word, const std::vector<std::string>& known);

}  // namespace kgrpo::evaluator
