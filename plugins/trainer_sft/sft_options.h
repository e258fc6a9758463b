// sft_options.h - the options of trainer_sft: their JSON Schema and their parsed form. Used by plugin.cc and
// sft_trainer.cc.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer_shared/optimizer.h"

namespace kgrpo::sft {

struct SftOptions {
  std::string pairs;  // a JSONL file; empty: the host hands over demonstrations
  uint32_t batch_size = 32;
  bool shuffle = true;
  uint32_t max_tokens_per_forward = 0;
  trainer::OptimizerOptions optimizer;
};

// The JSON Schema of the options. Static.
std::string_view SftOptionsSchema();
// `json` satisfies the schema, defaults filled in.
SftOptions ReadSftOptions(std::string_view json);

}  // namespace kgrpo::sft
