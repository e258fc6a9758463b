// observer_tensorboard/event_writer.h, held to the bytes of TensorBoard's own writer
// (tests/golden/observer/make_events.py).
#include "observer_tensorboard/event_writer.h"

#include "base/files.h"
#include "test.h"

#include <kgrpo/sdk/text.h>

#include <initializer_list>

namespace kgrpo::tensorboard {
namespace {

nlohmann::json Golden() {
  return nlohmann::json::parse(ReadFile(fs::path(KGRPO_SOURCE_DIR) / "tests/golden/observer/events.json"));
}

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    hex += two;
  }
  return hex;
}

TEST(Crc32cTest, EqualsTensorBoards) {
  for (const auto& [text, crc] : Golden()["crc32c"].get<std::vector<std::pair<std::string, uint32_t>>>()) {
    EXPECT_EQ(Crc32c(text), crc) << text.substr(0, 20);
  }
}

std::vector<kgrpo_metric> Points(std::initializer_list<std::pair<const char*, double>> points) {
  std::vector<kgrpo_metric> metrics;
  for (const auto& [name, value] : points) metrics.push_back(Measured(name, value));
  return metrics;
}

TEST(EventWriterTest, WritesTheBytesThatTensorBoardWrites) {
  const fs::path folder = fs::path(KGRPO_BINARY_DIR) / "test_runs" / "events";
  fs::remove_all(folder);
  fs::create_directories(folder);
  EventWriter writer(folder, 1700000000.0, 7);
  writer.Add(1, 1700000000.25, Points({{"reward", 0.5}, {"kernel/correct_rate", 1.0}}));
  writer.Add(2, 1700000001.5, Points({{"reward", -0.125}}));
  writer.Add(300, 1700000002.75, Points({{"reward", 1e-30}, {"loss", -3.4028234663852886e38}}));
  EXPECT_NE(writer.path().filename().string().find("tfevents"), std::string::npos);
  EXPECT_EQ(Hex(ReadFile(writer.path())), Golden()["events"].get<std::string>());
}

TEST(EventWriterTest, FilesOfOneProcessHaveDifferentNames) {
  const fs::path folder = fs::path(KGRPO_BINARY_DIR) / "test_runs" / "event_names";
  fs::remove_all(folder);
  fs::create_directories(folder);
  EXPECT_NE(EventWriter(folder, 1).path(), EventWriter(folder, 1).path());
}

}  // namespace
}  // namespace kgrpo::tensorboard
