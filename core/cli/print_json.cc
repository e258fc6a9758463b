#include "cli/print_json.h"

#include <cstdio>

namespace kgrpo::cli {

void PrintJson(const nlohmann::ordered_json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

}  // namespace kgrpo::cli
