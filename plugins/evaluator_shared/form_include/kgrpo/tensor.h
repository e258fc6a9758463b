// The part of PyTorch's C++ interface that hand-written kernels use: tensors of the judge's memory, their views,
// allocation, dispatch over dtypes, checks, streams. It stands in for libtorch, whose headers take nvcc half a minute.
// Nothing here computes: what is missing does not compile, and is reported as `unsupported` by name
// (candidate_form.cc). Included before a candidate in PyTorch's form by kgrpo/torch_form.h; names and behaviour are
// PyTorch's, so they are not documented again. Its cheap standard headers are here, the others in FormPrologue.
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

[[noreturn]] inline void End(Exit code) {
  _exit(code);
}

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
inline bool operator==(IntArrayRef a, IntArrayRef b) {
  return a.equals(b);
}
inline bool operator!=(IntArrayRef a, IntArrayRef b) {
  return !a.equals(b);
}
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
#define KGRPO_FLOAT16(Type, Native, to_bits, from_bits, to_float, from_float)     \
  struct alignas(2) Type {                                                        \
    unsigned short x;                                                             \
    Type() = default;                                                             \
    __host__ __device__ Type(float value) : x(to_bits(from_float(value))) {}      \
    __host__ __device__ Type(const Native& value) : x(to_bits(value)) {}          \
    __host__ __device__ operator float() const { return to_float(from_bits(x)); } \
    __host__ __device__ operator Native() const { return from_bits(x); }          \
  };                                                                              \
  KGRPO_OPERATOR(Type, +)                                                         \
  KGRPO_OPERATOR(Type, -)                                                         \
  KGRPO_OPERATOR(Type, *)                                                         \
  KGRPO_OPERATOR(Type, /)                                                         \
  KGRPO_COMPARISON(Type, <)                                                       \
  KGRPO_COMPARISON(Type, >)                                                       \
  KGRPO_COMPARISON(Type, <=)                                                      \
  KGRPO_COMPARISON(Type, >=)                                                      \
  KGRPO_COMPARISON(Type, ==)                                                      \
  KGRPO_COMPARISON(Type, !=)                                                      \
  __host__ __device__ inline Type operator-(Type a) {                             \
    return -static_cast<float>(a);                                                \
  }                                                                               \
  __device__ inline Type __ldg(const Type* at) {                                  \
    return ::__ldg(reinterpret_cast<const Native*>(at));                          \
  }
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
inline ScalarType typeMetaToScalarType(TypeMeta type) {
  return type;
}

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
inline TensorOptions dtype(ScalarType type) {
  return type;
}
inline TensorOptions device(Device device) {
  return device;
}
inline TensorOptions requires_grad(bool = true) {
  return {};
}
inline TensorOptions layout(Layout) {
  return {};
}

// --- accessors, passed to kernels by value ---

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class Index = int64_t>
class TensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  __host__ __device__ TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  __host__ __device__ Index size(Index d) const { return sizes_[d]; }
  __host__ __device__ Index stride(Index d) const { return strides_[d]; }
  __host__ __device__ PtrType data() const { return data_; }
  __host__ __device__ decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[i * strides_[0]]);
    } else {
      return TensorAccessor<T, N - 1, PtrTraits, Index>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
    }
  }

 private:
  PtrType data_;
  const Index *sizes_, *strides_;
};

template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class Index = int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  __host__ GenericPackedTensorAccessor(PtrType data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (size_t d = 0; d < N; ++d) {
      sizes_[d] = static_cast<Index>(sizes[d]);
      strides_[d] = static_cast<Index>(strides[d]);
    }
  }
  __host__ __device__ Index size(Index d) const { return sizes_[d]; }
  __host__ __device__ Index stride(Index d) const { return strides_[d]; }
  __host__ __device__ PtrType data() const { return data_; }
  __host__ __device__ decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, PtrTraits, Index>(data_, sizes_, strides_)[i];
  }

 private:
  PtrType data_;
  Index sizes_[N], strides_[N];
};
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, PtrTraits, int32_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, PtrTraits, int64_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class Index = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, PtrTraits, Index>;

// --- tensors ---

