#include <kgrpo/support/json_schema.h>

#include <utility>
#include <vector>

#include "config/diagnostic.h"
#include "config/node.h"
#include "config/schema.h"

namespace kgrpo {

void FillDefaultsAndCheck(const nlohmann::ordered_json& schema, const std::string& path, nlohmann::json* value) {
  RequireUsableSchema(schema);
  Node node = Node::FromJson(nlohmann::ordered_json(*value), {});
  FillDefaults(schema, &node);
  std::vector<Diagnostic> errors;
  CheckAgainstSchema(node, schema, path, &errors);
  if (!errors.empty()) throw ConfigError(std::move(errors));
  *value = node.ToJson();
}

}  // namespace kgrpo
