// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/cpu_policy.h - kgrpo.policy/1 for small models on the CPU. An author writes the tokenizer, the next token's
// logits and their gradient. This class has the queue, sampling, chats, tensors, the reference copy and saved folders.
//
// The functions that an author writes are called from any thread, several at once, and change nothing of the object.
#ifndef KGRPO_SDK_CPU_POLICY_H
#define KGRPO_SDK_CPU_POLICY_H
#include <kgrpo/policy.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/generation_queue.h>
#include <kgrpo/sdk/host.h>
#include <kgrpo/sdk/sampling.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kgrpo {

class CpuPolicy {
 public:
  struct Shape {
    std::string architecture;  // "Bigram"
    uint32_t vocabulary_size = 0;
    uint32_t context_length = 0;   // prompt and completion together
    std::vector<int32_t> end_ids;  // each ends a completion
    size_t parameter_count = 0;    // float32 numbers, 0 at first
  };
  // The prompt and the tokens written so far; the next token is to be computed.
  struct Prefix {
    const int32_t* ids;
    size_t prompt_size;  // at least 1
    size_t size;         // prompt and what was written
    int32_t last() const { return ids[size - 1]; }
  };

  CpuPolicy(const kgrpo_host* host, Shape shape);
  virtual ~CpuPolicy() = default;
  CpuPolicy(const CpuPolicy&) = delete;
  CpuPolicy& operator=(const CpuPolicy&) = delete;

  // Text to ids, and back; each the other's inverse. skip_special: leave the end tokens out.
  virtual std::vector<int32_t> Encode(std::string_view text) const = 0;
  virtual std::string Decode(const int32_t* ids, size_t count, bool skip_special) const = 0;
  // Returns a chat as text. With `answer` the text ends with the opening of the assistant's answer.
  virtual std::string RenderChat(const kgrpo_message* messages, size_t count, bool answer) const;

  // The vocabulary_size logits of the next token; -infinity excludes one. `logits` is all 0.
  virtual void Logits(const std::vector<float>& parameters, const Prefix& prefix,
                      std::vector<double>* logits) const = 0;
  // Adds the parameters' gradients, given those of the logits.
  virtual void Backward(const std::vector<float>& parameters, const Prefix& prefix, const std::vector<double>& dlogits,
                        std::vector<float>* gradients) const = 0;

  // Writes a folder with parameters.bin, the float32 values as they lie in memory. `transformers` cannot open it.
  void Save(uint32_t copy, const std::string& folder) const;
  void Load(uint32_t copy, const std::string& folder);

 private:
  template <typename Policy, std::string_view (*Schema)(),
            std::unique_ptr<Policy> (*Make)(const kgrpo_host* host, std::string_view options)>
  friend class CpuPolicyInterface;

  struct Scored {  // a sequence of forward
    std::vector<int32_t> ids;
    size_t prompt_size;
  };
  struct Context {
    std::vector<Scored> sequences;
    double temperature;
  };

  static float* Data(const kgrpo_tensor* tensor, size_t size);
  const std::vector<float>& Parameters(uint32_t copy) const;
  std::vector<double> LogProbabilities(const std::vector<float>& parameters, const Prefix& prefix,
                                       double temperature) const;
  void Generate(const kgrpo_generate_request* const* requests, size_t count);
  void Write(PendingCompletion* request) const;
  void Forward(const kgrpo_forward_request& request, float* logprobs, float* entropies, Context** context) const;
  void AddGradients(const Context& context, const float* dlogprobs);

  Host host_;
  Shape shape_;
  std::vector<float> values_, gradients_, reference_;  // the last is empty before freeze_reference
  int64_t extent_;
  kgrpo_tensor value_tensor_{}, gradient_tensor_{};
  kgrpo_parameter parameter_{};
  const kgrpo_parameter* parameters_[1] = {&parameter_};
  kgrpo_parameter_group group_{};
  const kgrpo_parameter_group* groups_[1] = {&group_};
  kgrpo_policy_info info_{};
  GenerationQueue queue_;  // last: its thread uses all of the above
};

