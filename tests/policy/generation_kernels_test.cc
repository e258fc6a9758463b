// The kernels of generation on a GPU compute their formulas, at sizes that are no multiple of a tile, and a row's bits
// do not depend on the other rows. On the PTX interpreter, with its checks for races, bounds and unset memory.
#include "gpu_elements.h"

#include "test.h"

namespace kgrpo::policy {
namespace {

class GenerationKernelsTest : public ::testing::TestWithParam<Element> {
 protected:
  void TearDown() override {
    EXPECT_EQ(on_.gpu.TakeFindings(), "");
    EXPECT_GT(on_.gpu.launches(), 0U);
  }
  Element type() const { return GetParam(); }
  float epsilon() const { return type() == Element::kFloat32 ? 2e-6F : 1.0F / 128; }
  std::vector<float> Normal(int64_t count, float scale = 1) {
    return on_.Normal(type(), static_cast<size_t>(count), scale);
  }
  ElementArray OnGpu(const std::vector<float>& values) { return {on_.gpu, type(), values}; }
  ElementArray OnGpu(int64_t count) { return {on_.gpu, type(), static_cast<size_t>(count)}; }

  GenerationGpu on_;
};

float Silu(float x) { return x / (1 + std::exp(-x)); }

struct ProductShape {
  int64_t inputs, outputs;
  std::vector<int64_t> counts;  // of rows
};

// Rows from 1 to some hundreds, through every kernel and tile; each row is the same everywhere.
TEST_P(GenerationKernelsTest, ProductsAreRightAndTheirBitsAreTheRowsOwn) {
  const std::vector<int64_t> all = {1, 7, 9, 30, 50, 70, 530};
  for (const auto& [inputs, outputs, counts] :
       {ProductShape{64, 48, all}, {136, 42, all}, {576, 70, all}, {2056, 16, all}, {40, 4010, {1, 70, 300}}}) {
    const std::vector<float> weights = Normal(inputs * outputs), biases = Normal(outputs), rows = Normal(530 * inputs);
    const ElementArray weight = OnGpu(weights), bias = OnGpu(biases);
    std::vector<float> known[3];
    for (const int64_t count : counts) {
      const ElementArray x = OnGpu(std::vector<float>(rows.begin(), rows.begin() + count * inputs));
      const auto expected = [&](int64_t row, int64_t output) {
        return std::inner_product(rows.begin() + row * inputs, rows.begin() + (row + 1) * inputs,
                                  weights.begin() + output * inputs, 0.0);
      };
      const double scale = std::sqrt(static_cast<double>(inputs));
      const auto check = [&](int mode, const std::vector<float>& found) {  // counts rise
        EXPECT_TRUE(std::equal(known[mode].begin(), known[mode].end(), found.begin()))
            << mode << " " << inputs << " " << outputs << " " << count;
        known[mode] = found;
      };

      const int64_t splits = on_.kernels.product_splits(inputs, outputs);
      GpuArray<float> partial(on_.gpu, static_cast<size_t>(splits * count * outputs));
      EXPECT_EQ(on_.kernels.product(type(), ProductMode::kPartial, x.data(), weight.data(), nullptr, count, inputs,
                                    outputs, partial.data(), kStream),
                nullptr);
      ASSERT_TRUE(partial.AllWritten());
      const std::vector<float> parts = partial.Read();
      std::vector<float> sums(static_cast<size_t>(count * outputs));
      for (size_t i = 0; i < parts.size(); ++i) sums[i % sums.size()] += parts[i];
      for (int64_t i = 0; i < count * outputs; ++i) {
        ASSERT_NEAR(sums[static_cast<size_t>(i)], expected(i / outputs, i % outputs), 1e-5 * scale) << i;
      }
      check(0, sums);

      const ElementArray plain = OnGpu(count * outputs);
      EXPECT_EQ(on_.kernels.product(type(), ProductMode::kPlain, x.data(), weight.data(), bias.data(), count, inputs,
                                    outputs, plain.data(), kStream),
                nullptr);
      ASSERT_TRUE(plain.AllWritten());
      const std::vector<float> values = plain.Read();
      for (int64_t i = 0; i < count * outputs; ++i) {
        const double value = expected(i / outputs, i % outputs) + biases[static_cast<size_t>(i % outputs)];
        ASSERT_NEAR(values[static_cast<size_t>(i)], value, epsilon() * (scale + std::abs(value))) << i;
      }
      check(1, values);

      const int64_t half = outputs / 2;
      const ElementArray gated = OnGpu(count * half);
      EXPECT_EQ(on_.kernels.product(type(), ProductMode::kSwiGlu, x.data(), weight.data(), bias.data(), count, inputs,
                                    outputs, gated.data(), kStream),
                nullptr);
      ASSERT_TRUE(gated.AllWritten());
      const std::vector<float> gates = gated.Read();
      for (int64_t i = 0; i < count * half; ++i) {
        const int64_t row = i / half, j = i % half;
        const auto gate = static_cast<float>(expected(row, j)) + biases[static_cast<size_t>(j)];
        const auto up = static_cast<float>(expected(row, half + j)) + biases[static_cast<size_t>(half + j)];
        ASSERT_NEAR(gates[static_cast<size_t>(i)], Silu(gate) * up,
                    epsilon() * scale * (10 + 10 * std::abs(up) + std::abs(gate)))
            << i;
      }
      check(2, gates);
    }
  }
}

// Blocks of five, three and one tiles: what fits in the shared memory of an H100, an A100 and an L4, of 144, 112 and 80
// KiB.
TEST(GenerationTiles, FitEachCardAndChangeNoBits) {
  GenerationGpu on;
  const Element type = Element::kBfloat16;
  const int64_t inputs = 40, outputs = 4010;
  const ElementArray x(on.gpu, type, on.Normal(type, 200 * inputs)),
      weight(on.gpu, type, on.Normal(type, inputs * outputs));
  struct Call {
    ProductMode mode;
    int64_t rows;
    uint64_t large_kib;  // of the block where the card has room
  };
  for (const auto& [mode, rows, large_kib] : {Call{ProductMode::kPlain, 70, 144}, {ProductMode::kPartial, 200, 112}}) {
    ASSERT_EQ(on.kernels.product_splits(inputs, outputs), 1);
    std::vector<float> known;
    for (const InterpretedGpu::Card& card : {InterpretedGpu::Card{9, 0}, {8, 0, 0, 163 << 10}, {8, 9, 0, 99 << 10}}) {
      on.gpu.BeCard(card);
      const Element written = mode == ProductMode::kPartial ? Element::kFloat32 : type;
      const ElementArray y(on.gpu, written, static_cast<size_t>(rows * outputs));
      EXPECT_EQ(
          on.kernels.product(type, mode, x.data(), weight.data(), nullptr, rows, inputs, outputs, y.data(), kStream),
          nullptr);
      EXPECT_EQ(on.gpu.TakeMostShared() >> 10, card.shared_bytes >= large_kib << 10 ? large_kib : 80) << card.minor;
      ASSERT_TRUE(y.AllWritten());
      if (known.empty()) known = y.Read();
      EXPECT_EQ(y.Read(), known) << card.major << "." << card.minor;
    }
  }
  EXPECT_EQ(on.gpu.TakeFindings(), "");
}

TEST_P(GenerationKernelsTest, EmbedTakesTokensOfRowsOrSlots) {
  const int64_t hidden = 70, vocabulary = 11;
  const std::vector<float> table = Normal(vocabulary * hidden);
  const ElementArray embedding = OnGpu(table);
  std::vector<Slot> slots(3);
  slots[1].token = 4;
  slots[1].position = 17;
  slots[2].token = 5;
  slots[2].end = SlotEnd::kStop;
  const GpuArray<Slot> on_gpu(on_.gpu, slots);
  const GpuArray<StepRow> rows(on_.gpu, {{0, 9, 3}, {1, -1, -1}, {2, -1, -1}, {-1, -1, -1}});
  const ElementArray x = OnGpu(4 * hidden);
  GpuArray<Place> places(on_.gpu, 4);
  EXPECT_EQ(on_.kernels.embed(type(), rows.data(), on_gpu.data(), embedding.data(), 4, hidden, x.data(), places.data(),
                              kStream),
            nullptr);
  const std::vector<Place> found = places.Read();
  EXPECT_EQ(found[0].position, 9);
  EXPECT_EQ(found[1].position, 17);
  EXPECT_EQ(found[1].slot, 1);
  EXPECT_EQ(found[2].position, -1);
  EXPECT_EQ(found[3].position, -1);
  std::vector<float> expected(table.begin() + 3 * hidden, table.begin() + 5 * hidden);
  expected.resize(static_cast<size_t>(4 * hidden));
  EXPECT_EQ(x.Read(), expected);
}

TEST_P(GenerationKernelsTest, AddNormAddsInOrderAndNormalises) {
  const int64_t rows = 5, hidden = 1100, splits = 3;
  const std::vector<float> before = Normal(rows * hidden), bias = Normal(hidden), weight = Normal(hidden);
  std::vector<float> parts(static_cast<size_t>(splits * rows * hidden));
  for (float& part : parts) part = std::normal_distribution<float>()(on_.random);
  const ElementArray biases = OnGpu(bias), weights = OnGpu(weight);
  const GpuArray<float> partial(on_.gpu, parts);
  for (const std::vector<int32_t>& gather : {std::vector<int32_t>(), std::vector<int32_t>{4, 1}}) {
    const ElementArray x = OnGpu(before);
    const auto out_rows = gather.empty() ? rows : static_cast<int64_t>(gather.size());
    const ElementArray y = OnGpu(out_rows * hidden);
    const GpuArray<int32_t> gathered(on_.gpu, gather.empty() ? std::vector<int32_t>{0} : gather);
    EXPECT_EQ(on_.kernels.add_norm(type(), partial.data(), splits, biases.data(), x.data(), weights.data(), 1e-6F, rows,
                                   hidden, gather.empty() ? nullptr : gathered.data(), out_rows, y.data(), kStream),
              nullptr);
    const std::vector<float> sums = x.Read(), normed = y.Read();
    for (int64_t out = 0; out < out_rows; ++out) {
      const int64_t row = gather.empty() ? out : gather[static_cast<size_t>(out)];
      double squares = 0;
      for (int64_t i = 0; i < hidden; ++i) {
        const auto at = static_cast<size_t>(row * hidden + i);
        float sum = parts[at];
        for (int64_t s = 1; s < splits; ++s) sum += parts[at + static_cast<size_t>(s * rows * hidden)];
        const float value = RoundTo(type(), RoundTo(type(), before[at] + sum) + bias[static_cast<size_t>(i)]);
        ASSERT_EQ(sums[at], value);
        squares += static_cast<double>(value) * value;
      }
      const double r = 1 / std::sqrt(squares / static_cast<double>(hidden) + 1e-6);
      for (int64_t i = 0; i < hidden; ++i) {
        const double value = sums[static_cast<size_t>(row * hidden + i)] * r * weight[static_cast<size_t>(i)];
        ASSERT_NEAR(normed[static_cast<size_t>(out * hidden + i)], value, 2 * epsilon() * (0.01 + std::abs(value)));
      }
    }
  }
}

struct HeadCase {
  int32_t heads, kv_heads, size;
  bool norms;
};

// Rows of several slots, one of them with a long context, and one in vain: q, k, v and the attention over what the
// cache then holds, against the formulas; and each row alone.
TEST_P(GenerationKernelsTest, AttentionOverRaggedPagedPositions) {
  for (const HeadCase& c :
       {HeadCase{14, 2, 64, false}, {3, 3, 64, true}, {8, 4, 128, true}, {9, 3, 64, false}, {8, 1, 128, false}}) {
    const HeadShape shape = {c.heads, c.kv_heads, c.size};
    const int64_t width = (c.heads + 2 * c.kv_heads) * c.size, size = c.size, half = size / 2,
                  each = c.heads / c.kv_heads;
    const std::vector<Place> places = {{0, 0}, {1, 15}, {2, -1}, {3, 300}, {1, 16}, {0, 1}};
    const auto rows = static_cast<int64_t>(places.size());
    constexpr int64_t kPagesASlot = 20, kSlots = 4, kPositions = 301;
    std::vector<int32_t> pages(kSlots * kPagesASlot);
    std::iota(pages.begin(), pages.end(), 0);
    std::ranges::shuffle(pages, on_.random);

    const int64_t cache_size = kSlots * kPagesASlot * c.kv_heads * kPageSize * size;
    std::vector<float> keys = Normal(cache_size), values = Normal(cache_size);
    ElementArray key_cache = OnGpu(keys), value_cache = OnGpu(values);
    const GpuArray<int32_t> page_table(on_.gpu, pages);
    const LayerCache cache = {key_cache.data(), value_cache.data(), page_table.data(), kPagesASlot};

    std::vector<float> parts(static_cast<size_t>(2 * rows * width));
    for (float& part : parts) part = std::normal_distribution<float>()(on_.random);
    const std::vector<float> bias = Normal(width), query_norm = Normal(size), key_norm = Normal(size);
    std::vector<float> cos(static_cast<size_t>(kPositions * size)), sin(static_cast<size_t>(kPositions * half));
    for (int64_t p = 0; p < kPositions; ++p) {
      for (int64_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(p) * std::pow(1e4F, -static_cast<float>(i) / static_cast<float>(half));
        cos[static_cast<size_t>(p * size + i)] = cos[static_cast<size_t>(p * size + half + i)] =
            RoundTo(type(), std::cos(angle));
        sin[static_cast<size_t>(p * half + i)] = RoundTo(type(), std::sin(angle));
      }
    }
    const ElementArray biases = OnGpu(bias), query_norms = OnGpu(query_norm), key_norms = OnGpu(key_norm),
                       cosines = OnGpu(cos), sines = OnGpu(sin);

    std::vector<float> made_queries;                           // by finish_query_key_value
    const auto run = [&](const std::vector<int64_t>& which) {  // no two of one slot
      std::vector<Place> chosen;
      std::vector<float> chosen_parts;
      for (int64_t split = 0; split < 2; ++split) {
        for (const int64_t row : which) {
          const auto begin = parts.begin() + (split * rows + row) * width;
          chosen_parts.insert(chosen_parts.end(), begin, begin + width);
        }
      }
      for (const int64_t row : which) chosen.push_back(places[static_cast<size_t>(row)]);
      const auto count = static_cast<int64_t>(which.size());
      const GpuArray<Place> on_gpu(on_.gpu, chosen);
      const GpuArray<float> partial(on_.gpu, chosen_parts);
      const std::vector<float> keys_before = key_cache.Read(), values_before = value_cache.Read();
      const ElementArray query = OnGpu(count * c.heads * size), y = OnGpu(count * c.heads * size);
      HeadSums heads = {partial.data(), 2, biases.data(), nullptr, nullptr, 1e-6F, cosines.data(), sines.data()};
      if (c.norms) heads.query_norm = query_norms.data(), heads.key_norm = key_norms.data();
      EXPECT_EQ(
          on_.kernels.finish_query_key_value(type(), heads, on_gpu.data(), count, shape, cache, query.data(), kStream),
          nullptr);
      const std::vector<float> keys_made = key_cache.Read(), values_made = value_cache.Read();
      key_cache.Write(keys_before);
      value_cache.Write(values_before);
      constexpr int64_t kSplits = kPositions / kAttentionSplit + 1;
      const auto sums_count = static_cast<size_t>(count * c.heads * kSplits);
      GpuArray<float> sums(on_.gpu, sums_count * static_cast<size_t>(size)), bounds(on_.gpu, sums_count * 2);
      const std::vector<int32_t> none(static_cast<size_t>(count * c.kv_heads));
      const GpuArray<int32_t> arrived(on_.gpu, none);
      on_.gpu.EndOverlap();  // the earlier positions are of earlier steps
      EXPECT_EQ(on_.kernels.attention(type(), heads, cache, on_gpu.data(), count, shape, kSplits, sums.data(),
                                      bounds.data(), arrived.data(), y.data(), kStream),
                nullptr);
      EXPECT_TRUE(y.AllWritten());
      EXPECT_EQ(arrived.Read(), none);
      EXPECT_EQ(key_cache.Read(), keys_made);
      EXPECT_EQ(value_cache.Read(), values_made);
      made_queries = query.Read();
      return y.Read();
    };
    run({0, 2, 3, 4});
    std::vector<float> found = run({0, 1, 2, 3}), queries = made_queries;
    const std::vector<float> later = run({4, 5});  // of the slots of rows 1 and 0
    found.insert(found.end(), later.begin(), later.end());
    queries.insert(queries.end(), made_queries.begin(), made_queries.end());
    const std::vector<float> keys_after = key_cache.Read(), values_after = value_cache.Read();

    // The head of a row after bias, norm and rotation.
    const auto head_of = [&](int64_t row, int64_t head, const std::vector<float>* norm, bool rotate) {
      std::vector<double> x(static_cast<size_t>(size));
      double squares = 0;
      for (int64_t i = 0; i < size; ++i) {
        const auto at = static_cast<size_t>(row * width + head * size + i);
        x[static_cast<size_t>(i)] =
            parts[at] + parts[at + static_cast<size_t>(rows * width)] + bias[static_cast<size_t>(head * size + i)];
        squares += x[static_cast<size_t>(i)] * x[static_cast<size_t>(i)];
      }
      if (norm != nullptr) {
        for (size_t i = 0; i < x.size(); ++i)
          x[i] *= (*norm)[i] / std::sqrt(squares / static_cast<double>(size) + 1e-6);
      }
      if (!rotate) return x;
      std::vector<double> y = x;
      const int64_t p = places[static_cast<size_t>(row)].position;
      for (int64_t i = 0; i < half; ++i) {
        const auto a = static_cast<size_t>(i), b = static_cast<size_t>(half + i);
        const double cosine = cos[static_cast<size_t>(p * size + i)], sine = sin[static_cast<size_t>(p * half + i)];
        y[a] = x[a] * cosine - x[b] * sine;
        y[b] = x[b] * cosine + x[a] * sine;
      }
      return y;
    };
    const auto place_in_cache = [&](const Place& place, int64_t kv_head, int64_t position) {
      const int64_t page = pages[static_cast<size_t>(place.slot * kPagesASlot + position / kPageSize)];
      return ((page * c.kv_heads + kv_head) * kPageSize + position % kPageSize) * size;
    };
    // The keys and values of slots side by side: a whole number of pages, and one position more.
    const GpuArray<int32_t> slots(on_.gpu, {3, 1, 0}), ends(on_.gpu, {0, 33, 49, 50});
    const ElementArray side_keys = OnGpu(50 * c.kv_heads * size), side_values = OnGpu(50 * c.kv_heads * size);
    EXPECT_EQ(on_.kernels.gather(type(), cache, slots.data(), ends.data(), 3, 33, shape, side_keys.data(),
                                 side_values.data(), kStream),
              nullptr);
    EXPECT_TRUE(side_keys.AllWritten());
    EXPECT_TRUE(side_values.AllWritten());
    const std::vector<float> gathered = side_keys.Read(), gathered_values = side_values.Read();
    for (int64_t i = 0; i < 50 * c.kv_heads * size; ++i) {
      const int64_t at = i / (c.kv_heads * size),
                    slot = at < 33   ? 3
                           : at < 49 ? 1
                                     : 0,
                    first = at < 33   ? 0
                            : at < 49 ? 33
                                      : 49;
      const Place place = {static_cast<int32_t>(slot), 0};
      const auto from = static_cast<size_t>(place_in_cache(place, i / size % c.kv_heads, at - first) + i % size);
      ASSERT_EQ(gathered[static_cast<size_t>(i)], keys_after[from]) << i;
      ASSERT_EQ(gathered_values[static_cast<size_t>(i)], values_after[from]) << i;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const Place place = places[static_cast<size_t>(row)];
      for (int64_t head = 0; head < c.heads; ++head) {
        const auto begin = found.begin() + (row * c.heads + head) * size;
        if (place.position < 0) {
          ASSERT_TRUE(std::all_of(begin, begin + size, [](float value) { return value == 0; }));
          continue;
        }
        const int64_t kv_head = head / each;
        if (head % each == 0) {
          const auto key = head_of(row, c.heads + kv_head, c.norms ? &key_norm : nullptr, true);
          const auto value = head_of(row, c.heads + c.kv_heads + kv_head, nullptr, false);
          const auto at = static_cast<size_t>(place_in_cache(place, kv_head, place.position));
          for (size_t i = 0; i < key.size(); ++i) {
            ASSERT_NEAR(keys_after[at + i], key[i], 3 * epsilon() * (1 + std::abs(key[i])));
            ASSERT_NEAR(values_after[at + i], value[i], 2 * epsilon() * (0.1 + std::abs(value[i])));
          }
        }
        const auto query = head_of(row, head, c.norms ? &query_norm : nullptr, true);
        for (size_t i = 0; i < query.size(); ++i) {
          ASSERT_NEAR(queries[static_cast<size_t>((row * c.heads + head) * size) + i], query[i],
                      3 * epsilon() * (0.5 + std::abs(query[i])));  // of two rotated components
        }
        std::vector<double> weights, out(static_cast<size_t>(size));
        double greatest = -INFINITY, total = 0;
        for (int64_t p = 0; p <= place.position; ++p) {
          const auto at = static_cast<size_t>(place_in_cache(place, kv_head, p));
          double score = 0;
          for (size_t i = 0; i < query.size(); ++i) score += query[i] * static_cast<double>(keys_after[at + i]);
          weights.push_back(score / std::sqrt(static_cast<double>(size)));
          greatest = std::max(greatest, weights.back());
        }
        for (double& weight : weights) total += weight = std::exp(weight - greatest);
        for (int64_t p = 0; p <= place.position; ++p) {
          const auto at = static_cast<size_t>(place_in_cache(place, kv_head, p));
          for (size_t i = 0; i < out.size(); ++i)
            out[i] += weights[static_cast<size_t>(p)] / total * static_cast<double>(values_after[at + i]);
        }
        for (size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(begin[static_cast<ptrdiff_t>(i)], out[i], type() == Element::kFloat32 ? 2e-5 : 0.05)
              << row << " " << head << " " << i;
        }
      }
      const std::vector<float> alone = run({row});
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), found.begin() + row * c.heads * size)) << row;
    }
  }
}