class Tensor {
 public:
  Tensor() = default;
  // A contiguous tensor.
  Tensor(std::shared_ptr<void> storage, ScalarType type, IntArrayRef sizes)
      : storage_(std::move(storage)),
        data_(static_cast<char*>(storage_.get())),
        type_(type),
        sizes_(sizes.vec()),
        strides_(sizes.size(), 1),
        defined_(true) {
    for (size_t d = sizes_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * std::max<int64_t>(sizes_[d], 1);
  }

  bool defined() const { return defined_; }
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const { return sizes_; }
  IntArrayRef strides() const { return strides_; }
  int64_t size(int64_t d) const { return sizes_[Axis(d)]; }
  int64_t stride(int64_t d) const { return strides_[Axis(d)]; }
  int64_t numel() const {
    int64_t elements = 1;
    for (const int64_t size : sizes_) elements *= size;
    return elements;
  }
  size_t itemsize() const { return elementSize(type_); }
  int64_t element_size() const { return static_cast<int64_t>(itemsize()); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
  int64_t storage_offset() const {
    return (data_ - static_cast<char*>(storage_.get())) / static_cast<int64_t>(itemsize());
  }
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const {
    int64_t expected = 1;
    for (size_t d = sizes_.size(); d-- > 0; expected *= sizes_[d])
      if (sizes_[d] != 1 && strides_[d] != expected) return numel() == 0;
    return true;
  }
  bool is_non_overlapping_and_dense() const { return is_contiguous(); }
  bool is_cuda() const { return true; }
  bool is_cpu() const { return false; }
  bool is_sparse() const { return false; }
  bool requires_grad() const { return false; }
  bool is_floating_point() const { return isFloatingType(type_); }
  bool is_same(const Tensor& other) const { return data_ == other.data_ && sizes_ == other.sizes_; }
  Device device() const { return kCUDA; }
  int64_t get_device() const { return 0; }
  Layout layout() const { return kStrided; }
  ScalarType scalar_type() const { return type_; }
  TypeMeta dtype() const { return type_; }
  TypeMeta type() const { return type_; }
  TensorOptions options() const { return TensorOptions(type_).device(kCUDA); }

  void* data_ptr() const { return data_; }
  void* mutable_data_ptr() const { return data_; }
  const void* const_data_ptr() const { return data_; }
  template <class T>
  T* data_ptr() const {
    using Value = std::remove_const_t<T>;
    if (CppTypeToScalarType<Value>::value != type_) detail::Fail("expected another scalar type");
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class Index = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, Index> generic_packed_accessor() const {
    if (dim() != static_cast<int64_t>(N)) detail::Fail("expected another number of dimensions");
    return {data_ptr<T>(), sizes_.data(), strides_.data()};
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() const {
    return generic_packed_accessor<T, N, PtrTraits, int32_t>();
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() const {
    return generic_packed_accessor<T, N, PtrTraits, int64_t>();
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class Index = int64_t>
  PackedTensorAccessor<T, N, PtrTraits, Index> packed_accessor() const {
    return generic_packed_accessor<T, N, PtrTraits, Index>();
  }

  // Views. `offset` counts elements from the storage's begin.
  Tensor as_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset = {}) const {
    Tensor view = *this;
    if (offset) view.data_ = static_cast<char*>(storage_.get()) + *offset * element_size();
    view.sizes_ = sizes.vec();
    view.strides_ = strides.vec();
    return view;
  }
  Tensor view(IntArrayRef shape) const {
    if (!is_contiguous()) kgrpo_torch_form::End(kgrpo_torch_form::kCopies);
    std::vector<int64_t> sizes = shape.vec();
    int64_t known = 1;
    for (const int64_t size : sizes) known *= size == -1 ? 1 : size;
    for (int64_t& size : sizes) size = size == -1 && known > 0 ? numel() / known : size;
    Tensor view(storage_, type_, sizes);
    view.data_ = data_;
    if (view.numel() != numel()) detail::Fail("shape is invalid for input");
    return view;
  }
  Tensor reshape(IntArrayRef shape) const { return view(shape); }
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const {
    if (!is_contiguous()) kgrpo_torch_form::End(kgrpo_torch_form::kCopies);
    return *this;
  }
  Tensor flatten(int64_t from = 0, int64_t to = -1) const {
    if (dim() == 0) return view({1});
    std::vector<int64_t> sizes(sizes_.begin(), sizes_.begin() + static_cast<int64_t>(Axis(from)));
    sizes.push_back(1);
    for (size_t d = Axis(from); d <= Axis(to); ++d) sizes.back() *= sizes_[d];
    sizes.insert(sizes.end(), sizes_.begin() + static_cast<int64_t>(Axis(to)) + 1, sizes_.end());
    return view(sizes);
  }
  Tensor permute(IntArrayRef order) const {
    Tensor view = *this;
    for (size_t d = 0; d < order.size(); ++d) {
      view.sizes_[d] = size(order[d]);
      view.strides_[d] = stride(order[d]);
    }
    return view;
  }
  Tensor transpose(int64_t a, int64_t b) const {
    Tensor view = *this;
    std::swap(view.sizes_[Axis(a)], view.sizes_[Axis(b)]);
    std::swap(view.strides_[Axis(a)], view.strides_[Axis(b)]);
    return view;
  }
  Tensor t() const { return dim() < 2 ? *this : transpose(0, 1); }
  Tensor squeeze() const {
    Tensor view = *this;
    for (int64_t d = dim(); d-- > 0;) view = view.squeeze(d);
    return view;
  }
  Tensor squeeze(int64_t d) const { return size(d) == 1 ? Without(Axis(d)) : *this; }
  Tensor unsqueeze(int64_t d) const {
    Tensor view = *this;
    const auto axis = static_cast<int64_t>(d < 0 ? d + dim() + 1 : d);
    view.sizes_.insert(view.sizes_.begin() + axis, 1);
    view.strides_.insert(view.strides_.begin() + axis,
                         axis < dim() ? sizes_[static_cast<size_t>(axis)] * strides_[static_cast<size_t>(axis)] : 1);
    return view;
  }
  Tensor expand(IntArrayRef sizes, bool = false) const {
    Tensor view = *this;
    const size_t more = sizes.size() - sizes_.size();
    view.sizes_ = sizes.vec();
    view.strides_.insert(view.strides_.begin(), more, 0);
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int64_t own = d < more ? 1 : sizes_[d - more];
      if (sizes[d] == -1) view.sizes_[d] = own;
      if (own == 1 && view.sizes_[d] != 1) view.strides_[d] = 0;
    }
    return view;
  }
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  Tensor narrow(int64_t d, int64_t from, int64_t count) const {
    Tensor view = *this;
    view.data_ += from * stride(d) * element_size();
    view.sizes_[Axis(d)] = count;
    return view;
  }
  Tensor slice(int64_t d, std::optional<int64_t> from = {}, std::optional<int64_t> to = {}, int64_t step = 1) const {
    const auto at = [&](std::optional<int64_t> i, int64_t otherwise) {
      const int64_t value = i ? *i < 0 ? *i + size(d) : *i : otherwise;
      return std::max<int64_t>(0, std::min(value, size(d)));
    };
    const int64_t begin = at(from, 0), end = std::max(begin, at(to, size(d)));
    Tensor view = narrow(d, begin, (end - begin + step - 1) / step);
    view.strides_[Axis(d)] *= step;
    return view;
  }
  Tensor select(int64_t d, int64_t i) const { return narrow(d, i < 0 ? i + size(d) : i, 1).Without(Axis(d)); }
  Tensor operator[](int64_t i) const { return select(0, i); }
  Tensor detach() const { return *this; }

  // Conversions that change nothing.
  template <class T>
  Tensor to(const T& target, bool = false, bool = false) const {
    const TensorOptions options(target);
    if ((options.has_dtype() && options.dtype() != type_) || (options.has_device() && options.device().is_cpu()))
      kgrpo_torch_form::End(kgrpo_torch_form::kCopies);
    return *this;
  }
  Tensor to(Device place, ScalarType type, bool = false, bool = false) const {
    return to(TensorOptions(type).device(place));
  }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor cuda() const { return *this; }

  const Tensor& zero_() const {
    if (!is_contiguous()) kgrpo_torch_form::End(kgrpo_torch_form::kCopies);
    if (cudaMemsetAsync(data_, 0, nbytes(), nullptr) != cudaSuccess) detail::Fail("zeros failed");
    return *this;
  }
  Tensor new_empty(IntArrayRef sizes, const TensorOptions& options = {}) const;
  Tensor new_zeros(IntArrayRef sizes, const TensorOptions& options = {}) const {
    return new_empty(sizes, options).zero_();
  }

 private:
  size_t Axis(int64_t d) const {
    if (d < -dim() || d >= dim()) detail::Fail("Dimension out of range");
    return static_cast<size_t>(d < 0 ? d + dim() : d);
  }
  Tensor Without(size_t d) const {
    Tensor view = *this;
    view.sizes_.erase(view.sizes_.begin() + static_cast<int64_t>(d));
    view.strides_.erase(view.strides_.begin() + static_cast<int64_t>(d));
    return view;
  }

  std::shared_ptr<void> storage_;
  char* data_ = nullptr;
  ScalarType type_ = ScalarType::Undefined;
  std::vector<int64_t> sizes_, strides_;
  bool defined_ = false;
};
using TensorList = ArrayRef<Tensor>;

inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}, std::optional<MemoryFormat> = {}) {
  if (!options.device().is_cuda()) kgrpo_torch_form::End(kgrpo_torch_form::kOnCpu);
  size_t bytes = options.dtype().itemsize();
  for (const int64_t size : sizes) bytes *= static_cast<size_t>(std::max<int64_t>(size, 0));
  return Tensor(kgrpo_torch_form::Allocate(bytes), options.dtype(), sizes);
}
inline Tensor empty_like(const Tensor& like, const TensorOptions& options = {}, std::optional<MemoryFormat> = {}) {
  return empty(like.sizes(), TensorOptions(options.has_dtype() ? options.dtype() : like.dtype())
                                 .device(options.has_device() ? options.device() : like.device()));
}
inline Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {}) {
  int64_t elements = 1;
  for (size_t d = 0; d < sizes.size(); ++d) elements += (sizes[d] - 1) * strides[d];
  return empty(IntArrayRef(elements), options).as_strided(sizes, strides);
}
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) {
  return empty(sizes, options).zero_();
}
inline Tensor zeros_like(const Tensor& like, const TensorOptions& options = {}, std::optional<MemoryFormat> = {}) {
  return empty_like(like, options).zero_();
}
inline Tensor Tensor::new_empty(IntArrayRef sizes, const TensorOptions& options) const {
  return empty(sizes, TensorOptions(options.has_dtype() ? options.dtype() : dtype()).device(kCUDA));
}

