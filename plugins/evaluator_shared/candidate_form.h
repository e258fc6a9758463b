// The forms that a candidate may have: our launch function, PyTorch's forward, or a TVM-FFI function. Says which one a
// source has, and what the compiler puts around it. Used by Compiler and by evaluator_cuda's workers.
#ifndef KGRPO_EVALUATOR_SHARED_CANDIDATE_FORM_H
#define KGRPO_EVALUATOR_SHARED_CANDIDATE_FORM_H

#include <string>
#include <vector>

#include "evaluator_shared/compiled_kernel.h"    // CompiledKernel
#include "evaluator_shared/kernel_evaluation.h"  // Trouble
#include "evaluator_shared/problem.h"            // Problem

namespace kgrpo::evaluator {

enum class CandidateForm {
  kLaunch,  // extern "C" void launch(...): every evaluator's
  kTorch,   // torch::Tensor forward(torch::Tensor, ...)
  kTvmFfi,  // __tvm_ffi_NAME, as TVM_FFI_DLL_EXPORT_TYPED_FUNC defines it
};

// Returns the form of a source, by what its text defines outside comments and strings.
CandidateForm FormOf(const std::string& source);

// The places of the libraries of the other two forms.
struct FormLibraries {
  std::string torch;    // the folder that holds include/ and lib/ of libtorch; "": not there
  std::string tvm_ffi;  // likewise of apache-tvm-ffi
  std::string helpers;  // the evaluators' helper folder

  // Takes what is configured, else KGRPO_LIBTORCH and KGRPO_TVM_FFI, else the libtorch that is installed beside us or
  // that this build was made with. A folder without the libraries counts as not there.
  static FormLibraries Find(const std::string& torch, const std::string& tvm_ffi, const std::string& helpers);

  // Folders that a compiler and a worker must be able to read.
  std::vector<std::string> Readable() const;
  // nvcc's arguments for the form's headers and libraries.
  std::vector<std::string> CompilerArguments(CandidateForm form) const;
  // Identifies the libraries that code of this form is compiled with: part of the key of cached compiles.
  std::string Version(CandidateForm form) const;
  // Returns why no candidate of this form can be judged for the problem, in a sentence, or "".
  std::string WhyNot(CandidateForm form, const Problem& problem) const;
};

// The sentence with which every evaluator without a GPU refuses the form.
std::string NeedsGpu(CandidateForm form);

// The text before and after a source of this form. It defines kgrpo_call, which takes pointers to the parameters'
// values, followed by pointers to each tensor's extents.
std::string FormPrologue(CandidateForm form);
std::string FormEpilogue(CandidateForm form, const Problem& problem, const std::string& source);

// Returns whether a source of this form may include the header.
bool FormAllowsHeader(CandidateForm form, const std::string& header);

// Returns why an object's undefined symbols are refused, or "": operators of PyTorch's that compute, and lookups of
// functions by name. Called in addition to CheckSymbols.
std::string CheckFormSymbols(const std::vector<std::string>& undefined);

// Returns whether the host code uses the libraries of one of the other two forms.
bool UsesFormLibraries(const CompiledKernel& kernel);

// The verdict on a worker's process that ended with this code because its candidate broke the form; none for others.
Trouble FormBroken(int exit_code);

}  // namespace kgrpo::evaluator

#endif
