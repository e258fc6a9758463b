// The plugin policy_qwen: kgrpo.policy/1 over the Policy of policy.h. Only translation between C and C++ happens here.
#include <kgrpo/policy.h>
#include <kgrpo/sdk/plugin.h>

#include <memory>
#include <string>
#include <vector>

#include "policy_qwen/device.h"
#include "policy_qwen/model/safetensors.h"
#include "policy_qwen/options.h"
#include "policy_qwen/policy.h"

namespace {

using kgrpo::Error;
using kgrpo::Guard;
using kgrpo::policy::Copy;
using kgrpo::policy::ParameterSet;
using kgrpo::policy::ParameterSpec;
using kgrpo::policy::Policy;

}  // namespace

// The instance: the policy, and what callers hold pointers to.
struct kgrpo_policy {
  kgrpo_policy(const kgrpo_host* host_table, const kgrpo::policy::PolicyOptions& options, uint64_t seed)
      : host(host_table), policy(options, seed) {
    device = policy.device().is_cpu() ? "cpu" : policy.device().str();
    info = {sizeof(kgrpo_policy_info),
            kgrpo::Str(policy.config().architecture_name),
            kgrpo::Str(device),
            static_cast<uint64_t>(policy.parameter_count()),
            static_cast<uint32_t>(options.tokenizer_only ? policy.tokenizer().vocabulary_size()
                                                         : static_cast<size_t>(policy.config().vocabulary_size)),
            static_cast<uint32_t>(policy.config().context_length),
            policy.config().end_ids.data(),
            policy.config().end_ids.size()};
  }

  // The device for as long as the returned object lives: in every function that computes or copies there.
  kgrpo::DeviceTurn TakeDevice() {
    return {host, device, [this] { kgrpo::policy::WaitForDevice(policy.device()); }};
  }
  // Runs `work` on the device. Its errors are told even where they come to light only when the device is waited for.
  template <typename Work>
  kgrpo_error* OnDevice(Work&& work) {
    return Guard([&] {
      kgrpo::DeviceTurn turn = TakeDevice();
      work();
      turn.Pause();
    });
  }

  kgrpo::Host host;
  Policy policy;
  std::string device;
  kgrpo_policy_info info;
  std::vector<kgrpo_tensor> tensors;  // value and gradient of each parameter, in turn
  std::vector<kgrpo_parameter> parameters;
  std::vector<std::vector<int64_t>> shapes;
};

