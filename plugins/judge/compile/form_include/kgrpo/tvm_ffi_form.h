// Included before a candidate in TVM-FFI's form (judge/compile/candidate_form.cc): calls its function with a DLPack
// view of each tensor, outputs included, and with the scalars. The candidate's macros come later and cannot change it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <tvm/ffi/c_api.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>
#include <vector>

namespace kgrpo_tvm_ffi_form {

constexpr int kFailed = 96;  // FormBroken (candidate_form.cc) has a sentence for it

struct Parameter {
  int code, bits;  // as DLDataType has them
  int rank;        // -1: a scalar
};

using Function = int (*)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

inline TVMFFIAny ScalarOf(const Parameter& parameter, const void* value) {
  TVMFFIAny any = {};
  const auto read = [value](auto typed) {
    std::memcpy(&typed, value, sizeof typed);
    return typed;
  };
  if (parameter.code == kDLFloat || parameter.code == kDLBfloat) {
    any.type_index = kTVMFFIFloat;
    any.v_float64 = parameter.code == kDLBfloat ? static_cast<float>(read(__nv_bfloat16()))
                    : parameter.bits == 16      ? static_cast<float>(read(__half()))
                    : parameter.bits == 32      ? read(float())
                                                : read(double());
    return any;
  }
  any.type_index = parameter.code == kDLBool ? kTVMFFIBool : kTVMFFIInt;
  const bool is_signed = parameter.code == kDLInt;
  any.v_int64 = parameter.bits == 64   ? read(int64_t())
                : parameter.bits == 32 ? (is_signed ? read(int32_t()) : int64_t{read(uint32_t())})
                : is_signed            ? read(int8_t())
                                       : read(uint8_t());
  return any;
}

// `arguments`: pointers to each parameter's value, followed by pointers to the extents of each tensor in order. Calls
// the function with all parameters, or with the tensors alone if it refuses that.
inline void Run(Function function, void** arguments, std::initializer_list<Parameter> parameters) {
  const size_t count = parameters.size();
  std::vector<DLTensor> tensors(count);
  std::vector<std::vector<int64_t>> shapes(count), strides(count);
  std::vector<TVMFFIAny> all, tensors_only;
  size_t i = 0, next = count;
  for (const Parameter& parameter : parameters) {
    TVMFFIAny any = {};
    if (parameter.rank < 0) {
      any = ScalarOf(parameter, arguments[i]);
    } else {
      for (int d = 0; d < parameter.rank; ++d) shapes[i].push_back(*static_cast<const int64_t*>(arguments[next++]));
      strides[i].assign(shapes[i].size(), 1);
      for (size_t d = shapes[i].size(); d-- > 1;) strides[i][d - 1] = strides[i][d] * shapes[i][d];
      tensors[i].data = *static_cast<void**>(arguments[i]);
      tensors[i].device = {kDLCUDA, 0};
      tensors[i].ndim = parameter.rank;
      tensors[i].dtype = {static_cast<uint8_t>(parameter.code), static_cast<uint8_t>(parameter.bits), 1};
      tensors[i].shape = shapes[i].data();
      tensors[i].strides = strides[i].data();
      any.type_index = kTVMFFIDLTensorPtr;
      any.v_ptr = &tensors[i];
      tensors_only.push_back(any);
    }
    all.push_back(any);
    ++i;
  }
  static bool takes_all = true;  // false once it has refused them: it counts its arguments before it does anything
  TVMFFIAny result = {};
  if (takes_all) {
    if (function(nullptr, all.data(), static_cast<int32_t>(all.size()), &result) == 0) return;
    takes_all = false;
    result = {};
  }
  if (function(nullptr, tensors_only.data(), static_cast<int32_t>(tensors_only.size()), &result) != 0) _exit(kFailed);
}

}  // namespace kgrpo_tvm_ffi_form
