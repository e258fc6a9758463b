#include "trainer_grpo/update_metrics.h"

#include <algorithm>

namespace kgrpo::grpo {
namespace {

using trainer::Push;

double Ratio(double part, size_t whole) { return part / static_cast<double>(std::max<size_t>(whole, 1)); }

void Merge(const LossStatistics& from, LossStatistics& into) {
  into.tokens += from.tokens;
  into.kl_sum += from.kl_sum;
  into.ratios += from.ratios;
  into.low_clipped += from.low_clipped;
  into.high_clipped += from.high_clipped;
  into.low_fraction_min = std::min(into.low_fraction_min, from.low_fraction_min);
  into.high_fraction_max = std::max(into.high_fraction_max, from.high_fraction_max);
}

}  // namespace

WindowFigures CombinedOver(const Collective& ranks, const WindowFigures& own) {
  if (ranks.alone()) return own;
  const LossStatistics& statistics = own.statistics;
  double sums[] = {own.loss,
                   static_cast<double>(statistics.tokens),
                   statistics.kl_sum,
                   static_cast<double>(statistics.ratios),
                   static_cast<double>(statistics.low_clipped),
                   static_cast<double>(statistics.high_clipped)};
  ranks.Sum(sums);
  WindowFigures all;
  all.loss = sums[0];
  all.statistics.tokens = static_cast<size_t>(sums[1]);
  all.statistics.kl_sum = sums[2];
  all.statistics.ratios = static_cast<size_t>(sums[3]);
  all.statistics.low_clipped = static_cast<size_t>(sums[4]);
  all.statistics.high_clipped = static_cast<size_t>(sums[5]);
  all.statistics.low_fraction_min = ranks.MinOf(statistics.low_fraction_min);
  all.statistics.high_fraction_max = ranks.MaxOf(statistics.high_fraction_max);
  all.entropy = trainer::CombinedOver(ranks, own.entropy);
  all.off_policy = trainer::CombinedOver(ranks, own.off_policy);
  all.sampling_difference = trainer::CombinedOver(ranks, own.sampling_difference);
  return all;
}

void DeclareMetrics(const Host& host) {
  trainer::DeclareTrainingMetrics(host);
  const auto declare = [&](std::string_view name, std::string_view label, kgrpo_metric_kind kind = KGRPO_METRIC_NUMBER,
                           std::string_view unit = {}, kgrpo_metric_direction direction = KGRPO_METRIC_NEUTRAL) {
    host.Declare({.name = name,
                  .label = label,
                  .group = trainer::kMetricGroup,
                  .kind = kind,
                  .unit = unit,
                  .direction = direction});
  };
  declare("reward", "reward", KGRPO_METRIC_NUMBER, {}, KGRPO_METRIC_HIGHER_IS_BETTER);
  declare("reward_std", "standard deviation of rewards");
  declare("frac_reward_zero_std", "samples of groups without variance", KGRPO_METRIC_FRACTION);
  declare("cut_rounds", "rounds left out: a later round is missing from their return", KGRPO_METRIC_NUMBER, {},
          KGRPO_METRIC_LOWER_IS_BETTER);
  declare("kl", "KL divergence from the reference", KGRPO_METRIC_NUMBER, "nats");
  declare("clip_ratio/region_mean", "tokens clipped", KGRPO_METRIC_FRACTION);
  declare("clip_ratio/low_mean", "tokens clipped below", KGRPO_METRIC_FRACTION);
  declare("clip_ratio/low_min", "tokens clipped below, least of a sample", KGRPO_METRIC_FRACTION);
  declare("clip_ratio/high_mean", "tokens clipped above", KGRPO_METRIC_FRACTION);
  declare("clip_ratio/high_max", "tokens clipped above, most of a sample", KGRPO_METRIC_FRACTION);
  declare("cispo_clip_ratio", "tokens clipped", KGRPO_METRIC_FRACTION);
  declare("completions/mean_length", "completion length, mean", KGRPO_METRIC_NUMBER, "tokens");
  declare("completions/min_length", "completion length, least", KGRPO_METRIC_NUMBER, "tokens");
  declare("completions/max_length", "completion length, greatest", KGRPO_METRIC_NUMBER, "tokens");
  declare("completions/mean_terminated_length", "ended completions' length, mean", KGRPO_METRIC_NUMBER, "tokens");
  declare("completions/min_terminated_length", "ended completions' length, least", KGRPO_METRIC_NUMBER, "tokens");
  declare("completions/max_terminated_length", "ended completions' length, greatest", KGRPO_METRIC_NUMBER, "tokens");
  declare("completions/clipped_ratio", "completions cut off by their length", KGRPO_METRIC_FRACTION, {},
          KGRPO_METRIC_LOWER_IS_BETTER);
  declare("sampling/sampling_logp_difference/mean", "log-probability, sampler against trainer, mean difference",
          KGRPO_METRIC_NUMBER, "nats", KGRPO_METRIC_LOWER_IS_BETTER);
  declare("sampling/sampling_logp_difference/max", "log-probability, sampler against trainer, greatest difference",
          KGRPO_METRIC_NUMBER, "nats", KGRPO_METRIC_LOWER_IS_BETTER);
  declare("sampling/off_policy_ratio", "completions masked as off-policy", KGRPO_METRIC_FRACTION);
  declare("sampling/importance_sampling_ratio/min", "importance ratio, least");
  declare("sampling/importance_sampling_ratio/mean", "importance ratio, mean");
  declare("sampling/importance_sampling_ratio/max", "importance ratio, greatest");
}

void UpdateMetrics::AddSamples(std::span<const TrainingSample> samples, const Advantages& advantages) {
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto length = static_cast<double>(samples[i].completion_size());
    reward_.Add(samples[i].outcome.reward);
    length_.Add(length);
    truncated_.Add(samples[i].truncated ? 1.0 : 0.0);
    if (!samples[i].truncated) terminated_length_.Add(length);
    if (advantages.cut[i]) {
      ++cut_rounds_;
    } else {
      zero_variance_.Add(advantages.zero_variance[i] ? 1.0 : 0.0);
    }
    if (sink_.sample == nullptr) continue;
    const kgrpo_sample_outcome outcome = {sizeof(kgrpo_sample_outcome), i, advantages.returns[i],
                                          samples[i].masked ? 0.0 : advantages.advantages[i]};
    sink_.sample(sink_.context, &outcome);
  }
}

