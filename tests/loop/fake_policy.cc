// The fake policy: a table of logits by problem and technique, saved as table.bin.
#include "fake_table.h"
#include "fakes.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/generation_queue.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct kgrpo_policy {
  std::array<float, kgrpo::fakes::kContexts * 6> current{}, gradient{}, reference{};
  bool has_reference = false;
  int64_t shape[2] = {kgrpo::fakes::kContexts, 6};
  kgrpo_tensor value_tensor{}, gradient_tensor{};
  kgrpo_parameter parameter{};
  const kgrpo_parameter* parameters[1] = {&parameter};
  kgrpo_parameter_group group{};
  const kgrpo_parameter_group* groups[1] = {&group};
  kgrpo_policy_info info{};
  int32_t end = kgrpo::fakes::kEnd;
  std::unique_ptr<kgrpo::GenerationQueue> queue;
};

namespace kgrpo::fakes {
namespace {

std::array<double, 6> LogProbabilities(const float* table, size_t context, double temperature) {
  std::array<double, 6> logits;
  double total = 0;
  for (size_t t = 0; t < 6; ++t) {
    logits[t] = static_cast<double>(table[context * 6 + t]) / temperature;
    total += std::exp(logits[t]);
  }
  for (double& logit : logits) logit -= std::log(total);
  return logits;
}

void WriteCompletions(const kgrpo_policy& self, std::vector<PendingCompletion>& batch) {
  for (auto request = batch.rbegin(); request != batch.rend(); ++request) {  // in another order than asked
    Delay("generate " + std::to_string(request->seed()));
    const std::vector<int32_t>& prompt = request->prompt();
    const double temperature = request->sampling().temperature;
    const auto logprobs = LogProbabilities(self.current.data(), ContextOf(prompt.data(), prompt.size()),
                                           temperature > 0 ? temperature : 1.0);
    {
      const std::lock_guard lock(knobs().written_mutex);
      knobs().written[request->seed()].second = knobs().updates;
    }
    double left = Unit(Mix(request->seed()));
    size_t chosen = 0;
    while (chosen + 1 < 6 && left >= std::exp(logprobs[chosen])) left -= std::exp(logprobs[chosen++]);
    if (temperature == 0) {
      chosen = static_cast<size_t>(std::ranges::max_element(logprobs) - logprobs.begin());
    }
    if (knobs().policy_suggests >= 0) chosen = static_cast<size_t>(knobs().policy_suggests);
    const int32_t ids[2] = {static_cast<int32_t>(kFirstTechnique + chosen), kEnd};
    const float values[2] = {static_cast<float>(logprobs[chosen]), 0.0f};
    request->Finish({sizeof(kgrpo_completion), KGRPO_FINISH_STOP, ids, values, 2, Str(kTechniques[chosen])});
  }
}

kgrpo_error* CreatePolicy(const kgrpo_host*, kgrpo_str, kgrpo_policy** out) {
  return Guard([&] {
    auto* policy = new kgrpo_policy;
    const auto tensor = [policy](float* data) {
      kgrpo_tensor t{};
      t.data = data;
      t.device.type = KGRPO_DEVICE_CPU;
      t.ndim = 2;
      t.dtype = {KGRPO_DTYPE_FLOAT, 32, 1};
      t.shape = policy->shape;
      return t;
    };
    policy->value_tensor = tensor(policy->current.data());
    policy->gradient_tensor = tensor(policy->gradient.data());
    policy->parameter = {sizeof(kgrpo_parameter), Str("table"), &policy->value_tensor, &policy->gradient_tensor};
    policy->group.struct_size = sizeof(kgrpo_parameter_group);
    policy->group.name = Str("table");
    policy->group.trainable = policy->group.decay = 1;
    policy->group.parameters = policy->parameters;
    policy->group.parameter_count = 1;
    policy->info = {sizeof(kgrpo_policy_info),
                    Str("Table"),
                    Str("cpu"),
                    policy->current.size(),
                    2000,
                    4096,
                    &policy->end,
                    knobs().policy_has_no_end ? 0u : 1u,
                    nullptr,
                    nullptr,
                    0,
                    /*reads_chat_arguments=*/0,
                    /*reproducible=*/1};
    policy->queue = std::make_unique<GenerationQueue>(
        [policy](std::vector<PendingCompletion>& batch) { WriteCompletions(*policy, batch); });
    *out = policy;
  });
}

kgrpo_error* EncodeChat(const kgrpo_policy*, const kgrpo_message* messages, size_t count, const kgrpo_chat_options*,
                        kgrpo_token_sink sink) {
  return Guard([&] {
    std::vector<int32_t> ids;
    for (const char c : View(messages[count - 1].content)) ids.push_back(static_cast<unsigned char>(c));
    sink.put(sink.context, ids.data(), ids.size());
  });
}

kgrpo_error* RenderChat(const kgrpo_policy*, const kgrpo_message* messages, size_t count, const kgrpo_chat_options*,
                        kgrpo_text_sink sink) {
  return Guard([&] { sink.put(sink.context, messages[count - 1].content); });
}

kgrpo_error* Encode(const kgrpo_policy*, kgrpo_str text, kgrpo_token_sink sink) {
  return Guard([&] {
    for (size_t t = 0; t < kTechniques.size(); ++t) {
      if (kTechniques[t] != View(text)) continue;
      const auto id = static_cast<int32_t>(kFirstTechnique + t);
      sink.put(sink.context, &id, 1);
    }
    if (View(text) == "kernel") sink.put(sink.context, &kEnd, 1);
  });
}

kgrpo_error* Decode(const kgrpo_policy*, const int32_t* ids, size_t count, int32_t, kgrpo_text_sink sink) {
  return Guard([&] {
    for (size_t i = 0; i < count; ++i) {
      if (ids[i] >= kFirstTechnique)
        sink.put(sink.context, Str(kTechniques[static_cast<size_t>(ids[i] - kFirstTechnique)]));
    }
  });
}

kgrpo_error* Generate(kgrpo_policy* self, const kgrpo_generate_request* const* requests, size_t count) {
  return Guard([&] {
    {
      const std::lock_guard lock(knobs().written_mutex);
      for (size_t i = 0; i < count; ++i) knobs().written[requests[i]->seed].first = knobs().updates;
    }
    self->queue->Submit(requests, count);
  });
}

kgrpo_error* Forward(kgrpo_policy* self, const kgrpo_forward_request* request, const kgrpo_tensor* logprob_tensor,
                     const kgrpo_tensor* entropy_tensor, kgrpo_forward_context**) {
  return Guard([&] {
    auto* logprobs = static_cast<float*>(logprob_tensor->data);
    auto* entropies = entropy_tensor == nullptr ? nullptr : static_cast<float*>(entropy_tensor->data);
    if (request->need_gradient) throw Error(KGRPO_ERROR_UNSUPPORTED, "the table's trainer needs no gradient");
    if (std::ranges::any_of(self->current, [](float value) { return std::isnan(value); }))
      throw Error(KGRPO_ERROR_NOT_FINITE, "the logits are not finite");
    size_t out = 0;
    for (size_t s = 0; s < request->sequence_count; ++s) {
      const kgrpo_sequence& sequence = request->sequences[s];
      const auto values = LogProbabilities(self->current.data(), ContextOf(sequence.prompt_ids, sequence.prompt_size),
                                           request->temperature);
      double entropy = 0;
      for (const double value : values) entropy -= std::exp(value) * value;
      for (size_t i = 0; i < sequence.completion_size; ++i, ++out) {
        const bool technique = sequence.completion_ids[i] >= kFirstTechnique;
        logprobs[out] =
            technique ? static_cast<float>(values[static_cast<size_t>(sequence.completion_ids[i] - kFirstTechnique)])
                      : 0;
        if (entropies != nullptr) entropies[out] = technique ? static_cast<float>(entropy) : 0;
      }
    }
  });
}

kgrpo_error* SavePolicy(kgrpo_policy* self, uint32_t copy, kgrpo_str directory) {
  return Guard([&] {
    const auto& table = copy == KGRPO_POLICY_CURRENT ? self->current : self->reference;
    std::ofstream file(Copy(directory) + "/table.bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(table.data()), sizeof(table));
    if (!file.flush()) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write the table");
  });
}

kgrpo_error* LoadPolicy(kgrpo_policy* self, uint32_t copy, kgrpo_str directory) {
  return Guard([&] {
    auto& table = copy == KGRPO_POLICY_CURRENT ? self->current : self->reference;
    std::ifstream file(Copy(directory) + "/table.bin", std::ios::binary);
    file.read(reinterpret_cast<char*>(table.data()), sizeof(table));
    if (!file) throw Error(KGRPO_ERROR_NOT_FOUND, "no table in " + Copy(directory));
    if (copy == KGRPO_POLICY_REFERENCE) self->has_reference = true;
  });
}

kgrpo_error* Backward(kgrpo_policy*, kgrpo_forward_context*, const kgrpo_tensor*) {
  return MakeError(KGRPO_ERROR_UNSUPPORTED, "the table's trainer needs no gradient");
}

}  // namespace

const kgrpo_policy_interface kPolicy = {
    sizeof(kgrpo_policy_interface),
    Schema,
    CreatePolicy,
    [](kgrpo_policy* self) { delete self; },
    [](const kgrpo_policy* self) -> const kgrpo_policy_info* { return &self->info; },
    EncodeChat,
    RenderChat,
    Encode,
    Decode,
    Generate,
    [](kgrpo_policy* self) { self->queue->Cancel(); },
    Forward,
    Backward,
    [](kgrpo_policy*, kgrpo_forward_context*) {},
    [](kgrpo_policy* self, const kgrpo_parameter_group* const** groups, size_t* count) -> kgrpo_error* {
      *groups = self->groups;
      *count = 1;
      return nullptr;
    },
    [](kgrpo_policy* self) -> kgrpo_error* {
      self->gradient.fill(0);
      return nullptr;
    },
    [](kgrpo_policy* self) -> kgrpo_error* {
      self->reference = self->current;
      self->has_reference = true;
      return nullptr;
    },
    SavePolicy,
    LoadPolicy,
    /*backward_in_pieces=*/nullptr,
    /*get_extension=*/nullptr};

}  // namespace kgrpo::fakes
