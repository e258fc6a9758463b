// The plugin policy_qwen: kgrpo.policy/1 over the Policy of policy.h. Only translation between C and C++ happens here.
#include <ATen/ops/from_blob.h>
#include <kgrpo/policy.h>
#include <kgrpo/sdk/collective.h>  // ArrayTensor
#include <kgrpo/sdk/plugin.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy_qwen/device.h"
#include "policy_qwen/files.h"
#include "policy_qwen/hosted_policy.h"
#include "policy_qwen/options.h"
#include "policy_qwen/parameter_views.h"
#include "policy_qwen/policy.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace {

using kgrpo::Error;
using kgrpo::Guard;
using kgrpo::policy::Copy;
using kgrpo::policy::GuardLibtorch;
using kgrpo::policy::Policy;

}  // namespace

// The instance: the policy, and what callers hold pointers to.
struct kgrpo_policy {
  kgrpo_policy(const kgrpo_host* host_table, std::unique_ptr<Policy> opened)
      : host(host_table), owned(std::move(opened)), policy(*owned), device(kgrpo::policy::DeviceName(policy)) {
    info = {
        sizeof(kgrpo_policy_info),
        kgrpo::Str(policy.config().architecture_name),
        kgrpo::Str(device),
        static_cast<uint64_t>(policy.parameter_count()),
        static_cast<uint32_t>(policy.options().tokenizer_only ? policy.tokenizer().vocabulary_size()
                                                              : static_cast<size_t>(policy.config().vocabulary_size)),
        static_cast<uint32_t>(policy.config().context_length),
        policy.config().end_ids.data(),
        policy.config().end_ids.size(),
        kgrpo::policy::CurrentStream(policy.device()),
        policy.tokenizer().prefix().data(),
        policy.tokenizer().prefix().size(),
        /*reads_chat_arguments=*/1,
        /*reproducible=*/1};
  }

  // Takes the device for as long as the returned object lives. Every function that computes or copies there calls it.
  kgrpo::DeviceTurn TakeDevice() { return kgrpo::policy::TakeDevice(host, policy); }
  // Runs `work` on the device. Also reports errors that appear only when the device is waited for.
  template <typename Work>
  kgrpo_error* OnDevice(Work&& work) {
    return GuardLibtorch([&] {
      kgrpo::DeviceTurn turn = TakeDevice();
      work();
      turn.Pause();
    });
  }

  kgrpo::Host host;
  std::unique_ptr<Policy> owned;
  Policy& policy;
  std::string device;
  kgrpo_policy_info info;
  std::optional<kgrpo::policy::ParameterViews> parameters;                                // made when first asked for
  kgrpo::policy::CompletionWriter writer{host, policy, [this] { return TakeDevice(); }};  // last: it has a thread
};

