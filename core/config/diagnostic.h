// Mistakes of a pipeline file, each with its place: collected while a file is read and checked (load.h), printed all at
// once.
#ifndef KGRPO_CONFIG_DIAGNOSTIC_H
#define KGRPO_CONFIG_DIAGNOSTIC_H

#include <kgrpo/sdk/error.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo {

// The position of a key or value in its file. Values that no file wrote have line 0: `--set`, defaults.
struct Position {
  std::string file;
  int line = 0;    // from 1
  int column = 0;  // in characters, from 1
  int rank = 0;    // the file's place among the files read: the one on the command line is 0

  std::string ToString() const;  // "pipeline.yaml:3:5", or "--set"
};

// Returns the position to report for two conflicting keys: that of the one set last. --set overrules the file, the file
// overrules the one that it extends, and that one overrules the defaults.
const Position& SetLast(const Position& a, const Position& b);

struct Diagnostic {
  Position at;
  std::string path;  // "loop.batch_size", "trainer[0].options.loss"; empty for the file as a whole
  std::string message;
  std::string suggestion;  // the text that was probably meant; may be empty

  // `file:line:column: path: message; did you mean "..."?`
  std::string ToString() const;
};

// Sorts by place: file, then line and column, `--set` last.
void SortDiagnostics(std::vector<Diagnostic>* diagnostics);

// All mistakes of a file; what() is one a line. Keys that stood in it are cut out: see hidden_keys.h.
class ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<Diagnostic> diagnostics);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  struct Hidden {};
  ConfigError(std::vector<Diagnostic> diagnostics, Hidden);

  std::vector<Diagnostic> diagnostics_;
};

// The number of characters (code points).
size_t CountCharacters(std::string_view text);

// The place of byte `column` of line `line` (both from 1) of a text whose first character is at `begin`.
Position PlaceWithin(std::string_view text, const Position& begin, size_t line, size_t column);

// The line with a caret under the column (both from 1), as two indented lines to append to a message; keys of services
// are hidden. Empty if the line is not in the text or is too long to show.
std::string ShowPlace(std::string_view text, int line, int column);

}  // namespace kgrpo
#endif
