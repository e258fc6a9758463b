#include "trainer_sft/sft_trainer.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/host.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>

#include "trainer_shared/batching.h"
#include "trainer_shared/metrics.h"
#include "trainer_shared/progress.h"
#include "trainer_shared/ranks.h"

namespace kgrpo::sft {
namespace {

constexpr const char* kName = "trainer_sft";
constexpr uint64_t kShuffleStream = 1;  // first element of the key of the host's random numbers

std::vector<kgrpo_sequence> ReadDemonstrations(const kgrpo_sample* const* samples, size_t count) {
  std::vector<kgrpo_sequence> sequences;
  for (size_t i = 0; i < count; ++i) {
    const kgrpo_sample& sample = *samples[i];
    if (sample.prompt_size == 0 || sample.completion_size == 0) {
      throw Error(KGRPO_ERROR_INVALID, "sample " + std::to_string(i) + ": it has an empty " +
                                           (sample.prompt_size == 0 ? "prompt" : "completion"));
    }
    sequences.push_back({sample.prompt_ids, sample.prompt_size, sample.completion_ids, sample.completion_size});
  }
  return sequences;
}

}  // namespace

struct SftTrainer::StepFigures {
  double loss = 0;
  trainer::Summary entropy;
  trainer::StepOutcome outcome;
};

SftTrainer::SftTrainer(const kgrpo_host* host, SftOptions options, trainer::CudaTensorMathFactory cuda)
    : host_(host), ranks_(host), options_(std::move(options)), cuda_(cuda) {
  trainer::DeclareTrainingMetrics(Host(host));
}

SftTrainer::Stage& SftTrainer::stage() {
  if (!stage_) throw Error(KGRPO_ERROR_INVALID, "trainer_sft: begin comes before anything else");
  return *stage_;
}

void SftTrainer::CheckPlan(const kgrpo_trainer_plan& plan) const {
  for (const std::string& warning : trainer::ScheduleWarnings(options_.optimizer.schedule, plan.steps))
    Host(host_).Warn(warning);
  if (options_.pairs.empty()) return;
  std::ifstream file(options_.pairs);
  if (!file)
    throw Error(KGRPO_ERROR_INVALID,
                "options.pairs: cannot open the training pairs " + options_.pairs + ": " + std::strerror(errno));
  if (file.peek() == std::ifstream::traits_type::eof())
    throw Error(KGRPO_ERROR_INVALID, "options.pairs: the training pairs " + options_.pairs + " hold no pair");
}

void SftTrainer::Begin(const kgrpo_policy_interface* api, kgrpo_policy* policy, const kgrpo_trainer_plan& plan) {
  std::vector<Pair> pairs;
  if (!options_.pairs.empty()) pairs = ReadPairs(*api, policy, options_.pairs);
  stage_.emplace(Stage{PolicyClient(*api, policy), plan,
                       trainer::Optimizer(options_.optimizer, host_, *api, policy, cuda_), std::move(pairs)});
  order_.clear();
}

// The pairs are an endless sequence of passes over the file, each in its own order; update u takes the batch_size pairs
// from position u * batch_size on. So a batch may span two passes, every pair is seen equally often, and the position
// is a function of the number of updates alone.
std::vector<kgrpo_sequence> SftTrainer::NextBatch() {
  const std::vector<Pair>& pairs = stage().pairs;
  std::vector<kgrpo_sequence> batch;
  for (uint64_t i = 0; i < options_.batch_size; ++i) {
    const uint64_t position = updates_ * options_.batch_size + i;
    const uint64_t pass = position / pairs.size();
    if (order_.empty() || pass != order_pass_) {
      order_pass_ = pass;
      order_.resize(pairs.size());
      std::iota(order_.begin(), order_.end(), size_t{0});
      if (options_.shuffle) order_ = trainer::ShuffledOrder(host_, {kShuffleStream, pass}, pairs.size());
    }
    const Pair& pair = pairs[order_[position % pairs.size()]];
    batch.push_back(
        {pair.prompt_ids.data(), pair.prompt_ids.size(), pair.completion_ids.data(), pair.completion_ids.size()});
  }
  return batch;
}

SftTrainer::StepFigures SftTrainer::TakeStep(std::span<const kgrpo_sequence> batch,
                                             const trainer::SchedulePosition& position) {
  Stage& stage = this->stage();
  std::vector<size_t> lengths;
  size_t completion_tokens = 0;
  for (const kgrpo_sequence& sequence : batch) {
    lengths.push_back(sequence.prompt_size + sequence.completion_size);
    completion_tokens += sequence.completion_size;
    tokens_ += lengths.back();
  }
  const double weight = 1.0 / static_cast<double>(completion_tokens);
  StepFigures figures;
  stage.policy.ZeroGradients();
  size_t begin = 0;
  const std::vector<size_t> share = trainer::ShareOf(ranks_, lengths);
  std::vector<kgrpo_sequence> own;
  std::vector<size_t> own_lengths;
  for (size_t index : share) {
    own.push_back(batch[index]);
    own_lengths.push_back(lengths[index]);
  }
  const std::vector<size_t> ends = trainer::PieceEnds(own_lengths, options_.max_tokens_per_forward);
  stage.optimizer.Accumulate(ends.size(), [&](size_t i, const kgrpo_gradient_sink* final) {
    const auto piece = std::span(own).subspan(begin, ends[i] - begin);
    begin = ends[i];
    const auto loss_gradient = [&](const TokenScores& scores) {
      for (float logprob : scores.logprobs) figures.loss -= weight * static_cast<double>(logprob);
      for (float entropy : scores.entropies) figures.entropy.Add(static_cast<double>(entropy));
      if (!std::isfinite(figures.loss)) return std::vector<float>();
      return std::vector<float>(scores.logprobs.size(), static_cast<float>(-weight));
    };
    stage.policy.Differentiate(piece, 1.0, loss_gradient, final);
    return std::isfinite(figures.loss);  // else the step will be skipped
  });
  figures.loss = ranks_.SumOf(figures.loss);
  figures.entropy = trainer::CombinedOver(ranks_, figures.entropy);
  figures.outcome = stage.optimizer.Step(figures.loss, position);
  return figures;
}

void SftTrainer::Update(const kgrpo_sample* const* samples, size_t count, const kgrpo_update_sink& sink) {
  Stage& stage = this->stage();
  std::vector<kgrpo_sequence> sequences;
  if (!options_.pairs.empty()) {
    sequences = NextBatch();
  } else if (count > 0) {
    sequences = ReadDemonstrations(samples, count);
  } else {
    throw Error(KGRPO_ERROR_INVALID, "trainer_sft: an update needs demonstrations, or the option pairs names a file");
  }

  const size_t steps = (sequences.size() + options_.batch_size - 1) / options_.batch_size;
  trainer::Summary loss, gradient_norm, entropy;
  double learning_rate = 0;
  for (size_t step = 0; step < steps; ++step) {
    const size_t begin = step * options_.batch_size;
    const size_t size = std::min<size_t>(options_.batch_size, sequences.size() - begin);
    const StepFigures figures =
        TakeStep(std::span(sequences).subspan(begin, size), {updates_, stage.plan.steps, step, steps});
    learning_rate = figures.outcome.learning_rate;
    if (!figures.outcome.skipped) {
      loss.Add(figures.loss);
      gradient_norm.Add(figures.outcome.gradient_norm);
      entropy.Add(figures.entropy.mean());
    }
    if (sink.optimizer_step != nullptr) {
      const kgrpo_metric row[] = {
          kgrpo::Measured("loss", figures.loss), kgrpo::Measured("grad_norm", figures.outcome.gradient_norm),
          kgrpo::Measured("learning_rate", learning_rate), kgrpo::Measured("entropy", figures.entropy.mean()),
          kgrpo::Measured("skipped", figures.outcome.skipped ? 1.0 : 0.0)};
      sink.optimizer_step(sink.context, row, std::size(row));
    }
  }

  ++updates_;
  trainer::Push(sink, "num_tokens", static_cast<double>(tokens_));
  trainer::Push(sink, "optimizer_steps", static_cast<double>(steps));
  trainer::Push(sink, "skipped_steps", static_cast<double>(stage.optimizer.skipped_steps()));
  trainer::Push(sink, "learning_rate", learning_rate);
  if (loss.empty()) return;
  trainer::Push(sink, "loss", loss.mean());
  trainer::Push(sink, "grad_norm", gradient_norm.mean());
  trainer::Push(sink, "entropy", entropy.mean());
}

void SftTrainer::SaveState(kgrpo_writer stream) {
  trainer::SaveProgress(stream, kName, {updates_, tokens_}, stage().optimizer);
}

void SftTrainer::LoadState(kgrpo_reader stream) {
  const trainer::Progress progress = trainer::LoadProgress(stream, kName, stage().optimizer);
  updates_ = progress.updates;
  tokens_ = progress.tokens;
}

}  // namespace kgrpo::sft
