#include "simt/ops/lane_video.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

enum class VideoOperation : uint32_t {
  kAdd,
  kSubtract,
  kDifference,
  kMinimum,
  kMaximum,
  kAverage,
  kCompare,
  kLeft,
  kRight,
  kMultiplyAdd
};
enum class Then : uint32_t { kNothing, kAdd, kMinimum, kMaximum };
enum class Comparison : uint32_t { kEq, kNe, kLt, kLe, kGt, kGe };

// The fields of a video instruction in the lower half of Instruction::offset, below the selectors.
struct Video {
  VideoOperation operation : 4;
  Then then : 2;
  Comparison comparison : 3;
  uint32_t parts : 3;  // 1, 2 halves or 4 bytes
  bool signed_d : 1, signed_a : 1, signed_b : 1, saturate : 1, wrap : 1, plus_one : 1;
  uint32_t shift : 14;  // of vmad's result
};

int64_t Field(uint32_t value, uint32_t shift, uint32_t bits, bool is_signed) {
  const uint64_t field = (uint64_t{value} >> shift) & ((uint64_t{1} << bits) - 1);
  return is_signed ? static_cast<int64_t>(field << (64 - bits)) >> (64 - bits) : static_cast<int64_t>(field);
}

// A source of a scalar instruction: the whole register, a byte or a half. Codes as in SelectorCode.
int64_t Selected(uint32_t value, int64_t code, bool is_signed) {
  if (code == 0) return Field(value, 0, 32, is_signed);
  if (code <= 4) return Field(value, 8 * static_cast<uint32_t>(code - 1), 8, is_signed);
  return Field(value, 16 * static_cast<uint32_t>(code - 5), 16, is_signed);
}

bool ComparisonHolds(Comparison comparison, int64_t x, int64_t y) {
  const std::array<bool, 6> holds = {x == y, x != y, x<y, x <= y, x> y, x >= y};
  return holds[static_cast<size_t>(comparison)];
}

int64_t Combine(const Video& v, int64_t x, int64_t y, int64_t c) {
  const auto by = static_cast<uint32_t>(v.wrap ? y & 31 : std::min<int64_t>(y & 0xFFFFFFFF, 32));
  switch (v.operation) {
    case VideoOperation::kAdd: return x + y;
    case VideoOperation::kSubtract: return x - y;
    case VideoOperation::kDifference: return x < y ? y - x : x - y;
    case VideoOperation::kMinimum: return std::min(x, y);
    case VideoOperation::kMaximum: return std::max(x, y);
    case VideoOperation::kAverage: return x + y >= 0 ? (x + y + 1) >> 1 : (x + y) >> 1;
    case VideoOperation::kCompare: return ComparisonHolds(v.comparison, x, y) ? 1 : 0;
    case VideoOperation::kLeft: return static_cast<int64_t>(static_cast<uint64_t>(x) << by);
    case VideoOperation::kRight: return x >> by;
    case VideoOperation::kMultiplyAdd: return (x * y + c + (v.plus_one ? 1 : 0)) >> v.shift;
  }
  return 0;
}

int64_t Saturated(int64_t value, uint32_t bits, bool is_signed) {
  const int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1, low = is_signed ? -high - 1 : 0;
  return std::clamp(value, low, high);
}

}  // namespace

int SelectorCode(std::string_view selector) {
  constexpr std::array<std::string_view, 7> kNames = {"", "b0", "b1", "b2", "b3", "h0", "h1"};
  const auto* const found = std::find(kNames.begin(), kNames.end(), selector);
  return found == kNames.end() ? -1 : static_cast<int>(found - kNames.begin());
}

