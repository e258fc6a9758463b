// The service described for programs (OpenAPI 3.1, GET /openapi.json) and, made from the same, for people (GET /).
// Used by service.cc.
#ifndef KGRPO_SERVE_OPENAPI_H
#define KGRPO_SERVE_OPENAPI_H

#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo::serve {

const nlohmann::ordered_json& OpenApi();
const std::string& OpenApiPage();

}  // namespace kgrpo::serve
#endif
