// trainer_reinforce - REINFORCE with a baseline: a completion becomes more likely by how much more it was paid than the
// mean of its problem. Adam on the CPU. The whole of a plugin: options, the trainer, its state, the bootstrap.
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/sdk/policy_client.h>
#include <kgrpo/sdk/trainer.h>

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace {

// What `options:` may hold. The host checks the pipeline against it and fills the defaults in before Make is called.
std::string_view OptionsSchema() {
  return R"json({
    "title": "trainer_reinforce",
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "learning_rate": {"title": "learning rate", "type": "number", "exclusiveMinimum": 0, "default": 1e-3,
                        "description": "Of Adam. Large policies want 1e-6 to 1e-5, tiny ones 1e-3 and more."}
    }
  })json";
}

class Reinforce {
 public:
  Reinforce(const kgrpo_host* host, double learning_rate) : host_(host), learning_rate_(learning_rate) {
    host_.Declare({"grad_norm", "gradient norm", "Training"});
  }

  uint32_t Source() const { return KGRPO_TRAINER_ROLLOUTS; }
  bool NeedsReference() const { return false; }

  void Begin(const kgrpo_policy_interface* api, kgrpo_policy* policy, const kgrpo_trainer_plan& plan) {
    policy_.emplace(*api, policy);
    temperature_ = plan.temperature > 0 ? plan.temperature : 1;
    parameters_ = policy_->TrainableFloats();
    size_t count = 0;
    for (const kgrpo::FloatParameter& parameter : parameters_) count += parameter.size;
    moments_.assign(2 * count, 0);
  }

  void Update(const kgrpo_sample* const* samples, size_t count, kgrpo_update_sink sink) {
    std::map<uint32_t, std::pair<double, double>> paid;  // by problem: the sum of rewards, and how many
    for (size_t i = 0; i < count; ++i) {
      paid[samples[i]->problem].first += samples[i]->reward;
      paid[samples[i]->problem].second += 1;
    }
    policy_->ZeroGradients();
    double loss = 0;
    for (size_t i = 0; i < count; ++i) {
      const kgrpo_sample& sample = *samples[i];
      const auto& [sum, number] = paid[sample.problem];
      const double advantage = sample.reward - sum / number, weight = advantage / static_cast<double>(count);
      const kgrpo_sample_outcome outcome = {sizeof outcome, i, sample.reward, advantage};
      if (sink.sample != nullptr) sink.sample(sink.context, &outcome);
      if (sample.completion_size == 0) continue;
      const std::array<kgrpo_sequence, 1> sequence = {
          {{sample.prompt_ids, sample.prompt_size, sample.completion_ids, sample.completion_size}}};
      // The loss is -weight * log-probability of the completion.
      policy_->Differentiate(sequence, temperature_, [&](const kgrpo::TokenScores& scores) {
        for (float logprob : scores.logprobs) loss -= weight * logprob;
        return std::vector<float>(scores.logprobs.size(), static_cast<float>(-weight));
      });
    }
    const double norm = GradientNorm();
    if (!std::isfinite(loss + norm)) throw kgrpo::Error(KGRPO_ERROR_NOT_FINITE, "the loss or a gradient is not finite");
    Step();
    for (const kgrpo_metric& metric : {kgrpo_metric{kgrpo::Str("loss"), loss}, {kgrpo::Str("grad_norm"), norm}})
      sink.step(sink.context, metric);
  }

  // What a resumed run needs to go on bit for bit. The host keeps the policy's parameters itself.
  void SaveState(kgrpo_writer writer) const {
    kgrpo::SaveNumbers(writer, std::vector<uint64_t>{steps_});
    kgrpo::SaveNumbers(writer, moments_);
  }
  void LoadState(kgrpo_reader reader) {
    std::vector<uint64_t> steps(1);
    kgrpo::LoadNumbers(reader, &steps);
    kgrpo::LoadNumbers(reader, &moments_);
    steps_ = steps[0];
  }

 private:
  double GradientNorm() const {
    double squares = 0;
    for (const kgrpo::FloatParameter& parameter : parameters_) {
      for (size_t i = 0; i < parameter.size; ++i) squares += std::pow(parameter.gradients[i], 2.0);
    }
    return std::sqrt(squares);
  }

  void Step() {  // of Adam (Kingma and Ba 2015), beta 0.9 and 0.999
    const kgrpo::DeviceLock lock(host_, kgrpo::Copy(policy_->info().device));
    ++steps_;
    const double rate = learning_rate_ * std::sqrt(1 - std::pow(0.999, steps_)) / (1 - std::pow(0.9, steps_));
    double* moment = moments_.data();
    for (const kgrpo::FloatParameter& parameter : parameters_) {
      for (size_t i = 0; i < parameter.size; ++i, moment += 2) {
        const double gradient = parameter.gradients[i];
        moment[0] = 0.9 * moment[0] + 0.1 * gradient;
        moment[1] = 0.999 * moment[1] + 0.001 * gradient * gradient;
        parameter.values[i] -= static_cast<float>(rate * moment[0] / (std::sqrt(moment[1]) + 1e-8));
      }
    }
  }

  kgrpo::Host host_;
  double learning_rate_, temperature_ = 1;
  std::optional<kgrpo::PolicyClient> policy_;  // from Begin on, as the two below
  std::vector<kgrpo::FloatParameter> parameters_;
  std::vector<double> moments_;  // two of each number
  uint64_t steps_ = 0;
};

std::unique_ptr<Reinforce> Make(const kgrpo_host* host, std::string_view options) {
  return std::make_unique<Reinforce>(host, nlohmann::json::parse(options).at("learning_rate").get<double>());
}

}  // namespace

KGRPO_PLUGIN("trainer_reinforce", "0.1.0", "REINFORCE with the mean of the problem as its baseline",
             {KGRPO_TRAINER_INTERFACE, &kgrpo::TrainerInterface<Reinforce, OptionsSchema, Make>::kInterface});