bool ReadVideo(const Opcode& op, int64_t& mode) {
  struct Name {
    std::string_view text;
    VideoOperation operation;
    bool in_parts, alone;  // whether there are forms for halves and bytes, and for the whole register
  };
  constexpr std::array<Name, 10> kNames = {{{"vadd", VideoOperation::kAdd, true, true},
                                            {"vsub", VideoOperation::kSubtract, true, true},
                                            {"vabsdiff", VideoOperation::kDifference, true, true},
                                            {"vmin", VideoOperation::kMinimum, true, true},
                                            {"vmax", VideoOperation::kMaximum, true, true},
                                            {"vavrg", VideoOperation::kAverage, true, false},
                                            {"vset", VideoOperation::kCompare, true, true},
                                            {"vshl", VideoOperation::kLeft, false, true},
                                            {"vshr", VideoOperation::kRight, false, true},
                                            {"vmad", VideoOperation::kMultiplyAdd, false, true}}};
  Video v{};
  v.parts = 1;
  std::string_view base = op.base;
  if (!base.empty() && (base.back() == '2' || base.back() == '4')) {
    v.parts = base.back() == '2' ? 2 : 4;
    base.remove_suffix(1);
  }
  const Name* known = nullptr;
  for (const Name& name : kNames) {
    if (name.text == base && (v.parts == 1 ? name.alone : name.in_parts)) known = &name;
  }
  const bool compare = known != nullptr && known->operation == VideoOperation::kCompare;
  if (known == nullptr || op.type_count != (compare ? 2 : 3)) return false;
  v.operation = known->operation;
  v.signed_a = op.types[compare ? 0 : 1] == Type::kS32;
  v.signed_b = op.types[compare ? 1 : 2] == Type::kS32;
  v.signed_d = !compare && op.types[0] == Type::kS32;
  v.saturate = op.Has("sat");
  v.wrap = op.Has("wrap");
  v.plus_one = op.Has("po");
  v.shift = op.Has("shr7") ? 7 : op.Has("shr15") ? 15 : 0;
  if (compare) {
    constexpr std::array<std::string_view, 6> kComparisons = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (size_t i = 0; i < kComparisons.size(); ++i) {
      if (op.Has(kComparisons[i])) v.comparison = static_cast<Comparison>(i);
    }
  }
  v.then = op.Has("add")   ? Then::kAdd
           : op.Has("min") ? Then::kMinimum
           : op.Has("max") ? Then::kMaximum
                           : Then::kNothing;
  mode = int64_t{std::bit_cast<uint32_t>(v)};
  return true;
}

uint32_t VideoLane(uint32_t a, uint32_t b, uint32_t c, int64_t mode) {
  const auto v = std::bit_cast<Video>(static_cast<uint32_t>(mode));
  if (v.parts == 1) {
    const bool multiply = v.operation == VideoOperation::kMultiplyAdd;
    const int64_t x = Selected(a, mode >> kSelectorShiftA & 15, v.signed_a);
    const int64_t y = Selected(b, mode >> kSelectorShiftB & 15, v.signed_b);
    int64_t result = Combine(v, x, y, Field(c, 0, 32, v.signed_d));
    if (v.saturate) result = Saturated(result, 32, v.signed_d);
    const auto whole = static_cast<uint32_t>(result);
    if (v.then == Then::kNothing || multiply) return whole;
    if (v.then == Then::kAdd) return whole + c;
    const int64_t left = Field(whole, 0, 32, v.signed_d), right = Field(c, 0, 32, v.signed_d);
    return static_cast<uint32_t>(v.then == Then::kMinimum ? std::min(left, right) : std::max(left, right));
  }
  const uint32_t bits = 32 / v.parts;
  uint32_t result = 0, sum = c;
  for (uint32_t i = 0; i < v.parts; ++i) {
    int64_t part = Combine(v, Field(a, i * bits, bits, v.signed_a), Field(b, i * bits, bits, v.signed_b), 0);
    if (v.saturate) part = Saturated(part, bits, v.signed_d);
    const uint32_t field = static_cast<uint32_t>(part) & ((1u << bits) - 1);
    result |= field << (i * bits);
    sum += static_cast<uint32_t>(Field(field, 0, bits, v.signed_d));
  }
  return v.then == Then::kAdd ? sum : result;
}

}  // namespace kgrpo::simt
