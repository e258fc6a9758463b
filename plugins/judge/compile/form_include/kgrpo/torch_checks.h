// PyTorch's checks, attributes and bindings (torch_types.h).
#pragma once

#include <kgrpo/torch_types.h>

// --- bindings, which are read and bind nothing ---

namespace pybind11 {
struct arg {
  explicit arg(const char*) {}
  template <class T>
  arg& operator=(T&&) {
    return *this;
  }
  arg& none(bool = true) { return *this; }
  arg& noconvert(bool = true) { return *this; }
};
struct none {};
struct gil_scoped_release {};
namespace literals {
inline arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals
}  // namespace pybind11
namespace py = pybind11;

#define TORCH_EXTENSION_NAME candidate
#define KGRPO_BINDS_NOTHING_AS(number, variable) \
  template <class T>                             \
  [[maybe_unused]] static void kgrpo_binds_nothing_##number(T& variable)
#define KGRPO_BINDS_NOTHING_EXPANDED(number, variable) KGRPO_BINDS_NOTHING_AS(number, variable)
#define KGRPO_BINDS_NOTHING(variable) KGRPO_BINDS_NOTHING_EXPANDED(__COUNTER__, variable)
#define PYBIND11_MODULE(name, variable) KGRPO_BINDS_NOTHING(variable)
#define TORCH_LIBRARY(name, variable) KGRPO_BINDS_NOTHING(variable)
#define TORCH_LIBRARY_FRAGMENT(name, variable) KGRPO_BINDS_NOTHING(variable)
#define TORCH_LIBRARY_IMPL(name, key, variable) KGRPO_BINDS_NOTHING(variable)
#define TORCH_FN(function) (&function)

// --- checks ---

#define TORCH_CHECK(condition, ...) \
  (static_cast<bool>(condition) ? void() : ::at::detail::Fail("check failed: " #condition, ##__VA_ARGS__))
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_CHECK_ARG(condition, number, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE TORCH_CHECK
#define TORCH_CHECK_TYPE TORCH_CHECK
#define TORCH_CHECK_INDEX TORCH_CHECK
#define TORCH_CHECK_NOT_IMPLEMENTED TORCH_CHECK
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b))
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b))
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b))
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b))
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b))
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b))
#define TORCH_WARN(...) static_cast<void>(0)
#define TORCH_WARN_ONCE(...) static_cast<void>(0)
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ERROR(...) ::at::detail::Fail("AT_ERROR", ##__VA_ARGS__)
#define C10_CUDA_CHECK(expression) TORCH_CHECK((expression) == cudaSuccess)
#define AT_CUDA_CHECK C10_CUDA_CHECK
#define TORCH_CUDA_CHECK C10_CUDA_CHECK
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_ALWAYS_INLINE __inline__ __attribute__((always_inline))
#define C10_LAUNCH_BOUNDS_1(a) __launch_bounds__(a)
#define C10_LAUNCH_BOUNDS_2(a, b) __launch_bounds__(a, b)
#define C10_WARP_SIZE 32
#define C10_LIKELY(a) (a)
#define C10_UNLIKELY(a) (a)
