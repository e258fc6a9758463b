// A policy writes the same completion from call to call, ends each request once, and describes its parameters
// correctly.
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/dump_json.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plugin/records.h"
#include "plugin/sinks.h"
#include "validate/calls.h"
#include "validate/gradients.h"

namespace kgrpo::validate {
namespace {

constexpr char kText[] = "int main() { return 0; }\n";

std::vector<int32_t> Encode(const kgrpo_policy_interface& api, const kgrpo_policy* policy, std::string_view text) {
  return CollectTokens([&](kgrpo_token_sink sink) { return api.encode(policy, Str(text), sink); });
}

// A request in flight and its outcome. Never freed: a policy that ends it twice may do so late.
struct AskedCompletion {
  std::mutex mutex;
  std::condition_variable changed;
  int times = 0;
  std::string mistake;
  Completion completion;

  static void Done(void* context, const kgrpo_completion* result, kgrpo_error* error) {
    auto* self = static_cast<AskedCompletion*>(context);
    const std::lock_guard lock(self->mutex);
    ++self->times;
    try {
      if (error != nullptr) throw Error(KGRPO_ERROR_INTERNAL, TakeMessage(error));
      if (result == nullptr) Fail("it delivered neither a completion nor an error");
      self->completion = Completion::FromC(*result);
    } catch (const std::exception& mistake) {
      self->mistake = mistake.what();
    }
    self->changed.notify_all();
  }
};

// Requests of one call, with the seeds 0, 1, ...
class Batch {
 public:
  Batch(const kgrpo_policy_interface& api, kgrpo_policy* policy, const std::vector<int32_t>& prompt, size_t count,
        double patience)
      : patience_(patience) {
    static auto* all = new std::list<AskedCompletion>;
    static std::mutex mutex;
    const kgrpo_sampling sampling = {sizeof(sampling), 4, 1.0, 0, 1.0, 0.0};
    std::vector<kgrpo_generate_request> requests(count);
    std::vector<const kgrpo_generate_request*> pointers;
    for (size_t i = 0; i < count; ++i) {
      {
        const std::lock_guard lock(mutex);
        asked_.push_back(&all->emplace_back());
      }
      requests[i].struct_size = sizeof(requests[i]);
      requests[i].prompt_ids = prompt.data();
      requests[i].prompt_size = prompt.size();
      requests[i].seed = i;
      requests[i].sampling = &sampling;
      requests[i].done = {asked_.back(), AskedCompletion::Done};
      pointers.push_back(&requests[i]);
    }
    if (kgrpo_error* error = api.generate(policy, pointers.data(), count)) refusal_ = TakeMessage(error);
  }

  const std::string& refusal() const { return refusal_; }  // empty: accepted

  // Waits for request `i`; throws if the request ended wrongly.
  Completion Take(size_t i) {
    AskedCompletion& asked = *asked_[i];
    std::unique_lock lock(asked.mutex);
    if (!asked.changed.wait_for(lock, std::chrono::duration<double>(patience_), [&] { return asked.times > 0; }))
      Fail("a request was not ended within " + Shown(patience_) + " s");
    if (asked.times > 1) Fail("a request was ended twice");
    if (!asked.mistake.empty()) Fail(asked.mistake);
    return asked.completion;
  }
  // Waits until all have ended, in whatever way; returns how many times each was ended.
  std::vector<int> Times() {
    std::vector<int> times;
    for (AskedCompletion* asked : asked_) {
      std::unique_lock lock(asked->mutex);
      asked->changed.wait_for(lock, std::chrono::duration<double>(patience_), [&] { return asked->times > 0; });
      times.push_back(asked->times);
    }
    return times;
  }

