// The kgrpo.evaluator/1 interface and its tools over an Evaluator, for the plugin.cc of evaluators that compile
// kernels: a plugin adds its own options and its backend.
#pragma once

#include <kgrpo/draft/evaluator_tools.h>
#include <kgrpo/sdk/host.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "judge/front/evaluator.h"

namespace kgrpo::evaluator {

// The JSON Schema of the options that all such evaluators have, and of `own`: further properties, each followed by a
// comma.
std::string OptionsSchema(const std::string& plugin, const std::string& own);

// The values of those options. Messages go to `host`, which outlives the backend.
EvaluatorOptions ReadEvaluatorOptions(const nlohmann::json& json, const Host& host);
void ReadBackendOptions(const nlohmann::json& json, const Host& host, BackendOptions* options);

// The result of kgrpo_evaluator_interface.create. Declares the names of everything that evaluators measure.
kgrpo_evaluator* MakeEvaluator(const Host& host, std::unique_ptr<Backend> backend, const EvaluatorOptions& options);

// The interface's table. `counts`: the backend counts a kernel's work, so explain_bound can compare it.
kgrpo_evaluator_interface MakeInterface(kgrpo_str (*options_schema)(void),
                                        decltype(kgrpo_evaluator_interface::create) create, bool counts);

}  // namespace kgrpo::evaluator
