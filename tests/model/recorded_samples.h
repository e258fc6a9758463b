// A file of recorded samples, one a line, as `kgrpo-model update` reads it; docs/commands.md describes the format.
// Every mistake is reported with its file and line.
#ifndef KGRPO_MODEL_RECORDED_SAMPLES_H
#define KGRPO_MODEL_RECORDED_SAMPLES_H

#include <kgrpo/policy.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kgrpo::cli {

struct RecordedSample {
  size_t line = 0;  // of the file, from 1
  std::vector<int32_t> prompt, completion;
  std::vector<float> logprobs;  // empty where the file has none
  double reward = 0, idle_reward = 0;
  uint64_t step = 0;  // samples of one step are one update
  uint64_t trajectory = 0;
  uint32_t round = 0, rounds = 0;
  std::string problem;  // a name or a number, as JSON
  bool truncated = false;
};

// The samples of `file` ("-": standard input), at least one, by step. Throws KGRPO_ERROR_INVALID with every bad line.
std::vector<RecordedSample> ReadRecordedSamples(const std::string& file);

// Throws KGRPO_ERROR_INVALID with the samples that do not fit the model: a token outside its vocabulary, or more tokens
// than its context.
void RequireFit(const std::string& file, const std::vector<RecordedSample>& samples, const kgrpo_policy_info& model);

// Returns a trainer's message with the prefix "sample N: " (trainer.h), if there is one, replaced by "file:line: ".
// `samples`: those of the update.
std::string WithLine(const std::string& file, std::span<const RecordedSample> samples, const std::string& message);

}  // namespace kgrpo::cli
#endif