 private:
  double patience_;
  std::string refusal_;
  std::vector<AskedCompletion*> asked_;
};

std::string CheckInfo(const kgrpo_policy_info* info) {
  if (info == nullptr) Fail("it is NULL");
  if (info->struct_size < KGRPO_POLICY_INFO_SIZE_1) Fail("its struct_size is " + std::to_string(info->struct_size));
  if (info->device.size == 0) Fail("the device is empty");
  if (info->vocabulary_size == 0 || info->context_length == 0 || info->parameter_count == 0)
    Fail("a size of the model is 0");
  for (size_t i = 0; i < info->end_id_count; ++i) {
    if (info->end_ids[i] < 0 || static_cast<uint32_t>(info->end_ids[i]) >= info->vocabulary_size)
      Fail("the end token " + std::to_string(info->end_ids[i]) + " is outside the vocabulary");
  }
  return Copy(info->architecture) + " on " + Copy(info->device);
}

void CheckParameter(const kgrpo_parameter_group& group, const kgrpo_parameter& parameter) {
  const std::string name = "parameter \"" + Copy(parameter.name) + "\": ";
  // NOLINTNEXTLINE(bugprone-sizeof-expression): of a member that is a pointer
  if (parameter.struct_size < KGRPO_PARAMETER_SIZE_1)
    Fail(name + "struct_size is " + std::to_string(parameter.struct_size));
  if (parameter.value == nullptr) Fail(name + "it has no value");
  if ((parameter.gradient != nullptr) != (group.trainable != 0))
    Fail(name + (group.trainable != 0 ? "trainable, and no gradient" : "not trainable, and yet a gradient"));
  if (parameter.gradient == nullptr) return;
  const kgrpo_tensor &value = *parameter.value, &gradient = *parameter.gradient;
  bool same = value.ndim == gradient.ndim && value.device.type == gradient.device.type;
  for (int32_t d = 0; same && d < value.ndim; ++d) same = value.shape[d] == gradient.shape[d];
  if (!same) Fail(name + "value and gradient differ in shape or device");
  if (gradient.dtype.code != KGRPO_DTYPE_FLOAT || gradient.dtype.bits != 32) Fail(name + "the gradient is not float32");
  if (group.flat_value == nullptr || group.flat_gradient == nullptr) return;
  const auto offset = [](const kgrpo_tensor& part, const kgrpo_tensor& flat) {
    return (Begin(part) - Begin(flat)) / (flat.dtype.bits / 8);
  };
  const uintptr_t at = offset(value, *group.flat_value);
  if (at != offset(gradient, *group.flat_gradient) ||
      at + static_cast<uintptr_t>(Elements(value)) > static_cast<uintptr_t>(Elements(*group.flat_value)))
    Fail(name + "it is not the same slice of flat_value and flat_gradient");
}

std::string CheckGroups(const kgrpo_policy_interface& api, kgrpo_policy* policy) {
  const kgrpo_parameter_group* const* groups = nullptr;
  size_t count = 0;
  if (kgrpo_error* error = api.parameters(policy, &groups, &count)) Fail(TakeMessage(error));
  std::set<std::string> names;
  uint64_t total = 0;
  for (size_t g = 0; g < count; ++g) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): of a member that is a pointer
    if (groups[g]->struct_size < KGRPO_PARAMETER_GROUP_SIZE_1)
      Fail("group " + std::to_string(g) + ": struct_size is " + std::to_string(groups[g]->struct_size));
    if (groups[g]->name.size == 0) Fail("group " + std::to_string(g) + " has no name");
    for (size_t p = 0; p < groups[g]->parameter_count; ++p) {
      const kgrpo_parameter& parameter = *groups[g]->parameters[p];
      CheckParameter(*groups[g], parameter);
      if (!names.insert(Copy(parameter.name)).second) Fail("two parameters are named " + Copy(parameter.name));
      total += static_cast<uint64_t>(Elements(*parameter.value));
    }
  }
  if (total != api.info(policy)->parameter_count)
    Fail("the groups hold " + std::to_string(total) + " numbers, info says " +
         std::to_string(api.info(policy)->parameter_count));
  const kgrpo_parameter_group* const* again = nullptr;
  size_t again_count = 0;
  if (kgrpo_error* error = api.parameters(policy, &again, &again_count)) Fail(TakeMessage(error));
  if (again_count != count ||
      (count > 0 && again[0]->parameters[0]->value->data != groups[0]->parameters[0]->value->data))
    Fail("another call gave others");
  return std::to_string(count) + " groups, " + std::to_string(names.size()) + " parameters";
}

}  // namespace

