// A trainer changes the parameters of a policy, by finite figures, or says why not.
#include <kgrpo/sdk/cpu_policy.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "validate/calls.h"

namespace kgrpo::validate {
namespace {

constexpr size_t kProblems = 4, kEach = 4, kCompletion = 6;
constexpr double kTemperature = 1.0;

// A language model of 32 tokens. A token's likelihood depends only on the one before it, through a matrix.
class TinyPolicy : public CpuPolicy {
 public:
  static constexpr size_t kVocabulary = 32;

  explicit TinyPolicy(const kgrpo_host* host)
      : CpuPolicy(host, {"Tiny", kVocabulary, 1024, {0}, kVocabulary * kVocabulary}) {}

  std::vector<int32_t> Encode(std::string_view) const override { return {}; }
  std::string Decode(const int32_t*, size_t, bool) const override { return ""; }
  void Logits(const std::vector<float>& parameters, const Prefix& prefix, std::vector<double>* logits) const override {
    std::copy_n(parameters.begin() + Row(prefix), kVocabulary, logits->begin());
  }
  void Backward(const std::vector<float>&, const Prefix& prefix, const std::vector<double>& dlogits,
                std::vector<float>* gradients) const override {
    for (size_t i = 0; i < kVocabulary; ++i)
      (*gradients)[static_cast<size_t>(Row(prefix)) + i] += static_cast<float>(dlogits[i]);
  }

 private:
  static std::ptrdiff_t Row(const Prefix& prefix) {
    if (prefix.last() < 0 || prefix.last() >= static_cast<int32_t>(kVocabulary))
      throw Error(KGRPO_ERROR_INVALID, "token id " + std::to_string(prefix.last()) + " is outside the vocabulary");
    return prefix.last() * static_cast<std::ptrdiff_t>(kVocabulary);
  }
};

constexpr std::string_view NoOptions() { return "{}"; }
std::unique_ptr<TinyPolicy> MakeTiny(const kgrpo_host* host, std::string_view) {
  return std::make_unique<TinyPolicy>(host);
}
constexpr const kgrpo_policy_interface& kTiny = CpuPolicyInterface<TinyPolicy, NoOptions, MakeTiny>::kInterface;

// All parameters, one after the other.
std::vector<float> ValuesOf(kgrpo_policy* policy) {
  const kgrpo_parameter_group* const* groups = nullptr;
  size_t count = 0;
  Check(kTiny.parameters(policy, &groups, &count));
  const kgrpo_tensor& values = *groups[0]->flat_value;
  const auto* first = static_cast<const float*>(values.data);
  return {first, first + values.shape[0]};
}

// Log-probabilities under the current parameters, as rollouts record them.
std::vector<float> LogProbabilities(kgrpo_policy* policy, const kgrpo_sequence& sequence) {
  std::vector<float> logprobs(sequence.completion_size);
  auto size = static_cast<int64_t>(logprobs.size());
  kgrpo_tensor out{};
  out.data = logprobs.data();
  out.device.type = KGRPO_DEVICE_CPU;
  out.ndim = 1;
  out.dtype = {KGRPO_DTYPE_FLOAT, 32, 1};
  out.shape = &size;
  kgrpo_forward_request request{};
  request.struct_size = sizeof(request);
  request.sequences = &sequence;
  request.sequence_count = 1;
  request.temperature = kTemperature;
  kgrpo_forward_context* context = nullptr;
  Check(kTiny.forward(policy, &request, &out, nullptr, &context));
  return logprobs;
}

// A step's samples: four trajectories of one round for each of four problems, of which some were paid better.
struct Step {
  explicit Step(kgrpo_policy* policy) {
    const size_t count = kProblems * kEach;
    ids.resize(count * kCompletion);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(1 + (i * 7 + i / 5) % 31);
    logprobs.resize(count);
    samples.resize(count);
    for (size_t i = 0; i < count; ++i) {
      kgrpo_sample& sample = samples[i];
      sample.struct_size = sizeof(sample);
      sample.prompt_ids = prompt;
      sample.prompt_size = std::size(prompt);
      sample.completion_ids = &ids[i * kCompletion];
      sample.completion_size = kCompletion - i % 3;
      const kgrpo_sequence sequence = {prompt, std::size(prompt), sample.completion_ids, sample.completion_size};
      logprobs[i] = LogProbabilities(policy, sequence);
      sample.logprobs = logprobs[i].data();
      sample.reward = static_cast<double>(i % kEach) - 1;
      sample.trajectory = i;
      sample.rounds = 1;
      sample.problem = static_cast<uint32_t>(i / kEach);
      pointers.push_back(&sample);
    }
  }

  const int32_t prompt[3] = {1, 2, 3};
  std::vector<int32_t> ids;
  std::vector<std::vector<float>> logprobs;
  std::vector<kgrpo_sample> samples;
  std::vector<const kgrpo_sample*> pointers;
};

// The reports of a trainer during an update, and the first mistake in them.
struct Told {
  explicit Told(size_t count) : sample_count(count) {}

  size_t sample_count;
  size_t metrics = 0, rows = 0;
  std::set<size_t> samples;
  std::string mistake;

