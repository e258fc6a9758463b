#include "validate/tiny_policy.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace kgrpo::validate {
namespace {

constexpr auto kSize = static_cast<size_t>(TinyPolicy::kVocabulary);

struct Context {
  std::vector<int32_t> previous, ids;
  double temperature;
};

kgrpo_tensor Tensor(std::vector<float>& data, int64_t* shape, int32_t ndim) {
  kgrpo_tensor tensor{};
  tensor.data = data.data();
  tensor.device.type = KGRPO_DEVICE_CPU;
  tensor.ndim = ndim;
  tensor.dtype.code = KGRPO_DTYPE_FLOAT;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

// The floats of a tensor that a trainer lends, which must have one dimension of `size`.
float* Floats(const kgrpo_tensor* tensor, size_t size, const char* what) {
  const bool fits = tensor != nullptr && tensor->device.type == KGRPO_DEVICE_CPU && tensor->ndim == 1 &&
                    tensor->dtype.code == KGRPO_DTYPE_FLOAT && tensor->dtype.bits == 32 &&
                    tensor->shape[0] == static_cast<int64_t>(size) &&
                    (tensor->strides == nullptr || tensor->strides[0] == 1 || size == 1);
  if (!fits)
    throw Error(KGRPO_ERROR_INVALID, std::string(what) + " must be " + std::to_string(size) +
                                         " float32 values in one dimension on the CPU, where this policy is");
  return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
}

kgrpo_error* Refuse(const char* function) {
  return MakeError(KGRPO_ERROR_UNSUPPORTED, std::string("the validator's policy has no ") + function);
}

}  // namespace

TinyPolicy::TinyPolicy() : value_{std::vector<float>(kSize * kSize), std::vector<float>(kSize)}, gradient_(value_) {
  for (size_t i = 0; i < value_.matrix.size(); ++i) value_.matrix[i] = 0.3F * std::sin(static_cast<float>(i));
  for (size_t i = 0; i < value_.bias.size(); ++i) value_.bias[i] = 0.1F * std::cos(static_cast<float>(i));
  tensors_[0] = Tensor(value_.matrix, matrix_shape_, 2);
  tensors_[1] = Tensor(gradient_.matrix, matrix_shape_, 2);
  tensors_[2] = Tensor(value_.bias, bias_shape_, 1);
  tensors_[3] = Tensor(gradient_.bias, bias_shape_, 1);
  parameters_[0] = {sizeof(kgrpo_parameter), KGRPO_LITERAL("next.weight"), &tensors_[0], &tensors_[1]};
  parameters_[1] = {sizeof(kgrpo_parameter), KGRPO_LITERAL("next.bias"), &tensors_[2], &tensors_[3]};
  for (size_t i = 0; i < 2; ++i) {
    groups_[i].struct_size = sizeof(kgrpo_parameter_group);
    groups_[i].name = i == 0 ? KGRPO_LITERAL("matrices") : KGRPO_LITERAL("biases");
    groups_[i].trainable = 1;
    groups_[i].decay = i == 0 ? 1 : 0;
    groups_[i].parameters = &pointers_[i];
    groups_[i].parameter_count = 1;
  }
  info_.struct_size = sizeof(info_);
  info_.architecture = KGRPO_LITERAL("Tiny");
  info_.device = KGRPO_LITERAL("cpu");
  info_.parameter_count = kSize * kSize + kSize;
  info_.vocabulary_size = kSize;
  info_.context_length = 1024;
  info_.end_ids = &end_id_;
  info_.end_id_count = 1;
}

std::vector<float> TinyPolicy::Values() const {
  std::vector<float> all = value_.matrix;
  all.insert(all.end(), value_.bias.begin(), value_.bias.end());
  return all;
}

std::vector<double> TinyPolicy::Row(const Parameters& parameters, int32_t previous, double temperature) {
  std::vector<double> row(kSize);
  double total = 0;
  for (size_t next = 0; next < kSize; ++next) {
    row[next] = (parameters.matrix[static_cast<size_t>(previous) * kSize + next] + parameters.bias[next]) / temperature;
    total += std::exp(row[next]);
  }
  for (double& logprob : row) logprob -= std::log(total);
  return row;
}

std::vector<float> TinyPolicy::LogProbabilities(const kgrpo_sequence& sequence, double temperature) const {
  std::vector<float> logprobs;
  int32_t previous = sequence.prompt_ids[sequence.prompt_size - 1];
  for (size_t i = 0; i < sequence.completion_size; ++i) {
    const int32_t id = sequence.completion_ids[i];
    logprobs.push_back(static_cast<float>(Row(value_, previous, temperature)[static_cast<size_t>(id)]));
    previous = id;
  }
  return logprobs;
}

struct TinyPolicyTable {
  static TinyPolicy& Of(const kgrpo_policy* policy) {
    return *const_cast<TinyPolicy*>(reinterpret_cast<const TinyPolicy*>(policy));
  }

