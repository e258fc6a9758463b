// The plugin's options: their schema, and their checked values. docs/coder_gpt4o.md explains each
// for users. Used by plugin.cc.
#pragma once

#include "coder_gpt4o/budget.h"             // Price
#include "coder_gpt4o/completion_client.h"  // ClientOptions
#include "coder_shared/prompt.h"            // PromptOptions

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {

// The source of answers.
enum class Mode {
  kLive,    // the service
  kCache,   // a recording, and the service for what is not in it
  kReplay,  // a recording alone
};

struct CoderOptions {
  // --- the request ---
  std::string model;
  std::optional<double> temperature;  // unset: not sent
  uint64_t max_tokens = 0;
  std::string max_tokens_field;  // the key that it is sent under
  std::optional<int64_t> seed;
  bool seed_of_sample = false;  // send the host's own seed of each request instead
  nlohmann::json extra_body = nlohmann::json::object();
  coder_shared::PromptOptions prompt;

  // --- the answer, its cost and its recording ---
  Price price;  // of the model; zero if not given
  bool price_known = false;
  std::optional<double> max_cost;  // US dollars; this rank's equal share of the run's limit
  uint32_t ranks = 1;              // the ranks that share the limit
  Mode mode = Mode::kLive;
  std::string recording;  // to replay from, or to cache in; empty: not given

  ClientOptions client;  // holds the key
};

// Reads a variable of the environment; null where it is not set.
using Environment = std::function<const char*(const std::string& name)>;

// JSON Schema, draft 7.
std::string_view OptionsSchema();

// `ranks`: the number of the run's ranks, each with its own coder. Throws KGRPO_ERROR_INVALID with every error, one a
// line; no message repeats a value that may be a key.
CoderOptions ReadOptions(std::string_view json, const Environment& environment, uint32_t ranks = 1);

// A warning about a price that is zero while there is a max_cost, or so low that it must be for fewer tokens than a
// million. Empty: no warning.
std::string PriceWarning(const CoderOptions& options);

}  // namespace kgrpo::coder_gpt4o
