// trainer_reinforce - REINFORCE with a baseline: a completion becomes more likely if its reward is above the mean of
// its problem, in proportion to the difference. Adam on the CPU. The whole of a plugin: options, the trainer, its
// state, the bootstrap.
#include <kgrpo/sdk/adam.h>
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/sdk/policy_client.h>
#include <kgrpo/sdk/trainer.h>

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace {

// The schema of `options:`. The host checks the pipeline against it and fills the defaults in before Make is called.
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
    adam_.emplace(policy_->TrainableFloats());
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
    const double norm = adam_->GradientNorm();
    if (!std::isfinite(loss + norm)) throw kgrpo::Error(KGRPO_ERROR_NOT_FINITE, "the loss or a gradient is not finite");
    {
      const kgrpo::DeviceLock lock(host_, kgrpo::Copy(policy_->info().device));
      adam_->Step(learning_rate_);
    }
    sink.step(sink.context, kgrpo::Measured("loss", loss));
    sink.step(sink.context, kgrpo::Measured("grad_norm", norm));
  }

  // The state that a resumed run needs to go on bit for bit. The host keeps the policy's parameters itself.
  void SaveState(kgrpo_writer writer) const { adam_->Save(writer); }
  void LoadState(kgrpo_reader reader) { adam_->Load(reader); }

 private:
  kgrpo::Host host_;
  double learning_rate_, temperature_ = 1;
  std::optional<kgrpo::PolicyClient> policy_;  // set by Begin, like adam_
  std::optional<kgrpo::Adam> adam_;
};

std::unique_ptr<Reinforce> Make(const kgrpo_host* host, std::string_view options) {
  return std::make_unique<Reinforce>(host, nlohmann::json::parse(options).at("learning_rate").get<double>());
}

}  // namespace

KGRPO_PLUGIN("trainer_reinforce", "0.1.0", "REINFORCE with the mean of the problem as its baseline",
             {KGRPO_TRAINER_INTERFACE, &kgrpo::TrainerInterface<Reinforce, OptionsSchema, Make>::kInterface});
