// Bulk copies of one dimension, as CUDA's headers and inline PTX make them. bulk_test.cc runs each kernel as
// <<<2, 64>>>(x, y) on 2 x 256 floats; `// expect: CODE` marks the line of what a checked run must find.
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kFloats = 256, kBytes = 1024;

#define KERNEL extern "C" __global__ void
#define PHASE_BARRIER(name, count)                                \
  __shared__ alignas(8) unsigned long long name;                  \
  if (threadIdx.x == 0) ptx::mbarrier_init(Native(&name), count); \
  __syncthreads()

__device__ uint64_t* Native(unsigned long long* barrier) { return reinterpret_cast<uint64_t*>(barrier); }
// Macros, so that what is found is found at the line of their use.
#define Fetch(tile, x, bytes, barrier) \
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, x, bytes, Native(barrier))
#define Store(y, tile, bytes)                                               \
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y, tile, bytes); \
  ptx::cp_async_bulk_commit_group()
__device__ void Expect(unsigned long long* barrier, int bytes) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, Native(barrier), bytes);
}
__device__ void Wait(unsigned long long* barrier, int parity) {
  while (!ptx::mbarrier_try_wait_parity(Native(barrier), parity)) {
  }
}

// ---- correct: y = 2 x ----

// As the CUDA programming guide has it.
KERNEL GuideRoundTrip(float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    cuda::memcpy_async(tile, x + blockIdx.x * kFloats, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
  barrier.wait(barrier.arrive());
  for (int i = threadIdx.x; i < kFloats; i += blockDim.x) tile[i] *= 2;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    Store(y + blockIdx.x * kFloats, tile, sizeof(tile));
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
KERNEL ArriveTx(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(tile, x + blockIdx.x * kFloats, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
    token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(tile));
  } else {
    token = barrier.arrive();
  }
  barrier.wait(std::move(token));
  for (int i = threadIdx.x; i < kFloats; i += 64) y[blockIdx.x * kFloats + i] = 2 * tile[i];
}
KERNEL OfAGroup(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  __shared__ Barrier barrier;
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, x + blockIdx.x * kFloats, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
  barrier.arrive_and_wait();
  for (int i = threadIdx.x; i < kFloats; i += 64) y[blockIdx.x * kFloats + i] = 2 * tile[i];
}
KERNEL OfAPipeline(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  pipeline.producer_acquire();
  cuda::memcpy_async(block, tile, x + blockIdx.x * kFloats, cuda::aligned_size_t<16>(sizeof(tile)), pipeline);
  pipeline.producer_commit();
  pipeline.consumer_wait();
  for (int i = threadIdx.x; i < kFloats; i += 64) y[blockIdx.x * kFloats + i] = 2 * tile[i];
  pipeline.consumer_release();
}
// Each thread its own 16 bytes.
KERNEL OfEachThread(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  const int i = 4 * threadIdx.x;
  cuda::memcpy_async(tile + i, x + blockIdx.x * kFloats + i, cuda::aligned_size_t<16>(16), barrier);
  barrier.arrive_and_wait();
  for (int k = threadIdx.x; k < kFloats; k += 64) y[blockIdx.x * kFloats + k] = 2 * tile[k];
}
// One thread waits, and a barrier tells the others.
KERNEL WaitOfOneForAll(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, kBytes);
    Fetch(tile, x + blockIdx.x * kFloats, kBytes, &full);
    Wait(&full, 0);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kFloats; i += 64) y[blockIdx.x * kFloats + i] = 2 * tile[i];
}
// Two stages of 64 floats in turns; stores leave from two buffers.
KERNEL Ring(const float* x, float* y) {
  __shared__ alignas(16) float in[2][64], out[2][64];
  PHASE_BARRIER(first, 1);
  PHASE_BARRIER(second, 1);
  const float* own = x + blockIdx.x * kFloats;
  const auto fetch = [&](int piece) {
    unsigned long long* barrier = piece % 2 == 0 ? &first : &second;
    if (threadIdx.x != 0 || piece >= 4) return;
    Expect(barrier, 256);
    Fetch(in[piece % 2], own + 64 * piece, 256, barrier);
  };
  fetch(0);
  for (int piece = 0; piece < 4; ++piece) {
    fetch(piece + 1);
    Wait(piece % 2 == 0 ? &first : &second, piece / 2);
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
    __syncthreads();
    out[piece % 2][threadIdx.x] = 2 * in[piece % 2][threadIdx.x];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      Store(y + blockIdx.x * kFloats + 64 * piece, out[piece % 2], 256);
    }
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
// The fence may be the issuing thread's, behind the barrier. Nobody waits: the copy ends with its thread.
KERNEL FenceOfTheIssuer(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  for (int i = threadIdx.x; i < kFloats; i += 64) tile[i] = 2 * x[blockIdx.x * kFloats + i];
  __syncthreads();
  if (threadIdx.x != 0) return;
  ptx::fence_proxy_async();
  Store(y + blockIdx.x * kFloats, tile, kBytes);
}
// The copy engine may read its own writes without a fence. The hint and the scope have no effect here.
KERNEL ThereAndBack(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], 1024;" ::"l"(__cvta_generic_to_global(x)) : "memory");
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&full));
    asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cta.b64 _, [%0], 1024;" ::"r"(at) : "memory");
    Fetch(tile, x + blockIdx.x * kFloats, kBytes, &full);
    Wait(&full, 0);
    Store(y + blockIdx.x * kFloats, tile, kBytes);
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kFloats; i += 64) y[blockIdx.x * kFloats + i] *= 2;
}

