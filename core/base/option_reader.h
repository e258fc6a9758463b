// Reads one value of options by its path: kgrpo_options_interface. Used by base/services.cc.
#ifndef KGRPO_BASE_OPTION_READER_H
#define KGRPO_BASE_OPTION_READER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kgrpo {

// `options` is JSON; `path` is keys and array indices joined by dots. Each throws kgrpo::Error: INVALID where the text
// is no JSON or the value has another type, NOT_FOUND where nothing is at the path.
double OptionNumber(std::string_view options, std::string_view path);
int64_t OptionInteger(std::string_view options, std::string_view path);
bool OptionFlag(std::string_view options, std::string_view path);
std::string OptionText(std::string_view options, std::string_view path);
size_t OptionCount(std::string_view options, std::string_view path);  // elements of an array or members of an object

}  // namespace kgrpo
#endif