  static kgrpo_error* Forward(kgrpo_policy* policy, const kgrpo_forward_request* request, const kgrpo_tensor* logprobs,
                              const kgrpo_tensor* entropies, kgrpo_forward_context** context) noexcept {
    return Guard([&] {
      TinyPolicy& self = Of(policy);
      if (!(request->temperature > 0)) throw Error(KGRPO_ERROR_INVALID, "temperature must be above 0");
      if (request->copy == KGRPO_POLICY_REFERENCE && self.reference_.bias.empty())
        throw Error(KGRPO_ERROR_INVALID, "there is no reference: freeze_reference was not called");
      auto made = std::make_unique<Context>();
      made->temperature = request->temperature;
      for (size_t s = 0; s < request->sequence_count; ++s) {
        const kgrpo_sequence& sequence = request->sequences[s];
        if (sequence.prompt_size == 0 || sequence.completion_size == 0)
          throw Error(KGRPO_ERROR_INVALID, "sequence " + std::to_string(s) + " is empty");
        int32_t previous = sequence.prompt_ids[sequence.prompt_size - 1];
        for (size_t i = 0; i < sequence.completion_size; ++i) {
          const int32_t id = sequence.completion_ids[i];
          if (id < 0 || id >= TinyPolicy::kVocabulary)
            throw Error(KGRPO_ERROR_INVALID, "token id " + std::to_string(id) + " is outside the vocabulary");
          made->previous.push_back(previous);
          made->ids.push_back(id);
          previous = id;
        }
      }
      const size_t tokens = made->ids.size();
      float* out = Floats(logprobs, tokens, "logprobs");
      float* entropy = entropies == nullptr ? nullptr : Floats(entropies, tokens, "entropies");
      for (size_t i = 0; i < tokens; ++i) {
        const std::vector<double> row =
            TinyPolicy::Row(request->copy == KGRPO_POLICY_REFERENCE ? self.reference_ : self.value_, made->previous[i],
                            request->temperature);
        out[i] = static_cast<float>(row[static_cast<size_t>(made->ids[i])]);
        if (entropy == nullptr) continue;
        double sum = 0;
        for (double logprob : row) sum -= std::exp(logprob) * logprob;
        entropy[i] = static_cast<float>(sum);
      }
      if (request->need_gradient != 0) *context = reinterpret_cast<kgrpo_forward_context*>(made.release());
    });
  }

  static kgrpo_error* Backward(kgrpo_policy* policy, kgrpo_forward_context* context,
                               const kgrpo_tensor* dlogprobs) noexcept {
    return Guard([&] {
      TinyPolicy& self = Of(policy);
      const std::unique_ptr<Context> made(reinterpret_cast<Context*>(context));
      const float* weights = Floats(dlogprobs, made->ids.size(), "dlogprobs");
      for (size_t i = 0; i < made->ids.size(); ++i) {
        const std::vector<double> row = TinyPolicy::Row(self.value_, made->previous[i], made->temperature);
        for (size_t next = 0; next < kSize; ++next) {
          const double own = next == static_cast<size_t>(made->ids[i]) ? 1 : 0;
          const auto change = static_cast<float>(weights[i] * (own - std::exp(row[next])) / made->temperature);
          self.gradient_.matrix[static_cast<size_t>(made->previous[i]) * kSize + next] += change;
          self.gradient_.bias[next] += change;
        }
      }
    });
  }

  static kgrpo_error* Groups(kgrpo_policy* policy, const kgrpo_parameter_group* const** groups,
                             size_t* count) noexcept {
    *groups = Of(policy).group_pointers_;
    *count = 2;
    return nullptr;
  }

  static kgrpo_error* ZeroGradients(kgrpo_policy* policy) noexcept {
    TinyPolicy& self = Of(policy);
    std::fill(self.gradient_.matrix.begin(), self.gradient_.matrix.end(), 0.0F);
    std::fill(self.gradient_.bias.begin(), self.gradient_.bias.end(), 0.0F);
    return nullptr;
  }

  static kgrpo_error* FreezeReference(kgrpo_policy* policy) noexcept {
    return Guard([&] { Of(policy).reference_ = Of(policy).value_; });
  }

  static const kgrpo_policy_info* Info(const kgrpo_policy* policy) noexcept { return &Of(policy).info_; }
};

const kgrpo_policy_interface* TinyPolicy::api() {
  static const kgrpo_policy_interface table = {
      sizeof(kgrpo_policy_interface),
      [] { return KGRPO_LITERAL("{\"type\": \"object\"}"); },
      [](const kgrpo_host*, kgrpo_str, kgrpo_policy**) { return Refuse("create"); },
      [](kgrpo_policy*) {},
      TinyPolicyTable::Info,
      [](const kgrpo_policy*, const kgrpo_message*, size_t, const kgrpo_chat_options*, kgrpo_token_sink) {
        return Refuse("encode_chat");
      },
      [](const kgrpo_policy*, const kgrpo_message*, size_t, const kgrpo_chat_options*, kgrpo_text_sink) {
        return Refuse("render_chat");
      },
      [](const kgrpo_policy*, kgrpo_str, kgrpo_token_sink) { return Refuse("encode"); },
      [](const kgrpo_policy*, const int32_t*, size_t, int32_t, kgrpo_text_sink) { return Refuse("decode"); },
      [](kgrpo_policy*, const kgrpo_generate_request* const*, size_t) { return Refuse("generate"); },
      [](kgrpo_policy*) {},
      TinyPolicyTable::Forward,
      TinyPolicyTable::Backward,
      [](kgrpo_policy*, kgrpo_forward_context* context) { delete reinterpret_cast<Context*>(context); },
      TinyPolicyTable::Groups,
      TinyPolicyTable::ZeroGradients,
      TinyPolicyTable::FreezeReference,
      [](kgrpo_policy*, uint32_t, kgrpo_str) { return Refuse("save"); },
      [](kgrpo_policy*, uint32_t, kgrpo_str) { return Refuse("load"); },
      /*backward_in_pieces=*/nullptr};
  return &table;
}

}  // namespace kgrpo::validate
