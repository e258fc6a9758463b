#include "evaluator_cuda/interpreted_checks.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>

#include "interpreter/code_not_judged.h"
#include "interpreter/interpreted_cases.h"
#include "interpreter/loaded_kernel.h"
#include "interpreter/tensors.h"
#include "interpreter/timing_calls.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator_cuda {
namespace {

using evaluator::CompiledKernel;
using evaluator::CorrectnessCase;
using evaluator::Problem;
using interpreter::InterpretedCases;

constexpr uint64_t kWarpInstructions = 400'000'000;      // a call; some seconds
constexpr uint64_t kMostWarpInstructions = 800'000'000;  // a candidate, of all its cases
constexpr double kHostSeconds = 10;
// At the timing size, where some blocks are checked: more is not drawn, and not run.
constexpr uint64_t kMostTimingBytes = uint64_t{256} << 20, kTimingWarpInstructions = 100'000'000;
constexpr uint64_t kTimingStream = ~uint64_t{18};  // SubKey index of the stream of its inputs

bool IsOneOf(const std::string& code, std::initializer_list<const char*> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// Some blocks of a call at the timing size, with every check. `complete`: nothing stopped the call. `not_checked`: as
// TimingCalls has it.
Trouble CheckAtTiming(interpreter::LoadedKernel& loaded, const Problem& problem,
                      const std::vector<CorrectnessCase>& cases, bool whole, const std::function<void()>& before,
                      bool* complete, std::string* not_checked) {
  uint64_t bytes = 0;
  for (const evaluator::Parameter& parameter : problem.parameters) bytes += parameter.MemoryBytes(problem.timing);
  if (cases.empty() || bytes > kMostTimingBytes) return {};
  before();
  CorrectnessCase timing;
  timing.size = &problem.timing;
  timing.key = evaluator::SubKey(cases.front().key, kTimingStream);
  const std::vector<evaluator::Argument> arguments = evaluator::DrawArguments(problem, timing);
  interpreter::TimingCalls calls(loaded, [&] {
    return std::make_unique<interpreter::Tensors>(loaded.session.memory(), problem, timing, arguments);
  });
  const Trouble trouble = calls.Check(timing.key, whole, kTimingWarpInstructions);
  *complete = !trouble;
  *not_checked = calls.not_checked();
  const bool accuses = trouble.code == "race" || trouble.code == "uninitialised";
  return accuses ? Trouble{trouble.code, "At the timing size: " + trouble.sentence} : Trouble{};
}

}  // namespace

bool IsFinding(const Trouble& interpreted) {
  return IsOneOf(interpreted.code, {"out_of_bounds", "misaligned", "uninitialised", "race", "divergent", "wrong"});
}

bool MayBeExplained(const Trouble& device) {
  return !device || IsOneOf(device.code, {"wrong", "non_deterministic", "unsynchronised", "out_of_bounds", "misaligned",
                                          "trap", "timeout"});
}

Trouble Decide(const Trouble& device, const Trouble& interpreted) {
  const bool alike = device && device.code == interpreted.code;
  return MayBeExplained(device) && (IsFinding(interpreted) || alike) ? interpreted : device;
}

InterpretedChecks::InterpretedChecks(const evaluator::Sandbox& sandbox, const std::string& helper_directory,
                                     const std::string& device, size_t threads, std::function<bool()> cancelled)
    : device_(simt::Device::Load(helper_directory + "/devices/" + device + ".yaml")),
      cancelled_(std::move(cancelled)),
      workers_(sandbox, helper_directory, threads, static_cast<uint64_t>(kHostSeconds * 4) + 1),
      free_(threads) {}

InterpretedChecks::Running InterpretedChecks::Start(const Problem& problem, const CompiledKernel& kernel,
                                                    std::vector<CorrectnessCase> cases, ExpectedOf expected,
                                                    ReferenceOf reference, const evaluator::OpenProblem* open) {
  Running running;
  running.stop_ = std::stop_source();
  const auto run = [this, &problem, &kernel, stop = running.stop_.get_token(), cases = std::move(cases),
                    expected = std::move(expected), reference = std::move(reference), open] {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return free_ > 0; }))
      throw Error(KGRPO_ERROR_CANCELLED, "stopped while it waited for a thread");
    --free_;
    lock.unlock();
    const auto give_back = [this](void*) {
      const std::lock_guard<std::mutex> guard(mutex_);
      ++free_;
      changed_.notify_one();
    };
    const std::unique_ptr<void, decltype(give_back)> thread(this, give_back);
    return Run(problem, kernel, cases, expected, reference, open, stop);
  };
  running.future_ = std::async(std::launch::async, run);
  return running;
}