inline CpuPolicy::CpuPolicy(const kgrpo_host* host, Shape shape)
    : host_(host),
      shape_(std::move(shape)),
      values_(shape_.parameter_count),
      gradients_(shape_.parameter_count),
      extent_(static_cast<int64_t>(shape_.parameter_count)),
      queue_([this](std::vector<PendingCompletion>& batch) {
        for (PendingCompletion& request : batch) {
          if (queue_.Cancelled()) return;
          Write(&request);
        }
      }) {
  const auto tensor = [this](std::vector<float>& numbers) {
    kgrpo_tensor made{};
    made.data = numbers.data();
    made.device.type = KGRPO_DEVICE_CPU;
    made.ndim = 1;
    made.dtype.code = KGRPO_DTYPE_FLOAT;
    made.dtype.bits = 32;
    made.dtype.lanes = 1;
    made.shape = &extent_;
    return made;
  };
  value_tensor_ = tensor(values_);
  gradient_tensor_ = tensor(gradients_);
  parameter_ = {sizeof(parameter_), KGRPO_LITERAL("parameters"), &value_tensor_, &gradient_tensor_};
  group_.struct_size = sizeof(group_);
  group_.name = parameter_.name;
  group_.trainable = 1;
  group_.parameters = parameters_;
  group_.parameter_count = 1;
  group_.flat_value = &value_tensor_;
  group_.flat_gradient = &gradient_tensor_;
  info_.struct_size = sizeof(info_);
  info_.architecture = Str(shape_.architecture);
  info_.device = KGRPO_LITERAL("cpu");
  info_.parameter_count = shape_.parameter_count;
  info_.vocabulary_size = shape_.vocabulary_size;
  info_.context_length = shape_.context_length;
  info_.end_ids = shape_.end_ids.data();
  info_.end_id_count = shape_.end_ids.size();
  info_.reproducible = 1;
}

inline std::string CpuPolicy::RenderChat(const kgrpo_message* messages, size_t count, bool answer) const {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += Copy(messages[i].role) + ": " + Copy(messages[i].content) + "\n";
  return answer ? text + "assistant: " : text;
}

inline float* CpuPolicy::Data(const kgrpo_tensor* tensor, size_t size) {
  const bool fits = tensor != nullptr && tensor->device.type == KGRPO_DEVICE_CPU && tensor->ndim == 1 &&
                    tensor->dtype.code == KGRPO_DTYPE_FLOAT && tensor->dtype.bits == 32 &&
                    tensor->shape[0] == static_cast<int64_t>(size) &&
                    (tensor->strides == nullptr || tensor->strides[0] == 1 || size == 1);
  if (!fits)
    throw Error(KGRPO_ERROR_INVALID, "this policy takes " + std::to_string(size) +
                                         " float32 values, one a token, in one dimension on the CPU");
  return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
}

inline const std::vector<float>& CpuPolicy::Parameters(uint32_t copy) const {
  if (copy == KGRPO_POLICY_CURRENT) return values_;
  if (reference_.empty()) throw Error(KGRPO_ERROR_INVALID, "there is no reference: freeze_reference was not called");
  return reference_;
}

inline std::vector<double> CpuPolicy::LogProbabilities(const std::vector<float>& parameters, const Prefix& prefix,
                                                       double temperature) const {
  std::vector<double> logits(shape_.vocabulary_size);
  Logits(parameters, prefix, &logits);
  return LogSoftmax(std::move(logits), temperature);
}

inline void CpuPolicy::Generate(const kgrpo_generate_request* const* requests, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (requests[i]->prompt_size == 0 || requests[i]->prompt_size >= shape_.context_length) {
      throw Error(KGRPO_ERROR_INVALID, "request " + std::to_string(i) + ": a prompt of " +
                                           std::to_string(requests[i]->prompt_size) + " tokens leaves no room in " +
                                           std::to_string(shape_.context_length));
    }
  }
  queue_.Submit(requests, count);
}

inline void CpuPolicy::Write(PendingCompletion* request) const {
  std::vector<int32_t> ids = request->prompt();
  const size_t prompt = ids.size();
  const kgrpo_sampling& sampling = request->sampling();
  std::vector<float> logprobs;
  bool ended = false;
  {
    const DeviceLock lock(host_, "cpu");
    while (!ended && logprobs.size() < sampling.max_new_tokens && ids.size() < shape_.context_length) {
      const std::vector<double> all = LogProbabilities(values_, {ids.data(), prompt, ids.size()},
                                                       sampling.temperature > 0 ? sampling.temperature : 1);
      const size_t chosen = SampleToken(all, sampling, host_.Uniform({request->seed()}, logprobs.size()));
      ids.push_back(static_cast<int32_t>(chosen));
      logprobs.push_back(static_cast<float>(all[chosen]));
      ended = std::find(shape_.end_ids.begin(), shape_.end_ids.end(), ids.back()) != shape_.end_ids.end();
    }
  }
  const std::string text = Decode(ids.data() + prompt, logprobs.size(), true);
  kgrpo_completion completion{};
  completion.struct_size = sizeof(completion);
  completion.finish_reason = ended ? KGRPO_FINISH_STOP : KGRPO_FINISH_LENGTH;
  completion.ids = ids.data() + prompt;
  completion.logprobs = logprobs.data();
  completion.size = logprobs.size();
  completion.text = Str(text);
  request->Finish(completion);
}

