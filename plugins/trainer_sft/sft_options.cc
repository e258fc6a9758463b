#include "trainer_sft/sft_options.h"

#include <nlohmann/json.hpp>

namespace kgrpo::sft {
namespace {

constexpr const char* kSchemaHead = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "trainer_sft",
  "description": "Supervised warm start: cross-entropy of completions given their prompts. The stage's number of steps is its number of updates.",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "pairs": {"title": "Training pairs", "type": ["string", "null"], "default": null,
      "x-reads": "content", "description": "A JSONL file, a pair a line: {\"messages\": [...]} whose last message is the assistant's, or {\"prompt\": ..., \"completion\": ...} as lists of messages (as kgrpo-host export writes them) or as plain text. Every line is imitated, whatever its reward. null learns from the demonstrations that the pipeline rolls out."},
    "batch_size": {"title": "Batch size", "type": "integer", "minimum": 1, "default": 32,
      "description": "Pairs in an update, which is one optimiser step. Demonstrations from the pipeline are taken in optimiser steps of this size."},
    "shuffle": {"title": "Shuffle", "type": "boolean", "default": true,
      "description": "Visit the pairs in a new random order in each pass over the file (from the run's seed)."},
    "max_tokens_per_forward": {"title": "Tokens per forward pass", "type": "integer", "minimum": 0, "default": 0,
      "x-resume": true, "description": "Cut batches into pieces of at most this many tokens, prompts included, to bound memory; gradients stay the same. 0 does not cut."},
    )json";
constexpr const char* kSchemaTail = R"json(
  }
})json";

}  // namespace

std::string_view SftOptionsSchema() {
  static const std::string schema = kSchemaHead + trainer::OptimizerSchemaProperties(1e-5, "cosine") + kSchemaTail;
  return schema;
}

SftOptions ReadSftOptions(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  SftOptions options;
  if (!json.at("pairs").is_null()) options.pairs = json.at("pairs").get<std::string>();
  options.batch_size = json.at("batch_size").get<uint32_t>();
  options.shuffle = json.at("shuffle").get<bool>();
  options.max_tokens_per_forward = json.at("max_tokens_per_forward").get<uint32_t>();
  options.optimizer = trainer::ReadOptimizerOptions(json);
  return options;
}

}  // namespace kgrpo::sft