// With many rows a block of attention goes through several splits, with few through one: the same bits, for rows of one
// split to ten (more than are joined at a time).
TEST_P(GenerationKernelsTest, SplitsOfARowHaveTheSameBitsInOneBlockAndInSeveral) {
  const HeadShape shape = {6, 3, 64};
  constexpr int64_t kRows = 18, kPagesASlot = 80, kPositions = kPagesASlot * kPageSize, kSplits = 10;
  const int64_t width = int64_t{shape.heads + 2 * shape.kv_heads} * shape.size, out = int64_t{shape.heads} * shape.size;
  std::vector<int32_t> pages(kRows * kPagesASlot);
  std::iota(pages.begin(), pages.end(), 0);
  const GpuArray<int32_t> page_table(on_.gpu, pages);
  const int64_t cache_size = kRows * kPositions * shape.kv_heads * shape.size;
  const std::vector<float> keys = Normal(cache_size), values = Normal(cache_size);
  const ElementArray cosines = OnGpu(Normal(kPositions * shape.size)), sines = OnGpu(Normal(kPositions * shape.size));
  const std::vector<float> parts = Normal(kRows * width);
  std::vector<Place> places;
  for (int32_t row = 0; row < kRows; ++row) places.push_back({row, static_cast<int32_t>(kPositions) - 1 - 71 * row});
  const auto run = [&](int64_t first, int64_t rows) {
    const ElementArray key_cache = OnGpu(keys), value_cache = OnGpu(values), y = OnGpu(rows * out);
    const LayerCache cache = {key_cache.data(), value_cache.data(), page_table.data(), kPagesASlot};
    const GpuArray<Place> chosen(on_.gpu, std::vector<Place>(places.begin() + first, places.begin() + first + rows));
    const GpuArray<float> partial(
        on_.gpu, std::vector<float>(parts.begin() + first * width, parts.begin() + (first + rows) * width));
    const auto heads = static_cast<size_t>(rows * shape.heads * kSplits);
    GpuArray<float> sums(on_.gpu, heads * static_cast<size_t>(shape.size)), bounds(on_.gpu, heads * 2);
    const GpuArray<int32_t> arrived(on_.gpu, std::vector<int32_t>(static_cast<size_t>(rows * shape.kv_heads)));
    const HeadSums in = {partial.data(), 1, nullptr, nullptr, nullptr, 1e-6F, cosines.data(), sines.data()};
    EXPECT_EQ(on_.kernels.attention(type(), in, cache, chosen.data(), rows, shape, kSplits, sums.data(), bounds.data(),
                                    arrived.data(), y.data(), kStream),
              nullptr);
    return y.Read();
  };
  const std::vector<float> together = run(0, kRows);
  for (int64_t row = 0; row < kRows; ++row) {
    const std::vector<float> alone = run(row, 1);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * out)) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GenerationKernelsTest, ::testing::Values(Element::kFloat32, Element::kBfloat16),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace kgrpo::policy
