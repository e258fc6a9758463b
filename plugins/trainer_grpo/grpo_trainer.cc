#include "trainer_grpo/grpo_trainer.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/host.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trainer_grpo/advantage.h"
#include "trainer_grpo/loss.h"
#include "trainer_shared/batching.h"
#include "trainer_shared/progress.h"
#include "trainer_shared/ranks.h"

namespace kgrpo::grpo {
namespace {

constexpr const char* kName = "trainer_grpo";
constexpr uint64_t kShuffleStream = 1;  // first element of the key of the host's random numbers

// Threshold of the warning, in nats a token: a matching sampler and trainer differ by less on average, also in
// bfloat16.
constexpr double kMismatch = 0.05;

WindowSizes SizesOf(std::span<const TrainingSample> samples, std::span<const size_t> window, size_t max_length) {
  WindowSizes sizes;
  sizes.sequences = window.size();
  for (size_t index : window) sizes.tokens += samples[index].loss_tokens();
  sizes.batch_sequences = samples.size();
  for (const TrainingSample& sample : samples) sizes.batch_tokens += sample.loss_tokens();
  sizes.max_completion_length = max_length;
  return sizes;
}

std::vector<size_t> TokensOf(std::span<const TrainingSample* const> samples) {
  std::vector<size_t> tokens;
  for (const TrainingSample* sample : samples) tokens.push_back(sample->tokens());
  return tokens;
}

std::vector<kgrpo_sequence> SequencesOf(std::span<const TrainingSample* const> samples) {
  std::vector<kgrpo_sequence> sequences;
  for (const TrainingSample* sample : samples) sequences.push_back(sample->sequence);
  return sequences;
}

// Calls body(piece) for consecutive pieces of `samples` within the limit of tokens, until it returns false.
template <typename Pointer, typename Body>
bool ForEachPiece(std::span<Pointer const> samples, size_t max_tokens, Body&& body) {
  std::vector<const TrainingSample*> constant(samples.begin(), samples.end());
  size_t begin = 0;
  for (size_t end : trainer::PieceEnds(TokensOf(constant), max_tokens)) {
    if (!body(samples.subspan(begin, end - begin))) return false;
    begin = end;
  }
  return true;
}

}  // namespace

GrpoTrainer::GrpoTrainer(const kgrpo_host* host, GrpoOptions options, trainer::CudaTensorMathFactory cuda)
    : host_(host), ranks_(host), options_(std::move(options)), custom_advantage_(host, options_), cuda_(cuda) {
  DeclareMetrics(Host(host));
}

GrpoTrainer::Stage& GrpoTrainer::stage() {
  if (!stage_) throw Error(KGRPO_ERROR_INVALID, "trainer_grpo: begin comes before anything else");
  return *stage_;
}

void GrpoTrainer::CheckPlan(const kgrpo_trainer_plan& plan) const {
  RefusePlan(options_, plan);
  for (const std::string& warning : PlanWarnings(options_, plan)) Host(host_).Warn(warning);
}

void GrpoTrainer::Begin(const kgrpo_policy_interface* api, kgrpo_policy* policy, const kgrpo_trainer_plan& plan) {
  RefusePlan(options_, plan);
  stage_.emplace(
      Stage{PolicyClient(*api, policy), plan, trainer::Optimizer(options_.optimizer, host_, *api, policy, cuda_)});
}

void GrpoTrainer::AssignAdvantages(std::vector<TrainingSample>& samples, UpdateMetrics& metrics) const {
  std::vector<RoundOutcome> outcomes;
  outcomes.reserve(samples.size());
  for (const TrainingSample& sample : samples) outcomes.push_back(sample.outcome);
  Advantages computed = ComputeAdvantages(options_.advantage, outcomes);
  custom_advantage_.Apply(options_.advantage, outcomes, ranks_, &computed);
  metrics.AddSamples(samples, computed);
  std::vector<TrainingSample> kept;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (computed.cut[i] || (options_.drop_zero_variance_groups && computed.zero_variance[i])) continue;
    kept.push_back(std::move(samples[i]));
    kept.back().advantage = computed.advantages[i];
  }
  samples = std::move(kept);
}

