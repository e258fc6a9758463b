#include "trainer_grpo/samples.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace kgrpo::grpo {
namespace {

// Rounding can leave the log-probability of a certain token just above 0.
constexpr float kLargestLogprob = 1e-3f;

[[noreturn]] void Refuse(size_t index, const std::string& problem) {
  throw Error(KGRPO_ERROR_INVALID, "sample " + std::to_string(index) + ": " + problem);
}

void CheckSample(const GrpoOptions& options, const kgrpo_sample& sample, size_t index) {
  if (sample.prompt_size == 0) Refuse(index, "its prompt has no tokens");
  if (sample.completion_size == 0) Refuse(index, "its completion has no tokens (the end token counts as one)");
  if (!std::isfinite(sample.reward)) Refuse(index, "its reward is not finite");
  if (options.advantage.idle_baseline && !std::isfinite(sample.idle_reward)) {
    Refuse(index, "its idle reward is not finite");
  }
  if (sample.logprobs == nullptr) {
    if (options.old_logprobs == OldLogprobs::kBehaviour) {
      Refuse(index,
             "it has no behaviour log-probabilities, which old_logprobs: behaviour needs; old_logprobs: recomputed "
             "does without");
    }
    if (options.sampler_correction != SamplerCorrection::kNone) {
      Refuse(index, "it has no behaviour log-probabilities, which importance_sampling_correction needs");
    }
    return;
  }
  for (size_t t = 0; t < sample.completion_size; ++t) {
    if (!std::isfinite(sample.logprobs[t]) || sample.logprobs[t] > kLargestLogprob) {
      Refuse(index, "the behaviour log-probability of token " + std::to_string(t) + " of its completion is " +
                        std::to_string(sample.logprobs[t]) + "; a log-probability is finite and at most 0");
    }
  }
}

}  // namespace

std::vector<TrainingSample> ReadSamples(const GrpoOptions& options, const kgrpo_sample* const* samples, size_t count) {
  std::vector<TrainingSample> read;
  read.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const kgrpo_sample& sample = *samples[i];
    CheckSample(options, sample, i);
    TrainingSample& made = read.emplace_back();
    made.sequence = {sample.prompt_ids, sample.prompt_size, sample.completion_ids, sample.completion_size};
    made.behaviour_logprobs = sample.logprobs;
    made.outcome = {sample.reward, sample.idle_reward, sample.trajectory, sample.round, sample.rounds, sample.problem};
    made.truncated = sample.truncated != 0;
    made.masked = options.mask_truncated_completions && made.truncated;
  }
  return read;
}

std::vector<double> SamplerCorrections(const GrpoOptions& options, const TrainingSample& sample) {
  const SamplerCorrection kind = options.sampler_correction;
  if (kind == SamplerCorrection::kNone) return {};
  std::vector<double> log_ratios(sample.completion_size());
  double sum = 0;
  for (size_t t = 0; t < log_ratios.size(); ++t) {
    log_ratios[t] = sample.old_logprobs[t] - static_cast<double>(sample.behaviour_logprobs[t]);
    sum += log_ratios[t];
  }
  const bool sequence = kind == SamplerCorrection::kSequenceTruncate || kind == SamplerCorrection::kSequenceMask;
  const bool mask = kind == SamplerCorrection::kTokenMask || kind == SamplerCorrection::kSequenceMask;
  const double low = options.sampler_correction_min, high = options.sampler_correction_max;
  std::vector<double> corrections(log_ratios.size());
  for (size_t t = 0; t < corrections.size(); ++t) {
    const double ratio = std::exp(sequence ? sum : log_ratios[t]);
    if (mask) {
      corrections[t] = ratio < low || ratio > high ? 0.0 : ratio;
    } else {
      corrections[t] = std::clamp(ratio, low, high);
    }
  }
  return corrections;
}

bool IsOffPolicy(const GrpoOptions& options, const TrainingSample& sample, std::span<const double> logprobs) {
  if (sample.advantage >= 0 || std::isinf(options.off_policy_mask_threshold)) return false;
  double sum = 0;
  for (size_t t = 0; t < logprobs.size(); ++t) {
    const bool recorded = sample.behaviour_logprobs != nullptr;
    sum += (recorded ? static_cast<double>(sample.behaviour_logprobs[t]) : sample.old_logprobs[t]) - logprobs[t];
  }
  return sum > options.off_policy_mask_threshold * static_cast<double>(logprobs.size());
}

}  // namespace kgrpo::grpo
