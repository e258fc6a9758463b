// JSON as text, for files, programs and services. Used wherever JSON holds text of a user, a plugin or a kernel.
#ifndef KGRPO_SUPPORT_DUMP_JSON_H
#define KGRPO_SUPPORT_DUMP_JSON_H

#include <concepts>
#include <nlohmann/json.hpp>
#include <string>

namespace kgrpo {

// `indent` -1: one line. Bytes that are not UTF-8 become U+FFFD; with `ascii`, all that is not ASCII becomes \uXXXX.
inline std::string DumpJson(const nlohmann::ordered_json& json, int indent = -1, bool ascii = false) {
  return json.dump(indent, ' ', ascii, nlohmann::ordered_json::error_handler_t::replace);
}

// Members in alphabetical order.
template <std::same_as<nlohmann::json> Json>
std::string DumpJson(const Json& json, int indent = -1, bool ascii = false) {
  return json.dump(indent, ' ', ascii, Json::error_handler_t::replace);
}

}  // namespace kgrpo
#endif
