// libkgrpo_torch_form.so: PyTorch as far as a candidate in PyTorch's form has it. Linked by such a candidate, loaded
// with it into the worker process (evaluator_cuda/worker). Of libtorch only the CPU's libraries and libc10_cuda are
// there, and this file is the CUDA backend: it allocates, makes views and fills with zeros. An operator that computes
// is not there, so no library's kernel can stand in for a candidate's own.
#include <ATen/ATen.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/InferenceMode.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>
#include <unistd.h>

#include "evaluator_shared/form_include/kgrpo/torch_form.h"

namespace kgrpo_torch_form {
namespace {

const c10::Device kDevice(c10::kCUDA, 0);

// Memory of an output, lent to the first allocation of exactly its size. A result that lies there need not be copied.
struct Lent {
  void* data;
  size_t bytes;
  bool taken;
};
std::vector<Lent>& LentOutputs() {
  static std::vector<Lent> lent;  // a worker calls from one thread
  return lent;
}

void Nothing(void*) {}
void FreeLater(void* data) {
  cudaFreeAsync(data, nullptr);
}

c10::DataPtr Allocate(size_t bytes) {
  for (Lent& output : LentOutputs()) {
    if (output.taken || output.bytes != bytes) continue;
    output.taken = true;
    return {output.data, output.data, &Nothing, kDevice};
  }
  void* data = nullptr;
  if (bytes > 0) TORCH_CHECK(cudaMallocAsync(&data, bytes, nullptr) == cudaSuccess, "out of device memory");
  return {data, data, &FreeLater, kDevice};
}

at::Tensor EmptyStrided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> type,
                        std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size), strides = C10_AS_INTARRAYREF_SLOW(stride);
  const caffe2::TypeMeta meta = c10::scalarTypeToTypeMeta(type.value_or(at::kFloat));
  int64_t elements = 1;
  for (size_t i = 0; i < sizes.size(); ++i) elements = sizes[i] == 0 ? 0 : elements + (sizes[i] - 1) * strides[i];
  for (const int64_t extent : sizes) elements = extent == 0 ? 0 : elements;
  const size_t bytes = static_cast<size_t>(elements) * meta.itemsize();
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, Allocate(bytes), nullptr, false);
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), meta);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

at::Tensor Empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  if (format && *format == at::MemoryFormat::ChannelsLast) strides = c10::get_channels_last_strides_2d(sizes);
  if (format && *format == at::MemoryFormat::ChannelsLast3d) strides = c10::get_channels_last_strides_3d(sizes);
  return EmptyStrided(size, c10::fromIntArrayRefSlow(strides), type, layout, device, pinned);
}

at::Tensor& Zero(at::Tensor& self) {
  TORCH_CHECK(self.is_non_overlapping_and_dense(), "zeros of a tensor with gaps");
  TORCH_CHECK(cudaMemsetAsync(self.data_ptr(), 0, self.nbytes(), nullptr) == cudaSuccess, "zeros failed");
  return self;
}

at::Tensor View(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor AsStrided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                     std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
      offset ? std::optional<int64_t>(offset->guard_int(__FILE__, __LINE__)) : std::nullopt);
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &Empty);
  library.impl("empty_strided", &EmptyStrided);
  library.impl("zero_", &Zero);
  library.impl("view", &View);
  library.impl("as_strided", &AsStrided);
}

}  // namespace

struct Call::Inside {
  c10::InferenceMode no_autograd;
};

Call::Call(void** arguments, std::initializer_list<Parameter> parameters)
    : arguments_(arguments), parameters_(parameters), inside_(new Inside) {
  LentOutputs().clear();
  size_t next = parameters_.size();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    std::vector<int64_t> shape;
    size_t elements = 1;
    for (int d = 0; d < parameters_[i].rank; ++d) {
      shape.push_back(*static_cast<const int64_t*>(arguments_[next++]));
      elements *= static_cast<size_t>(shape.back());
    }
    shapes_.push_back(shape);
    if (parameters_[i].output)
      LentOutputs().push_back(
          {*static_cast<void**>(arguments_[i]), elements * c10::elementSize(parameters_[i].type), false});
  }
}

Call::~Call() {
  LentOutputs().clear();
  delete inside_;
}

void Call::End(int code) {
  _exit(code);
}

at::Tensor Call::Tensor(size_t i) const {
  return at::for_blob(*static_cast<void**>(arguments_[i]), shapes_[i])
      .options(at::TensorOptions().dtype(parameters_[i].type).device(kDevice))
      .target_device(kDevice)
      .make_tensor();
}

void Call::Return(const std::vector<at::Tensor>& results) {
  struct Copy {
    void* target;
    const void* source;
    size_t bytes;
  };
  std::vector<Copy> copies;
  std::vector<c10::DataPtr> asides;
  size_t next = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].output) continue;
    if (next == results.size()) End(kOtherCount);
    const at::Tensor& result = results[next++];
    if (!result.defined() || result.device() != kDevice) End(kOtherPlace);
    if (result.scalar_type() != parameters_[i].type) End(kOtherType);
    // Of a result of one element PyTorch knows the shapes {} and {1}.
    const bool single = result.numel() == 1 && shapes_[i].size() == 1 && shapes_[i][0] == 1;
    if (!single && result.sizes() != at::IntArrayRef(shapes_[i])) End(kOtherShape);
    if (!result.is_contiguous()) End(kGaps);
    void* const output = *static_cast<void**>(arguments_[i]);
    if (result.data_ptr() != output) copies.push_back({output, result.data_ptr(), result.nbytes()});
  }
  if (next != results.size()) End(kOtherCount);
  // A result may lie in another output's memory, and that output's copy would overwrite it: several results are copied
  // aside first.
  const bool several = copies.size() > 1;
  LentOutputs().clear();
  for (Copy& copy : copies) {
    if (!several) break;
    c10::DataPtr aside = Allocate(copy.bytes);
    cudaMemcpyAsync(aside.get(), copy.source, copy.bytes, cudaMemcpyDeviceToDevice, nullptr);
    copy.source = aside.get();
    asides.push_back(std::move(aside));
  }
  for (const Copy& copy : copies)
    cudaMemcpyAsync(copy.target, copy.source, copy.bytes, cudaMemcpyDeviceToDevice, nullptr);
}

}  // namespace kgrpo_torch_form
