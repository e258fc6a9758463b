// problem: tests/evaluator/problems/append_offset
// style: __half2 in place, a last odd element, long indices, int2 stores
// cuda: correct
// sim: correct
#include <cuda_fp16.h>

__global__ void AddPairs(__half* values, int* counts, long long n, __half offset) {
  const long long pair = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long i = 2 * pair;
  if (i + 1 < n) {
    __half2* place = reinterpret_cast<__half2*>(values) + pair;
    *place = __hadd2(*place, __half2half2(offset));
    reinterpret_cast<int2*>(counts)[pair] = make_int2(static_cast<int>(i), static_cast<int>(i + 1));
  } else if (i < n) {
    values[i] = values[i] + offset;
    counts[i] = static_cast<int>(i);
  }
}

extern "C" void add_offset(__half* values, int* counts, long long n, __half offset) {
  const long long pairs = (n + 1) / 2;
  AddPairs<<<static_cast<unsigned>((pairs + 255) / 256), 256>>>(values, counts, n, offset);
}
