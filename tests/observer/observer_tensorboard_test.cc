// observer_tensorboard, loaded as by the host: the curves in its files. Their bytes: event_writer_test.cc.
#include "base/files.h"
#include "observed.h"
#include "test.h"
#include "validate/validate.h"

namespace kgrpo {
namespace {

using test::Observed;

// A protobuf message, as far as events need one: its fields by number, numbers as their bytes.
std::multimap<uint64_t, std::string> Fields(std::string_view bytes) {
  std::multimap<uint64_t, std::string> fields;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(0));
      bytes.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (!bytes.empty()) {
    const uint64_t key = varint();
    std::string value;
    if ((key & 7) == 0) {
      value = std::to_string(varint());
    } else {
      const size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
      value = bytes.substr(0, size);
      bytes.remove_prefix(size);
    }
    fields.emplace(key >> 3, value);
  }
  return fields;
}

// "3 reward 0.5" for each point, "purge 4" for what makes readers forget steps; the files in the order of their names.
std::vector<std::string> Events(const fs::path& folder) {
  std::map<fs::path, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files[entry.path()] = ReadFile(entry.path());
  std::vector<std::string> events;
  for (const auto& [path, bytes] : files) {
    EXPECT_NE(path.filename().string().find("tfevents"), std::string::npos);
    for (size_t at = 0; at < bytes.size();) {
      uint64_t size = 0;
      std::memcpy(&size, bytes.data() + at, sizeof size);
      const auto event = Fields(std::string_view(bytes).substr(at + 12, size));
      at += 12 + size + 4;
      const std::string step = event.contains(2) ? event.find(2)->second : "0";
      if (event.contains(7)) events.push_back("purge " + step);
      if (!event.contains(5)) continue;
      for (const auto& [number, value] : Fields(event.find(5)->second)) {
        const auto point = Fields(value);
        float number_of_point = 0;
        std::memcpy(&number_of_point, point.find(2)->second.data(), sizeof number_of_point);
        std::ostringstream text;
        text << step << ' ' << point.find(1)->second << ' ' << number_of_point;
        events.push_back(text.str());
      }
    }
  }
  return events;
}

const nlohmann::json kNoOptions = nlohmann::json::object();

TEST(ObserverTensorboard, DrawsEveryMetricAndTheTimeOfCheckpoints) {
  Observed observed("observer_tensorboard");
  observed.Begin(kNoOptions);
  observed.Step(1, {{"kernel/correct_rate", 1.0}, {"reward", -0.125}});
  observed.Step(2, {{"reward", 0.5}});
  observed.Checkpoint(2, 0.75);
  EXPECT_THAT(Events(observed.folder()),
              ElementsAre("1 kernel/correct_rate 1", "1 reward -0.125", "2 reward 0.5", "2 time/checkpoint 0.75"));
}

TEST(ObserverTensorboard, MakesReadersForgetWhatAResumedRunTellsAgain) {
  Observed observed("observer_tensorboard");
  observed.Begin(kNoOptions);
  for (uint64_t step = 1; step <= 5; ++step) observed.Step(step, {{"reward", 0.5}});
  observed.Begin(kNoOptions, 3, true);
  observed.Step(4, {{"reward", 0.25}});
  EXPECT_THAT(Events(observed.folder()), ElementsAre("1 reward 0.5", "2 reward 0.5", "3 reward 0.5", "4 reward 0.5",
                                                     "5 reward 0.5", "purge 4", "4 reward 0.25"));
}

TEST(ObserverTensorboard, IsAPluginThatValidates) {
  for (const ContractCheck& check : ValidatePlugin(KGRPO_BINARY_DIR "/lib/kgrpo/observer_tensorboard.so"))
    EXPECT_EQ(check.outcome, CheckOutcome::kPassed) << check.name << ": " << check.detail;
}

}  // namespace
}  // namespace kgrpo