void CheckPolicy(Session& session, const kgrpo_policy_interface& api, kgrpo_policy* policy,
                 const CallContext& context) {
  const double patience = context.options.seconds / 3.0;
  session.Check("policy: info is sound", [&] { return CheckInfo(api.info(policy)); });
  std::vector<int32_t> prompt;
  session.Check("policy: encode and decode are each other's inverse", [&] {
    prompt = Encode(api, policy, kText);
    for (int32_t id : prompt) {
      if (id < 0 || static_cast<uint32_t>(id) >= api.info(policy)->vocabulary_size)
        Fail("encode pushed " + std::to_string(id) + ", outside the vocabulary");
    }
    const std::string text =
        CollectText([&](kgrpo_text_sink sink) { return api.decode(policy, prompt.data(), prompt.size(), 0, sink); });
    if (text != kText) Fail("the text came back as " + DumpJson(nlohmann::json(text), -1, true));
    OnTwoThreads([&] {
      if (Encode(api, policy, kText) != prompt) Fail("another call of encode gave other ids");
    });
    return std::to_string(prompt.size()) + " tokens";
  });
  session.Check("policy: encode_chat encodes what render_chat pushes", [&]() -> std::string {
    const kgrpo_message chat[] = {{KGRPO_LITERAL("user"), KGRPO_LITERAL("Suggest one optimisation."), {}}};
    const kgrpo_chat_options options = {sizeof(options), 1, -1, {}};
    const std::string text =
        CollectText([&](kgrpo_text_sink sink) { return api.render_chat(policy, chat, 1, &options, sink); });
    const std::vector<int32_t> ids =
        CollectTokens([&](kgrpo_token_sink sink) { return api.encode_chat(policy, chat, 1, &options, sink); });
    if (ids != Encode(api, policy, text)) Fail("encode of the rendered text gives other ids");
    return std::to_string(ids.size()) + " tokens";
  });

  Completion completion;
  session.Check("policy: generate writes the same from call to call", [&] {
    if (prompt.empty()) Skip("there is no prompt");
    Batch alone(api, policy, prompt, 1, patience);
    if (!alone.refusal().empty()) Fail(alone.refusal());
    completion = alone.Take(0);
    if (completion.ids.empty() || completion.ids.size() > 4)
      Fail("4 tokens were asked for, " + std::to_string(completion.ids.size()) + " were written");
    OnTwoThreads([&] {
      Batch batch(api, policy, prompt, 3, patience);
      if (!batch.refusal().empty()) Fail(batch.refusal());
      const Completion again = batch.Take(0);
      if (api.info(policy)->reproducible != 0 && (again.ids != completion.ids || again.logprobs != completion.logprobs))
        Fail("its info says reproducible, and the same prompt and seed gave another completion in a batch of three");
    });
    return std::to_string(completion.ids.size()) + " tokens";
  });
  session.Check("policy: generate refuses a prompt that leaves no room", [&] {
    if (prompt.empty()) Skip("there is no prompt");
    const std::vector<int32_t> full(api.info(policy)->context_length + size_t{1}, prompt[0]);
    Batch batch(api, policy, full, 2, 0.05);
    if (batch.refusal().empty()) Fail("it accepted one that is longer than the context");
    for (int times : batch.Times()) {
      if (times > 0) Fail("it ended a request that it had refused");
    }
    return "refused: " + batch.refusal();
  });
  session.Check("policy: cancel ends each request once", [&]() -> std::string {
    if (prompt.empty()) Skip("there is no prompt");
    Batch batch(api, policy, prompt, 4, patience);
    if (!batch.refusal().empty()) Fail(batch.refusal());
    api.cancel(policy);
    for (int times : batch.Times()) {
      if (times != 1) Fail("a request was ended " + std::to_string(times) + " times");
    }
    return "";
  });
  session.Check("policy: its parameter groups are sound", [&] { return CheckGroups(api, policy); });
  session.Check("policy: forward and backward are finite", [&] {
    if (completion.ids.empty()) Skip("there is no completion");
    return CheckGradients(api, policy, prompt, completion);
  });
  if (api.backward_in_pieces == nullptr) return;
  session.Check("policy: backward_in_pieces pushes only final gradients", [&] {
    if (completion.ids.empty()) Skip("there is no completion");
    return CheckPieces(api, policy, prompt, completion);
  });
}

}  // namespace kgrpo::validate
