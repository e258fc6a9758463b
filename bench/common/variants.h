// The kernels that coder_offline makes of a problem's reference, for measurements that need many different ones.
#ifndef KGRPO_TOOLS_COMMON_VARIANTS_H
#define KGRPO_TOOLS_COMMON_VARIANTS_H

#include <cstddef>
#include <string>
#include <vector>

namespace kgrpo::bench {

// Different sources that suggestions lead to from the reference, breadth first, without the reference itself: at least
// `least` where there are so many. Later ones have more techniques.
std::vector<std::string> Variants(const std::string& reference, size_t least);

// The techniques that coder_offline notes in a source: "tile 32 + unroll 4". Empty where it notes none.
std::string ScheduleOf(const std::string& source);

}  // namespace kgrpo::bench

#endif
