// printf and assert of device code.
#include <bit>
#include <cstring>

#include "simt/check/access.h"
#include "simt/state/handlers.h"
#include "simt/state/machine.h"

namespace kgrpo::simt {
namespace {

constexpr size_t kMostPrinted = 64 * 1024;

// A value of the thread's frame, where call arguments lie.
uint64_t FromFrame(const Warp& warp, Operand operand, int lane, size_t bytes) {
  const uint32_t offset = SourceAs<uint32_t>(warp, operand)[lane];
  uint64_t value = 0;
  const size_t frame = warp.grid->kernel->local_bytes;
  std::memcpy(
      &value,
      warp.block->local.data() + (static_cast<size_t>(warp.id) * kLanes + static_cast<size_t>(lane)) * frame + offset,
      bytes);
  return value;
}

// Bytes behind a generic address; short where the memory ends.
std::string BytesAt(const Warp& warp, int lane, uint64_t address, size_t count) {
  const Grid& grid = *warp.grid;
  const size_t frame = grid.kernel->local_bytes;
  if ((address >> 52) == (kLocalWindow >> 52)) {
    const uint64_t offset = address - kLocalWindow;
    if (offset >= frame) return {};
    const auto* base = reinterpret_cast<const char*>(warp.block->local.data()) +
                       (static_cast<size_t>(warp.id) * kLanes + static_cast<size_t>(lane)) * frame;
    return {base + offset, std::min<size_t>(count, frame - offset)};
  }
  if ((address >> 52) == (kSharedWindow >> 52)) {
    const uint64_t offset = address - kSharedWindow;
    if (offset >= grid.shared_limit) return {};
    return {reinterpret_cast<const char*>(warp.block->shared) + offset,
            std::min<size_t>(count, grid.shared_limit - offset)};
  }
  const Allocation* allocation = grid.memory->Find(address);
  if (allocation == nullptr) return {};
  const uint64_t offset = address - allocation->address();
  return {reinterpret_cast<const char*>(allocation->data()) + offset,
          std::min<size_t>(count, allocation->bytes() - offset)};
}

std::string TextAt(const Warp& warp, int lane, uint64_t address) {
  std::string text = BytesAt(warp, lane, address, 4096);
  return text.substr(0, text.find('\0'));
}

// What vprintf prints, and the number of arguments that it read, which it returns.
struct Printed {
  std::string text;
  int arguments = 0;
};
Printed Format(const Warp& warp, int lane, const std::string& format, uint64_t arguments) {
  Printed printed;
  std::string& out = printed.text;
  uint64_t offset = 0;
  auto next = [&](size_t bytes) {
    ++printed.arguments;
    offset = (offset + bytes - 1) / bytes * bytes;
    const std::string raw = BytesAt(warp, lane, arguments + offset, bytes);
    uint64_t value = 0;
    std::memcpy(&value, raw.data(), std::min(bytes, raw.size()));
    offset += bytes;
    return value;
  };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    size_t end = i + 1;
    while (end < format.size() && std::strchr("-+ #0123456789.*", format[end]) != nullptr) ++end;
    std::string spec = format.substr(i, end - i);
    int longs = 0;
    while (end < format.size() && std::strchr("hljztL", format[end]) != nullptr) longs += format[end++] != 'h';
    if (end >= format.size()) break;
    if (const size_t star = spec.find('*'); star != std::string::npos)
      spec.replace(star, 1, std::to_string(static_cast<int32_t>(next(4))));
    const char kind = format[end];
    char buffer[512];
    buffer[0] = '\0';
    if (kind == '%') {
      std::snprintf(buffer, sizeof buffer, "%%");
    } else if (std::strchr("di", kind) != nullptr) {
      const auto value =
          longs > 0 ? static_cast<long long>(next(8)) : static_cast<long long>(static_cast<int32_t>(next(4)));
      std::snprintf(buffer, sizeof buffer, (spec + "lld").c_str(), value);
    } else if (std::strchr("uxXo", kind) != nullptr) {
      const auto value = static_cast<unsigned long long>(longs > 0 ? next(8) : next(4));
      std::snprintf(buffer, sizeof buffer, (spec + "ll" + kind).c_str(), value);
    } else if (std::strchr("fFeEgGaA", kind) != nullptr) {
      std::snprintf(buffer, sizeof buffer, (spec + kind).c_str(), std::bit_cast<double>(next(8)));
    } else if (kind == 'c') {
      std::snprintf(buffer, sizeof buffer, (spec + "c").c_str(), static_cast<int>(next(4)));
    } else if (kind == 'p') {
      std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(next(8)));
    } else if (kind == 's') {
      std::snprintf(buffer, sizeof buffer, (spec + "s").c_str(), TextAt(warp, lane, next(8)).c_str());
    }
    out += buffer;
    i = end;
  }
  return printed;
}

// Stores a call's result in the thread's frame.
void ReturnToFrame(Warp& warp, Operand operand, int lane, int32_t value) {
  if (operand == kNoOperand) return;
  Block& block = *warp.block;
  const size_t frame =
      (static_cast<size_t>(warp.id) * kLanes + static_cast<size_t>(lane)) * warp.grid->kernel->local_bytes;
  const size_t offset = frame + SourceAs<uint32_t>(warp, operand)[lane];
  std::memcpy(block.local.data() + offset, &value, sizeof value);
  if (warp.grid->checked) block.local_written[offset / 64] |= simt::BitsOf(offset, sizeof value);
}

}  // namespace

void PrintFormatted(Warp& warp, const Instruction& in, uint32_t mask) {
  std::string& all = warp.grid->result->printed;
  for (const int l : EachBit(mask)) {
    const uint64_t format = FromFrame(warp, in.a, l, 8);
    const Printed printed = Format(warp, l, TextAt(warp, l, format), FromFrame(warp, in.b, l, 8));
    all += printed.text.substr(0, kMostPrinted - all.size());
    ReturnToFrame(warp, in.c, l, format == 0 ? -1 : printed.arguments);
  }
}

void AssertFailed(Warp& warp, const Instruction& in, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const std::string condition = TextAt(warp, lane, FromFrame(warp, in.a, lane, 8));
  const uint64_t line = FromFrame(warp, in.c, lane, 4);
  Report(warp, in.index, lane, FindingCode::kTrap, true, 0, "",
         "fails the assertion '" + condition + "' of line " + std::to_string(line));
  throw Fault{};
}

}  // namespace kgrpo::simt
