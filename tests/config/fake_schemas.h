// The plugins that the configuration tests know, by their options schemas alone.
#ifndef KGRPO_TESTS_CONFIG_FAKE_SCHEMAS_H
#define KGRPO_TESTS_CONFIG_FAKE_SCHEMAS_H

#include <kgrpo/sdk/error.h>

#include <map>
#include <string>
#include <utility>

#include "config/load.h"

namespace kgrpo::test {

inline Schema FakeSchema(Role role, const std::string& plugin) {
  static const std::map<std::string, std::pair<Role, const char*>> kPlugins = {
      {"fake_policy",
       {Role::kPolicy, R"({"type": "object", "additionalProperties": false, "required": ["model"], "properties": {
          "model": {"type": "string", "minLength": 1},
          "device": {"type": "string", "pattern": "^(cpu|cuda(:[0-9]+)?)$", "default": "cpu", "x-resume": true}}})"}},
      {"fake_policy_two",
       {Role::kPolicy, R"({"type": "object", "additionalProperties": false, "required": ["model"], "properties": {
          "model": {"type": "string"}}})"}},
      {"fake_coder", {Role::kCoder, R"({"type": "object", "additionalProperties": false,
        "x-removed": {"patience": {"const": 1, "description": "it waits once"}}, "properties": {
          "techniques": {"type": "array", "uniqueItems": true, "items": {"enum": ["tile", "unroll", "vectorise"]}, "default": ["tile"]},
          "retry": {"type": "object", "additionalProperties": false, "default": {}, "properties": {
            "attempts": {"type": "integer", "minimum": 1, "default": 3},
            "delay": {"type": "number", "minimum": 0, "default": 0.5}}}}})"}},
      {"fake_evaluator", {Role::kEvaluator, R"({"type": "object", "additionalProperties": false, "properties": {}})"}},
      {"fake_reward", {Role::kReward, R"({"type": "object", "additionalProperties": false, "properties": {
          "correct": {"type": "number", "default": 0.3}}})"}},
      {"broken_schema_reward", {Role::kReward, R"({"type": "objct", "properties": {"a": {"minimum": "three"}}})"}},
      {"fake_trainer", {Role::kTrainer, R"({"type": "object", "additionalProperties": false, "properties": {
          "learning_rate": {"type": "number", "exclusiveMinimum": 0, "default": 1e-5, "x-resume": true},
          "epochs": {"type": "integer", "minimum": 1, "maximum": 100, "default": 2},
          "loss": {"enum": ["grpo", "dapo", "cispo"], "default": "grpo"},
          "clip": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}], "default": 0.2}}})"}},
      {"observer_tensorboard",
       {Role::kObserver, R"({"type": "object", "additionalProperties": false, "properties": {}})"}},
      {"observer_metrics", {Role::kObserver, R"({"type": "object", "additionalProperties": false, "properties": {
          "rounds": {"type": "boolean", "default": false}}})"}},
  };
  const auto known = kPlugins.find(plugin);
  if (known == kPlugins.end()) throw Error(KGRPO_ERROR_NOT_FOUND, "there is no plugin \"" + plugin + "\"");
  if (known->second.first != role) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "plugin \"" + plugin + "\" is no " + RoleName(role));
  }
  return Schema::parse(known->second.second);
}

}  // namespace kgrpo::test
#endif
