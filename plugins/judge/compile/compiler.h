// Compiles candidates: the include policy first, then the fast route or nvcc. One instance an evaluator.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "judge/compile/candidate_form.h"   // CandidateForm, TvmFfi
#include "judge/compile/compile_cache.h"    // CompileCache, CompileKey
#include "judge/compile/compiled_kernel.h"  // CompileOutcome
#include "judge/compile/cuda_toolkit.h"     // CudaToolkit
#include "judge/problem/problem.h"          // Problem
#include "judge/sandbox/sandbox.h"          // Sandbox

namespace kgrpo::evaluator {

class FastCompiler;

enum class CompileRoute { kFast, kNvcc };

// "nvcc"; anything else is the fast route, as the option schemas of the evaluators have it.
CompileRoute CompileRouteFromName(const std::string& name);

class Compiler {
 public:
  struct Options {
    CompileRoute route = CompileRoute::kFast;
    double seconds = 60;                 // of processor time: limit for one compile
    size_t workers = 2;                  // fast route: compile processes kept
    std::string library_directory;       // holds the libcudart.so.13 that objects are linked against
    int compute_capability = 90;         // of the device that machine code is made for
    bool count_host_code = false;        // objects call the counter of interpreter/client/host_code.cc
    std::string cache_file = {};         // keeps outcomes; "" for no cache
    std::optional<TvmFfi> tvm_ffi = {};  // absent if the evaluator runs no candidates in TVM-FFI's form
    bool takes_ptx = false;              // the evaluator runs candidates in PTX's form
    // Called once, with the reason why the fast route left a source to nvcc: a run with many such sources is slow. [any
    // thread]
    std::function<void(const std::string& why)> on_fallback = {};
    // Asked several times a second: true ends a compile, which then throws KGRPO_ERROR_CANCELLED. [any thread]
    std::function<bool()> stop = {};
  };

  // Starts the fast route's processes where it is chosen, and compiles a kernel of two lines by it. Throws
  // Error(KGRPO_ERROR_UNAVAILABLE) that says what is missing or too old, and what to do.
  Compiler(CudaToolkit toolkit, const Sandbox& sandbox, std::string helper_directory, Options options);
  ~Compiler();

  // Compiles by the configured route; by nvcc when `reference_route` or where the fast route does not understand the
  // source; not at all where the cache has the outcome. Whatever the source does is an outcome; throws Error only where
  // no compiler can be run. [any thread]
  CompileOutcome Compile(const Problem& problem, const std::string& source, bool reference_route);

  // Describes the compilers of thorough and of quick evaluations: "thorough: nvcc 13.0, V13.0.88 (/usr/local/cuda);
  // quick: NVRTC and g++, and nvcc for what they refuse".
  std::string Describe() const;

  // Identifies the compiler: part of the key of cached results.
  std::string Version() const;

 private:
  // Not in the other forms, whose headers run much host code that is not the candidate's.
  bool CountsHostCode(CandidateForm form) const { return options_.count_host_code && form == CandidateForm::kLaunch; }
  CompileKey KeyOf(const Problem& problem, const std::string& source, CandidateForm form, bool fast) const;
  CompileOutcome CompilePtx(const Problem& problem, const std::string& source);
  CompileOutcome CompileAnew(const Problem& problem, const std::string& source, CandidateForm form, bool fast);

  const CudaToolkit toolkit_;
  const Sandbox& sandbox_;
  const Options options_;
  const std::string host_compiler_;  // its version
  std::unique_ptr<FastCompiler> fast_;
  std::unique_ptr<CompileCache> cache_;
  std::once_flag fallback_told_;
};

// The message for the user when on_fallback is called.
std::string FallbackNotice(const std::string& why);

}  // namespace kgrpo::evaluator
