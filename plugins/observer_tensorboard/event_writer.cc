#include "observer_tensorboard/event_writer.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace kgrpo::tensorboard {
namespace {

// The protobuf wire format (protobuf.dev/programming-guides/encoding): a key is (field << 3) | wire type.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void PutKey(std::string& out, uint32_t field, WireType type) { PutVarint(out, (field << 3) | type); }

template <typename Unsigned>
void PutLittleEndian(std::string& out, Unsigned value) {
  for (size_t i = 0; i < sizeof(value); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void PutBytes(std::string& out, uint32_t field, std::string_view bytes) {
  PutKey(out, field, kBytes);
  PutVarint(out, bytes.size());
  out += bytes;
}

// Returns the first fields of every event: Event {1: double wall_time, 2: int64 step, ...}.
std::string EventHead(double wall_time, uint64_t step) {
  std::string event;
  PutKey(event, 1, kFixed64);
  PutLittleEndian(event, std::bit_cast<uint64_t>(wall_time));
  if (step != 0) {
    PutKey(event, 2, kVarint);
    PutVarint(event, step);
  }
  return event;
}

uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
      table[i] = crc;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xffu];
  return ~crc;
}

EventWriter::EventWriter(const std::filesystem::path& directory, double wall_time, std::optional<uint64_t> purge_from) {
  static std::atomic<int> number{0};  // distinguishes several files of one process
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  char name[512];
  std::snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%d.%d", static_cast<long long>(wall_time), host,
                static_cast<int>(getpid()), number++);
  path_ = directory / name;
  file_.open(path_, std::ios::binary);
  if (!file_) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + path_.string() + ": " + std::strerror(errno));

  std::string version = EventHead(wall_time, 0);
  PutBytes(version, 3, "brain.Event:2");
  Record(version);
  if (purge_from) {
    std::string session;  // SessionLog {1: status = START}
    PutKey(session, 1, kVarint);
    PutVarint(session, 1);
    std::string event = EventHead(wall_time, *purge_from);
    PutBytes(event, 7, session);
    Record(event);
  }
  file_.flush();
}

void EventWriter::Add(uint64_t step, double wall_time, std::span<const kgrpo_metric> metrics) {
  std::string summary;  // Summary {1: repeated Value {1: tag, 2: float simple_value}}
  for (const kgrpo_metric& metric : metrics) {
    std::string value;
    PutBytes(value, 1, View(metric.name));
    PutKey(value, 2, kFixed32);
    PutLittleEndian(value, std::bit_cast<uint32_t>(static_cast<float>(metric.value)));
    PutBytes(summary, 1, value);
  }
  std::string event = EventHead(wall_time, step);
  PutBytes(event, 5, summary);
  Record(event);
  file_.flush();
  if (!file_) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + path_.string() + ": is the disk full?");
}

void EventWriter::Record(const std::string& event) {
  std::string length;
  PutLittleEndian(length, static_cast<uint64_t>(event.size()));
  std::string record = length;
  PutLittleEndian(record, MaskedCrc(length));
  record += event;
  PutLittleEndian(record, MaskedCrc(event));
  file_.write(record.data(), static_cast<std::streamsize>(record.size()));
}

}  // namespace kgrpo::tensorboard
