// The evaluator behind both plugins: a backend compiles and runs kernels, on a GPU or on a model of one. Here are the
// cache, the timing sizes, the secret inputs' keys and the baseline, once for both. front.h offers it through the ABI.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "judge/cache/evaluation_memory.h"    // EvaluationMemory
#include "judge/compile/compiler.h"           // CompileRoute
#include "judge/front/open_problem.h"         // OpenProblem
#include "judge/problem/rules.h"              // Rules
#include "judge/sandbox/sandbox.h"            // SandboxMode
#include "judge/verdict/kernel_evaluation.h"  // KernelEvaluation
#include "judge/verdict/problem_findings.h"   // ProblemFinding

namespace kgrpo::evaluator {

struct EvaluatorOptions {
  std::string cache_directory;  // for oracles and evaluations; must exist
  bool cache = true;            // keep evaluations on disk
  uint64_t seed = 0;            // changes every secret input
  Rules rules = Rules::kOurs;
};

// The options that every backend has.
struct BackendOptions {
  SandboxMode sandbox = SandboxMode::kAuto;
  CompileRoute route = CompileRoute::kFast;
  std::string helper_directory;  // "" to search
  std::string compile_cache;     // Compiler::Options::cache_file
  int seeds = 2;                 // per size
  double compile_seconds = 60;
  std::function<void(const std::string& why)> on_compile_fallback;  // Compiler::Options::on_fallback
  std::function<bool()> cancelled;                                  // asked between the runs of an evaluation
};

// Evaluates kernels at one timing size, uncached. [any thread]
class Backend {
 public:
  virtual ~Backend() = default;

  // Opens one timing size of a problem that has been read. Throws Error for an oracle that does not compile.
  virtual std::unique_ptr<const OpenProblem> Open(const Problem& problem, const EvaluatorOptions& options) const = 0;

  // Evaluates `source`. `open` is of Open(). `key` is secret: inputs are drawn from it. `thorough` takes the reference
  // compile route and more inputs. `show_hidden`: the diagnosis may name sizes that are hidden from candidates'
  // authors. Throws Error only if an evaluation is impossible, with KGRPO_ERROR_CANCELLED if the user wants the run to
  // end.
  virtual KernelEvaluation Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                                    bool show_hidden) = 0;

  // Finds what makes the problem degenerate (problem_findings.h).
  virtual std::vector<ProblemFinding> FindDegenerateOutputs(const OpenProblem&) { return {}; }

  // Adds to the evaluation of the reference kernel what is measured once per problem.
  virtual void CompleteBaseline(const OpenProblem&, KernelEvaluation*) {}

  // True if times come from a model: then an evaluation is a function of source and problem, the same in every run.
  // False if they are measured: then each run draws other inputs, and a candidate's time counts relative to the
  // reference kernel's, which was timed beside it (metrics "speedup", "speedup_low", "speedup_high").
  virtual bool modelled() const = 0;
  virtual std::string TimeSource() const = 0;  // "H100 model"
  virtual std::string Describe() const = 0;    // compiler, sandbox, device, a line each
  // Names everything that an evaluation depends on, except source, problem and key.
  virtual std::string Version() const = 0;
};

// Copies what a compile has found. Returns false for a verdict: then there is no kernel to run.
bool TakeCompiled(const CompileOutcome& compiled, KernelEvaluation* evaluation);

// A problem at each of its timing sizes.
class OpenProblems {
 public:
  explicit OpenProblems(std::vector<std::unique_ptr<const OpenProblem>> sizes) : sizes_(std::move(sizes)) {}
  const OpenProblem& first() const { return *sizes_[0]; }
  const Problem& problem() const { return sizes_[0]->problem; }

 private:
  friend class Evaluator;
  const std::vector<std::unique_ptr<const OpenProblem>> sizes_;
  mutable std::mutex mutex_;
  mutable std::optional<KernelEvaluation> baseline_;  // guarded; of a measured reference
};

// [any thread]
class Evaluator {
 public:
  // `report` is called with each cached evaluation's costs.
  Evaluator(std::unique_ptr<Backend> backend, EvaluatorOptions options, EvaluationMemory::Report report = {});

  // Throws Error for a malformed problem or an oracle that does not compile.
  std::unique_ptr<const OpenProblems> Open(const std::string& directory) const;

  // Parameters of an evaluation beside the source.
  struct Request {
    uint64_t seed = 0;         // the run's; a model's inputs depend on it only in a thorough evaluation
    bool thorough = false;     // the most careful route; cached only for a model's reference kernel
    bool show_hidden = false;  // the diagnosis names hidden sizes; not cached
  };

  // The reference kernel's evaluation; a measured one is thorough, and taken once for as long as the problem is open.
  // Throws Error(KGRPO_ERROR_INVALID) if it is not correct.
  KernelEvaluation Baseline(const OpenProblems& open, const Request& request);
  KernelEvaluation Baseline(const OpenProblems& open) { return Baseline(open, {}); }

  // Evaluates a candidate. The inputs are drawn from a key that depends on (seed option, problem, source) and, as
  // Request says, on the run's seed, so that no two kernels get the same inputs and nobody can know them.
  KernelEvaluation Evaluate(const OpenProblems& open, const std::string& source, const Request& request);

  // Findings that make the problem degenerate, and what is wrong with its reference kernel.
  std::vector<ProblemFinding> Check(const OpenProblems& open);

  const Backend& backend() const { return *backend_; }

 private:
  KernelEvaluation Reference(const OpenProblems& open, Request request);
  KernelEvaluation OverSizes(const OpenProblems& open, const std::string& source, const Request& request);
  KernelEvaluation AtSize(const OpenProblem& open, const std::string& source, const Request& request);

  const std::unique_ptr<Backend> backend_;
  const EvaluatorOptions options_;
  EvaluationMemory memory_;
};

}  // namespace kgrpo::evaluator
