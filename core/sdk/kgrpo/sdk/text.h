// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/text.h - kgrpo_str to and from std::string_view, and metrics by name. For plugin authors, and used by the
// host itself.
#ifndef KGRPO_SDK_TEXT_H
#define KGRPO_SDK_TEXT_H
#include <kgrpo/abi.h>

#include <cmath>
#include <string>
#include <string_view>

namespace kgrpo {

// Borrows: valid as long as what `text` refers to.
inline kgrpo_str Str(std::string_view text) { return {text.data(), text.size()}; }

inline std::string_view View(kgrpo_str text) {
  return text.size == 0 ? std::string_view() : std::string_view(text.data, text.size);
}

inline std::string Copy(kgrpo_str text) { return std::string(View(text)); }

// A metric that borrows its name; `low` and `high` are its 95% interval, NaN if it is not known.
inline kgrpo_metric Measured(std::string_view name, double value, double low = NAN, double high = NAN) {
  return {Str(name), value, low, high};
}

}  // namespace kgrpo
#endif