  void Note(const std::string& what, double value) {
    if (!std::isfinite(value) && mistake.empty()) mistake = what + " is " + Shown(value);
  }
  kgrpo_update_sink Sink() {
    return {this,
            [](void* context, kgrpo_metric metric) {
              auto* self = static_cast<Told*>(context);
              ++self->metrics;
              self->Note("the metric \"" + Copy(metric.name) + "\"", metric.value);
            },
            [](void* context, const kgrpo_metric* row, size_t count) {
              auto* self = static_cast<Told*>(context);
              ++self->rows;
              for (size_t i = 0; i < count; ++i)
                self->Note("an optimiser step's \"" + Copy(row[i].name) + "\"", row[i].value);
            },
            [](void* context, const kgrpo_sample_outcome* outcome) {
              auto* self = static_cast<Told*>(context);
              if (outcome->struct_size < KGRPO_SAMPLE_OUTCOME_SIZE_1)
                self->mistake = "a sample's outcome has struct_size " + std::to_string(outcome->struct_size);
              else if (outcome->sample >= self->sample_count)
                self->mistake = "it pushed an outcome for sample " + std::to_string(outcome->sample) + " of " +
                                std::to_string(self->sample_count);
              else if (!self->samples.insert(outcome->sample).second)
                self->mistake = "it pushed an outcome for sample " + std::to_string(outcome->sample) + " twice";
              else
                self->Note("a sample's advantage", outcome->advantage);
            }};
  }
};

bool Finite(const std::vector<float>& values) {
  for (float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace

void CheckTrainer(Session& session, const kgrpo_host* host, const kgrpo_trainer_interface& api,
                  kgrpo_trainer* trainer) {
  kgrpo_policy* policy = nullptr;  // never destroyed: it outlives the trainer, whatever happens
  Check(kTiny.create(host, Str("{}"), &policy));
  uint32_t source = KGRPO_TRAINER_ROLLOUTS;
  session.Check("trainer: source is one that this host knows", [&] {
    source = api.source(trainer);
    if (source > KGRPO_TRAINER_DEMONSTRATIONS) Fail("it is " + std::to_string(source));
    if (api.source(trainer) != source) Fail("another call gave another one");
    return std::string(source == KGRPO_TRAINER_ROLLOUTS   ? "rollouts"
                       : source == KGRPO_TRAINER_OWN_DATA ? "its own data"
                                                          : "demonstrations");
  });
  session.Check("trainer: needs_reference is the same each time", [&] {
    const int32_t needed = api.needs_reference(trainer);
    if (api.needs_reference(trainer) != needed) Fail("another call gave another answer");
    return std::string(needed != 0 ? "it compares with the reference" : "no");
  });

  bool begun = false;
  session.Check("trainer: begin takes a policy on the CPU", [&]() -> std::string {
    Check(kTiny.freeze_reference(policy));  // as the host does for those that need it
    kgrpo_trainer_plan plan{};
    plan.struct_size = sizeof(plan);
    plan.steps = 2;
    plan.temperature = kTemperature;
    plan.max_completion_size = kCompletion;
    plan.trajectories = kProblems * kEach;
    plan.trajectories_per_problem = kEach;
    plan.problems = kProblems;
    plan.rounds = 1;
    const bool checks = api.check_plan != nullptr;
    if (kgrpo_error* error = checks ? api.check_plan(trainer, &plan) : nullptr)
      return "check_plan refused: " + TakeMessage(error);
    if (kgrpo_error* error = api.begin(trainer, &kTiny, policy, &plan)) return "refused: " + TakeMessage(error);
    begun = true;
    return "";
  });

  session.Check("trainer: update trains", [&]() -> std::string {
    if (!begun) Skip("begin was refused");
    const Step step(policy);
    const size_t count = source == KGRPO_TRAINER_OWN_DATA ? 0 : step.pointers.size();
    const std::vector<float> before = ValuesOf(policy);
    Told told(count);
    kgrpo_error* error = api.update(trainer, count > 0 ? step.pointers.data() : nullptr, count, told.Sink());
    const std::vector<float> after = ValuesOf(policy);
    if (!Finite(after)) Fail("it left parameters that are not finite");
    if (error != nullptr) return "refused: " + TakeMessage(error);
    if (!told.mistake.empty()) Fail(told.mistake);
    if (told.metrics == 0) Fail("it pushed no metric: a run would record nothing about the update");
    if (after == before) Fail("success, and no parameter has changed");
    return std::to_string(told.rows) + " optimiser steps, " + std::to_string(told.metrics) + " metrics";
  });

  session.Check("trainer: save_state and load_state fit each other", [&]() -> std::string {
    if (!begun) Skip("begin was refused");
    std::string saved;
    const kgrpo_writer writer = {&saved, [](void* context, const void* data, size_t size) -> kgrpo_error* {
                                   static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
                                   return nullptr;
                                 }};
    if (kgrpo_error* error = api.save_state(trainer, writer)) Fail(TakeMessage(error));
    struct Source {
      const std::string* text;
      size_t at = 0;
    } from = {&saved};
    const kgrpo_reader reader = {&from, [](void* context, void* data, size_t size, size_t* got) -> kgrpo_error* {
                                   auto* self = static_cast<Source*>(context);
                                   *got = std::min(size, self->text->size() - self->at);
                                   if (*got > 0) std::memcpy(data, self->text->data() + self->at, *got);
                                   self->at += *got;
                                   return nullptr;
                                 }};
    if (kgrpo_error* error = api.load_state(trainer, reader))
      Fail("it cannot load what it saved: " + TakeMessage(error));
    std::string again;
    kgrpo_writer second = writer;
    second.context = &again;
    if (kgrpo_error* error = api.save_state(trainer, second)) Fail(TakeMessage(error));
    if (again != saved) Fail("what it saves after load_state differs from what was loaded");
    return std::to_string(saved.size()) + " bytes";
  });
}

}  // namespace kgrpo::validate
