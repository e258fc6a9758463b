// lines_file.h - a JSON Lines file: each line belongs to a step of the run ("step": N), in the order of steps. Used by
// plugin.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kgrpo::metrics {

// One thread at a time. The constructor and Flush throw KGRPO_ERROR_UNAVAILABLE if the file cannot be read or written.
class LinesFile {
 public:
  // Opens the file to append after the lines of `last_step`, and creates it if it does not exist. One truncation
  // removes later lines and an incomplete last line. Throws KGRPO_ERROR_INVALID for a line that is not such an object,
  // and leaves the file as it is.
  LinesFile(std::filesystem::path path, uint64_t last_step);

  // Appends a line, which is in the file after Flush at the latest. Bytes that are not UTF-8 become U+FFFD; numbers
  // that are not finite become null.
  void Add(const nlohmann::ordered_json& line);
  void Flush();

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace kgrpo::metrics
