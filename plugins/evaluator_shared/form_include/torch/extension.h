// In place of PyTorch's torch/extension.h for candidates in PyTorch's form: the same tensors and factories, without
// Python, whose headers a judge's machine need not have, and without the autograd and nn headers, which take a compiler
// half a minute. A PYBIND11_MODULE is read and binds nothing.
#pragma once

#include <torch/types.h>

namespace pybind11 {
struct arg {
  explicit arg(const char*) {}
  template <class T>
  arg& operator=(T&&) {
    return *this;
  }
};
}  // namespace pybind11
namespace py = pybind11;

#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME candidate
#endif
#define PYBIND11_MODULE(name, variable) \
  template <class T>                    \
  [[maybe_unused]] static void kgrpo_binds_nothing(T& variable)