inline void CpuPolicy::Forward(const kgrpo_forward_request& request, float* logprobs, float* entropies,
                               Context** context) const {
  const DeviceLock lock(host_, "cpu");
  auto made = std::make_unique<Context>();
  made->temperature = request.temperature;
  for (size_t s = 0; s < request.sequence_count; ++s) {
    const kgrpo_sequence& sequence = request.sequences[s];
    Scored scored{{sequence.prompt_ids, sequence.prompt_ids + sequence.prompt_size}, sequence.prompt_size};
    for (size_t i = 0; i < sequence.completion_size; ++i) {
      const int32_t id = sequence.completion_ids[i];
      const std::vector<double> all = LogProbabilities(
          Parameters(request.copy), {scored.ids.data(), scored.prompt_size, scored.ids.size()}, request.temperature);
      if (id < 0 || static_cast<uint32_t>(id) >= all.size() || !std::isfinite(all[static_cast<size_t>(id)])) {
        throw Error(KGRPO_ERROR_INVALID, "sequence " + std::to_string(s) + ": token " + std::to_string(id) +
                                             " of its completion is none that this policy can write there");
      }
      *logprobs++ = static_cast<float>(all[static_cast<size_t>(id)]);
      if (entropies != nullptr) *entropies++ = static_cast<float>(Entropy(all));
      scored.ids.push_back(id);
    }
    made->sequences.push_back(std::move(scored));
  }
  if (request.need_gradient != 0) *context = made.release();
}

inline void CpuPolicy::AddGradients(const Context& context, const float* dlogprobs) {
  const DeviceLock lock(host_, "cpu");
  for (const Scored& scored : context.sequences) {
    for (size_t at = scored.prompt_size; at < scored.ids.size(); ++at, ++dlogprobs) {
      const Prefix prefix = {scored.ids.data(), scored.prompt_size, at};
      std::vector<double> dlogits = LogProbabilities(values_, prefix, context.temperature);
      for (double& logprob : dlogits) logprob = -*dlogprobs * std::exp(logprob) / context.temperature;
      dlogits[static_cast<size_t>(scored.ids[at])] += *dlogprobs / context.temperature;
      Backward(values_, prefix, dlogits, &gradients_);
    }
  }
}

inline void CpuPolicy::Save(uint32_t copy, const std::string& folder) const {
  const std::vector<float>& from = Parameters(copy);
  std::ofstream file(folder + "/parameters.bin", std::ios::binary);
  file.write(reinterpret_cast<const char*>(from.data()), static_cast<std::streamsize>(from.size() * sizeof(float)));
  if (!file.flush()) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + folder + "/parameters.bin");
}

inline void CpuPolicy::Load(uint32_t copy, const std::string& folder) {
  const std::string name = folder + "/parameters.bin";
  std::ifstream file(name, std::ios::binary);
  if (!file) throw Error(KGRPO_ERROR_NOT_FOUND, name + ": there is no saved policy");
  std::vector<float> read(values_.size());
  const auto bytes = static_cast<std::streamsize>(read.size() * sizeof(float));
  if (!file.read(reinterpret_cast<char*>(read.data()), bytes) || file.peek() != std::ifstream::traits_type::eof()) {
    throw Error(KGRPO_ERROR_INVALID,
                name + ": it does not hold the " + std::to_string(read.size()) + " numbers of this policy");
  }
  if (copy == KGRPO_POLICY_REFERENCE) {
    reference_ = std::move(read);
  } else {
    std::copy(read.begin(), read.end(), values_.begin());  // at the same address
  }
}

// The functions of kgrpo.policy/1 over such a class. `Schema` gives its options' JSON Schema, `Make` makes one from
// (host, options as JSON); it loads what its options name.
template <typename Policy, std::string_view (*Schema)(),
          std::unique_ptr<Policy> (*Make)(const kgrpo_host* host, std::string_view options)>
class CpuPolicyInterface {
  static CpuPolicy& Of(kgrpo_policy* self) { return *reinterpret_cast<CpuPolicy*>(self); }
  static const CpuPolicy& Of(const kgrpo_policy* self) { return *reinterpret_cast<const CpuPolicy*>(self); }
  using Context = CpuPolicy::Context;

