#include "validate/gradients.h"

#include <kgrpo/sdk/tensor.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "plugin/sinks.h"
#include "validate/session.h"

namespace kgrpo::validate {
namespace {

// The sum of squares of all gradients that lie on the CPU; nothing on a device.
std::optional<double> SquaredGradients(const kgrpo_policy_interface& api, kgrpo_policy* policy) {
  const kgrpo_parameter_group* const* groups = nullptr;
  size_t count = 0;
  if (kgrpo_error* error = api.parameters(policy, &groups, &count)) Fail(TakeMessage(error));
  double sum = 0;
  for (size_t g = 0; g < count; ++g) {
    for (size_t p = 0; p < groups[g]->parameter_count; ++p) {
      const kgrpo_tensor* gradient = groups[g]->parameters[p]->gradient;
      if (gradient == nullptr) continue;
      if (gradient->device.type != KGRPO_DEVICE_CPU) return std::nullopt;
      const auto* values = reinterpret_cast<const float*>(Begin(*gradient));
      for (int64_t i = 0; i < Elements(*gradient); ++i) sum += static_cast<double>(values[i]) * values[i];
    }
  }
  return sum;
}

// Results of a forward and a backward pass over the completion.
struct Passed {
  std::vector<float> logprobs, entropies;
  std::optional<double> squares;  // sum of squares of the gradients
};

using BackwardCall = std::function<kgrpo_error*(kgrpo_forward_context*, const kgrpo_tensor*)>;
Passed Pass(const kgrpo_policy_interface& api, kgrpo_policy* policy, const std::vector<int32_t>& prompt,
            const Completion& completion, const BackwardCall& backward) {
  const kgrpo_sequence sequence = {prompt.data(), prompt.size(), completion.ids.data(), completion.ids.size()};
  kgrpo_forward_request request{};
  request.struct_size = sizeof(request);
  request.sequences = &sequence;
  request.sequence_count = 1;
  request.temperature = 1;
  request.need_gradient = 1;
  const size_t tokens = completion.ids.size();
  Passed passed{std::vector<float>(tokens, std::nanf("")), std::vector<float>(tokens, std::nanf("")), {}};
  const std::vector<float> ones(tokens, 1.0F);
  const FloatTensor out(passed.logprobs.data(), tokens), entropy(passed.entropies.data(), tokens),
      in(ones.data(), tokens);
  kgrpo_forward_context* made = nullptr;
  if (kgrpo_error* error = api.zero_gradients(policy)) Fail(TakeMessage(error));
  if (kgrpo_error* error = api.forward(policy, &request, out.c(), entropy.c(), &made)) Fail(TakeMessage(error));
  if (made == nullptr) Fail("need_gradient, and no context was made");
  if (kgrpo_error* error = backward(made, in.c())) Fail(TakeMessage(error));
  passed.squares = SquaredGradients(api, policy);
  return passed;
}

// The pieces that backward_in_pieces pushes, copied when they are pushed.
class ToldPieces {
 public:
  kgrpo_gradient_sink sink() {
    return {this, [](void* self, const kgrpo_tensor* piece) { static_cast<ToldPieces*>(self)->Add(*piece); }};
  }

  // Fails if an element was pushed twice or has changed since. Returns the number of elements pushed.
  size_t Check() const {
    size_t told = 0;
    const float* end = nullptr;
    for (const auto& [begin, values] : pieces_) {
      if (begin < end) Fail("two pieces overlap: each element may be pushed only once");
      end = begin + values.size();
      told += values.size();
      for (size_t i = 0; i < values.size(); ++i) {
        if (begin[i] != values[i])
          Fail("element " + std::to_string(i) + " of a piece was " + Shown(values[i]) + ", and changed afterwards");
      }
    }
    return told;
  }

 private:
  void Add(const kgrpo_tensor& piece) {
    if (piece.device.type != KGRPO_DEVICE_CPU) return;
    const auto* begin = reinterpret_cast<const float*>(Begin(piece));
    pieces_.emplace_back(begin, std::vector<float>(begin, begin + Elements(piece)));
    std::ranges::sort(pieces_, {}, [](const auto& one) { return one.first; });
  }

  std::vector<std::pair<const float*, std::vector<float>>> pieces_;
};

}  // namespace

int64_t Elements(const kgrpo_tensor& tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) count *= tensor.shape[d];
  return count;
}

uintptr_t Begin(const kgrpo_tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset; }

std::string CheckGradients(const kgrpo_policy_interface& api, kgrpo_policy* policy, const std::vector<int32_t>& prompt,
                           const Completion& completion) {
  const Passed passed =
      Pass(api, policy, prompt, completion, [&](kgrpo_forward_context* made, const kgrpo_tensor* dlogprobs) {
        return api.backward(policy, made, dlogprobs);
      });
  for (size_t i = 0; i < completion.ids.size(); ++i) {
    const float logprob = passed.logprobs[i];
    if (!std::isfinite(logprob) || !std::isfinite(passed.entropies[i]))
      Fail("a log-probability or entropy is not finite");
    if (std::abs(logprob - completion.logprobs[i]) > 0.1F)
      Fail("forward gives token " + std::to_string(i) + " the log-probability " + Shown(logprob) +
           ", generate gave it " + Shown(completion.logprobs[i]));
  }
  if (kgrpo_error* error = api.zero_gradients(policy)) Fail(TakeMessage(error));
  if (!passed.squares) return "gradients lie on a device: not looked at";
  if (!std::isfinite(*passed.squares)) Fail("a gradient is not finite");
  if (*passed.squares == 0) Fail("backward left all gradients at 0");
  if (*SquaredGradients(api, policy) != 0) Fail("zero_gradients left some");
  return "norm " + Shown(std::sqrt(*passed.squares));
}

std::string CheckPieces(const kgrpo_policy_interface& api, kgrpo_policy* policy, const std::vector<int32_t>& prompt,
                        const Completion& completion) {
  const auto expected =
      Pass(api, policy, prompt, completion, [&](kgrpo_forward_context* made, const kgrpo_tensor* dlogprobs) {
        return api.backward(policy, made, dlogprobs);
      }).squares;
  ToldPieces pieces;
  const auto found =
      Pass(api, policy, prompt, completion, [&](kgrpo_forward_context* made, const kgrpo_tensor* dlogprobs) {
        return api.backward_in_pieces(policy, made, dlogprobs, pieces.sink());
      }).squares;
  if (!found || !expected) return "gradients lie on a device: not looked at";
  if (std::abs(*found - *expected) > 1e-6 * *expected)
    Fail("its gradients have the norm " + Shown(std::sqrt(*found)) + ", backward's " + Shown(std::sqrt(*expected)));
  const size_t told = pieces.Check();
  if (kgrpo_error* error = api.zero_gradients(policy)) Fail(TakeMessage(error));
  return std::to_string(told) + " elements pushed";
}

}  // namespace kgrpo::validate
