// The types of PyTorch's C++ interface that hand-written kernels use: lists, 16-bit floats, dtypes, devices, options.
// This and torch_{tensor,checks,dispatch}.h stand in for libtorch, whose headers take nvcc half a minute. Nothing here
// computes: what is missing does not compile, and is reported as `unsupported` by name (candidate_form.cc). Included
// before a candidate in PyTorch's form by kgrpo/torch_form.h; names and behaviour are PyTorch's, so they are not
// documented again. Cheap standard headers are here, the others in FormPrologue.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace kgrpo_torch_form {

// Exit codes of a process whose candidate broke the form; FormBroken (candidate_form.cc) has a sentence for each.
enum Exit {
  kOtherShape = 90,
  kOtherType = 91,
  kOnCpu = 92,
  kGaps = 93,
  kThrew = 94,
  kOtherCount = 95,
  kCopies = 97,
};

[[noreturn]] inline void End(Exit code) { _exit(code); }

// Returns device memory that is freed with its last owner. The first request of exactly an output's size gets that
// output's memory, so that returning it costs no copy.
std::shared_ptr<void> Allocate(size_t bytes);

}  // namespace kgrpo_torch_form

namespace at {

class Error : public std::exception {
 public:
  explicit Error(std::string words) : words_(std::move(words)) {}
  const char* what() const noexcept override { return words_.c_str(); }
  const char* what_without_backtrace() const noexcept { return words_.c_str(); }
  const std::string& msg() const { return words_; }

