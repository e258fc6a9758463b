// event_writer.h - TensorBoard event files: scalars by step. The format is TensorFlow's record file of Event messages
// (tensorflow/core/util/ event.proto, lib/io/record_writer.h); scalars need so little of protobuf that it is written
// here by hand.
#pragma once

#include <kgrpo/abi.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kgrpo::tensorboard {

// CRC-32C (Castagnoli; RFC 3720 appendix B.4), of `bytes`.
uint32_t Crc32c(std::string_view bytes);

// One event file. Its name holds "tfevents", which is how TensorBoard finds it. One thread at a time.
class EventWriter {
 public:
  // Creates DIRECTORY/events.out.tfevents.TIME.HOST.PID.NUMBER. `wall_time` is in seconds since 1970. With
  // `purge_from`, readers discard the points of the folder's earlier files from that step on, so a resumed run replaces
  // the steps that it repeats.
  EventWriter(const std::filesystem::path& directory, double wall_time, std::optional<uint64_t> purge_from = {});

  // Adds one point to each metric's curve, and flushes.
  void Add(uint64_t step, double wall_time, std::span<const kgrpo_metric> metrics);

  const std::filesystem::path& path() const { return path_; }

 private:
  void Record(const std::string& event);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace kgrpo::tensorboard
