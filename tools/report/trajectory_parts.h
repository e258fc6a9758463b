// The samples of runs as compressed parts of a page, one a step, which the page decodes when they are shown.
// Kernels are stored once each, however many rounds hold them. Used by report/report.cc.
//
//   part of a step     {"trajectories": [{"trajectory", "problem", ..., "rounds": [{"prompt", "suggestion", ...}]}]}
//   part of sources    [text, ...], kSourcesAPart kernels; a round names kernels by their place among all
//
// In a prompt, "\u0001A\u0001" and "\u0001B\u0001" stand for the round's code_a and code_b.
#ifndef KGRPO_REPORT_TRAJECTORY_PARTS_H
#define KGRPO_REPORT_TRAJECTORY_PARTS_H

#include <kgrpo/support/sqlite.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo {

class TrajectoryParts {
 public:
  static constexpr size_t kSourcesAPart = 32;

  // Reads every round of a run, for training and held-out. Returns the index that the page loads first: {"steps":
  // [[purpose, step, part], ...], "tokens": {id: text}}.
  nlohmann::ordered_json AddRun(Database& database, const std::filesystem::path& folder);

  // A kernel's place among the sources; -1 for none.
  int64_t SourceNumber(Database& database, const std::string& hash);

  // Completes the last part of sources. Call it before steps() and sources(), which are the parts by number.
  void Finish();
  const std::vector<std::string>& steps() const { return steps_; }
  const std::vector<std::string>& sources() const { return sources_; }

 private:
  void CloseSources();

  std::vector<std::string> steps_, sources_;  // DeflatedBase64 of JSON
  std::unordered_map<std::string, int64_t> numbers_;
  std::unordered_map<std::string, std::string> texts_;  // kernels of the run that is being read, by hash
  nlohmann::ordered_json open_sources_ = nlohmann::ordered_json::array();
};

}  // namespace kgrpo

#endif  // KGRPO_REPORT_TRAJECTORY_PARTS_H