 private:
  std::string words_;
};
using IndexError = Error;
using ValueError = Error;

namespace detail {
template <class... T>
[[noreturn]] void Fail(const char* what, const T&...) {
  throw Error(what);
}
}  // namespace detail

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  ArrayRef() = default;
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& list) : data_(list.data()), size_(list.size()) {}
  ArrayRef(const std::initializer_list<T>& list) : size_(list.size()) { data_ = list.begin(); }
  template <size_t N>
  ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}

  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const { return i < size_ ? data_[i] : detail::Fail("ArrayRef: invalid index"), data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  ArrayRef slice(size_t from, size_t count) const { return {data_ + from, count}; }
  ArrayRef slice(size_t from) const { return {data_ + from, size_ - from}; }
  std::vector<T> vec() const { return {begin(), end()}; }
  bool equals(ArrayRef other) const {
    bool same = size_ == other.size_;
    for (size_t i = 0; same && i < size_; ++i) same = data_[i] == other.data_[i];
    return same;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
using IntArrayRef = ArrayRef<int64_t>;
inline bool operator==(IntArrayRef a, IntArrayRef b) { return a.equals(b); }
inline bool operator!=(IntArrayRef a, IntArrayRef b) { return !a.equals(b); }
template <class Stream>
Stream& operator<<(Stream& out, IntArrayRef list) {
  out << '[';
  for (size_t i = 0; i < list.size(); ++i) out << (i > 0 ? ", " : "") << list[i];
  out << ']';
  return out;
}

// --- 16-bit floating types: every operation is the float's, rounded ---

#define KGRPO_OPERATOR(Type, op)                                                                           \
  __host__ __device__ inline Type operator op(Type a, Type b) {                                            \
    return static_cast<float>(a) op static_cast<float>(b);                                                 \
  }                                                                                                        \
  template <class U, std::enable_if_t<std::is_arithmetic_v<U>, int> = 0>                                   \
  __host__ __device__ inline std::conditional_t<std::is_integral_v<U>, Type, U> operator op(Type a, U b) { \
    return static_cast<std::conditional_t<std::is_integral_v<U>, Type, U>>(                                \
        static_cast<float>(a) op static_cast<std::conditional_t<std::is_integral_v<U>, float, U>>(b));     \
  }                                                                                                        \
  template <class U, std::enable_if_t<std::is_arithmetic_v<U>, int> = 0>                                   \
  __host__ __device__ inline std::conditional_t<std::is_integral_v<U>, Type, U> operator op(U a, Type b) { \
    return static_cast<std::conditional_t<std::is_integral_v<U>, Type, U>>(                                \
        static_cast<std::conditional_t<std::is_integral_v<U>, float, U>>(a) op static_cast<float>(b));     \
  }                                                                                                        \
  template <class U>                                                                                       \
  __host__ __device__ inline Type& operator op##=(Type& a, const U& b) {                                   \
    return a = static_cast<Type>(static_cast<float>(a) op static_cast<float>(b));                          \
  }
#define KGRPO_COMPARISON(Type, op)                                       \
  __host__ __device__ inline bool operator op(Type a, Type b) {          \
    return static_cast<float>(a) op static_cast<float>(b);               \
  }                                                                      \
  template <class U, std::enable_if_t<std::is_arithmetic_v<U>, int> = 0> \
  __host__ __device__ inline bool operator op(Type a, U b) {             \
    return static_cast<float>(a) op b;                                   \
  }                                                                      \
  template <class U, std::enable_if_t<std::is_arithmetic_v<U>, int> = 0> \
  __host__ __device__ inline bool operator op(U a, Type b) {             \
    return a op static_cast<float>(b);                                   \
  }
#define KGRPO_FLOAT16(Type, Native, to_bits, from_bits, to_float, from_float)          \
  struct alignas(2) Type {                                                             \
    unsigned short x;                                                                  \
    Type() = default;                                                                  \
    __host__ __device__ Type(float value) : x(to_bits(from_float(value))) {}           \
    __host__ __device__ Type(const Native& value) : x(to_bits(value)) {}               \
    __host__ __device__ operator float() const { return to_float(from_bits(x)); }      \
    __host__ __device__ operator Native() const { return from_bits(x); }               \
  };                                                                                   \
  KGRPO_OPERATOR(Type, +)                                                              \
  KGRPO_OPERATOR(Type, -)                                                              \
  KGRPO_OPERATOR(Type, *)                                                              \
  KGRPO_OPERATOR(Type, /)                                                              \
  KGRPO_COMPARISON(Type, <)                                                            \
  KGRPO_COMPARISON(Type, >)                                                            \
  KGRPO_COMPARISON(Type, <=)                                                           \
  KGRPO_COMPARISON(Type, >=)                                                           \
  KGRPO_COMPARISON(Type, ==)                                                           \
  KGRPO_COMPARISON(Type, !=)                                                           \
  __host__ __device__ inline Type operator-(Type a) { return -static_cast<float>(a); } \
  __device__ inline Type __ldg(const Type* at) { return ::__ldg(reinterpret_cast<const Native*>(at)); }
KGRPO_FLOAT16(Half, __half, __half_as_ushort, __ushort_as_half, __half2float, __float2half_rn)
KGRPO_FLOAT16(BFloat16, __nv_bfloat16, __bfloat16_as_ushort, __ushort_as_bfloat16, __bfloat162float,
              __float2bfloat16_rn)
#undef KGRPO_FLOAT16
#undef KGRPO_COMPARISON
#undef KGRPO_OPERATOR

template <class T, bool = true>
struct AccumulateType {
  using type = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                  std::conditional_t<std::is_integral_v<T>, int64_t, T>>;
};
template <class T, bool is_cuda = true>
using acc_type = typename AccumulateType<T, is_cuda>::type;
template <class T>
using opmath_type = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// --- dtypes, devices, options ---

enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  BFloat16 = 15,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
  Undefined = 47,
};

#define KGRPO_DTYPES(each)                                                                                       \
  each(Byte, uint8_t) each(Char, int8_t) each(Short, int16_t) each(Int, int32_t) each(Long, int64_t)             \
      each(Half, at::Half) each(Float, float) each(Double, double) each(Bool, bool) each(BFloat16, at::BFloat16) \
          each(UInt16, uint16_t) each(UInt32, uint32_t) each(UInt64, uint64_t)

template <class T>
struct CppTypeToScalarType {};
template <ScalarType type>
struct ScalarTypeToCPPType {};
#define KGRPO_EACH(name, c_type)                                                                \
  constexpr ScalarType k##name = ScalarType::name;                                              \
  template <>                                                                                   \
  struct CppTypeToScalarType<c_type> : std::integral_constant<ScalarType, ScalarType::name> {}; \
  template <>                                                                                   \
  struct ScalarTypeToCPPType<ScalarType::name> {                                                \
    using type = c_type;                                                                        \
  };
KGRPO_DTYPES(KGRPO_EACH)
#undef KGRPO_EACH
template <>
struct CppTypeToScalarType<__half> : std::integral_constant<ScalarType, ScalarType::Half> {};
template <>
struct CppTypeToScalarType<__nv_bfloat16> : std::integral_constant<ScalarType, ScalarType::BFloat16> {};
template <>
struct CppTypeToScalarType<long long> : std::integral_constant<ScalarType, ScalarType::Long> {};
template <ScalarType type>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<type>::type;

constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong, kFloat16 = kHalf,
                     kFloat32 = kFloat, kFloat64 = kDouble, kFloat8_e5m2 = ScalarType::Float8_e5m2,
                     kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;

inline const char* toString(ScalarType type) {
#define KGRPO_EACH(name, c_type) \
  if (type == ScalarType::name) return #name;
  KGRPO_DTYPES(KGRPO_EACH)
#undef KGRPO_EACH
  return "Undefined";
}
template <class Stream>
Stream& operator<<(Stream& out, ScalarType type) {
  out << toString(type);
  return out;
}
inline size_t elementSize(ScalarType type) {
#define KGRPO_EACH(name, c_type) \
  if (type == ScalarType::name) return sizeof(c_type);
  KGRPO_DTYPES(KGRPO_EACH)
#undef KGRPO_EACH
  return 1;
}
#undef KGRPO_DTYPES
inline bool isFloatingType(ScalarType type) {
  return type == kFloat || type == kDouble || type == kHalf || type == kBFloat16;
}

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

struct Device {
  Device(DeviceType type, int index = -1) : type_(type), index_(type == kCUDA && index < 0 ? 0 : index) {}
  Device(const std::string& name) : Device(name.rfind("cuda", 0) == 0 ? kCUDA : kCPU) {}
  Device(const char* name) : Device(std::string(name)) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return static_cast<DeviceIndex>(index_); }
  bool has_index() const { return index_ >= 0; }
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_cpu() const { return type_ == kCPU; }
  std::string str() const { return is_cuda() ? "cuda:0" : "cpu"; }
  bool operator==(const Device& other) const { return type_ == other.type_; }
  bool operator!=(const Device& other) const { return type_ != other.type_; }

 private:
  DeviceType type_;
  int index_;
};
template <class Stream>
Stream& operator<<(Stream& out, const Device& device) {
  out << device.str();
  return out;
}

enum class Layout : int8_t { Strided };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous, Preserve };

// A dtype, and what a tensor's type() says.
class TypeMeta {
 public:
  TypeMeta(ScalarType type = kFloat) : type_(type) {}
  operator ScalarType() const { return type_; }
  ScalarType toScalarType() const { return type_; }
  ScalarType scalarType() const { return type_; }
  bool is_cuda() const { return true; }
  size_t itemsize() const { return elementSize(type_); }
  const char* name() const { return at::toString(type_); }
  std::string toString() const { return at::toString(type_); }

 private:
  ScalarType type_;
};
inline ScalarType typeMetaToScalarType(TypeMeta type) { return type; }

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : type_(type) {}
  TensorOptions(TypeMeta type) : type_(type) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(device) {}
  TensorOptions(Layout) {}
  TensorOptions(MemoryFormat) {}

  TensorOptions dtype(ScalarType type) const { return With(type, device_); }
  TensorOptions dtype(TypeMeta type) const { return With(type, device_); }
  template <class T>
  TensorOptions dtype() const {
    return With(CppTypeToScalarType<T>::value, device_);
  }
  TensorOptions device(std::optional<Device> device) const { return With(type_, device); }
  TensorOptions device(DeviceType type, int index = -1) const { return With(type_, Device(type, index)); }
  TensorOptions device_index(int) const { return With(type_, kCUDA); }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions requires_grad(bool) const { return *this; }
  TensorOptions pinned_memory(bool) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }

  TypeMeta dtype() const { return type_.value_or(kFloat); }
  Device device() const { return device_.value_or(kCPU); }
  Layout layout() const { return kStrided; }
  bool has_dtype() const { return type_.has_value(); }
  bool has_device() const { return device_.has_value(); }

 private:
  TensorOptions With(std::optional<ScalarType> type, std::optional<Device> device) const {
    TensorOptions options;
    options.type_ = type;
    options.device_ = device;
    return options;
  }

  std::optional<ScalarType> type_;
  std::optional<Device> device_;
};
template <class Stream>
Stream& operator<<(Stream& out, const TensorOptions& options) {
  out << "TensorOptions(dtype=" << options.dtype().name() << ", device=" << options.device().str() << ")";
  return out;
}
inline TensorOptions dtype(ScalarType type) { return type; }
inline TensorOptions device(Device device) { return device; }
inline TensorOptions requires_grad(bool = true) { return {}; }
inline TensorOptions layout(Layout) { return {}; }

}  // namespace at
