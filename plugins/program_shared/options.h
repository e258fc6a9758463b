// A program's options in a pipeline, and its answers at its start. Used by pool.h's parts and the
// plugins.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "program_shared/pool.h"

namespace kgrpo::program {

// JSON Schema of a plugin's options. `title`: "reward_program options"; `example`: a command of that role.
std::string OptionsSchema(std::string_view title, std::string_view example, double request_seconds);

// `text` is JSON that satisfies the schema, defaults filled in. Throws KGRPO_ERROR_INVALID otherwise.
PoolOptions ReadOptions(std::string_view text);

// "python3 reward.py"
std::string Joined(const std::vector<std::string>& command);

// Throws Broken where a program's answer to `initialize` is malformed, KGRPO_ERROR_UNSUPPORTED where it speaks another
// protocol or plays another role.
Hello ReadHello(const nlohmann::json& said, std::string_view role);

// Adds what it answered to `configure`. Throws Broken where that makes no sense.
void ReadConfigured(const nlohmann::json& said, Hello* hello);

// The options for the program, its schema's defaults filled in. Throws KGRPO_ERROR_INVALID where they do not satisfy
// the schema, a line each mistake. A null schema takes anything.
nlohmann::json CheckProgramOptions(const nlohmann::json& given, const nlohmann::json& schema);

// [{"name": "tiles", "label": "tiles", "unit": "", "group": "Shape", "kind": "number"}]; null: none.
void DeclareMetrics(const Host& host, const nlohmann::json& metrics);

}  // namespace kgrpo::program
