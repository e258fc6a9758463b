// plugin.cc - evaluator_remote as kgrpo.evaluator/1.
#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/plugin.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "evaluator_remote/remote_evaluator.h"

struct kgrpo_evaluator {
  kgrpo::evaluator_remote::RemoteEvaluator evaluator;
};

struct kgrpo_problem {
  std::unique_ptr<kgrpo::evaluator_remote::RemoteProblem> problem;
};

namespace kgrpo::evaluator_remote {
namespace {

constexpr char kSchema[] = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "evaluator_remote options",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "servers": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "default": ["http://127.0.0.1:8421"],
      "x-resume": true, "description": "Addresses of `kgrpo-host serve`, of a load balancer in front of several, or dns://NAME:PORT: every address of the name, looked up again every 10 s. Of a list each evaluation goes to the least busy one, and to another if that fails."},
    "device": {"type": "string", "default": "", "x-resume": true, "description": "Which of the servers' devices judges; empty: their first."},
    "token_env": {"type": "string", "default": "KGRPO_TOKEN", "x-resume": true, "description": "The environment variable with the servers' token; unset or empty: none is sent."},
    "wait_seconds": {"type": "number", "minimum": 0, "default": 300,
      "x-resume": true, "description": "How long evaluations wait for any server to answer, from the first failure on, before they fail. A server that is busy has answered."},
    "request_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 600,
      "x-resume": true, "description": "Limit for one request, waiting in the server's queue included; beyond it another server is asked."}
  },
  "x-removed": {"connect_seconds": {"const": 5, "description": "a connection attempt takes at most 5 s; wait_seconds limits how long they are repeated"}}
})json";

kgrpo_str OptionsSchema() { return {kSchema, sizeof kSchema - 1}; }

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options_text, kgrpo_evaluator** out) {
  return Guard([&] {
    const nlohmann::json json = nlohmann::json::parse(View(options_text));
    const Host services(host);
    RemoteOptions options;
    options.device = json.value("device", "");
    options.pool.servers = json.value("servers", std::vector<std::string>{"http://127.0.0.1:8421"});
    options.pool.wait_seconds = json.value("wait_seconds", 300.0);
    options.pool.http.request_seconds = json.value("request_seconds", 600.0);
    options.pool.http.cancelled = [services] { return services.Cancelled(); };
    options.pool.warn = [services](const std::string& message) { services.Warn(message); };
    const char* token = std::getenv(json.value("token_env", "KGRPO_TOKEN").c_str());
    if (token != nullptr) options.pool.http.token = token;
    *out = new kgrpo_evaluator{RemoteEvaluator(services, std::move(options))};
  });
}

void Destroy(kgrpo_evaluator* self) { delete self; }

kgrpo_error* OpenOne(kgrpo_evaluator* self, kgrpo_str directory, kgrpo_problem** out) {
  return Guard([&] { *out = new kgrpo_problem{self->evaluator.Open(Copy(directory))}; });
}

void Close(kgrpo_evaluator*, kgrpo_problem* problem) { delete problem; }

const kgrpo_problem_info* ProblemInfo(const kgrpo_problem* problem) { return &problem->problem->info(); }

kgrpo_error* Evaluate(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                      kgrpo_evaluation_sink sink) {
  return Guard([&] {
    const Evaluation evaluation =
        request->reference != 0
            ? self->evaluator.Baseline(*problem->problem, request->seed, request->thorough != 0)
            : self->evaluator.Evaluate(*problem->problem, View(request->source), request->seed, request->thorough != 0);
    sink.put(sink.context, evaluation.ToC().c());
  });
}

kgrpo_str Describe(const kgrpo_evaluator* self) { return Str(self->evaluator.description()); }

constexpr kgrpo_evaluator_interface kInterface = {
    sizeof(kgrpo_evaluator_interface), OptionsSchema, Create, Destroy, OpenOne, Close, ProblemInfo, Evaluate, Describe,
    /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::evaluator_remote

KGRPO_PLUGIN("evaluator_remote", KGRPO_VERSION, "has servers judge (kgrpo-host serve): one address, or a list",
             {KGRPO_EVALUATOR_INTERFACE, &kgrpo::evaluator_remote::kInterface});
