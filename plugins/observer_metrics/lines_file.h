// lines_file.h - a file of JSON objects, one a line, each of a step of the run ("step": N), in the order of steps.
#ifndef KGRPO_OBSERVER_METRICS_LINES_FILE_H
#define KGRPO_OBSERVER_METRICS_LINES_FILE_H

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kgrpo::metrics {

// One thread at a time. Everything throws KGRPO_ERROR_UNAVAILABLE where the file cannot be written.
class LinesFile {
 public:
  // Goes on after the lines of that step: later lines, and a last one without its end, are cut away in one step. A line
  // that is no such object is KGRPO_ERROR_INVALID, and the file stays as it is. The file is made where it is absent.
  LinesFile(std::filesystem::path path, uint64_t last_step);

  // Adds a line; it is in the file after Flush at the latest. Bytes that are not UTF-8 become U+FFFD, numbers that are
  // not finite null.
  void Add(const nlohmann::ordered_json& line);
  void Flush();

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace kgrpo::metrics
#endif
