#include "judge/compile/compiler.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>

#include "cuda_source/declarations.h"
#include "cuda_source/lexer.h"
#include "judge/compile/elf_tables.h"
#include "judge/compile/entry_shim.h"
#include "judge/compile/fast_compile.h"
#include "judge/compile/nvcc_compile.h"
#include "judge/compile/source_policy.h"
#include "source_digest.h"  // made by the build

namespace kgrpo::evaluator {
namespace {

using cuda_source::DefinesFunction;

constexpr char kLaunch[] = "launch";  // accepted besides `entry`
constexpr double kTvmFfiPatience = 3;

// The part of a source that its launch function needs, on the same lines, without headers that are not allowed. ""
// where it is not understood, or where the headers are all that is not needed: a candidate that defines `launch` and no
// more is told to remove them.
std::string WhatIsNeeded(const Problem& problem, const std::string& source) {
  try {
    const cuda_source::CudaSource file("kernel.cu", source);
    const cuda_source::CudaFunction* const entry = file.Find(problem.entry);
    if (entry == nullptr) return "";
    const auto needed_by = [&](const std::function<bool(const std::string&)>& allowed) {
      return file.NeededBy(*entry, allowed, true);
    };
    if (problem.own_entry.empty() && needed_by([](const std::string&) { return true; }) == file.text()) return "";
    const std::string needed = needed_by([&problem](const std::string& include) {
      return CheckIncludes(include + "\n", problem.allowed_libraries).why.empty();
    });
    return CheckIncludes(needed, problem.allowed_libraries).why.empty() ? needed : "";
  } catch (const Error&) {
    return "";
  }
}

// Sets what is read from the object, or the verdict of one that is not the problem's or uses what is forbidden.
// `counted`: its host code must call the counter that is not its own.
void CheckObject(const Problem& problem, const std::string& source, CandidateForm form, bool counted,
                 CompileOutcome* outcome) {
  std::vector<std::string> functions;
  try {
    functions = DefinedFunctions(outcome->kernel.object);
    outcome->kernel.undefined = UndefinedSymbols(outcome->kernel.object);
  } catch (const Error& error) {  // the linker's own tables are well formed
    outcome->verdict = "forbidden";
    outcome->diagnosis = std::string(error.what()) + ". Host assembly of the source writes to the linker's sections.";
    return;
  }
  outcome->kernel.source = source;
  if (form == CandidateForm::kLaunch &&
      std::find(functions.begin(), functions.end(), problem.entry) == functions.end()) {
    outcome->verdict = "not_compiled";
    outcome->diagnosis = "The source does not define " + problem.Signature() +
                         (problem.own_entry.empty() ? "." : ", nor " + problem.own_entry + ".");
    return;
  }
  std::string why = CheckSymbols(outcome->kernel.undefined);
  if (counted &&
      std::none_of(outcome->kernel.undefined.begin(), outcome->kernel.undefined.end(),
                   [](const std::string& symbol) { return symbol.substr(0, symbol.find('@')) == kHostCodeCounter; }))
    why = std::string("The host code defines ") + kHostCodeCounter + ", which is not allowed";
  if (why.empty() && form != CandidateForm::kLaunch) why = CheckFormSymbols(outcome->kernel.undefined);
  if (why.empty()) return;
  outcome->verdict = "forbidden";
  outcome->diagnosis = why + ".";
}

}  // namespace

CompileRoute CompileRouteFromName(const std::string& name) {
  return name == "nvcc" ? CompileRoute::kNvcc : CompileRoute::kFast;
}

Compiler::Compiler(CudaToolkit toolkit, const Sandbox& sandbox, std::string helper_directory, Options options)
    : toolkit_(std::move(toolkit)),
      sandbox_(sandbox),
      options_(std::move(options)),
      host_compiler_(HostCompilerVersion()) {
  toolkit_.CheckArchitecture(options_.compute_capability);
  if (options_.route == CompileRoute::kFast) {
    toolkit_.CheckNvrtc();
    fast_ = std::make_unique<FastCompiler>(toolkit_, sandbox_, std::move(helper_directory), options_.compute_capability,
                                           options_.workers, options_.seconds, options_.count_host_code, options_.stop);
    fast_->Check();
  }
  if (!options_.cache_file.empty()) cache_ = std::make_unique<CompileCache>(options_.cache_file);
}

Compiler::~Compiler() = default;

CompileOutcome Compiler::Compile(const Problem& problem, const std::string& source, bool reference_route) {
  if (source.starts_with(cuda_source::kByteOrderMark))  // text may come before it
    return Compile(problem, source.substr(cuda_source::kByteOrderMark.size()), reference_route);
  const CandidateForm form = FormOf(source, problem.entry);
  CompileOutcome refused;
  if (form == CandidateForm::kTriton) {
    refused.verdict = "unsupported";
    refused.diagnosis = "A candidate in Triton is judged without a GPU, by evaluator_sim.";
    return refused;
  }
  if (source.find('\0') != std::string::npos) {
    refused.verdict = "not_compiled";
    refused.diagnosis = "The source holds a zero byte.";
    return refused;
  }
  if (form == CandidateForm::kPtx) return CompilePtx(problem, source);
  if (const std::string whole = problem.WithLauncher(source);
      form != CandidateForm::kTorch && whole.size() > source.size()) {
    CompileOutcome outcome = Compile(problem, whole, reference_route);
    outcome.kernel.source = source;
    return outcome;
  }
  if (problem.entry != kLaunch && DefinesFunction(source, kLaunch) && !DefinesFunction(source, problem.entry)) {
    Problem launched = problem;
    launched.entry = kLaunch;
    return Compile(launched, source, reference_route);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto timed = [begin, form, counts = CountsHostCode(form), &problem, &source](CompileOutcome outcome) {
    if (outcome.Succeeded()) CheckObject(problem, source, form, counts, &outcome);
    // A definition that differs from the declaration put before it: the compiler speaks of that.
    const auto says = [&](const std::string& words) { return outcome.diagnosis.find(words) != std::string::npos; };
    if (outcome.verdict == "not_compiled" &&
        (says("has \"C\" linkage") || says("overloaded function \"" + problem.entry + "\""))) {
      outcome.diagnosis = "It defines " + problem.entry + " with another signature than the problem's, " +
                          problem.Signature() + ". " + outcome.diagnosis;
    }
    if (outcome.verdict == "not_compiled" && says("requires separate compilation mode")) {
      outcome.verdict = "unsupported";
      outcome.diagnosis = "A kernel that launches kernels (dynamic parallelism) is not supported. " + outcome.diagnosis;
    }
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return outcome;
  };
  if (const std::string why = WhyNotForm(form, problem, options_.tvm_ffi); !why.empty()) {
    refused.verdict = "unsupported";
    refused.diagnosis = why + ".";
    return timed(refused);
  }
  const CheckedIncludes checked = CheckIncludes(source, problem.allowed_libraries, form);
  const auto refuse = [&](CompileOutcome outcome, const std::string& why) {
    if (why.empty()) return timed(std::move(outcome));
    refused.verdict = "forbidden";
    refused.diagnosis = why + ".";
    return timed(refused);
  };
  if (!checked.why.empty()) {
    // Headers that only a main function or a test in the file needs do not make its kernel refused.
    const std::string needed = form == CandidateForm::kLaunch ? WhatIsNeeded(problem, source) : "";
    if (!needed.empty()) {
      CompileOutcome outcome = Compile(problem, needed, reference_route);
      if (outcome.Succeeded()) {
        outcome.kernel.source = source;
        return outcome;
      }
    }
    return refuse({}, checked.why);
  }
  const bool fast = fast_ && !reference_route && form == CandidateForm::kLaunch;
  const CompileKey key = KeyOf(problem, source, form, fast);
  std::optional<CompileOutcome> outcome = cache_ ? cache_->Find(key) : std::nullopt;
  if (!outcome) {
    outcome = CompileAnew(problem, checked.source, form, fast);
    if (cache_) cache_->Keep(key, *outcome);
  }
  const std::string why = checked.WhyRefused(outcome->diagnosis);
  return refuse(std::move(*outcome), why);
}

CompileOutcome Compiler::CompilePtx(const Problem& problem, const std::string& source) {
  const auto begin = std::chrono::steady_clock::now();
  CompileOutcome refused;
  refused.verdict = "unsupported";
  refused.diagnosis =
      "A candidate in PTX is judged without a GPU, by evaluator_sim. For this evaluator define the launch function in "
      "CUDA C++.";
  if (!options_.takes_ptx) return refused;
  CompileKey key = KeyOf(problem, source, CandidateForm::kLaunch, false);
  key.route = "ptx";
  std::optional<CompileOutcome> outcome = cache_ ? cache_->Find(key) : std::nullopt;
  if (!outcome) {
    outcome = AssemblePtx(toolkit_, sandbox_, options_.compute_capability, source, options_.seconds, options_.stop);
    if (cache_) cache_->Keep(key, *outcome);
  }
  outcome->kernel.source = source;
  outcome->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return std::move(*outcome);
}

CompileOutcome Compiler::CompileAnew(const Problem& problem, const std::string& source, CandidateForm form, bool fast) {
  const auto by_nvcc = [&] {
    NvccSource text = {EntryPrologue(problem), source, EntryEpilogue(problem), {}, {}};
    double seconds = options_.seconds;
    if (form != CandidateForm::kLaunch) {
      text = {FormPrologue(form, source),
              form == CandidateForm::kTorch ? WithoutTorchHeaders(source) : source,
              FormEpilogue(form, problem, source),
              FormArguments(form, options_.library_directory, options_.tvm_ffi),
              {}};
    }
    if (CountsHostCode(form)) text.arguments = {"-Xcompiler", kCountHostCode};
    if (form == CandidateForm::kTvmFfi) {
      text.readable = options_.tvm_ffi->Readable();
      seconds *= kTvmFfiPatience;
    }
    CompileOutcome outcome =
        CompileWithNvcc(toolkit_, sandbox_, options_.library_directory, options_.compute_capability, text, seconds,
                        fast_ != nullptr, options_.stop);
    if (const std::string why = MissingOfTorch(outcome.diagnosis); form == CandidateForm::kTorch && !why.empty()) {
      outcome.verdict = "unsupported";
      outcome.diagnosis = why;
    }
    return outcome;
  };
  if (!fast) return by_nvcc();
  std::string why;
  if (std::optional<CompileOutcome> outcome = fast_->Compile(problem, source, &why)) {
    return std::move(*outcome);
  }
  CompileOutcome outcome = by_nvcc();
  // If nvcc refuses the source as well, the source is to blame and there is no fallback to report.
  if (outcome.Succeeded() && options_.on_fallback) std::call_once(fallback_told_, options_.on_fallback, why);
  return outcome;
}

CompileKey Compiler::KeyOf(const Problem& problem, const std::string& source, CandidateForm form, bool fast) const {
  CompileKey key;
  key.source = source;
  key.entry = form == CandidateForm::kLaunch
                  ? EntryPrologue(problem) + EntryEpilogue(problem)
                  : (options_.tvm_ffi ? options_.tvm_ffi->Version() : "") + FormEpilogue(form, problem, source);
  key.route = fast ? "fast" : "nvcc";
  key.flags = std::string(fast_ ? "as NVRTC" : "") + (options_.count_host_code ? "; counted" : "");
  key.compiler = toolkit_.Identity() + "; " + host_compiler_;
  key.architecture = "sm_" + std::to_string(options_.compute_capability);
  key.policy = IncludePolicy(problem.allowed_libraries);
  key.evaluator = KGRPO_SOURCE_DIGEST;
  return key;
}

std::string Compiler::Describe() const {
  const std::string nvcc = "nvcc " + toolkit_.version + " (" + toolkit_.home + ")";
  if (fast_) return "thorough: " + nvcc + "; quick: NVRTC and g++, and nvcc for what they refuse";
  return nvcc;
}

std::string Compiler::Version() const { return toolkit_.version + (fast_ ? "; fast" : "; nvcc"); }

std::string FallbackNotice(const std::string& why) {
  return "a kernel was compiled by nvcc, in about a second, since the fast route refused it: " + why +
         " (reported once; later ones are not)";
}

}  // namespace kgrpo::evaluator
