// Typed access to the nodes of a YAML file that collects every mistake with its position. Used by the parsers of
// problem files.
#pragma once

#include <kgrpo/support/yaml.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kgrpo::evaluator {

// Collects mistakes of a file, so that all of them are reported at once as `file:line:column: path: message`.
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

// `; did you mean "x"?` if one of `known` is near enough to `word`, else "".
std::string DidYouMean(const std::string& word, const std::vector<std::string>& known);

// Each function writes what it read to `out`, or notes a mistake at the node's position, under `path`
// ("parameters[0].shape"), and returns false.
class YamlReader {
 public:
  explicit YamlReader(std::string file) : diagnostics_(std::move(file)) {}
  Diagnostics& diagnostics() { return diagnostics_; }

 protected:
  using Fields = std::map<std::string, std::function<void(const YamlNode&, const std::string& path)>>;

  void Add(const YamlNode& node, const std::string& path, const std::string& message);

  // Calls the field of each key. Unknown, repeated and missing keys are mistakes; `present`: the keys that are there.
  bool Map(const YamlNode& node, const std::string& path, const Fields& fields,
           const std::vector<std::string>& required, std::set<std::string>* present = nullptr);
  bool Text(const YamlNode& node, const std::string& path, std::string& out);
  void TextList(const YamlNode& node, const std::string& path, std::vector<std::string>& out);
  // `out`: the index of the choice.
  bool Choice(const YamlNode& node, const std::string& path, const std::vector<std::string>& choices, size_t& out);
  bool Number(const YamlNode& node, const std::string& path, double& out);  // finite
  bool Boolean(const YamlNode& node, const std::string& path, bool& out);

 private:
  Diagnostics diagnostics_;
};

}  // namespace kgrpo::evaluator
