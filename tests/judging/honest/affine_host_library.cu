// problem: tests/evaluator/problems/affine
// style: host code that leans on the standard library: a map of launch plans under a mutex, getenv, chrono, call_once
// cuda: correct
// sim: correct
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>

__global__ void Affine(const float* x, const float* y, float* out, int n, int stride) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) out[i] = 2.0f * x[i] + y[i];
}

namespace {
struct Plan {
  int blocks, threads;
};

std::optional<int> ThreadsFromEnvironment() {
  const char* text = std::getenv("AFFINE_THREADS");
  if (text == nullptr) return std::nullopt;
  return std::atoi(text);
}

Plan PlanFor(int n) {
  static std::mutex mutex;
  static std::map<std::tuple<int, int>, Plan> plans;
  static std::once_flag once;
  static int device = 0;
  std::call_once(once, [] { cudaGetDevice(&device); });
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [it, added] = plans.try_emplace({device, n});
  if (added) {
    const int threads = ThreadsFromEnvironment().value_or(std::lcm(32, 96));
    it->second = {std::max(1, std::min((n + threads - 1) / threads, 4096)), threads};
  }
  return it->second;
}
}  // namespace

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  thread_local std::chrono::steady_clock::time_point last_call;
  last_call = std::chrono::steady_clock::now();
  const auto [blocks, threads] = PlanFor(n);
  Affine<<<blocks, threads>>>(x, y, out, n, blocks * threads);
}
