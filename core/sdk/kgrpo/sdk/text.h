// kgrpo/sdk/text.h - kgrpo_str to and from std::string_view. For plugin authors, and used by the host itself.
#ifndef KGRPO_SDK_TEXT_H
#define KGRPO_SDK_TEXT_H
#include <kgrpo/abi.h>

#include <string>
#include <string_view>

namespace kgrpo {

// Borrows: valid as long as what `text` refers to.
inline kgrpo_str Str(std::string_view text) {
  return {text.data(), text.size()};
}

inline std::string_view View(kgrpo_str text) {
  return text.size == 0 ? std::string_view() : std::string_view(text.data, text.size);
}

inline std::string Copy(kgrpo_str text) {
  return std::string(View(text));
}

}  // namespace kgrpo
#endif
