#include "observer_metrics/lines_file.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace kgrpo::metrics {
namespace {

namespace fs = std::filesystem;

// Returns the size in bytes of the lines up to and including `last_step`.
uintmax_t SizeThrough(const fs::path& path, uint64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  const auto require_readable = [&] {
    if (!file.is_open() || file.bad())
      throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot read " + path.string() + ": " + std::strerror(errno));
  };
  require_readable();
  uintmax_t size = 0;
  size_t number = 1;
  for (std::string line; std::getline(file, line) && !file.eof(); ++number) {  // eof: the line is incomplete
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned()) {
      throw Error(KGRPO_ERROR_INVALID,
                  path.string() + ":" + std::to_string(number) +
                      ": has no whole number \"step\", so the run cannot append to this file: move it away");
    }
    if (json["step"].get<uint64_t>() > last_step) break;
    size += line.size() + 1;
  }
  require_readable();
  return size;
}

}  // namespace

LinesFile::LinesFile(fs::path path, uint64_t last_step) : path_(std::move(path)) {
  // Truncation is one system call: a crash leaves the old file or the truncated one.
  if (fs::exists(path_)) {
    std::error_code error;
    fs::resize_file(path_, SizeThrough(path_, last_step), error);
    if (error) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + path_.string() + ": " + error.message());
  }
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + path_.string() + ": " + std::strerror(errno));
}

void LinesFile::Add(const nlohmann::ordered_json& line) { file_ << DumpJson(line) << '\n'; }

void LinesFile::Flush() {
  file_.flush();
  if (!file_) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + path_.string() + ": is the disk full?");
}

}  // namespace kgrpo::metrics
