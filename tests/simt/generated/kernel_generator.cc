#include "kernel_generator.h"

#include <array>
#include <iterator>
#include <map>

#include "builder.h"

namespace kgrpo::generated {

const char* KindName(Kind kind) {
  constexpr std::array<const char*, kKinds> kNames = {"integer", "float",       "double", "convert", "control",
                                                      "half",    "warp",        "shared", "atomic",  "memory",
                                                      "matrix",  "approximate", "math"};
  return kNames[static_cast<size_t>(kind)];
}

GeneratedKernel Generate(uint64_t number) {
  const auto kind = static_cast<Kind>(number % kKinds);
  Builder builder(number, kind);
  static const std::map<Kind, void (*)(Builder&)> kWriters = {
      {Kind::kControl, WriteControl}, {Kind::kWarp, WriteWarp},     {Kind::kShared, WriteShared},
      {Kind::kAtomic, WriteAtomic},   {Kind::kMemory, WriteMemory}, {Kind::kMatrix, WriteMatrix}};
  if (const auto writer = kWriters.find(kind); writer != kWriters.end())
    writer->second(builder);
  else
    builder.Straight(20);
  return builder.Finish();
}

std::vector<uint64_t> InputsOf(uint64_t number) {
  Random random(number * 2 + 1);
  constexpr uint64_t kSpecial[] = {0,
                                   0x80000000ull,
                                   1,
                                   0x007FFFFFull,
                                   0x00800000ull,
                                   0x7F7FFFFFull,
                                   0x7F800000ull,
                                   0xFF800000ull,
                                   0x7FC00000ull,
                                   0xFFFFFFFFFFFFFFFFull,
                                   0x8000000000000000ull,
                                   0x7FFFFFFFFFFFFFFFull,
                                   0x80000001ull,
                                   0x7FF0000000000000ull,
                                   0xFFF0000000000000ull,
                                   0x7FF8000000000000ull,
                                   0x000FFFFFFFFFFFFFull,
                                   0x0010000000000000ull,
                                   0x7FEFFFFFFFFFFFFFull,
                                   0x3FF000003F800000ull,
                                   0x3FF0000000000001ull,
                                   0xBF8000003F7FFFFFull,
                                   0x3F003C007C007BFFull,
                                   0x4B0000004B7FFFFFull};
  std::vector<uint64_t> words(kInputWords);
  for (uint64_t& word : words) {
    word = random.Next();
    switch (random.Below(8)) {
      case 0: word = kSpecial[random.Below(std::size(kSpecial))]; break;
      case 1:
        word = random.Below(40);  // small integers, and the smallest subnormals
        break;
      case 2: word = ~random.Below(40); break;
      case 3:
      case 4: {  // a number of everyday size in each half, and so a double of everyday size
        auto usual = [&] {
          return static_cast<uint32_t>(random.Below(2) << 31 | (120 + random.Below(16)) << 23 | random.Below(1u << 23));
        };
        const uint64_t high = (usual() & 0x800FFFFFu) | (static_cast<uint32_t>(1015 + random.Below(16)) << 20);
        word = high << 32 | usual();
        break;
      }
      case 5: {  // 16-bit floats of everyday size, and two of them are a float
        auto half = [&] { return random.Below(2) << 15 | (11 + random.Below(9)) << 10 | random.Below(1024); };
        word = half() << 48 | half() << 32 | half() << 16 | half();
        break;
      }
      default: break;  // any bits
    }
  }
  return words;
}

}  // namespace kgrpo::generated
