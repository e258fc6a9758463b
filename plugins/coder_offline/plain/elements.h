// Recognises kernels that do the same work for each element. Used for grid-stride loops (elements.cc) and vector loads
// (vectors.cc).
#ifndef KGRPO_PLUGINS_CODER_OFFLINE_PLAIN_ELEMENTS_H_
#define KGRPO_PLUGINS_CODER_OFFLINE_PLAIN_ELEMENTS_H_

#include <optional>
#include <string>

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

// The reason why the work can't be repeated or moved into a loop; empty if it can.
std::string WhyNotPlain(const PlainSource& source, const PlainFunction& kernel, const Elements& elements);

// The reason why a launch's grid can't become part of another expression; empty if it can.
std::string WhyNotGrid(const PlainSource& source, const PlainLaunch& launch);

}  // namespace kgrpo::coder_offline

#endif  // KGRPO_PLUGINS_CODER_OFFLINE_PLAIN_ELEMENTS_H_
