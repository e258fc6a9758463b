#include "bigram_policy.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

// State kept from a forward pass; sequences are copied, as a real policy's activations would be.
struct kgrpo_forward_context {
  std::vector<std::vector<int32_t>> ids;  // the last prompt token and the completion
  double temperature;
  bool poisoned;
};

namespace kgrpo::testing {
namespace {

uint16_t Narrow(double value) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
double Widen(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace

struct BigramApi {
  static BigramPolicy& Self(kgrpo_policy* policy) { return *reinterpret_cast<BigramPolicy*>(policy); }

  static kgrpo_error* Encode(const kgrpo_policy* policy, kgrpo_str text, kgrpo_token_sink sink) {
    return Guard([&] {
      std::vector<int32_t> ids;
      const auto range = static_cast<int32_t>(reinterpret_cast<const BigramPolicy*>(policy)->vocabulary_ - 3);
      for (char c : View(text)) ids.push_back(3 + static_cast<unsigned char>(c) % range);
      sink.put(sink.context, ids.data(), ids.size());
    });
  }

  static kgrpo_error* EncodeChat(const kgrpo_policy* policy, const kgrpo_message* messages, size_t count,
                                 const kgrpo_chat_options* options, kgrpo_token_sink sink) {
    return Guard([&] {
      const int32_t open = 1, end = 2;
      auto& self = *reinterpret_cast<BigramPolicy*>(const_cast<kgrpo_policy*>(policy));
      if (self.info_.reads_chat_arguments != 0) {
        self.chat_arguments.push_back(Copy(options->arguments));
        for (size_t i = 0; i < count; ++i) self.chat_arguments.back() += View(messages[i].members);
      }
      for (size_t i = 0; i < count; ++i) {
        sink.put(sink.context, &open, 1);
        Check(Encode(policy, messages[i].content, sink));
        sink.put(sink.context, &end, 1);
      }
      if (options->add_generation_prompt) sink.put(sink.context, &self.generation_prompt, 1);
    });
  }

  // The numbers of a tensor of one dimension on the CPU; null for none.
  static float* DataOf(const kgrpo_tensor* tensor) {
    return tensor == nullptr ? nullptr : static_cast<float*>(tensor->data);
  }

  static kgrpo_error* Forward(kgrpo_policy* policy, const kgrpo_forward_request* request,
                              const kgrpo_tensor* logprobs_tensor, const kgrpo_tensor* entropies_tensor,
                              kgrpo_forward_context** context) {
    return Guard([&] {
      float* logprobs = DataOf(logprobs_tensor);
      float* entropies = DataOf(entropies_tensor);
      size_t tokens = 0;
      for (size_t i = 0; i < request->sequence_count; ++i) tokens += request->sequences[i].completion_size;
      for (const kgrpo_tensor* tensor : {logprobs_tensor, entropies_tensor}) {
        if (tensor != nullptr && (tensor->ndim != 1 || tensor->shape[0] != static_cast<int64_t>(tokens))) {
          throw Error(KGRPO_ERROR_INVALID, "a result has another size than the completions");
        }
      }
      BigramPolicy& self = Self(policy);
      const int call = self.forwards++;
      if (call == self.fail_forward) throw Error(KGRPO_ERROR_UNAVAILABLE, "the device fell off the bus");
      if (request->copy == KGRPO_POLICY_REFERENCE && self.reference_[0].empty()) {
        throw Error(KGRPO_ERROR_INVALID, "there is no reference");
      }
      self.forward_sizes.push_back(request->sequence_count);
      float* next = logprobs;
      for (size_t i = 0; i < request->sequence_count; ++i) {
        const kgrpo_sequence& sequence = request->sequences[i];
        self.scored.push_back(sequence.prompt_ids);
        self.Score(sequence, static_cast<kgrpo_policy_copy>(request->copy), request->temperature, next,
                   entropies == nullptr ? nullptr : entropies + (next - logprobs));
        next += sequence.completion_size;
      }
      if (self.poison_forwards.contains(call) || self.always_poison)
        logprobs[0] = std::numeric_limits<float>::quiet_NaN();
      if (!request->need_gradient) return;
      auto* made = new kgrpo_forward_context{{}, request->temperature, call == self.poison_gradient};
      for (size_t i = 0; i < request->sequence_count; ++i) {
        const kgrpo_sequence& sequence = request->sequences[i];
        made->ids.push_back({sequence.prompt_ids[sequence.prompt_size - 1]});
        made->ids.back().insert(made->ids.back().end(), sequence.completion_ids,
                                sequence.completion_ids + sequence.completion_size);
      }
      ++self.live_contexts;
      *context = made;
    });
  }

  static void Release(kgrpo_policy* policy, kgrpo_forward_context* context) {
    if (context == nullptr) return;
    --Self(policy).live_contexts;
    delete context;
  }

  // d log p(next) / d logit_k = ([k = next] - p_k) / temperature
  static kgrpo_error* Backward(kgrpo_policy* policy, kgrpo_forward_context* context, const kgrpo_tensor* tensor) {
    return Guard([&] {
      const float* dlogprobs = DataOf(tensor);
      BigramPolicy& self = Self(policy);
      for (const std::vector<int32_t>& ids : context->ids) {
        for (size_t t = 1; t < ids.size(); ++t) {
          const auto p = self.Distribution(ids[t - 1], KGRPO_POLICY_CURRENT, context->temperature);
          const double outer = *dlogprobs++;
          for (size_t k = 0; k < p.size(); ++k) {
            const double indicator = static_cast<int32_t>(k) == ids[t] ? 1.0 : 0.0;
            const auto inner = static_cast<float>(outer * (indicator - p[k]) / context->temperature);
            self.parameters_[0].gradient[static_cast<size_t>(ids[t - 1]) * self.vocabulary_ + k] += inner;
            self.parameters_[1].gradient[k] += inner;
          }
        }
      }
      if (context->poisoned) self.parameters_[0].gradient[0] = std::numeric_limits<float>::infinity();
      Release(policy, context);
    });
  }

  // Tells of the bias, then of the table's rows from the last to the first. Memory holds a piece's gradient only from
  // then on, so who reads it before reads what is wrong.
  static kgrpo_error* BackwardInPieces(kgrpo_policy* policy, kgrpo_forward_context* context, const kgrpo_tensor* tensor,
                                       kgrpo_gradient_sink sink) {
    return Guard([&] {
      BigramPolicy& self = Self(policy);
      std::vector<float> made[2] = {self.parameters_[0].gradient, self.parameters_[1].gradient};
      Check(Backward(policy, context, tensor));
      for (size_t i = 0; i < 2; ++i) std::swap_ranges(made[i].begin(), made[i].end(), self.gradient(i).begin());
      const auto tell = [&](size_t parameter, size_t begin, size_t count) {
        float* const data = self.gradient(parameter).data() + begin;
        std::copy_n(made[parameter].data() + begin, count, data);
        auto extent = static_cast<int64_t>(count);
        kgrpo_tensor piece = self.parameters_[parameter].gradient_tensor;
        piece.data = data;
        piece.ndim = 1;
        piece.shape = &extent;
        if (self.log != nullptr) self.log->emplace_back("piece");
        sink.ready(sink.context, &piece);
      };
      tell(1, 0, self.vocabulary_);
      if (self.fail_between_pieces) throw Error(KGRPO_ERROR_UNAVAILABLE, "the device fell off the bus");
      for (size_t row = self.vocabulary_; row-- > 0;) tell(0, row * self.vocabulary_, self.vocabulary_);
      if (self.log != nullptr) self.log->emplace_back("backward ends");
    });
  }

  static kgrpo_error* Parameters(kgrpo_policy* policy, const kgrpo_parameter_group* const** groups, size_t* count) {
    *groups = Self(policy).group_pointers_;
    *count = 3;
    return nullptr;
  }

  static kgrpo_error* ZeroGradients(kgrpo_policy* policy) {
    for (auto& tensor : Self(policy).parameters_) tensor.gradient.assign(tensor.gradient.size(), 0.0f);
    return nullptr;
  }

  static kgrpo_error* FreezeReference(kgrpo_policy* policy) {
    Self(policy).FreezeReference();
    return nullptr;
  }

  static const kgrpo_policy_info* Info(const kgrpo_policy* policy) {
    return &reinterpret_cast<const BigramPolicy*>(policy)->info_;
  }
};

BigramPolicy::BigramPolicy(size_t vocabulary, bool bfloat16) : vocabulary_(vocabulary), bfloat16_(bfloat16) {
  const auto extent = static_cast<int64_t>(vocabulary);
  parameters_[0].name = "table";
  parameters_[0].shape = {extent, extent};
  parameters_[1].name = "bias";
  parameters_[1].shape = {extent};
  for (size_t i = 0; i < 2; ++i) {
    Tensor& tensor = parameters_[i];
    const size_t count = i == 0 ? vocabulary * vocabulary : vocabulary;
    tensor.gradient.resize(count);
    kgrpo_tensor view = {};
    view.device.type = KGRPO_DEVICE_CPU;
    view.ndim = static_cast<int32_t>(tensor.shape.size());
    view.dtype = {KGRPO_DTYPE_FLOAT, 32, 1};
    view.shape = tensor.shape.data();
    view.data = tensor.gradient.data();
    tensor.gradient_tensor = view;
    if (bfloat16) {
      tensor.narrow.resize(count);
      view.data = tensor.narrow.data();
      view.dtype = {KGRPO_DTYPE_BFLOAT, 16, 1};
    } else {
      tensor.wide.resize(count);
      view.data = tensor.wide.data();
    }
    tensor.value_tensor = view;
    tensor.view = {sizeof(kgrpo_parameter), Str(tensor.name), &tensor.value_tensor, &tensor.gradient_tensor};
    tensor.pointer = &tensor.view;
    groups_[i] = {
        sizeof(kgrpo_parameter_group), Str(tensor.name), 1, i == 0 ? 1 : 0, &tensor.pointer, 1, nullptr, nullptr};
    group_pointers_[i] = &groups_[i];
  }
  // Frozen weights without a gradient, which trainers must leave alone.
  frozen_ = {sizeof(kgrpo_parameter), Str("frozen"), &parameters_[1].value_tensor, nullptr};
  groups_[2] = {sizeof(kgrpo_parameter_group), Str("frozen"), 0, 1, &frozen_pointer_, 1, nullptr, nullptr};
  group_pointers_[2] = &groups_[2];
  info_.struct_size = sizeof(info_);
  info_.architecture = Str("Bigram");
  info_.device = Str("cpu");
  info_.parameter_count = vocabulary * (vocabulary + 1);
  info_.vocabulary_size = static_cast<uint32_t>(vocabulary);
  info_.context_length = 64;
  info_.end_ids = &end_id_;
  info_.end_id_count = 1;
}

const kgrpo_policy_interface& BigramPolicy::Api() {
  static const kgrpo_policy_interface kApi = [] {
    kgrpo_policy_interface api = {};
    api.struct_size = sizeof(api);
    api.info = BigramApi::Info;
    api.encode = BigramApi::Encode;
    api.encode_chat = BigramApi::EncodeChat;
    api.forward = BigramApi::Forward;
    api.backward = BigramApi::Backward;
    api.release_context = BigramApi::Release;
    api.parameters = BigramApi::Parameters;
    api.zero_gradients = BigramApi::ZeroGradients;
    api.freeze_reference = BigramApi::FreezeReference;
    api.backward_in_pieces = BigramApi::BackwardInPieces;
    return api;
  }();
  return kApi;
}

double BigramPolicy::Value(size_t parameter, size_t index) const {
  const Tensor& tensor = parameters_[parameter];
  return bfloat16_ ? Widen(tensor.narrow[index]) : static_cast<double>(tensor.wide[index]);
}

std::vector<double> BigramPolicy::Values(size_t parameter) const {
  std::vector<double> values(parameters_[parameter].gradient.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = Value(parameter, i);
  return values;
}

void BigramPolicy::SetValues(size_t parameter, const std::vector<double>& values) {
  Tensor& tensor = parameters_[parameter];
  for (size_t i = 0; i < values.size(); ++i) {
    if (bfloat16_) {
      tensor.narrow[i] = Narrow(values[i]);
    } else {
      tensor.wide[i] = static_cast<float>(values[i]);
    }
  }
}

void BigramPolicy::FillRandomly(uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  for (size_t parameter = 0; parameter < 2; ++parameter) {
    std::vector<double> values(parameters_[parameter].gradient.size());
    for (double& value : values) value = normal(engine);
    SetValues(parameter, values);
  }
}

void BigramPolicy::FreezeReference() {
  for (size_t i = 0; i < 2; ++i) reference_[i] = Values(i);
}

std::vector<double> BigramPolicy::Distribution(int32_t previous, kgrpo_policy_copy copy, double temperature) const {
  std::vector<double> p(vocabulary_);
  double sum = 0;
  for (size_t k = 0; k < vocabulary_; ++k) {
    const size_t index = static_cast<size_t>(previous) * vocabulary_ + k;
    const double logit =
        copy == KGRPO_POLICY_CURRENT ? Value(0, index) + Value(1, k) : reference_[0][index] + reference_[1][k];
    p[k] = std::exp(logit / temperature);
    sum += p[k];
  }
  for (double& value : p) value /= sum;
  return p;
}

void BigramPolicy::Score(const kgrpo_sequence& sequence, kgrpo_policy_copy copy, double temperature, float* logprobs,
                         float* entropies) const {
  int32_t previous = sequence.prompt_ids[sequence.prompt_size - 1];
  for (size_t t = 0; t < sequence.completion_size; ++t) {
    const auto p = Distribution(previous, copy, temperature);
    previous = sequence.completion_ids[t];
    logprobs[t] = static_cast<float>(std::log(p[static_cast<size_t>(previous)]));
    if (entropies == nullptr) continue;
    double entropy = 0;
    for (double value : p) entropy -= value * std::log(value);
    entropies[t] = static_cast<float>(entropy);
  }
}

}  // namespace kgrpo::testing
