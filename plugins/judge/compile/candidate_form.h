// The forms that a candidate may have: our launch function, PyTorch's forward, a TVM-FFI function, PTX, or Triton. Says
// which one a source has, and what the compiler puts around it. Used by Compiler and by the evaluators' workers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/compile/compiled_kernel.h"    // CompiledKernel
#include "judge/problem/problem.h"            // Problem
#include "judge/verdict/kernel_evaluation.h"  // Trouble

namespace kgrpo::evaluator {

enum class CandidateForm {
  kLaunch,  // extern "C" void launch(...)
  kTorch,   // torch::Tensor forward(torch::Tensor, ...); tensors are those of form_include/kgrpo/torch_tensor.h
  kTvmFfi,  // __tvm_ffi_NAME, as TVM_FFI_DLL_EXPORT_TYPED_FUNC defines it; on a GPU only
  kPtx,     // PTX with a launch table (interpreter/launch_table.h); without a GPU only
  kTriton,  // Python with @triton.jit kernels, which TritonRecorder turns into PTX; without a GPU only
};

// Returns the form of a source, by what its text defines and includes outside comments and strings. A source that
// defines `entry` without tensors has the launch form.
CandidateForm FormOf(const std::string& source, const std::string& entry = "launch");

// Returns whether a source is PTX: its first text outside comments is a .version directive.
bool IsPtx(const std::string& source);

// Returns whether a source is a Python file that imports Triton.
bool IsTriton(const std::string& source);

// What messages call a candidate's own file.
inline constexpr char kPtxFile[] = "kernel.ptx";
inline const char* OwnFileName(const std::string& source) { return IsPtx(source) ? kPtxFile : "kernel.cu"; }

// Returns the function of a source in PyTorch's form that is judged: the problem's `entry` or `forward`, as the source
// defines or PYBIND11_MODULE binds it; else the only one that is bound, or that no other one calls; else `entry`.
std::string TensorFunctionOf(const std::string& source, const Problem& problem);

// The names of the functions that a source exports to TVM-FFI, in order.
inline constexpr char kTvmFfiSymbol[] = "__tvm_ffi_";
std::vector<std::string> ExportedFunctions(const std::string& source);

// The place of apache-tvm-ffi.
struct TvmFfi {
  std::string folder;  // contains include/ and lib/; "": not there

  // Takes the configured folder, else KGRPO_TVM_FFI. A folder without the library counts as not there.
  static TvmFfi Find(const std::string& configured);
  // Folders that a compiler and a worker must be able to read.
  std::vector<std::string> Readable() const;
  // Identifies the library: part of the key of cached compiles.
  std::string Version() const;
};

// Returns why no candidate of this form can be judged for the problem, in a sentence, or "". `tvm_ffi` is absent if the
// evaluator runs no such candidates.
std::string WhyNotForm(CandidateForm form, const Problem& problem, const std::optional<TvmFfi>& tvm_ffi);

// nvcc's arguments for the form's headers and libraries. `helpers`: the evaluators' helper folder.
std::vector<std::string> FormArguments(CandidateForm form, const std::string& helpers,
                                       const std::optional<TvmFfi>& tvm_ffi);

// The source with blanks in place of its includes of PyTorch's headers, whose place FormPrologue takes.
std::string WithoutTorchHeaders(const std::string& source);

// Returns a sentence that names the first function, member or macro of PyTorch that form_include/kgrpo/torch_*.h lack,
// by the compiler's first error, or "".
std::string MissingOfTorch(const std::string& diagnosis);

// The text before and after a source of this form (candidate_form_text.cc). It defines kgrpo_call, which takes pointers
// to the parameters' values, followed by pointers to each tensor's extents.
std::string FormPrologue(CandidateForm form, const std::string& source);
std::string FormEpilogue(CandidateForm form, const Problem& problem, const std::string& source);

// Returns whether a source of this form may include the header.
bool FormAllowsHeader(CandidateForm form, const std::string& header);

// Returns why an object's undefined symbols are refused, or "": lookups of functions by name. Called in addition to
// CheckSymbols.
std::string CheckFormSymbols(const std::vector<std::string>& undefined);

// Returns whether the host code uses TVM-FFI's library.
bool UsesFormLibraries(const CompiledKernel& kernel);

// The verdict on a worker's process that ended with this code because its candidate broke the form; none for others.
Trouble FormBroken(int exit_code);

}  // namespace kgrpo::evaluator