InterpretedFinding InterpretedChecks::Run(const Problem& problem, const CompiledKernel& kernel,
                                          const std::vector<CorrectnessCase>& cases, const ExpectedOf& expected,
                                          const ReferenceOf& reference, const evaluator::OpenProblem* open,
                                          const std::stop_token& stop) {
  InterpretedFinding finding;
  Trouble trouble;
  try {
    if (std::shared_ptr<const simt::Module> module = interpreter::ParsePtx(problem, kernel, &trouble)) {
      const auto cancelled = [&] { return stop.stop_requested() || (cancelled_ && cancelled_()); };
      const interpreter::Interpreter interpreter = {device_, workers_, kWarpInstructions, kHostSeconds, cancelled};
      interpreter::LoadedKernel loaded(problem, kernel, std::move(module), interpreter);
      trouble = loaded.Start();
      if (!trouble) {
        const auto before_each = [&] {
          if (cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
        };
        InterpretedCases::Options how;
        how.expected = expected;
        how.before_each = before_each;
        how.values_decide = false;
        how.most_warp_instructions = kMostWarpInstructions;
        if (reference) {
          how.reference = [&](size_t i, const auto& arguments) {
            return interpreter::ReferenceOutputs(problem, *reference(), interpreter, cases[i], arguments);
          };
        }
        InterpretedCases interpreted(loaded, problem, cases, how);
        trouble = interpreted.Run();
        bool complete = false;
        if (!trouble) {
          trouble = CheckAtTiming(loaded, problem, cases, interpreted.runs_whole(), before_each, &complete,
                                  &finding.not_judged);
        }
        finding.transient = interpreted.host_timed_out();
        finding.notes = interpreted.notes();
        if (!trouble && complete && open != nullptr) {
          interpreter::FurtherSizes further = {problem, cases.front().key, {}, {}};
          further.rules = [&](const std::vector<CorrectnessCase>& sizes) {
            InterpretedCases::Options rules = interpreter::RulesOf(
                *open, sizes, [&](const CorrectnessCase& one, const std::vector<evaluator::Argument>& arguments) {
                  return interpreter::ReferenceOutputs(problem, *reference(), interpreter, one, arguments);
                });
            rules.before_each = before_each;
            return rules;
          };
          further.reference = [&]() -> std::shared_ptr<interpreter::LoadedKernel> {
            const std::shared_ptr<const CompiledKernel> compiled = reference();
            Trouble unused;
            std::shared_ptr<const simt::Module> parsed = interpreter::ParsePtx(problem, *compiled, &unused);
            if (parsed == nullptr) return nullptr;
            return std::make_shared<interpreter::LoadedKernel>(problem, *compiled, std::move(parsed), interpreter);
          };
          trouble = interpreter::TryFurtherSizes(loaded, further, &finding.not_judged);
        } else if (!trouble && open != nullptr) {
          finding.notes.push_back("Lines that no call runs are not named: the timing size was not interpreted");
        }
      }
    }
  } catch (const Error& error) {
    if (error.code() == KGRPO_ERROR_CANCELLED) throw;
    trouble = {"unavailable", error.what()};
    finding.transient = true;
  }
  finding.trouble = std::move(trouble);
  return finding;
}

}  // namespace kgrpo::evaluator_cuda