using std::nullopt;
using std::optional;
struct NoGradGuard {};
struct InferenceMode {
  explicit InferenceMode(bool = true) {}
};

// --- streams, guards and the device ---

struct OptionalDeviceGuard {
  template <class... T>
  explicit OptionalDeviceGuard(const T&...) {}
  template <class T>
  void set_device(const T&) {}
};
using DeviceGuard = OptionalDeviceGuard;
inline Device device_of(const Tensor& tensor) {
  return tensor.device();
}

namespace cuda {
struct CUDAStream {
  cudaStream_t stream() const { return nullptr; }
  operator cudaStream_t() const { return nullptr; }
  DeviceIndex device_index() const { return 0; }
  void synchronize() const { cudaStreamSynchronize(nullptr); }
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) {
  return {};
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) {
  return {};
}
using CUDAGuard = OptionalDeviceGuard;
using OptionalCUDAGuard = OptionalDeviceGuard;
inline DeviceIndex current_device() {
  return 0;
}
inline DeviceIndex device_count() {
  return 1;
}
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp found = {};
    cudaGetDeviceProperties(&found, 0);
    return found;
  }();
  return &properties;
}
inline cudaDeviceProp* getDeviceProperties(int64_t) {
  return getCurrentDeviceProperties();
}
inline int warp_size() {
  return 32;
}
}  // namespace cuda

}  // namespace at

