// Kernels over single rows between the products: embedding, residual + RMSNorm, and the making of q, k and v from their
// product's partial sums: kernels.h.
#include <cuda_runtime.h>

#include "policy_qwen/gpu/heads.cuh"
#include "policy_qwen/gpu/launch.cuh"
#include "policy_qwen/gpu/overlap.cuh"
#include "policy_qwen/gpu/vectors.cuh"

namespace kgrpo::policy {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    EmbedKernel(const StepRow* __restrict__ rows, const Slot* __restrict__ slots, const T* __restrict__ embedding,
                int64_t hidden, T* __restrict__ x, Place* __restrict__ places) {
  const int64_t row = blockIdx.x;
  const StepRow step = rows[row];
  Place place{step.slot, step.position};
  int32_t token = step.token;
  if (step.slot < 0) {
    place.position = -1;
  } else if (step.position < 0) {
    const Slot& slot = slots[step.slot];
    token = slot.token;
    place.position = slot.end == SlotEnd::kNone ? slot.position : -1;
  }
  if (threadIdx.x == 0) places[row] = place;
  for (int64_t column = threadIdx.x; column < hidden; column += kThreads) {
    x[row * hidden + column] =
        place.position < 0 ? FromFloat<T>(0.0F) : embedding[static_cast<int64_t>(token) * hidden + column];
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    AddNormKernel(const float* partial, int splits, const T* __restrict__ bias, T* x, const T* __restrict__ weight,
                  float epsilon, int row_count, int hidden, const int32_t* __restrict__ gather, T* __restrict__ y) {
  __shared__ float sums[kThreads / 32];
  // A thread takes four neighbours: models are 1024 wide or little more, so a row costs about one round trip to memory.
  // The first four stay in registers; their weights are read before the wait.
  using Four = Lanes<T, 4>;
  LetNextBegin();
  const int own = threadIdx.x * 4;
  Four first{}, first_factor{};
  if (own < hidden) first_factor = Four::Load(weight + own);
  WaitForPrevious();
  const int row = gather == nullptr ? static_cast<int>(blockIdx.x) : gather[blockIdx.x];
  T* const x_row = x + static_cast<int64_t>(row) * hidden;
  const int64_t stride = static_cast<int64_t>(row_count) * hidden;
  float squares = 0;
  const auto add = [&](int column) {
    Four value = Four::Load(x_row + column);
    if (partial != nullptr) {
      const float* const from = partial + static_cast<int64_t>(row) * hidden + column;
      Lanes<float, 4> parts[kMaxSplits];
#pragma unroll
      for (int i = 0; i < kMaxSplits; ++i) {
        if (i < splits) parts[i] = Lanes<float, 4>::Load(from + i * stride);
      }
      Four added{};
      if (bias != nullptr) added = Four::Load(bias + column);
      Lanes<float, 4> sum = parts[0];
#pragma unroll
      for (int split = 1; split < kMaxSplits; ++split) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum.at[i] += split < splits ? parts[split].at[i] : 0.0F;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        value.at[i] = Rounded<T>(value.at[i] + sum.at[i]);
        if (bias != nullptr) value.at[i] = Rounded<T>(value.at[i] + added.at[i]);
      }
      value.Store(x_row + column);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) squares = fmaf(value.at[i], value.at[i], squares);
    return value;
  };
  if (own < hidden) first = add(own);
  for (int column = own + kThreads * 4; column < hidden; column += kThreads * 4) add(column);
  squares = WarpSum(squares);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = squares;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) sum += sums[i];
  const float r = 1.0F / sqrtf(sum / static_cast<float>(hidden) + epsilon);
  const auto store = [&](int column, Four value, const Four& factor) {
#pragma unroll
    for (int i = 0; i < 4; ++i) value.at[i] = Rounded<T>(value.at[i] * r) * factor.at[i];
    value.Store(y + static_cast<int64_t>(blockIdx.x) * hidden + column);
  };
  if (own < hidden) store(own, first, first_factor);
  for (int column = own + kThreads * 4; column < hidden; column += kThreads * 4) {
    store(column, Four::Load(x_row + column), Four::Load(weight + column));
  }
}

// A warp takes a head of a row.
template <typename T, int D>
__global__ void __launch_bounds__(128)
    FinishQueryKeyValueKernel(HeadSums in, int rows, const Place* places, HeadShape shape, LayerCache cache, T* query) {
  LetNextBegin();
  WaitForPrevious();
  const int heads = shape.heads + 2 * shape.kv_heads;
  const int index = static_cast<int>(blockIdx.x * 4 + threadIdx.x / 32);
  if (index >= rows * heads) return;
  const int row = index / heads, head = index % heads;
  const Place place = places[row];
  const auto made = [&] {
    return FinishHead(in, shape, head, LoadSums<T, D>(in, shape, row, rows, head),
                      LoadFactors<T, D>(in, shape, head, place.position));
  };
  if (place.position < 0) return;
  if (head < shape.heads) {
    made().Store(query + static_cast<int64_t>(row * shape.heads + head) * D);
  } else {
    const bool is_value = head >= shape.heads + shape.kv_heads;
    const int kv_head = head - shape.heads - (is_value ? shape.kv_heads : 0);
    made().Store(static_cast<T*>(is_value ? cache.values : cache.keys) + CacheOffset<D>(cache, shape, place, kv_head));
  }
}

// A block copies a page of a sequence, 16 bytes (`parts` a head) at a time.
__global__ void __launch_bounds__(kThreads)
    GatherKernel(LayerCache cache, const int32_t* __restrict__ slots, const int32_t* __restrict__ ends, int kv_heads,
                 int parts, uint4* keys, uint4* values) {
  LetNextBegin();
  const int first = static_cast<int>(blockIdx.x) * kPageSize, begin = ends[blockIdx.y];
  const int count = min(ends[blockIdx.y + 1] - begin - first, kPageSize);
  if (count <= 0) {
    WaitForPrevious();
    return;
  }
  const int64_t page = cache.pages[static_cast<int64_t>(slots[blockIdx.y]) * cache.pages_per_slot + blockIdx.x];
  const int width = kv_heads * parts;
  WaitForPrevious();
  for (int item = static_cast<int>(threadIdx.x); item < count * width; item += kThreads) {
    const int position = item / width, head = item % width / parts, part = item % parts;
    const int64_t from = ((page * kv_heads + head) * kPageSize + position) * parts + part;
    const int64_t to = static_cast<int64_t>(begin + first) * width + item;
    keys[to] = static_cast<const uint4*>(cache.keys)[from];
    values[to] = static_cast<const uint4*>(cache.values)[from];
  }
}

void Embed(Element type, const StepRow* rows, const Slot* slots, const void* embedding, int64_t row_count,
           int64_t hidden, void* x, Place* places, GpuStream stream) {
  ForElement(type, [&]<typename T>() {
    EmbedKernel<T><<<Blocks(row_count, 1), kThreads, 0, StreamOf(stream)>>>(
        rows, slots, static_cast<const T*>(embedding), hidden, static_cast<T*>(x), places);
  });
}

void AddNorm(Element type, const float* partial, int64_t splits, const void* bias, void* x, const void* weight,
             float epsilon, int64_t row_count, int64_t hidden, const int32_t* gather, int64_t out_rows, void* y,
             GpuStream stream) {
  ForElement(type, [&]<typename T>() {
    const bool is_first = partial == nullptr;  // after Embed: overlap.cuh
    QueueKernel(AddNormKernel<T>, Blocks(out_rows, 1), kThreads, StreamOf(stream), !is_first, 0, partial,
                static_cast<int>(splits), static_cast<const T*>(bias), static_cast<T*>(x),
                static_cast<const T*>(weight), epsilon, static_cast<int>(row_count), static_cast<int>(hidden), gather,
                static_cast<T*>(y));
  });
}

void FinishQueryKeyValue(Element type, HeadSums sums, const Place* places, int64_t row_count, HeadShape shape,
                         LayerCache cache, void* query, GpuStream stream) {
  ForHeads(type, shape, [&]<typename T, int D>() {
    LaunchOverlapping(FinishQueryKeyValueKernel<T, D>, Blocks(row_count * (shape.heads + 2 * shape.kv_heads), 4), 128,
                      StreamOf(stream), sums, static_cast<int>(row_count), places, shape, cache,
                      static_cast<T*>(query));
  });
}

void Gather(Element type, LayerCache cache, const int32_t* slots, const int32_t* ends, int64_t sequences,
            int64_t longest, HeadShape shape, void* keys, void* values, GpuStream stream) {
  const int parts = shape.size * (type == Element::kBfloat16 ? 2 : 4) / 16;
  LaunchOverlapping(GatherKernel, dim3(Blocks(longest, kPageSize), Blocks(sequences, 1)), kThreads, StreamOf(stream),
                    cache, slots, ends, shape.kv_heads, parts, static_cast<uint4*>(keys), static_cast<uint4*>(values));
}

}  // namespace

void SetRows(GpuKernels& table) {
  KGRPO_SET_KERNEL(table, embed, Embed);
  KGRPO_SET_KERNEL(table, add_norm, AddNorm);
  KGRPO_SET_KERNEL(table, finish_query_key_value, FinishQueryKeyValue);
  KGRPO_SET_KERNEL(table, gather, Gather);
}

}  // namespace kgrpo::policy
