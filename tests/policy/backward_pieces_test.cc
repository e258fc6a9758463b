// A backward pass reports each element of the gradients once, when its value is final. The last layer's are reported
// first, before the first layer's are computed. Tested for separate and tied heads, biases, norms of queries and keys,
// adapters, and passes of several chunks.
#include <algorithm>
#include <functional>

#include "pieces.h"

namespace kgrpo::policy {
namespace {

class PiecesTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Two backward passes, of which the second tells.
  void Run(Policy& policy, const std::vector<ParameterSpec>& specs, const at::Tensor& gradients) const {
    ToldPieces pieces;
    std::vector<double> at_first;  // all gradients when the first piece was told
    for (const bool last : {false, true}) {
      std::vector<float> logprobs(sequences_.token_count);
      const auto coefficients = expected_["coefficients"].get<std::vector<float>>();
      ForwardContextPtr context = policy.Forward(sequences_.views, Copy::kCurrent, 1.0, true, ViewOf(logprobs), {});
      const Policy::GradientsFinal tell = [&](const at::Tensor& piece) {
        if (pieces.count() == 0) at_first = ToDoubles(gradients);
        pieces.Add(piece);
      };
      policy.Backward(std::move(context), ViewOf(coefficients), last ? tell : Policy::GradientsFinal());
    }
    pieces.ExpectAllOnceAndFinal(gradients);
    const std::vector<LayerPiece> layers = LayerPieces(specs, gradients.numel());
    std::vector<int64_t> order;
    for (const int64_t begin : pieces.Begins()) {
      const auto piece = std::ranges::find(layers, begin - gradients.storage_offset(), &LayerPiece::begin);
      ASSERT_NE(piece, layers.end());
      order.push_back(piece->layer);
    }
    EXPECT_TRUE(std::ranges::is_sorted(order, std::greater<>()));
    const std::vector<double> final = ToDoubles(gradients);
    const auto first_layer = std::ranges::find(layers, 0, &LayerPiece::layer);
    ASSERT_NE(first_layer, layers.end());
    if (policy.config().layer_count == 1) return;
    EXPECT_FALSE(std::equal(final.begin() + first_layer->begin, final.begin() + first_layer->end,
                            at_first.begin() + first_layer->begin))
        << "the first layer's gradients were final before the last layer's were told";
  }

  nlohmann::json expected_ = Expected(GetParam());
  GoldenSequences sequences_{expected_};
};

TEST_P(PiecesTest, AreAllOfTheGradientsOnceAndFinal) {
  for (const auto& [tokens, memory] : std::vector<std::pair<int64_t, int64_t>>{{4096, 1024}, {20, 1024}, {20, 0}}) {
    PolicyOptions options = GoldenOptions(GetParam());
    options.max_tokens_per_chunk = tokens;
    options.activation_memory_mib = memory;
    Policy policy(options, 0);
    Run(policy, policy.gradients().specs(), policy.gradients().buffer());
  }
}

TEST_P(PiecesTest, AreAllOfAnAdapterOnceAndFinal) {
  PolicyOptions options = GoldenOptions(GetParam());
  options.adapter.emplace();
  options.adapter->rank = 2;
  Policy policy(options, 0);
  Run(policy, policy.adapter()->gradients().specs(), policy.adapter()->gradients().buffer());
}

TEST_P(PiecesTest, OfALayerAreItsParameters) {
  Policy policy(GoldenOptions(GetParam()), 0);
  const std::vector<ParameterSpec>& specs = policy.gradients().specs();
  const std::vector<LayerPiece> pieces = LayerPieces(specs, policy.gradients().buffer().numel());
  int64_t end = 0;
  for (const LayerPiece& piece : pieces) {
    EXPECT_EQ(piece.begin, end);
    end = piece.end;
    for (const ParameterSpec& spec : specs) {
      if (spec.offset < piece.begin || spec.offset >= piece.end) continue;
      EXPECT_LE(spec.offset + spec.size(), piece.end) << spec.name;
      const std::string layer = "model.layers." + std::to_string(piece.layer) + ".";
      EXPECT_TRUE(spec.name.starts_with(layer) || (piece.layer == -1 && spec.name == "model.embed_tokens.weight") ||
                  (piece.layer == policy.config().layer_count &&
                   (spec.name == "lm_head.weight" || spec.name == "model.norm.weight")))
          << spec.name << " in the piece of layer " << piece.layer;
    }
  }
  EXPECT_EQ(end, policy.gradients().buffer().numel());
}

INSTANTIATE_TEST_SUITE_P(All, PiecesTest, ::testing::ValuesIn(GoldenModels()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kgrpo::policy
