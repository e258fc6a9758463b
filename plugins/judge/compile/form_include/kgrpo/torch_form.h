// Included before a candidate in PyTorch's form (judge/compile/candidate_form.cc): makes tensors of a call's
// pointers, calls the candidate's function, and puts the results into the outputs. The candidate's macros come later
// and cannot change it.
#pragma once

#include <kgrpo/torch_checks.h>
#include <kgrpo/torch_dispatch.h>
#include <kgrpo/torch_tensor.h>

#include <initializer_list>

namespace kgrpo_torch_form {

// Memory of an output, lent to the first allocation of exactly its size.
struct Lent {
  void* data;
  size_t bytes;
};
static std::vector<Lent> lent_outputs;  // a worker calls from one thread; each loaded copy has its own

inline std::shared_ptr<void> Allocate(size_t bytes) {
  for (size_t i = 0; i < lent_outputs.size(); ++i) {
    if (lent_outputs[i].bytes != bytes) continue;
    void* const data = lent_outputs[i].data;
    lent_outputs.erase(lent_outputs.begin() + static_cast<int64_t>(i));
    return {data, [](void*) {}};
  }
  void* data = nullptr;
  if (bytes > 0 && cudaMallocAsync(&data, bytes, nullptr) != cudaSuccess) at::detail::Fail("out of device memory");
  return {data, [](void* memory) { cudaFreeAsync(memory, nullptr); }};
}

struct Parameter {
  bool output;
  at::ScalarType type;
  int rank;  // -1: a scalar
};

// One call. `arguments`: pointers to each parameter's value, and then to the extents of each tensor in order.
class Call {
 public:
  Call(void** arguments, std::initializer_list<Parameter> parameters) : arguments_(arguments), parameters_(parameters) {
    size_t next = parameters_.size();
    for (const Parameter& parameter : parameters_) {
      shapes_.emplace_back();
      for (int d = 0; d < parameter.rank; ++d)
        shapes_.back().push_back(*static_cast<const int64_t*>(arguments[next++]));
    }
  }

  at::Tensor Tensor(size_t i) const {
    return {std::shared_ptr<void>(*static_cast<void**>(arguments_[i]), [](void*) {}), parameters_[i].type, shapes_[i]};
  }
  template <class T>
  T Scalar(size_t i) const {
    return *static_cast<const T*>(arguments_[i]);
  }

  void LendOutputs() const {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].output) lent_outputs.push_back({Tensor(i).data_ptr(), Tensor(i).nbytes()});
    }
  }

  // Puts the results into the outputs. Ends the process if they do not suit.
  void Return(const std::vector<at::Tensor>& results) const {
    struct Copy {
      at::Tensor to;
      at::Tensor from;
      std::shared_ptr<void> aside;
    };
    std::vector<Copy> copies;
    size_t next = 0;
    lent_outputs.clear();
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].output) continue;
      if (next == results.size()) End(kOtherCount);
      const at::Tensor& result = results[next++];
      const at::Tensor output = Tensor(i);
      if (!result.defined()) End(kOtherShape);
      if (result.scalar_type() != output.scalar_type()) End(kOtherType);
      // PyTorch knows the shapes {} and {1} of a result of one element.
      const bool single = result.numel() == 1 && output.dim() == 1 && output.numel() == 1;
      if (!single && result.sizes() != output.sizes()) End(kOtherShape);
      if (!result.is_contiguous()) End(kGaps);
      if (result.data_ptr() != output.data_ptr()) copies.push_back({output, result, nullptr});
    }
    if (next != results.size()) End(kOtherCount);
    const auto copy = [](void* to, const void* from, const at::Tensor& tensor) {
      cudaMemcpyAsync(to, from, tensor.nbytes(), cudaMemcpyDeviceToDevice, nullptr);
    };
    // A result may be in another output's memory, and that output's copy would overwrite it: several results are
    // copied aside first.
    for (Copy& one : copies) {
      if (copies.size() < 2) break;
      one.aside = Allocate(one.from.nbytes());
      copy(one.aside.get(), one.from.data_ptr(), one.from);
    }
    for (const Copy& one : copies) copy(one.to.data_ptr(), one.aside ? one.aside.get() : one.from.data_ptr(), one.to);
  }

 private:
  void** arguments_;
  std::vector<Parameter> parameters_;
  std::vector<std::vector<int64_t>> shapes_;
};

inline std::vector<at::Tensor> Results(const at::Tensor& tensor) { return {tensor}; }
inline std::vector<at::Tensor> Results(const std::vector<at::Tensor>& tensors) { return tensors; }
template <size_t N>
std::vector<at::Tensor> Results(const std::array<at::Tensor, N>& tensors) {
  return {tensors.begin(), tensors.end()};
}
template <class... T>
std::vector<at::Tensor> Results(const std::tuple<T...>& tensors) {
  return std::apply([](const auto&... each) { return std::vector<at::Tensor>{each...}; }, tensors);
}

// Arguments that the candidate's function may take; `outputs`: they contain the outputs, which it then writes.
template <bool outputs, class... T>
struct Arguments {
  static constexpr bool kOutputs = outputs;
  std::tuple<T...> values;
};
template <bool outputs, class... T>
Arguments<outputs, T...> With(T... values) {
  return {std::make_tuple(values...)};
}

template <class T>
constexpr bool kNever = false;
template <class Function, class Arguments>
struct Takes;
template <class Function, bool outputs, class... T>
struct Takes<Function, Arguments<outputs, T...>> : std::is_invocable<Function, T&...> {};

// Calls `function` with the first arguments that it takes.
template <class Function, class First, class... More>
void Run(const Call& call, Function function, First first, More... more) {
  if constexpr (Takes<Function, First>::value) {
    using Result = decltype(std::apply(function, first.values));
    if (!First::kOutputs) call.LendOutputs();
    try {
      if constexpr (First::kOutputs || std::is_void_v<Result>) {
        std::apply(function, first.values);
        if (!First::kOutputs) call.Return({});
      } else {
        call.Return(Results(std::apply(function, first.values)));
      }
    } catch (...) {
      End(kThrew);
    }
  } else if constexpr (sizeof...(More) > 0) {
    Run(call, function, more...);
  } else {
    static_assert(kNever<Function>,
                  "the function takes neither the problem's input tensors in order (with or without its scalars after "
                  "them), nor all of its tensors");
  }
}

}  // namespace kgrpo_torch_form
