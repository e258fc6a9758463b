#include "evaluator_sim/open_problem.h"

#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <kgrpo/support/sha256.h>
#include "evaluator_shared/random.h"
#include "evaluator_shared/source_inputs.h"
#include "evaluator_shared/timing_sizes.h"
#include "evaluator_sim/version.h"

namespace kgrpo::evaluator_sim {

using evaluator::Parameter;
using evaluator::Role;

namespace {

constexpr uint64_t kKeptTimingBytes = uint64_t{1} << 30;    // of all open problems
constexpr uint64_t kKeptExpectedBytes = uint64_t{4} << 30;  // on disk, of all problems

// Twice the tolerance of correctness sizes, as on a GPU: the inputs at the timing size are drawn without regard to it.
constexpr double kSlack = 2;

std::atomic<uint64_t> g_kept_timing_bytes{0};

// An unnamed file that holds these bytes.
evaluator::Descriptor FileOf(const std::vector<uint8_t>& bytes) {
  evaluator::Descriptor file(memfd_create("kgrpo timing inputs", MFD_CLOEXEC));
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
    : problem_(evaluator::WithSourceInputs(evaluator::UnderRules(problem, rules), cache_directory)),
      slack_(rules == evaluator::Rules::kOurs ? kSlack : 1),
      kept_(cache_directory + "/expected", kKeptExpectedBytes, keep) {
  oracle_ = evaluator::Oracle::Load(problem_, cache_directory);
  checker_ = evaluator::Checker::Load(problem_, cache_directory);
  for (const evaluator::Problem& one : evaluator::FurtherTimingProblems(problem))
    further_.push_back(std::make_unique<OpenProblem>(one, cache_directory, keep, rules));
}

uint64_t OpenProblem::TimingKey() const {
  return evaluator::KeyFromText(problem_.digest);
}

// The key covers everything that the expected values depend on. The sources of the evaluator count because they draw
// the inputs and, without an oracle, run the reference.
std::string OpenProblem::ExpectedKey() const {
  return Sha256OfParts({SourceDigest(), problem_.digest, oracle_ ? oracle_->build() : "reference"}).substr(0, 40);
}

OpenProblem::~OpenProblem() {
  g_kept_timing_bytes -= kept_bytes_;
}

std::shared_ptr<const TimingExpected> OpenProblem::ExpectedAtTiming(const Reference& reference) const {
  std::call_once(expected_once_, [&] {
    const std::string key = ExpectedKey();
    expected_ = TimingExpected::Read(problem_, kept_.Find(key));
    if (expected_ != nullptr) return;
    // The oracle works in doubles, so memory suffices for one problem at a time.
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const std::vector<evaluator::Argument> arguments = TimingArguments();
    std::vector<evaluator::Expected> expected;
    try {
      expected = oracle_ ? oracle_->Run(problem_, problem_.timing, arguments) : reference(arguments);
    } catch (const Error& error) {
      if (error.code() == KGRPO_ERROR_CANCELLED) throw;  // not set: the next caller tries again
      return;
    }
    expected_ = TimingExpected::Read(problem_, kept_.Keep(key, [&](const evaluator::KeptFiles::Append& append) {
      TimingExpected::Write(problem_, expected, slack_, append);
    }));
  });
  return expected_;
}

std::vector<evaluator::Argument> OpenProblem::TimingArguments() const {
  return evaluator::DrawArguments(problem_, problem_.timing, TimingKey(), 0);
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
    const Parameter& parameter = problem_.parameters[i];
    if (!parameter.IsTensor()) continue;
    const std::vector<uint8_t> dense = std::exchange(inputs->arguments[i].bytes, {});
    inputs->bytes[i] = parameter.MemoryBytes(problem_.timing);
    if (parameter.role == Role::kOutput) continue;
    inputs->files[i] = FileOf(
        evaluator::SpreadRows(parameter.RowsAt(problem_.timing), parameter.dtype, dense, TimingInputs::kGapByte));
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
