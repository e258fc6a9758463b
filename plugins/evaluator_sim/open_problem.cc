#include "evaluator_sim/open_problem.h"

#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include <kgrpo/support/sha256.h>
#include "judge/problem/random.h"

namespace kgrpo::evaluator_sim {

using process::Descriptor;

using evaluator::Parameter;
using evaluator::Role;

namespace {

constexpr uint64_t kKeptTimingBytes = uint64_t{1} << 30;    // of all open problems
constexpr uint64_t kKeptExpectedBytes = uint64_t{4} << 30;  // on disk, of all problems

// A reference without an oracle runs several times to find the scale of an output of fewer elements: their magnitudes
// say little of its rounding errors.
constexpr size_t kFewElements = 64;

std::atomic<uint64_t> g_kept_timing_bytes{0};

// An unnamed file that holds these bytes.
Descriptor FileOf(const std::vector<uint8_t>& bytes) {
  Descriptor file(memfd_create("kgrpo timing inputs", MFD_CLOEXEC));
  if (file.get() < 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("no file for timing inputs: ") + std::strerror(errno));
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = write(file.get(), bytes.data() + at, bytes.size() - at);
    if (count <= 0)
      throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("no memory for timing inputs: ") + std::strerror(errno));
    at += static_cast<size_t>(count);
  }
  return file;
}

}  // namespace

OpenProblem::OpenProblem(const std::string& directory, const std::string& cache_directory, bool keep,
                         evaluator::Rules rules)
    : OpenProblem(evaluator::LoadProblem(directory), cache_directory, keep, rules) {}

OpenProblem::OpenProblem(const evaluator::Problem& problem, const std::string& cache_directory, bool keep,
                         evaluator::Rules rules)
    : evaluator::OpenProblem(problem, cache_directory, rules),
      kept_(cache_directory + "/expected", kKeptExpectedBytes, keep) {}

uint64_t OpenProblem::TimingKey() const { return evaluator::KeyFromText(problem.digest); }

// The key covers everything that the expected values depend on. The sources of the evaluator count because they draw
// the inputs and, without an oracle, run the reference.
std::string OpenProblem::ExpectedKey(TimingSet set) const {
  return Sha256OfParts({SourceDigest(), problem.digest, oracle ? oracle->build() : "reference",
                        set == TimingSet::kWhole ? "whole numbers" : ""})
      .substr(0, 40);
}

OpenProblem::~OpenProblem() { g_kept_timing_bytes -= kept_bytes_; }

// The bounds on errors, by parameter. Of whole numbers: exact ones, as far as the reference keeps to them.
std::vector<evaluator::ErrorBound> OpenProblem::Bounds(TimingSet set, const std::vector<evaluator::Argument>& arguments,
                                                       const std::vector<evaluator::Expected>& expected,
                                                       const evaluator::Compute& reference) const {
  const double accumulations = problem.accumulations.Evaluate(problem.timing);
  const evaluator::Compute compute =
      oracle ? [this](const auto& inputs) { return oracle->Run(problem, problem.timing, inputs); } : reference;
  size_t fewest = SIZE_MAX;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].reals.empty()) fewest = std::min(fewest, expected[i].reals.size());
  }
  std::vector<double> scales;
  if (set == TimingSet::kTimed && (oracle || fewest < kFewElements))
    scales =
        evaluator::Conditioning(problem, arguments, expected, evaluator::SubKey(TimingKey(), ~uint64_t{1}), compute);
  std::vector<evaluator::Expected> own;  // the reference's
  std::vector<evaluator::ErrorBound> bounds(expected.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    evaluator::ErrorBound& bound = bounds[i];
    bound = evaluator::BoundFor(problem, parameter, accumulations, expected[i]);
    if (!scales.empty()) {
      const double absolute = evaluator::ScaledBound(problem, parameter, accumulations, scales[i]).absolute;
      bound.absolute = oracle ? absolute : std::max(bound.absolute, absolute);
    }
    if (!oracle) bound = evaluator::OfRounded(parameter, bound);
    if (set != TimingSet::kWhole || !evaluator::IsExact(problem, parameter, expected[i])) continue;
    if (oracle && own.empty()) own = reference(arguments);
    const double error = oracle ? evaluator::LargestRelativeError(own[i], expected[i]) : 0;
    const evaluator::ErrorBound exact = evaluator::ExactBound(parameter, bound, evaluator::kOfReference * error);
    if (error <= exact.relative) bound = exact;
  }
  return bounds;
}

std::shared_ptr<const TimingExpected> OpenProblem::ExpectedAtTiming(const evaluator::Compute& reference,
                                                                    TimingSet set) const {
  Kept& kept = sets_[static_cast<size_t>(set)];
  std::call_once(kept.expected_once, [&] {
    const std::string key = ExpectedKey(set);
    kept.expected = TimingExpected::Read(problem, kept_.Find(key));
    if (kept.expected != nullptr) return;
    // The oracle works in doubles, so memory suffices for one problem at a time.
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const std::vector<evaluator::Argument> arguments = TimingArguments(set);
    std::vector<evaluator::Expected> expected;
    std::vector<evaluator::ErrorBound> bounds;
    try {
      expected = oracle ? oracle->Run(problem, problem.timing, arguments) : reference(arguments);
      bounds = Bounds(set, arguments, expected, reference);
    } catch (const Error& error) {
      if (error.code() == KGRPO_ERROR_CANCELLED) throw;  // not set: the next caller tries again
      return;
    }
    kept.expected = TimingExpected::Read(problem, kept_.Keep(key, [&](const evaluator::KeptFiles::Append& append) {
      TimingExpected::Write(problem, expected, bounds, append);
    }));
  });
  const bool useless = set == TimingSet::kWhole && kept.expected != nullptr && !kept.expected->IsExact();
  return useless ? nullptr : kept.expected;
}

std::vector<evaluator::Argument> OpenProblem::TimingArguments(TimingSet set) const {
  evaluator::CorrectnessCase one;
  one.size = &problem.timing;
  one.key = TimingKey();
  if (set == TimingSet::kWhole) {
    one.key = evaluator::SubKey(one.key, ~uint64_t{2});
    one.further = true;
    one.scalars = 0.75;
    one.values = evaluator::InputValues::kWhole;
  }
  return evaluator::DrawArguments(problem, one);
}

std::shared_ptr<const TimingInputs> OpenProblem::Timing(TimingSet set) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Kept& kept = sets_[static_cast<size_t>(set)];
  if (kept.inputs) return kept.inputs;
  auto inputs = std::make_shared<TimingInputs>();
  inputs->arguments = TimingArguments(set);
  inputs->bytes.resize(inputs->arguments.size());
  inputs->files.resize(inputs->arguments.size());
  uint64_t total = 0;
  for (size_t i = 0; i < inputs->arguments.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsTensor()) continue;
    const std::vector<uint8_t> dense = std::exchange(inputs->arguments[i].bytes, {});
    inputs->bytes[i] = parameter.MemoryBytes(problem.timing);
    if (parameter.role == Role::kOutput) continue;
    inputs->files[i] =
        FileOf(evaluator::SpreadRows(parameter.RowsAt(problem.timing), parameter.dtype, dense, TimingInputs::kGapByte));
    total += inputs->bytes[i];
  }
  if (g_kept_timing_bytes.fetch_add(total) + total <= kKeptTimingBytes) {
    kept_bytes_ += total;
    kept.inputs = inputs;
  } else {
    g_kept_timing_bytes -= total;
  }
  return inputs;
}

}  // namespace kgrpo::evaluator_sim
