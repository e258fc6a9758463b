// Calls a function of a problem's author (oracle.cc, checker.cc, inputs.cc) in kgrpo_trusted_worker, a process of its
// own, so that its end by a signal, an exit or a limit is a result here. Used by trusted_source.cc, source_oracle.cc
// and source_inputs.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo::evaluator {

// One call of a function
//   extern "C" void FUNCTION(void** tensors, const double* reals, const int64_t* wholes,
//                            void (*say)(const char* words, unsigned long bytes));
struct TrustedCall {
  struct Tensor {
    std::string name;
    void* data = nullptr;  // this process's elements, which the call gets a copy of; null: a scalar
    size_t bytes = 0;
    bool written = false;  // the copy's elements come back after a call that returned
  };
  std::string function;
  std::vector<Tensor> tensors;  // the three lists are passed as they are, an element a parameter
  std::vector<double> reals;
  std::vector<int64_t> wholes;
  bool at_end = true;         // each copy ends where a page ends; otherwise it begins where a page begins
  int processor_seconds = 0;  // the limit; five times that of wall clock
  bool last = false;          // the process serves no further call: what it reads may be hostile
};

// How a call ended.
struct CallEnd {
  std::string failure;  // "crashed (Segmentation fault)", "threw an exception", "accesses NAME out of its bounds", ...;
                        // empty: it returned
  std::string words;    // what it passed to `say`, at most 1,000 bytes
};

// Before and after each tensor is a page that the call may not access. Functions keep their static variables as long as
// their process lives. Throws Error(KGRPO_ERROR_UNAVAILABLE) where the process or its memory cannot be had. [any
// thread]
CallEnd CallTrusted(const std::string& library, const TrustedCall& call);

// Why the library cannot be loaded; empty if it can. Throws as CallTrusted does. [any thread]
std::string LoadTrusted(const std::string& library);

// What this process and kgrpo_trusted_worker send each other:
//   {"load", library}                                             ->  {why not}
//   {"call", library, function, places, reals, wholes, limits}    ->  {failure, words}
// `places`: a TrustedPlace a tensor; `limits`: one TrustedLimits. The tensors lie in memory that both have mapped,
// whose first word gets the number of a tensor, from 1, if the call accesses a page beside it, which ends the worker.
struct TrustedPlace {
  uint64_t begin, data, end;  // the page before the tensor, its first element, behind the page after it; 0: no tensor
};
struct TrustedLimits {
  uint64_t memory_bytes;  // the size of the memory, whole pages
  int64_t processor_seconds;
};
inline constexpr int kTrustedMemory = 4;  // the worker's descriptor
inline constexpr size_t kTrustedPage = 4096;
inline constexpr int kTrustedLoadSeconds = 60;
inline constexpr char kCannotBeCalled[] = "cannot be called: ";  // a failure that is not the function's begins with it

}  // namespace kgrpo::evaluator
