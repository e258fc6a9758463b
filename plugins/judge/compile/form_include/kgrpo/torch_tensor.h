// PyTorch's tensors on the evaluator's memory: views, allocation, accessors, streams (torch_types.h).
#pragma once

#include <kgrpo/torch_types.h>

namespace at {

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
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) { return empty(sizes, options).zero_(); }
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
inline Device device_of(const Tensor& tensor) { return tensor.device(); }

namespace cuda {
struct CUDAStream {
  cudaStream_t stream() const { return nullptr; }
  operator cudaStream_t() const { return nullptr; }
  DeviceIndex device_index() const { return 0; }
  void synchronize() const { cudaStreamSynchronize(nullptr); }
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) { return {}; }
using CUDAGuard = OptionalDeviceGuard;
using OptionalCUDAGuard = OptionalDeviceGuard;
inline DeviceIndex current_device() { return 0; }
inline DeviceIndex device_count() { return 1; }
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp found = {};
    cudaGetDeviceProperties(&found, 0);
    return found;
  }();
  return &properties;
}
inline cudaDeviceProp* getDeviceProperties(int64_t) { return getCurrentDeviceProperties(); }
inline int warp_size() { return 32; }
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
