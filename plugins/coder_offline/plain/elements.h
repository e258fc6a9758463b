// Kernels that do the same for each element, as people write them. Read for the grid-stride loop (elements.cc) and for
// vectors (vectors.cc).
#ifndef KGRPO_PLUGINS_CODER_OFFLINE_PLAIN_ELEMENTS_H_
#define KGRPO_PLUGINS_CODER_OFFLINE_PLAIN_ELEMENTS_H_

#include <optional>
#include <string>

#include "coder_offline/plain/source.h"

namespace kgrpo::coder_offline {

// A kernel of one of the forms that people write:
//   int i = blockIdx.x * blockDim.x + threadIdx.x;  if (i < n) { work }      or   if (i >= n) return;  work
//   for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) { work }
struct Elements {
  std::string type, index, limit;
  bool strides = false;
  Range work;  // without its braces
};

// The reason for refusing other kernels; the kernel's name goes before it.
inline constexpr const char* kNotElements =
    " is not of the form: index = blockIdx.x * blockDim.x + threadIdx.x, then if (index < n) and the work on one "
    "element";

std::optional<Elements> ReadElements(const PlainSource& source, const PlainFunction& kernel);

// Why the work can't be repeated or moved into a loop; empty when it can.
std::string WhyNotPlain(const PlainSource& source, const PlainFunction& kernel, const Elements& elements);

// Why a launch's grid can't become part of another expression; empty when it can.
std::string WhyNotGrid(const PlainSource& source, const PlainLaunch& launch);

}  // namespace kgrpo::coder_offline

#endif  // KGRPO_PLUGINS_CODER_OFFLINE_PLAIN_ELEMENTS_H_
