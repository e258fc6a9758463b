// problem: tests/evaluator/problems/affine
// style: source text that is hard to split: digit separators, raw strings, launches in macros, nested template brackets
// cuda: correct
// sim: correct
#include <array>
#include <string>
#include <vector>

#define BLOCKS_FOR(count, block) (((count) + (block)-1) / (block))
#define LAUNCH(kernel, count, block, ...) \
  kernel<<<BLOCKS_FOR(count, block), (block), 0, (cudaStream_t)0>>>(__VA_ARGS__)

/* A comment that launches nothing: Affine<<<1, 1>>>(x); and an unbalanced brace: { */
static const char* const kUsage = R"text(kernel<<<blocks, threads>>>(...) __global__ void fake() { "quoted" )text";
static const char kQuote = '"', kBrace = '{';

namespace {
constexpr int kLimit = 1'000'000;  // an apostrophe within a number
template <class T>
using Cube = std::vector<std::vector<std::array<T, 3>>>;

// Internal linkage, and defined after a declaration.
__global__ void Affine(const float* x, const float* y, float* out, int n);
}  // namespace

extern "C" {
void launch(const float* x, const float* y, float* out, int n) {
  const Cube<int> blocks = {{{{256, 128, 64}}}};
  const int block = blocks[0][0][n > kLimit ? 0 : 1];
  if (std::string(kUsage).find(kQuote) == std::string::npos || kBrace != '\x7b') return;
  LAUNCH(Affine, n, block, x, y, out, n);
}
}

namespace {
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { out[i] = 2.0f * x[i] + y[i]; }  // }}
}
}  // namespace