  static kgrpo_str OptionsSchema() { return Str(Schema()); }
  static kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_policy** out) {
    return Guard([&] {
      CpuPolicy* made = Make(host, View(options)).release();
      *out = reinterpret_cast<kgrpo_policy*>(made);
    });
  }
  static void Destroy(kgrpo_policy* self) { delete reinterpret_cast<CpuPolicy*>(self); }
  static const kgrpo_policy_info* Info(const kgrpo_policy* self) { return &Of(self).info_; }
  static void Put(const std::vector<int32_t>& ids, kgrpo_token_sink sink) {
    sink.put(sink.context, ids.data(), ids.size());
  }
  static kgrpo_error* EncodeChat(const kgrpo_policy* self, const kgrpo_message* messages, size_t count,
                                 const kgrpo_chat_options* options, kgrpo_token_sink sink) {
    return Guard(
        [&] { Put(Of(self).Encode(Of(self).RenderChat(messages, count, options->add_generation_prompt != 0)), sink); });
  }
  static kgrpo_error* RenderChat(const kgrpo_policy* self, const kgrpo_message* messages, size_t count,
                                 const kgrpo_chat_options* options, kgrpo_text_sink sink) {
    return Guard([&] {
      const std::string text = Of(self).RenderChat(messages, count, options->add_generation_prompt != 0);
      sink.put(sink.context, Str(text));
    });
  }
  static kgrpo_error* Encode(const kgrpo_policy* self, kgrpo_str text, kgrpo_token_sink sink) {
    return Guard([&] { Put(Of(self).Encode(View(text)), sink); });
  }
  static kgrpo_error* Decode(const kgrpo_policy* self, const int32_t* ids, size_t count, int32_t skip_special,
                             kgrpo_text_sink sink) {
    return Guard([&] {
      const std::string text = Of(self).Decode(ids, count, skip_special != 0);
      sink.put(sink.context, Str(text));
    });
  }
  static kgrpo_error* Generate(kgrpo_policy* self, const kgrpo_generate_request* const* requests, size_t count) {
    return Guard([&] { Of(self).Generate(requests, count); });
  }
  static void Cancel(kgrpo_policy* self) { Of(self).queue_.Cancel(); }
  static kgrpo_error* Forward(kgrpo_policy* self, const kgrpo_forward_request* request, const kgrpo_tensor* logprobs,
                              const kgrpo_tensor* entropies, kgrpo_forward_context** context) {
    return Guard([&] {
      size_t tokens = 0;
      for (size_t i = 0; i < request->sequence_count; ++i) tokens += request->sequences[i].completion_size;
      Of(self).Forward(*request, CpuPolicy::Data(logprobs, tokens),
                       entropies == nullptr ? nullptr : CpuPolicy::Data(entropies, tokens),
                       reinterpret_cast<Context**>(context));
    });
  }
  static kgrpo_error* Backward(kgrpo_policy* self, kgrpo_forward_context* context, const kgrpo_tensor* dlogprobs) {
    const std::unique_ptr<Context> made(reinterpret_cast<Context*>(context));
    return Guard([&] {
      size_t tokens = 0;
      for (const auto& scored : made->sequences) tokens += scored.ids.size() - scored.prompt_size;
      Of(self).AddGradients(*made, CpuPolicy::Data(dlogprobs, tokens));
    });
  }
  static void ReleaseContext(kgrpo_policy*, kgrpo_forward_context* context) {
    delete reinterpret_cast<Context*>(context);
  }
  static kgrpo_error* Parameters(kgrpo_policy* self, const kgrpo_parameter_group* const** groups, size_t* count) {
    *groups = Of(self).groups_;
    *count = 1;
    return nullptr;
  }
  static kgrpo_error* ZeroGradients(kgrpo_policy* self) {
    std::fill(Of(self).gradients_.begin(), Of(self).gradients_.end(), 0.0F);
    return nullptr;
  }
  static kgrpo_error* FreezeReference(kgrpo_policy* self) {
    return Guard([&] { Of(self).reference_ = Of(self).values_; });
  }
  static kgrpo_error* Save(kgrpo_policy* self, uint32_t copy, kgrpo_str folder) {
    return Guard([&] { Of(self).Save(copy, Copy(folder)); });
  }
  static kgrpo_error* Load(kgrpo_policy* self, uint32_t copy, kgrpo_str folder) {
    return Guard([&] { Of(self).Load(copy, Copy(folder)); });
  }

 public:
  static constexpr kgrpo_policy_interface kInterface = {sizeof(kgrpo_policy_interface),
                                                        OptionsSchema,
                                                        Create,
                                                        Destroy,
                                                        Info,
                                                        EncodeChat,
                                                        RenderChat,
                                                        Encode,
                                                        Decode,
                                                        Generate,
                                                        Cancel,
                                                        Forward,
                                                        Backward,
                                                        ReleaseContext,
                                                        Parameters,
                                                        ZeroGradients,
                                                        FreezeReference,
                                                        Save,
                                                        Load,
                                                        /*backward_in_pieces=*/nullptr,
                                                        /*get_extension=*/nullptr};
};

}  // namespace kgrpo
#endif