template <typename Use>
void GrpoTrainer::ForEachScored(std::vector<TrainingSample>& samples, kgrpo_policy_copy copy, Use&& use) {
  std::vector<TrainingSample*> wanted;
  std::vector<size_t> costs, first;  // first: index of each sample's first token in `logprobs`
  size_t tokens = 0;
  for (TrainingSample& sample : samples) {
    if (sample.masked) continue;
    wanted.push_back(&sample);
    costs.push_back(sample.tokens());
    first.push_back(tokens);
    tokens += sample.completion_size();
  }
  std::vector<double> logprobs(tokens, 0.0);
  const std::vector<size_t> share = trainer::ShareOf(ranks_, costs);
  std::vector<const TrainingSample*> own;
  own.reserve(share.size());
  for (const size_t index : share) own.push_back(wanted[index]);
  auto index = share.begin();
  ForEachPiece(std::span<const TrainingSample* const>(own), options_.max_tokens_per_forward,
               [&](std::span<const TrainingSample* const> piece) {
                 // No parameter has changed yet, so a cancellation here loses only this update. Several ranks decide
                 // together after the loop.
                 if (ranks_.alone()) Host(host_).ThrowIfCancelled();
                 const TokenScores scores = stage().policy.Score(SequencesOf(piece), copy, stage().plan.temperature);
                 auto token = scores.logprobs.begin();
                 for (const TrainingSample* sample : piece) {
                   const auto end = token + static_cast<std::ptrdiff_t>(sample->completion_size());
                   std::copy(token, end, logprobs.begin() + static_cast<std::ptrdiff_t>(first[*index++]));
                   token = end;
                 }
                 return true;
               });
  if (!ranks_.alone() && ranks_.MaxOf(Host(host_).Cancelled() ? 1 : 0) > 0)
    throw Error(KGRPO_ERROR_CANCELLED, "cancelled");
  ranks_.Sum(logprobs);  // each rank filled its own share, the rest is zero
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto begin = logprobs.begin() + static_cast<std::ptrdiff_t>(first[i]);
    use(*wanted[i], std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(wanted[i]->completion_size())));
  }
}

void GrpoTrainer::ScoreWithFixedPolicies(std::vector<TrainingSample>& samples, UpdateMetrics& metrics) {
  if (options_.needs_reference()) {
    ForEachScored(samples, KGRPO_POLICY_REFERENCE, [](TrainingSample& sample, std::vector<double> logprobs) {
      sample.reference_logprobs = std::move(logprobs);
    });
  }
  if (options_.old_logprobs == OldLogprobs::kBehaviour) {
    for (TrainingSample& sample : samples) {
      sample.old_logprobs.assign(sample.behaviour_logprobs, sample.behaviour_logprobs + sample.completion_size());
    }
    return;
  }
  trainer::Summary difference;
  ForEachScored(samples, KGRPO_POLICY_CURRENT, [&](TrainingSample& sample, std::vector<double> logprobs) {
    sample.old_logprobs = std::move(logprobs);
    if (sample.behaviour_logprobs == nullptr) return;
    for (size_t t = 0; t < sample.completion_size(); ++t) {
      difference.Add(std::abs(sample.old_logprobs[t] - static_cast<double>(sample.behaviour_logprobs[t])));
    }
    sample.corrections = SamplerCorrections(options_, sample);
    metrics.AddSamplerCorrections(sample.corrections);
  });
  metrics.SetSamplingDifference(difference);
}

