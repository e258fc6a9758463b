// The techniques that the offline coder knows, and the parser that finds them in a free text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_offline {

enum class Technique {
  kTile,          // stage a tile in shared memory
  kRegister,      // several outputs a thread, kept in registers
  kVectorize,     // float2 or float4 loads and stores
  kUnroll,        // unroll the inner loop
  kGridStride,    // a fixed grid that strides over the data
  kCoalesce,      // neighbouring threads touch neighbouring addresses
  kFuse,          // several kernels become one
  kShuffle,       // exchange within a warp by shuffles
  kCooperate,     // a block does the work of one thread
  kOnePass,       // several sweeps over the data become one
  kRestrict,      // const __restrict__ pointers, the read-only path
  kBlock,         // threads a block
  kHoist,         // take repeated work out of the loop
  kBranchless,    // remove divergent branches
  kPad,           // pad shared memory against bank conflicts
  kFast,          // approximate intrinsics
  kHalf,          // half precision
  kPrivatize,     // private copies of contended counters
  kPrefetch,      // load the next tile while computing on this one
  kLaunchBounds,  // __launch_bounds__: the compiler knows the block size
  kNarrow,        // 32-bit indices in place of 64-bit ones
};

// The content of one suggestion: a technique and, where the text names one, its parameter.
struct Ask {
  Technique technique;
  int value = 0;  // 0: none was named

  bool operator==(const Ask&) const = default;
};

// The technique's name in summaries and messages: "shared-memory tiling".
std::string_view NameOf(Technique technique);
// The option that it sets in a schedule line: "tile".
std::string_view OptionOf(Technique technique);

// The techniques named by a text, in its order, each once. A technique that the text rejects ("without unrolling", "do
// not tile") is left out. Only the first `kLongestSuggestion` bytes are read. Empty if no technique is named.
std::vector<Ask> Understand(std::string_view text);
constexpr size_t kLongestSuggestion = 4096;

// Short phrases, one a technique and parameter, each understood as exactly that. The order is fixed.
const std::vector<std::string>& Suggestions();

}  // namespace kgrpo::coder_offline
