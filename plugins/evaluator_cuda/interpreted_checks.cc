#include "evaluator_cuda/interpreted_checks.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>

#include "interpreter/interpreted_cases.h"
#include "interpreter/loaded_kernel.h"

namespace kgrpo::evaluator_cuda {
namespace {

using evaluator::CompiledKernel;
using evaluator::CorrectnessCase;
using evaluator::Expected;
using evaluator::Problem;

constexpr uint64_t kWarpInstructions = 400'000'000;  // a call; some seconds
constexpr double kHostSeconds = 10;

bool IsOneOf(const std::string& code, std::initializer_list<const char*> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

}  // namespace

bool IsFinding(const Trouble& interpreted) {
  return IsOneOf(interpreted.code, {"out_of_bounds", "misaligned", "uninitialised", "race", "divergent"});
}

Trouble Decide(const Trouble& device, const Trouble& interpreted) {
  const bool may_be_explained = !device || IsOneOf(device.code, {"wrong", "non_deterministic", "unsynchronised",
                                                                 "out_of_bounds", "misaligned", "trap", "timeout"});
  const bool alike = device && device.code == interpreted.code;
  return (IsFinding(interpreted) && may_be_explained) || alike ? interpreted : device;
}

InterpretedChecks::InterpretedChecks(const evaluator::Sandbox& sandbox, const std::string& helper_directory,
                                     const std::string& device, size_t threads, std::function<bool()> cancelled)
    : device_(simt::Device::Load(helper_directory + "/devices/" + device + ".yaml")),
      cancelled_(std::move(cancelled)),
      workers_(sandbox, helper_directory, threads, static_cast<uint64_t>(kHostSeconds * 4) + 1),
      free_(threads) {}

std::future<InterpretedFinding> InterpretedChecks::Start(const Problem& problem, const CompiledKernel& kernel,
                                                         std::vector<CorrectnessCase> cases, ExpectedOf expected) {
  return std::async(std::launch::async,
                    [this, &problem, &kernel, cases = std::move(cases), expected = std::move(expected)] {
                      std::unique_lock<std::mutex> lock(mutex_);
                      changed_.wait(lock, [this] { return free_ > 0; });
                      --free_;
                      lock.unlock();
                      const auto give_back = [this](void*) {
                        const std::lock_guard<std::mutex> guard(mutex_);
                        ++free_;
                        changed_.notify_one();
                      };
                      const std::unique_ptr<void, decltype(give_back)> thread(this, give_back);
                      return Run(problem, kernel, cases, expected);
                    });
}

InterpretedFinding InterpretedChecks::Run(const Problem& problem, const CompiledKernel& kernel,
                                          const std::vector<CorrectnessCase>& cases, const ExpectedOf& expected) {
  InterpretedFinding finding;
  Trouble trouble;
  try {
    if (std::shared_ptr<const simt::Module> module = interpreter::ParsePtx(kernel, &trouble)) {
      interpreter::LoadedKernel loaded(problem, kernel, std::move(module),
                                       {device_, workers_, kWarpInstructions, kHostSeconds});
      trouble = loaded.Start();
      if (!trouble) {
        interpreter::InterpretedCases interpreted(loaded, problem, cases,
                                                  {.expected = expected,
                                                   .before_each =
                                                       [this] {
                                                         if (cancelled_ && cancelled_())
                                                           throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
                                                       },
                                                   .values_decide = false});
        trouble = interpreted.Run();
        finding.notes = interpreted.notes();
      }
    }
  } catch (const Error& error) {
    if (error.code() == KGRPO_ERROR_CANCELLED) throw;
    trouble = {"unavailable", error.what()};
  }
  finding.trouble = std::move(trouble);
  return finding;
}

}  // namespace kgrpo::evaluator_cuda
