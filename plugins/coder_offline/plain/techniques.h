// Techniques for ordinary kernels, without a schedule line. Each looks for a form that it knows and returns the
// new source; it leaves other forms unchanged and says so. Used by plain/coder.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "coder_offline/coder.h"
#include "coder_offline/plain/source.h"
#include "coder_offline/techniques.h"

namespace kgrpo::coder_offline {

// As Implement, for a kernel without a schedule line (coder.cc here): applies the applicable techniques of `asks`, in a
// fixed order. `asks` must not be empty.
Answer ImplementPlain(std::string_view source, const std::vector<Ask>& asks);

struct PlainResult {
  std::string source;  // empty if nothing was changed
  std::string words;   // what was changed, or why nothing was
};

PlainResult ReadOnlyPointers(const PlainSource& source);        // const, __restrict__, __ldg
PlainResult BlockSize(const PlainSource& source, int threads);  // threads: 0 for 256
PlainResult LaunchBounds(const PlainSource& source);
PlainResult UnrollLoops(const PlainSource& source, int times);  // times: 0 for 4
PlainResult FastIntrinsics(const PlainSource& source);
PlainResult NarrowIndices(const PlainSource& source);  // 64-bit indices to 32 bits
PlainResult GridStride(const PlainSource& source);
PlainResult VectorElements(const PlainSource& source, int width);  // width: 0 for 4
PlainResult ShuffleReduction(const PlainSource& source);

}  // namespace kgrpo::coder_offline