namespace caffe2 {
using at::TypeMeta;
}
namespace c10 {
using namespace at;
}
namespace torch {
using namespace at;
}

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
inline arg operator""_a(const char* name, size_t) {
  return arg(name);
}
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

// --- dispatch over dtypes ---

#define AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, hint, ...)            \
  case enum_type: {                                                      \
    using hint [[maybe_unused]] = ::at::ScalarTypeToCPPTypeT<enum_type>; \
    return __VA_ARGS__();                                                \
  }
#define AT_DISPATCH_CASE(enum_type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                             \
  [&] {                                                                                 \
    switch (static_cast<::at::ScalarType>(TYPE)) {                                      \
      __VA_ARGS__ default : ::at::detail::Fail(NAME, "not implemented for this dtype"); \
    }                                                                                   \
  }()
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::at::ScalarType::Double, __VA_ARGS__) AT_DISPATCH_CASE(::at::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::at::ScalarType::Half, __VA_ARGS__) AT_DISPATCH_CASE(::at::ScalarType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)            \
  AT_DISPATCH_CASE(::at::ScalarType::Byte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::ScalarType::Char, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::ScalarType::Int, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::at::ScalarType::Long, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define KGRPO_DISPATCH(KIND, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_##KIND(__VA_ARGS__))
#define KGRPO_DISPATCH_AND(KIND, T1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_##KIND(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define KGRPO_DISPATCH_AND2(KIND, T1, T2, TYPE, NAME, ...)                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                            \
                     AT_DISPATCH_CASE_##KIND(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define KGRPO_DISPATCH_AND3(KIND, T1, T2, T3, TYPE, NAME, ...)                              \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                            \
                     AT_DISPATCH_CASE_##KIND(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(T2, __VA_ARGS__) AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES(...) KGRPO_DISPATCH(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(...) KGRPO_DISPATCH_AND(FLOATING_TYPES, ::at::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(...) KGRPO_DISPATCH_AND(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(...) KGRPO_DISPATCH_AND2(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(...) KGRPO_DISPATCH_AND3(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(...) KGRPO_DISPATCH(REDUCED_FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(...) KGRPO_DISPATCH(INTEGRAL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(...) KGRPO_DISPATCH(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_HALF(...) KGRPO_DISPATCH_AND(ALL_TYPES, ::at::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(...) KGRPO_DISPATCH_AND(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(...) KGRPO_DISPATCH_AND2(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(...) KGRPO_DISPATCH_AND3(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                  \
                     AT_PRIVATE_CASE_TYPE_USING_HINT(::at::ScalarType::Int, index_t, __VA_ARGS__) \
                         AT_PRIVATE_CASE_TYPE_USING_HINT(::at::ScalarType::Long, index_t, __VA_ARGS__))