void UpdateMetrics::AddSamplerCorrections(std::span<const double> corrections) {
  for (double correction : corrections) sampler_correction_.Add(correction);
}

void UpdateMetrics::AddStep(const WindowFigures& window, const trainer::StepOutcome& outcome) {
  ++steps_;
  learning_rate_ = outcome.learning_rate;
  if (!outcome.skipped) {
    loss_.Add(window.loss);
    gradient_norm_.Add(outcome.gradient_norm);
    Merge(window.statistics, statistics_);
    off_policy_ += window.off_policy.mean() * static_cast<double>(window.off_policy.count());
    sequences_ += window.off_policy.count();
    entropy_sum_ += window.entropy.mean() * static_cast<double>(window.entropy.count());
  }
  if (sink_.optimizer_step == nullptr) return;
  std::vector<kgrpo_metric> row = {
      kgrpo::Measured("loss", window.loss), kgrpo::Measured("grad_norm", outcome.gradient_norm),
      kgrpo::Measured("learning_rate", outcome.learning_rate), kgrpo::Measured("entropy", window.entropy.mean()),
      kgrpo::Measured("skipped", outcome.skipped ? 1.0 : 0.0)};
  if (options_.needs_reference()) {
    row.push_back(kgrpo::Measured("kl", Ratio(window.statistics.kl_sum, window.statistics.tokens)));
  }
  sink_.optimizer_step(sink_.context, row.data(), row.size());
}

void UpdateMetrics::PushClipRatios() {
  if (options_.loss.type == LossType::kCispo) {
    Push(sink_, "cispo_clip_ratio", Ratio(static_cast<double>(statistics_.high_clipped), statistics_.ratios));
    return;
  }
  const double low = Ratio(static_cast<double>(statistics_.low_clipped), statistics_.ratios);
  const double high = Ratio(static_cast<double>(statistics_.high_clipped), statistics_.ratios);
  Push(sink_, "clip_ratio/region_mean", low + high);
  Push(sink_, "clip_ratio/low_mean", low);
  Push(sink_, "clip_ratio/low_min", statistics_.low_fraction_min);
  Push(sink_, "clip_ratio/high_mean", high);
  Push(sink_, "clip_ratio/high_max", statistics_.high_fraction_max);
}

void UpdateMetrics::PushAll(uint64_t tokens_so_far, uint64_t skipped_steps) {
  Push(sink_, "num_tokens", static_cast<double>(tokens_so_far));
  Push(sink_, "reward", reward_.mean());
  Push(sink_, "reward_std", reward_.standard_deviation());
  Push(sink_, "frac_reward_zero_std", zero_variance_.mean());
  Push(sink_, "cut_rounds", static_cast<double>(cut_rounds_));
  Push(sink_, "completions/mean_length", length_.mean());
  Push(sink_, "completions/min_length", length_.min());
  Push(sink_, "completions/max_length", length_.max());
  // 0 where no completion ended by itself, as TRL has it.
  const bool none = terminated_length_.empty();
  Push(sink_, "completions/mean_terminated_length", none ? 0.0 : terminated_length_.mean());
  Push(sink_, "completions/min_terminated_length", none ? 0.0 : terminated_length_.min());
  Push(sink_, "completions/max_terminated_length", none ? 0.0 : terminated_length_.max());
  Push(sink_, "completions/clipped_ratio", truncated_.mean());
  if (!sampling_difference_.empty()) {
    Push(sink_, "sampling/sampling_logp_difference/mean", sampling_difference_.mean());
    Push(sink_, "sampling/sampling_logp_difference/max", sampling_difference_.max());
  }
  if (!sampler_correction_.empty()) {
    Push(sink_, "sampling/importance_sampling_ratio/min", sampler_correction_.min());
    Push(sink_, "sampling/importance_sampling_ratio/mean", sampler_correction_.mean());
    Push(sink_, "sampling/importance_sampling_ratio/max", sampler_correction_.max());
  }
  Push(sink_, "optimizer_steps", static_cast<double>(steps_));
  Push(sink_, "skipped_steps", static_cast<double>(skipped_steps));
  if (steps_ > 0) Push(sink_, "learning_rate", learning_rate_);
  if (loss_.empty()) return;
  Push(sink_, "loss", loss_.mean());
  Push(sink_, "grad_norm", gradient_norm_.mean());
  if (statistics_.tokens == 0) return;
  Push(sink_, "entropy", Ratio(entropy_sum_, statistics_.tokens));
  if (!std::isinf(options_.off_policy_mask_threshold))
    Push(sink_, "sampling/off_policy_ratio", Ratio(off_policy_, sequences_));
  if (options_.needs_reference()) Push(sink_, "kl", Ratio(statistics_.kl_sum, statistics_.tokens));
  PushClipRatios();
}

}  // namespace kgrpo::grpo