// ---- wrong ----

KERNEL WrongReadBeforeTheWait(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, kBytes);
    Fetch(tile, x, kBytes, &full);
  }
  y[threadIdx.x] = tile[threadIdx.x];  // expect: race uninitialised
  Wait(&full, 0);
}
// Another thread's wait orders nothing for this one.
KERNEL WrongWaitOfAnother(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, kBytes);
    Fetch(tile, x, kBytes, &full);
  }
  if (threadIdx.x < 32) Wait(&full, 0);
  y[threadIdx.x] = tile[threadIdx.x];  // expect: race
}
KERNEL WrongNothingExpected(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Fetch(tile, x, kBytes, &full);
    ptx::mbarrier_arrive(Native(&full));
  }
  Wait(&full, 0);
  y[threadIdx.x] = tile[threadIdx.x];  // expect: race uninitialised
}
KERNEL WrongParity(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, kBytes);
    Fetch(tile, x, kBytes, &full);
  }
  Wait(&full, 1);
  y[threadIdx.x] = tile[threadIdx.x];  // expect: race uninitialised
}
KERNEL WrongOtherStage(const float* x, float* y) {
  __shared__ alignas(16) float tile[2][128];
  PHASE_BARRIER(first, 1);
  PHASE_BARRIER(second, 1);
  if (threadIdx.x == 0) {
    Expect(&first, 512);
    Fetch(tile[0], x, 512, &first);
    Expect(&second, 512);
    Fetch(tile[1], x + 128, 512, &second);
  }
  Wait(&first, 0);
  y[threadIdx.x] = tile[1][threadIdx.x];  // expect: race uninitialised
  Wait(&second, 0);
}
KERNEL WrongStageFilledTooEarly(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  for (int k = 0; k < 2; ++k) {
    if (threadIdx.x == 0) {
      Expect(&full, kBytes);
      Fetch(tile, x, kBytes, &full);  // expect: race
    }
    Wait(&full, k);
    y[threadIdx.x + 64 * k] = tile[threadIdx.x];
  }
}
KERNEL WrongFewerBytesExpected(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, kBytes / 4);
    Fetch(tile, x, kBytes, &full);
  }
  while (!ptx::mbarrier_try_wait_parity(Native(&full), 0)) {  // expect: trap
  }
  y[threadIdx.x] = tile[threadIdx.x];
}
KERNEL WrongBarrierNotInitialised(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  __shared__ alignas(8) unsigned long long full;
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, x, kBytes, Native(&full));  // expect: trap
  y[0] = tile[0];
}
KERNEL WrongSize(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, 40);
    Fetch(tile, x, 40, &full);  // expect: misaligned
  }
  Wait(&full, 0);
  y[threadIdx.x] = tile[0];
}
KERNEL WrongSharedAddress(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, 512);
    Fetch(tile + 1, x, 512, &full);  // expect: misaligned
  }
  Wait(&full, 0);
  y[threadIdx.x] = tile[1];
}
KERNEL WrongGlobalAddress(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  for (int i = threadIdx.x; i < kFloats; i += 64) tile[i] = x[i];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    Store(y + 2, tile, 512);  // expect: misaligned
  }
}
// A generic pointer is no address of shared memory.
KERNEL WrongGenericAddress(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&full));
  if (threadIdx.x == 0) {
    Expect(&full, kBytes);
    asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"l"(tile),
                 "l"(x), "r"(at)  // expect: out_of_bounds
                 : "memory");
  }
  Wait(&full, 0);
  y[threadIdx.x] = tile[threadIdx.x];
}
KERNEL WrongBeyondShared(const float* x, float* y) {
  __shared__ alignas(16) float tile[128];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, kBytes);
    Fetch(tile, x, kBytes, &full);  // expect: out_of_bounds
  }
  Wait(&full, 0);
  y[threadIdx.x] = tile[threadIdx.x];
}
KERNEL WrongBeyondGlobal(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, kBytes);
    Fetch(tile, x + 2 * kFloats - 4, kBytes, &full);  // expect: out_of_bounds
  }
  Wait(&full, 0);
  y[threadIdx.x] = tile[threadIdx.x];
}
KERNEL WrongSourceUsedAgain(const float* x, float* y) {
  __shared__ alignas(16) float tile[64];
  for (int k = 0; k < 2; ++k) {
    tile[threadIdx.x] = x[64 * k + threadIdx.x];  // expect: race
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      Store(y + blockIdx.x * kFloats + 64 * k, tile, 256);
    }
    __syncthreads();
  }
}
KERNEL WrongWaitForTooFewGroups(const float* x, float* y) {
  __shared__ alignas(16) float tile[64];
  for (int k = 0; k < 2; ++k) {
    tile[threadIdx.x] = x[64 * k + threadIdx.x];  // expect: race
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      Store(y + blockIdx.x * kFloats + 64 * k, tile, 256);
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
    }
    __syncthreads();
  }
}
// Of two stores from one place one has read it.
KERNEL WrongSourceOfTheSecond(const float* x, float* y) {
  __shared__ alignas(16) float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    Store(y + blockIdx.x * kFloats, tile, 256);
    Store(y + blockIdx.x * kFloats + 64, tile + 32, 128);
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
  }
  __syncthreads();
  tile[threadIdx.x] = 0;  // expect: race
  __syncthreads();
}
KERNEL WrongNoProxyFence(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  for (int i = threadIdx.x; i < kFloats; i += 64) tile[i] = 2 * x[blockIdx.x * kFloats + i];
  __syncthreads();
  if (threadIdx.x == 32) {
    Store(y + blockIdx.x * kFloats, tile, kBytes);  // expect: race
  }
}
// Those fences came before the stores.
KERNEL WrongProxyFenceTooEarly(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  ptx::fence_proxy_async(ptx::space_shared);
  for (int i = threadIdx.x; i < kFloats; i += 64) tile[i] = 2 * x[blockIdx.x * kFloats + i];
  __syncthreads();
  if (threadIdx.x == 32) {
    Store(y + blockIdx.x * kFloats, tile, kBytes);  // expect: race
  }
}
// Only that the source has been read is known, not that the destination is written.
KERNEL WrongDestinationReadTooEarly(const float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  for (int i = threadIdx.x; i < kFloats; i += 64) tile[i] = 2 * x[blockIdx.x * kFloats + i];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    Store(y + blockIdx.x * kFloats, tile, kBytes);
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
  __syncthreads();
  y[blockIdx.x * kFloats + threadIdx.x] += 1;  // expect: race
}
KERNEL WrongSourceOfALoadWritten(float* x, float* y) {
  __shared__ alignas(16) float tile[kFloats];
  PHASE_BARRIER(full, 1);
  if (threadIdx.x == 0) {
    Expect(&full, kBytes);
    Fetch(tile, x + blockIdx.x * kFloats, kBytes, &full);
    x[blockIdx.x * kFloats] = 0;  // expect: race
  }
  Wait(&full, 0);
  y[threadIdx.x + blockIdx.x * kFloats] = tile[threadIdx.x];
}

// ---- the limit; bulk_test.cc runs it as <<<1, 1>>> ----

extern "C" __global__ void StoresAtOnce(float* y, int count) {
  __shared__ alignas(16) float tile[4];
  for (int i = 0; i < 4; ++i) tile[i] = 1;
  ptx::fence_proxy_async(ptx::space_shared);
  for (int k = 0; k < count; ++k) {
    Store(y + 4 * k, tile, 16);
  }
}
