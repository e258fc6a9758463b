// recorded_sink.h - a kgrpo_update_sink that records the pushed values, and byte streams in memory. For the tests of
// trainers.
#ifndef KGRPO_TESTS_TRAINER_RECORDED_SINK_H
#define KGRPO_TESTS_TRAINER_RECORDED_SINK_H
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/trainer.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::testing {

// Samples as they cross the ABI: a pointer to each.
inline std::vector<const kgrpo_sample*> PointersTo(const std::vector<kgrpo_sample>& samples) {
  std::vector<const kgrpo_sample*> pointers;
  for (const kgrpo_sample& sample : samples) pointers.push_back(&sample);
  return pointers;
}

struct RecordedSink {
  std::map<std::string, double> step;
  std::vector<std::map<std::string, double>> rows;
  std::map<size_t, std::pair<double, double>> samples;  // return and advantage of each

  kgrpo_update_sink get() {
    return {this,
            [](void* context, kgrpo_metric metric) {
              static_cast<RecordedSink*>(context)->step[Copy(metric.name)] = metric.value;
            },
            [](void* context, const kgrpo_metric* row, size_t count) {
              auto& made = static_cast<RecordedSink*>(context)->rows.emplace_back();
              for (size_t i = 0; i < count; ++i) made[Copy(row[i].name)] = row[i].value;
            },
            [](void* context, const kgrpo_sample_outcome* outcome) {
              static_cast<RecordedSink*>(context)->samples[outcome->sample] = {outcome->returned, outcome->advantage};
            }};
  }
};

// A stream in memory; reads come in small pieces, as those of a file or a socket may.
struct MemoryStream {
  std::string bytes;
  size_t position = 0;
  size_t fails_after = std::string::npos;  // writing beyond this many bytes fails, as on a full disk

  kgrpo_writer writer() {
    return {this, [](void* context, const void* data, size_t size) {
              auto& self = *static_cast<MemoryStream*>(context);
              if (self.bytes.size() + size > self.fails_after) return MakeError(KGRPO_ERROR_UNAVAILABLE, "disk full");
              self.bytes.append(static_cast<const char*>(data), size);
              return static_cast<kgrpo_error*>(nullptr);
            }};
  }
  kgrpo_reader reader() {
    position = 0;
    return {this, [](void* context, void* data, size_t size, size_t* got) {
              auto& self = *static_cast<MemoryStream*>(context);
              *got = std::min({size, self.bytes.size() - self.position, size_t{113}});
              std::memcpy(data, self.bytes.data() + self.position, *got);
              self.position += *got;
              return static_cast<kgrpo_error*>(nullptr);
            }};
  }
};

}  // namespace kgrpo::testing
#endif