void GrpoTrainer::Update(const kgrpo_sample* const* host_samples, size_t count, const kgrpo_update_sink& sink) {
  Stage& stage = this->stage();
  if (count == 0) throw Error(KGRPO_ERROR_INVALID, "trainer_grpo: an update needs at least one sample");
  std::vector<TrainingSample> samples = ReadSamples(options_, host_samples, count);
  UpdateMetrics metrics(options_, sink);
  uint64_t tokens = 0;
  for (const TrainingSample& sample : samples) tokens += sample.tokens();

  AssignAdvantages(samples, metrics);
  ScoreWithFixedPolicies(samples, metrics);

  const size_t window_size = size_t{options_.mini_batch_size} * options_.gradient_accumulation_steps;
  const size_t windows = (samples.size() + window_size - 1) / window_size;
  trainer::SchedulePosition position{updates_, stage.plan.steps, 0, options_.ppo_epochs * windows};
  for (uint32_t epoch = 0; epoch < options_.ppo_epochs; ++epoch) {
    std::vector<size_t> order(samples.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (options_.shuffle) order = trainer::ShuffledOrder(host_, {kShuffleStream, updates_, epoch}, samples.size());
    for (size_t begin = 0; begin < order.size(); begin += window_size, ++position.step) {
      const auto window = std::span(order).subspan(begin, std::min(window_size, order.size() - begin));
      stage.policy.ZeroGradients();
      const bool unchanged = position.step == 0 && options_.old_logprobs == OldLogprobs::kBehaviour;
      const WindowFigures figures = AccumulateWindow(samples, window, unchanged);
      if (unchanged) metrics.SetSamplingDifference(figures.sampling_difference);
      metrics.AddStep(figures, stage.optimizer.Step(figures.loss, position));
    }
  }

  ++updates_;
  tokens_ += tokens;
  if (options_.sync_ref_model && updates_ % options_.ref_model_sync_steps == 0) stage.policy.FreezeReference();
  WarnOfSamplerMismatch(metrics);
  metrics.PushAll(tokens_, stage.optimizer.skipped_steps());
}

WindowFigures GrpoTrainer::AccumulateWindow(std::span<const TrainingSample> samples, std::span<const size_t> window,
                                            bool compare) {
  const size_t max_length =
      options_.max_completion_length != 0 ? options_.max_completion_length : stage().plan.max_completion_size;
  const WindowSizes sizes = SizesOf(samples, window, max_length);
  std::vector<size_t> costs;
  // A masked sequence has no gradient; it counts in the sizes only.
  for (size_t index : window) costs.push_back(samples[index].masked ? 0 : samples[index].tokens());
  const std::vector<size_t> share = trainer::ShareOf(ranks_, costs);
  std::vector<const TrainingSample*> own;
  for (const size_t index : share) {
    const TrainingSample& sample = samples[window[index]];
    if (!sample.masked) own.push_back(&sample);
  }
  std::vector<std::span<const TrainingSample* const>> pieces;
  ForEachPiece(std::span<const TrainingSample* const>(own), options_.max_tokens_per_forward,
               [&](std::span<const TrainingSample* const> piece) {
                 pieces.push_back(piece);
                 return true;
               });
  WindowFigures figures;
  // Stops at a loss that is not finite: the step will be skipped, so the rest of the window would be wasted work.
  stage().optimizer.Accumulate(pieces.size(), [&](size_t i, const kgrpo_gradient_sink* final) {
    return AccumulatePiece(pieces[i], sizes, figures, compare, final);
  });
  return CombinedOver(ranks_, figures);
}

bool GrpoTrainer::AccumulatePiece(std::span<const TrainingSample* const> piece, const WindowSizes& sizes,
                                  WindowFigures& figures, bool compare, const kgrpo_gradient_sink* final) {
  const std::vector<kgrpo_sequence> sequences = SequencesOf(piece);
  auto loss_gradient = [&](const TokenScores& scores) {
    const std::vector<double> logprobs(scores.logprobs.begin(), scores.logprobs.end());
    const std::vector<double> entropies(scores.entropies.begin(), scores.entropies.end());
    std::vector<double> gradient(logprobs.size());
    size_t first = 0;
    for (const TrainingSample* sample : piece) {
      const size_t size = sample->completion_size();
      SequenceInputs<double> inputs;
      inputs.logprobs = std::span(logprobs).subspan(first, size);
      inputs.old_logprobs = sample->old_logprobs;
      inputs.reference_logprobs = sample->reference_logprobs;
      inputs.entropies = std::span(entropies).subspan(first, size);
      inputs.corrections = sample->corrections;
      inputs.advantage = sample->advantage;
      inputs.entropy_weight = options_.loss.entropy_coef / static_cast<double>(std::max<size_t>(sizes.tokens, 1));
      inputs.policy_term = !IsOffPolicy(options_, *sample, inputs.logprobs);
      figures.off_policy.Add(inputs.policy_term ? 0 : 1);
      figures.loss += SequenceLoss<double>(options_.loss, inputs, SequenceWeight(options_.loss.type, size, sizes),
                                           std::span(gradient).subspan(first, size), figures.statistics);
      for (size_t t = first; t < first + size; ++t) {
        figures.entropy.Add(static_cast<double>(scores.entropies[t]));
        if (compare) figures.sampling_difference.Add(std::abs(logprobs[t] - sample->old_logprobs[t - first]));
      }
      first += size;
    }
    if (!std::isfinite(figures.loss)) return std::vector<float>();
    return std::vector<float>(gradient.begin(), gradient.end());
  };
  stage().policy.Differentiate(sequences, stage().plan.temperature, loss_gradient, final);
  return std::isfinite(figures.loss);
}

void GrpoTrainer::WarnOfSamplerMismatch(const UpdateMetrics& metrics) {
  const trainer::Summary& difference = metrics.sampling_difference();
  // A correction bounds the damage already. Older weights are expected to differ; the ratios correct for them.
  if (options_.sampler_correction != SamplerCorrection::kNone || stage_->plan.max_staleness > 0) return;
  if (warned_of_mismatch_ || difference.empty() || !(difference.mean() > kMismatch)) return;
  warned_of_mismatch_ = true;
  Host(host_).Warn("the recorded log-probabilities differ from the policy's own by " +
                   std::to_string(difference.mean()) +
                   " nats a token: other weights, another temperature or another precision wrote these completions; "
                   "old_logprobs: recomputed with importance_sampling_correction: token_truncate bounds the damage");
}

void GrpoTrainer::SaveState(kgrpo_writer stream) {
  trainer::SaveProgress(stream, kName, {updates_, tokens_}, stage().optimizer);
}

void GrpoTrainer::LoadState(kgrpo_reader stream) {
  const trainer::Progress progress = trainer::LoadProgress(stream, kName, stage().optimizer);
  updates_ = progress.updates;
  tokens_ = progress.tokens;
}

}  // namespace kgrpo::grpo