namespace {

kgrpo_tensor MakeTensor(void* data, at::Device device, at::ScalarType dtype, std::vector<int64_t>& shape) {
  kgrpo_tensor tensor = {};
  tensor.data = data;
  tensor.device.type = device.is_cuda() ? KGRPO_DEVICE_CUDA : KGRPO_DEVICE_CPU;
  tensor.device.id = device.has_index() ? device.index() : 0;
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype.code = dtype == at::kBFloat16 ? KGRPO_DTYPE_BFLOAT : KGRPO_DTYPE_FLOAT;
  tensor.dtype.bits = dtype == at::kBFloat16 ? 16 : 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape.data();
  return tensor;
}

void MakeParameterViews(kgrpo_policy& self) {
  const ParameterSet& values = self.policy.parameters();
  const ParameterSet& gradients = self.policy.gradients();
  const std::vector<ParameterSpec>& specs = values.specs();
  for (const ParameterSpec& spec : specs) self.shapes.push_back(spec.shape);
  self.tensors.reserve(2 * specs.size());  // pointers into it are handed out
  for (size_t i = 0; i < specs.size(); ++i) {
    for (const ParameterSet* set : {&values, &gradients}) {
      const at::Tensor view = set->Get(i);
      self.tensors.push_back(
          MakeTensor(view.mutable_data_ptr(), self.policy.device(), view.scalar_type(), self.shapes[i]));
    }
    kgrpo_tensor* value = &self.tensors[self.tensors.size() - 2];
    self.parameters.push_back({kgrpo::Str(specs[i].name), value, value + 1, specs[i].is_matrix ? 1 : 0});
  }
}

std::vector<kgrpo::tokenizer::Message> ToMessages(const kgrpo_message* messages, size_t count) {
  std::vector<kgrpo::tokenizer::Message> result(count);
  for (size_t i = 0; i < count; ++i) {
    result[i].role = kgrpo::Copy(messages[i].role);
    result[i].content = kgrpo::Copy(messages[i].content);
  }
  return result;
}

std::string Render(const kgrpo_policy& self, const kgrpo_message* messages, size_t count,
                   const kgrpo_chat_options& options) {
  std::optional<bool> enable_thinking;
  if (options.enable_thinking >= 0) enable_thinking = options.enable_thinking != 0;
  return self.policy.RenderChat(ToMessages(messages, count), options.add_generation_prompt != 0, enable_thinking);
}

Copy ToCopy(uint32_t copy) {
  if (copy == KGRPO_POLICY_CURRENT) return Copy::kCurrent;
  if (copy == KGRPO_POLICY_REFERENCE) return Copy::kReference;
  throw Error(KGRPO_ERROR_INVALID, "there is no copy " + std::to_string(copy) + " of the parameters");
}

const kgrpo_policy_interface kInterface = {
    .struct_size = sizeof(kgrpo_policy_interface),

    .options_schema = [] { return kgrpo::Str(kgrpo::policy::OptionsSchema()); },

    .create =
        [](const kgrpo_host* host, kgrpo_str options, kgrpo_policy** out) {
          return Guard([&] {
            constexpr uint64_t kInitialWeights = 0;
            const uint64_t seed = kgrpo::Host(host).Random({kInitialWeights}, 0);
            const kgrpo::policy::PolicyOptions parsed = kgrpo::policy::ParseOptions(kgrpo::View(options));
            if (parsed.random_weights && kgrpo::policy::HasTensorFiles(parsed.model)) {
              kgrpo::Host(host).Warn("init: random: the weights in " + parsed.model +
                                     " are not read; to start from them, set init: pretrained");
            }
            const kgrpo::DeviceLock lock(kgrpo::Host(host), parsed.device);
            auto made = std::make_unique<kgrpo_policy>(host, parsed, seed);
            kgrpo::policy::WaitForDevice(made->policy.device());
            *out = made.release();
          });
        },

    .destroy = [](kgrpo_policy* self) { delete self; },

    .info = [](const kgrpo_policy* self) -> const kgrpo_policy_info* { return &self->info; },

    .encode_chat =
        [](kgrpo_policy* self, const kgrpo_message* messages, size_t count, const kgrpo_chat_options* options,
           kgrpo_token_sink sink) {
          return Guard([&] {
            const std::vector<int32_t> ids = self->policy.tokenizer().Encode(Render(*self, messages, count, *options));
            sink.put(sink.context, ids.data(), ids.size());
          });
        },

    .render_chat =
        [](kgrpo_policy* self, const kgrpo_message* messages, size_t count, const kgrpo_chat_options* options,
           kgrpo_text_sink sink) {
          return Guard([&] {
            const std::string text = Render(*self, messages, count, *options);
            sink.put(sink.context, kgrpo::Str(text));
          });
        },

    .encode =
        [](kgrpo_policy* self, kgrpo_str text, kgrpo_token_sink sink) {
          return Guard([&] {
            const std::vector<int32_t> ids = self->policy.tokenizer().Encode(kgrpo::View(text));
            sink.put(sink.context, ids.data(), ids.size());
          });
        },

    .decode =
        [](kgrpo_policy* self, const int32_t* ids, size_t count, int32_t skip_special, kgrpo_text_sink sink) {
          return Guard([&] {
            const std::string text = self->policy.tokenizer().Decode({ids, count}, skip_special != 0);
            sink.put(sink.context, kgrpo::Str(text));
          });
        },

    .generate =
        [](kgrpo_policy* self, const kgrpo_generate_request* requests, size_t count, const kgrpo_sampling* sampling,
           kgrpo_completion_sink sink) {
          return Guard([&] {
            std::vector<kgrpo::policy::GenerationRequest> batch(count);
            for (size_t i = 0; i < count; ++i) {
              batch[i].prompt.assign(requests[i].prompt_ids, requests[i].prompt_ids + requests[i].prompt_size);
              batch[i].seed = requests[i].seed;
            }
            const kgrpo::policy::SamplingOptions options = {sampling->max_new_tokens, sampling->temperature,
                                                            sampling->top_k, sampling->top_p, sampling->min_p};
            const auto put = [&](const kgrpo::policy::Completion& completion) {
              const std::string text = self->policy.tokenizer().Decode(completion.ids, /*skip_special=*/true);
              const kgrpo_completion out = {
                  sizeof(kgrpo_completion),
                  completion.request,
                  completion.ids.data(),
                  completion.logprobs.data(),
                  completion.ids.size(),
                  kgrpo::Str(text),
                  static_cast<uint32_t>(completion.ended ? KGRPO_FINISH_STOP : KGRPO_FINISH_LENGTH)};
              sink.put(sink.context, &out);
            };
            // Completions are handed over between slices of the device's time and without its lock: a coder or a judge
            // may want the device at once.
            std::vector<kgrpo::policy::Completion> finished;
            kgrpo::DeviceTurn turn = self->TakeDevice();
            const auto hand_over = [&] {
              turn.Pause();
              for (const kgrpo::policy::Completion& completion : finished) put(completion);
              finished.clear();
            };
            self->policy.Generate(
                batch, options, [&](const kgrpo::policy::Completion& completion) { finished.push_back(completion); },
                [&] {
                  if (turn.SliceIsOver()) {
                    hand_over();
                    turn.Resume();
                  }
                  return self->host.Cancelled();
                });
            hand_over();
          });
        },

    .forward =
        [](kgrpo_policy* self, const kgrpo_forward_request* request, float* logprobs, float* entropies,
           kgrpo_forward_context** context) {
          return self->OnDevice([&] {
            std::vector<kgrpo::policy::ScoredSequence> sequences(request->sequence_count);
            for (size_t i = 0; i < sequences.size(); ++i) {
              const kgrpo_sequence& from = request->sequences[i];
              sequences[i] = {{from.prompt_ids, from.prompt_size}, {from.completion_ids, from.completion_size}};
            }
            kgrpo::policy::ForwardContextPtr made =
                self->policy.Forward(sequences, ToCopy(request->copy), request->temperature,
                                     request->need_gradient != 0, logprobs, entropies);
            if (made != nullptr) *context = reinterpret_cast<kgrpo_forward_context*>(made.release());
          });
        },

    .backward =
        [](kgrpo_policy* self, kgrpo_forward_context* context, const float* d_logprobs) {
          kgrpo::policy::ForwardContextPtr owned(reinterpret_cast<kgrpo::policy::ForwardContext*>(context));
          return self->OnDevice([&] { self->policy.Backward(std::move(owned), d_logprobs); });
        },

    .release_context =
        [](kgrpo_policy*, kgrpo_forward_context* context) {
          kgrpo::policy::ForwardContextDeleter()(reinterpret_cast<kgrpo::policy::ForwardContext*>(context));
        },

    .parameters = [](kgrpo_policy* self, size_t* count) -> const kgrpo_parameter* {
      if (self->parameters.empty() && self->policy.parameters().defined()) {
        if (kgrpo_error* error = self->OnDevice([&] { MakeParameterViews(*self); })) {  // no memory for the gradients
          self->host.raw()->log(self->host.raw()->context, KGRPO_LOG_ERROR, error->message);
          error->release(error);
          *count = 0;
          return nullptr;
        }
      }
      *count = self->parameters.size();
      return self->parameters.data();
    },

    .zero_gradients = [](kgrpo_policy* self) { return self->OnDevice([&] { self->policy.ZeroGradients(); }); },

    .freeze_reference = [](kgrpo_policy* self) { return self->OnDevice([&] { self->policy.FreezeReference(); }); },

    .save =
        [](kgrpo_policy* self, uint32_t copy, kgrpo_str directory) {
          return self->OnDevice([&] { self->policy.Save(ToCopy(copy), kgrpo::Copy(directory)); });
        },

    .load =
        [](kgrpo_policy* self, uint32_t copy, kgrpo_str directory) {
          return self->OnDevice([&] { self->policy.Load(ToCopy(copy), kgrpo::Copy(directory)); });
        },
};

}  // namespace

KGRPO_PLUGIN("policy_qwen", "0.1.0", "Qwen2, Qwen2.5, Qwen3 and Llama models: generation, scoring and gradients",
             {KGRPO_POLICY_INTERFACE, &kInterface});
