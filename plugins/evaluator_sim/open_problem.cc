#include "evaluator_sim/open_problem.h"

#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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

// Twice the tolerance of correctness sizes, as on a GPU: the inputs at the timing size are drawn without regard to it.
constexpr double kSlack = 2;

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
      slack_(rules == evaluator::Rules::kOurs ? kSlack : 1),
      kept_(cache_directory + "/expected", kKeptExpectedBytes, keep) {}

uint64_t OpenProblem::TimingKey() const {
  return evaluator::KeyFromText(problem.digest);
}

// The key covers everything that the expected values depend on. The sources of the evaluator count because they draw
// the inputs and, without an oracle, run the reference.
std::string OpenProblem::ExpectedKey() const {
  return Sha256OfParts({SourceDigest(), problem.digest, oracle ? oracle->build() : "reference"}).substr(0, 40);
}

OpenProblem::~OpenProblem() {
  g_kept_timing_bytes -= kept_bytes_;
}

std::shared_ptr<const TimingExpected> OpenProblem::ExpectedAtTiming(const Reference& reference) const {
  std::call_once(expected_once_, [&] {
    const std::string key = ExpectedKey();
    expected_ = TimingExpected::Read(problem, kept_.Find(key));
    if (expected_ != nullptr) return;
    // The oracle works in doubles, so memory suffices for one problem at a time.
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const std::vector<evaluator::Argument> arguments = TimingArguments();
    std::vector<evaluator::Expected> expected;
    try {
      expected = oracle ? oracle->Run(problem, problem.timing, arguments) : reference(arguments);
    } catch (const Error& error) {
      if (error.code() == KGRPO_ERROR_CANCELLED) throw;  // not set: the next caller tries again
      return;
    }
    expected_ = TimingExpected::Read(problem, kept_.Keep(key, [&](const evaluator::KeptFiles::Append& append) {
      TimingExpected::Write(problem, expected, slack_, append);
    }));
  });
  return expected_;
}

std::vector<evaluator::Argument> OpenProblem::TimingArguments() const {
  return evaluator::DrawArguments(problem, problem.timing, TimingKey(), 0);
}

std::shared_ptr<const TimingInputs> OpenProblem::Timing() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (timing_) return timing_;
  auto inputs = std::make_shared<TimingInputs>();
  inputs->arguments = TimingArguments();
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
    kept_bytes_ = total;
    timing_ = inputs;
  } else {
    g_kept_timing_bytes -= total;
  }
  return inputs;
}

}  // namespace kgrpo::evaluator_sim
