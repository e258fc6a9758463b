// Included before a candidate in PyTorch's form (evaluator_shared/candidate_form.cc): makes tensors of a call's
// pointers, calls forward, and puts the results into the outputs. The candidate's macros come later and cannot change
// it. Code that does not depend on forward's type is in libkgrpo_torch_form.so (evaluator_cuda/torch_form).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <vector>

namespace kgrpo_torch_form {

// Exit codes of a process whose candidate broke the form; FormBroken (candidate_form.cc) has a sentence for each.
constexpr int kOtherShape = 90, kOtherType = 91, kOtherPlace = 92, kGaps = 93, kThrew = 94, kOtherCount = 95;

struct Parameter {
  bool output;  // written by what forward returns; an inout is none
  at::ScalarType type;
  int rank;  // -1: a scalar
};

// One call. `arguments`: pointers to each parameter's value, and then to the extents of each tensor in order.
class Call {
 public:
  Call(void** arguments, std::initializer_list<Parameter> parameters);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The tensor of parameter i, which is no output.
  at::Tensor Tensor(size_t i) const;

  template <class T>
  T Scalar(size_t i) const {
    return *static_cast<const T*>(arguments_[i]);
  }

  // Puts the results of forward into the outputs. Ends the process where they do not suit.
  void Return(const std::vector<at::Tensor>& results);

  // Runs `body`; ends the process where it throws.
  template <class Body>
  void Guarded(Body body) {
    try {
      body();
    } catch (...) {
      End(kThrew);
    }
  }

 private:
  [[noreturn]] static void End(int code);

  struct Inside;
  void** arguments_;
  std::vector<Parameter> parameters_;
  std::vector<std::vector<int64_t>> shapes_;
  Inside* inside_;
};

inline std::vector<at::Tensor> Results(const at::Tensor& tensor) {
  return {tensor};
}
inline std::vector<at::Tensor> Results(const std::vector<at::Tensor>& tensors) {
  return tensors;
}
template <class... T>
std::vector<at::Tensor> Results(const std::tuple<T...>& tensors) {
  return std::apply([](const auto&... each) { return std::vector<at::Tensor>{each...}; }, tensors);
}

template <class T>
constexpr bool kNever = false;

template <class Forward, class Arguments>
struct Takes;
template <class Forward, class... T>
struct Takes<Forward, std::tuple<T...>> : std::is_invocable<Forward, T&...> {};

// `forward` with the tensors and the scalars, or with the tensors alone, whichever it takes.
template <class Forward, class Tensors, class Scalars>
void Run(Call& call, Forward forward, Tensors tensors, const Scalars& scalars) {
  auto both = std::tuple_cat(tensors, scalars);
  const auto run = [&](auto& arguments) {
    call.Guarded([&] {
      using Result = decltype(std::apply(forward, arguments));
      if constexpr (std::is_void_v<Result>) {
        std::apply(forward, arguments);
        call.Return({});
      } else {
        call.Return(Results(std::apply(forward, arguments)));
      }
    });
  };
  if constexpr (Takes<Forward, decltype(both)>::value) {
    run(both);
  } else if constexpr (Takes<Forward, Tensors>::value) {
    run(tensors);
  } else {
    static_assert(kNever<Forward>,
                  "forward takes neither the problem's input tensors in order, nor those and its scalars");
  }
}

}  // namespace kgrpo_torch_form