namespace {

// Returns a view, float32 [size], of memory that a caller lent on the CPU or the policy's device; undefined for null.
at::Tensor Borrow(const Policy& policy, const kgrpo_tensor* tensor, size_t size, const std::string& name) {
  if (tensor == nullptr) return {};
  const auto refuse = [&](const std::string& problem) -> Error { return {KGRPO_ERROR_INVALID, name + ": " + problem}; };
  if (tensor->dtype.code != KGRPO_DTYPE_FLOAT || tensor->dtype.bits != 32 || tensor->dtype.lanes != 1) {
    throw refuse("expected float32");
  }
  if (tensor->ndim != 1 || tensor->shape[0] != static_cast<int64_t>(size)) {
    throw refuse("expected one dimension of " + std::to_string(size) + ", one for each completion token");
  }
  if (size > 1 && tensor->strides != nullptr && tensor->strides[0] != 1) throw refuse("expected compact memory");
  at::Device device(at::kCPU);
  if (tensor->device.type != KGRPO_DEVICE_CPU) {
    device = policy.device();
    if (tensor->device.type != KGRPO_DEVICE_CUDA || !device.is_cuda() || tensor->device.id != device.index()) {
      throw refuse("expected memory of the CPU or of the policy's device, " + device.str());
    }
  }
  return at::from_blob(static_cast<char*>(tensor->data) + tensor->byte_offset, {static_cast<int64_t>(size)},
                       at::TensorOptions().dtype(at::kFloat).device(device));
}

std::string Render(const kgrpo_policy& self, const kgrpo_message* messages, size_t count,
                   const kgrpo_chat_options& options) {
  using kgrpo::tokenizer::Json;
  Json arguments = Json::object();
  if (options.enable_thinking >= 0) arguments["enable_thinking"] = options.enable_thinking != 0;
  const auto add = [](kgrpo_str given, Json* to) {
    if (given.size == 0) return;
    if (kgrpo::policy::IsDeepJson(kgrpo::View(given)))
      throw Error(KGRPO_ERROR_INVALID, "a message or an argument is nested more than 200 deep");
    const Json object = Json::parse(kgrpo::View(given), nullptr, false);
    if (!object.is_object())
      throw Error(KGRPO_ERROR_INVALID, "the chat's arguments or a message's members are not a JSON object");
    for (const auto& [key, value] : object.items()) (*to)[key] = value;
  };
  Json chat = Json::array();
  const auto text = [](kgrpo_str given) { return kgrpo::tokenizer::ReplaceInvalidUtf8(kgrpo::View(given)); };
  for (size_t i = 0; i < count; ++i) {
    chat.push_back({{"role", text(messages[i].role)}, {"content", text(messages[i].content)}});
    add(messages[i].members, &chat.back());
  }
  add(options.arguments, &arguments);
  return self.policy.RenderChat(chat, options.add_generation_prompt != 0, arguments);
}

Copy ToCopy(uint32_t copy) {
  if (copy == KGRPO_POLICY_CURRENT) return Copy::kCurrent;
  if (copy == KGRPO_POLICY_REFERENCE) return Copy::kReference;
  throw Error(KGRPO_ERROR_INVALID, "there is no copy " + std::to_string(copy) + " of the parameters");
}

kgrpo_error* Backward(kgrpo_policy* self, kgrpo_forward_context* context, const kgrpo_tensor* d_logprobs,
                      const Policy::GradientsFinal& final) {
  kgrpo::policy::ForwardContextPtr owned(reinterpret_cast<kgrpo::policy::ForwardContext*>(context));
  return self->OnDevice([&] {
    const size_t tokens = owned->tokens;
    self->policy.Backward(std::move(owned), Borrow(self->policy, d_logprobs, tokens, "dlogprobs"), final);
  });
}

const kgrpo_policy_interface kInterface = {
    .struct_size = sizeof(kgrpo_policy_interface),

    .options_schema = [] { return kgrpo::Str(kgrpo::policy::OptionsSchema()); },

    .create =
        [](const kgrpo_host* host, kgrpo_str options, kgrpo_policy** out) {
          return GuardLibtorch([&] {
            constexpr uint64_t kInitialWeights = 0;
            const uint64_t seed = kgrpo::Host(host).Random({kInitialWeights}, 0);
            *out = new kgrpo_policy(
                host, kgrpo::policy::OpenPolicy(host, kgrpo::policy::ParseOptions(kgrpo::View(options)), seed));
          });
        },

    .destroy = [](kgrpo_policy* self) { delete self; },

    .info = [](const kgrpo_policy* self) -> const kgrpo_policy_info* { return &self->info; },

    .encode_chat =
        [](const kgrpo_policy* self, const kgrpo_message* messages, size_t count, const kgrpo_chat_options* options,
           kgrpo_token_sink sink) {
          return Guard([&] {
            const std::vector<int32_t> ids = self->policy.tokenizer().Encode(Render(*self, messages, count, *options));
            sink.put(sink.context, ids.data(), ids.size());
          });
        },

    .render_chat =
        [](const kgrpo_policy* self, const kgrpo_message* messages, size_t count, const kgrpo_chat_options* options,
           kgrpo_text_sink sink) {
          return Guard([&] {
            const std::string text = Render(*self, messages, count, *options);
            sink.put(sink.context, kgrpo::Str(text));
          });
        },

    .encode =
        [](const kgrpo_policy* self, kgrpo_str text, kgrpo_token_sink sink) {
          return Guard([&] {
            const std::vector<int32_t> ids = self->policy.tokenizer().Encode(kgrpo::View(text));
            sink.put(sink.context, ids.data(), ids.size());
          });
        },

    .decode =
        [](const kgrpo_policy* self, const int32_t* ids, size_t count, int32_t skip_special, kgrpo_text_sink sink) {
          return Guard([&] {
            const std::string text = self->policy.tokenizer().Decode({ids, count}, skip_special != 0);
            sink.put(sink.context, kgrpo::Str(text));
          });
        },

    .generate = [](kgrpo_policy* self, const kgrpo_generate_request* const* requests,
                   size_t count) { return Guard([&] { self->writer.Submit(requests, count); }); },

    .cancel = [](kgrpo_policy* self) { self->writer.Cancel(); },

    .forward =
        [](kgrpo_policy* self, const kgrpo_forward_request* request, const kgrpo_tensor* logprobs,
           const kgrpo_tensor* entropies, kgrpo_forward_context** context) {
          return self->OnDevice([&] {
            std::vector<kgrpo::policy::ScoredSequence> sequences(request->sequence_count);
            size_t tokens = 0;
            for (size_t i = 0; i < sequences.size(); ++i) {
              const kgrpo_sequence& from = request->sequences[i];
              sequences[i] = {{from.prompt_ids, from.prompt_size}, {from.completion_ids, from.completion_size}};
              tokens += from.completion_size;
            }
            kgrpo::policy::ForwardContextPtr made =
                self->policy.Forward(sequences, ToCopy(request->copy), request->temperature,
                                     request->need_gradient != 0, Borrow(self->policy, logprobs, tokens, "logprobs"),
                                     Borrow(self->policy, entropies, tokens, "entropies"));
            if (made != nullptr) *context = reinterpret_cast<kgrpo_forward_context*>(made.release());
          });
        },

    .backward = [](kgrpo_policy* self, kgrpo_forward_context* context,
                   const kgrpo_tensor* d_logprobs) { return Backward(self, context, d_logprobs, {}); },

    .release_context =
        [](kgrpo_policy*, kgrpo_forward_context* context) {
          delete reinterpret_cast<kgrpo::policy::ForwardContext*>(context);
        },

    .parameters =
        [](kgrpo_policy* self, const kgrpo_parameter_group* const** groups, size_t* count) {
          const auto give = [&] {
            *groups = self->parameters->groups().data();
            *count = self->parameters->groups().size();
          };
          if (self->parameters) return Guard(give);
          return self->OnDevice([&] {
            self->parameters.emplace(self->policy);
            give();
          });
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

    .backward_in_pieces =
        [](kgrpo_policy* self, kgrpo_forward_context* context, const kgrpo_tensor* d_logprobs,
           kgrpo_gradient_sink sink) {
          return Backward(self, context, d_logprobs, [&](const at::Tensor& piece) {
            const bool is_cuda = piece.is_cuda();
            const kgrpo::ArrayTensor view(piece.mutable_data_ptr(), static_cast<size_t>(piece.numel()),
                                          KGRPO_DTYPE_FLOAT, 32, is_cuda ? KGRPO_DEVICE_CUDA : KGRPO_DEVICE_CPU,
                                          is_cuda ? piece.device().index() : 0);
            sink.ready(sink.context, view.c());
          });
        },

    .get_extension = nullptr,
};

}  // namespace

KGRPO_PLUGIN("policy_qwen", KGRPO_VERSION,
             "Qwen2, Qwen2.5, Qwen3, Llama and Mistral models: generation, scoring and gradients",
             {KGRPO_POLICY_INTERFACE, &kInterface});
