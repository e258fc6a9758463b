// The techniques that the offline coder knows, and how a free text is read as some of them.
#ifndef KGRPO_PLUGINS_CODER_OFFLINE_TECHNIQUES_H_
#define KGRPO_PLUGINS_CODER_OFFLINE_TECHNIQUES_H_

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
  kFuse,          // several kernels into one
  kShuffle,       // exchange within a warp by shuffles
  kCooperate,     // a block works on what one thread did
  kOnePass,       // several sweeps over the data into one
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

// The technique in a few plain words, as the summary and the messages say it: "shared-memory tiling".
std::string_view NameOf(Technique technique);

// Reads a text of at most `kLongestSuggestion` bytes (what is beyond is ignored): every technique it names, in the
// order of the text, each once. A technique that the text rejects ("without unrolling", "do not tile") is left out.
// Empty when no technique is named.
std::vector<Ask> Understand(std::string_view text);
constexpr size_t kLongestSuggestion = 4096;

// Short phrases, one a technique and parameter, each understood as exactly that. The order is fixed.
const std::vector<std::string>& Suggestions();

}  // namespace kgrpo::coder_offline

#endif  // KGRPO_PLUGINS_CODER_OFFLINE_TECHNIQUES_H_
