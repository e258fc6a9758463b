// Recognises kernels and loops that do the same work for each element. Used for grid-stride loops (elements.cc) and
// vector loads (vectors.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coder_offline/plain/source.h"

namespace kgrpo::coder_offline {

// A kernel of one of the usual forms:
//   int i = blockIdx.x * blockDim.x + threadIdx.x;  if (i < n) { work }      or   if (i >= n) return;  work
//   for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) { work }
struct Elements {
  std::string type, index, limit;
  bool strides = false;
  Range work;  // without its braces
};

// The reason for refusing other kernels, to be appended to the kernel's name.
inline constexpr const char* kNotElements =
    " is not of the form: index = blockIdx.x * blockDim.x + threadIdx.x, then if (index < n) and the work on one "
    "element";

std::optional<Elements> ReadElements(const PlainSource& source, const PlainFunction& kernel);

// A loop over which the threads of a warp, a block or the grid share the elements from 0 to `limit`:
//   for (int i = threadIdx.x; i < n; i += blockDim.x) { work }
struct SharedLoop {
  Elements elements;
  std::string start, step;  // threadIdx.x, blockDim.x
  Range tokens;             // of the whole loop
};

// The loops of this kind in a kernel, outermost only. Sets *why to the reason for leaving one out.
std::vector<SharedLoop> ReadSharedLoops(const PlainSource& source, const PlainFunction& kernel, std::string* why);

// The reason why the work can't be repeated or moved into a loop; empty if it can. `in_loop`: it is in a loop already,
// so it may use its thread's index.
std::string WhyNotPlain(const PlainSource& source, const PlainFunction& kernel, const Elements& elements,
                        bool in_loop = false);

// The reason why a launch's grid can't become part of another expression; empty if it can.
std::string WhyNotGrid(const PlainSource& source, const PlainLaunch& launch);

}  // namespace kgrpo::coder_offline
