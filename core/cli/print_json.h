// JSON output of commands with --json. Used by the commands in this folder.
#ifndef KGRPO_CLI_PRINT_JSON_H
#define KGRPO_CLI_PRINT_JSON_H

#include <nlohmann/json.hpp>

namespace kgrpo::cli {

// Prints indented JSON on standard output. Bytes that are not UTF-8 become U+FFFD.
void PrintJson(const nlohmann::ordered_json& json);

}  // namespace kgrpo::cli
#endif
