#include "evaluator_cuda/judge.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "evaluator_cuda/judge_case.h"
#include "evaluator_cuda/version.h"
#include "evaluator_shared/comparison.h"
#include "evaluator_shared/cuda_toolkit.h"
#include "evaluator_shared/fatbin.h"
#include "evaluator_shared/random.h"

namespace kgrpo::evaluator_cuda {

using Clock = std::chrono::steady_clock;
using evaluator::Expected;
using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

namespace {

constexpr uint64_t kGuardBytes = 4096;                 // before, between and after the tensors of a correctness case
constexpr uint64_t kDelayBytes = uint64_t{256} << 20;  // copied in some 0.2 ms
constexpr double kNotableShare = 0.04;                 // of launches in a time, which may differ by a tenth
constexpr uint8_t kUnused = 0xff;                      // fills the lent memory behind the tensors

// libcudart.so.13 of a whole toolkit, or of the PyPI wheels.
std::string FindRuntime(const evaluator::CudaToolkit& toolkit) {
  std::string tried;
  for (const char* folder : {"/lib64", "/lib", "/targets/x86_64-linux/lib"}) {
    const std::string path = toolkit.home + folder + "/libcudart.so.13";
    std::error_code code;
    if (std::filesystem::exists(path, code)) return std::filesystem::canonical(path, code).string();
    tried += "\n  " + path;
  }
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "the CUDA toolkit at " + toolkit.home + " lacks libcudart.so.13; tried:" + tried);
}

// Verdicts that follow from how long something took. A process that the machine treats badly for its whole life looks
// the same, so they must be found in two.
bool IsSuspicion(const Trouble& trouble) {
  return trouble.code == "hidden_work" || trouble.code == "interference" || trouble.code == "implausible";
}

}  // namespace

Judge::Judge(const Options& options)
    : options_(options),
      helper_directory_(options.helper_directory.empty() ? evaluator::FindHelperDirectory() : options.helper_directory),
      toolkit_(evaluator::CudaToolkit::Find(options.cuda_home)),
      sandbox_(options.sandbox, helper_directory_, toolkit_.readable),
      worker_sandbox_(sandbox_),
      device_(options.device),
      clocks_(device_.bus_id()),
      compiler_(toolkit_, sandbox_, helper_directory_,
                {.route = options.route,
                 .seconds = options.compile_seconds,
                 .workers = options.compilers,
                 .library_directory = helper_directory_,
                 .compute_capability = device_.compute_capability(),
                 .cache_file = options.compile_cache,
                 .on_fallback = options.on_compile_fallback}),
      candidate_memory_(device_),
      baseline_memory_(device_) {
  Worker::Options worker;
  worker.helper_directory = helper_directory_;
  worker.runtime_library = FindRuntime(toolkit_);
  worker.device_uuid = device_.uuid();
  worker.call_seconds = options.call_seconds;
  FindWorkerSandbox(worker);
  if (options.profile) profiler_ = std::make_unique<Profiler>(sandbox_, ProfilerOptions(worker));
}

Judge::~Judge() = default;

// Makes room for the problem's cases and for four sets at its timing size.
void Judge::ReserveFor(const Problem& problem, const std::vector<Case>& cases) {
  uint64_t needed = 4 * TimingInputs::SetBytes(problem);
  for (const Case& one : cases) needed = std::max(needed, 2 * Layout(problem, *one.size, kGuardBytes).bytes());
  if (needed <= candidate_memory_.bytes()) return;
  baselines_.clear();  // they have the old memory open
  candidate_memory_.Reserve(needed);
  baseline_memory_.Reserve(needed);
}

void Judge::FindWorkerSandbox(const Worker::Options& worker) {
  while (true) {
    try {
      workers_ = std::make_unique<WorkerPool>(worker_sandbox_, worker, options_.workers);
      return CheckWorks();
    } catch (const Error& error) {
      workers_.reset();
      std::optional<evaluator::Sandbox> weaker = worker_sandbox_.Weaker(error.what());
      if (!weaker) throw;
      worker_sandbox_ = *std::move(weaker);
    }
  }
}

// The driver's first kernel in a sandboxed worker writes to lent memory: is it there?
void Judge::CheckWorks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  candidate_memory_.Reserve(options_.timing.memory_bytes);
  baseline_memory_.Reserve(options_.timing.memory_bytes);
  device_.Fill(candidate_memory_.data(), 0, kOpenedBytes);
  device_.Wait();
  std::unique_ptr<Worker> worker = workers_->Take(false);
  worker->Open(candidate_memory_.handle());
  std::vector<uint8_t> seen(kOpenedBytes);
  device_.Read(seen.data(), candidate_memory_.data(), seen.size());
  workers_->Retire(std::move(worker));
  if (!std::all_of(seen.begin(), seen.end(), [](uint8_t byte) { return byte == kOpenedByte; })) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "what a sandboxed worker writes to lent device memory does not arrive: CUDA IPC does not work here");
  }
}

void Judge::ThrowIfCancelled() const {
  if (options_.cancelled && options_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
}

std::vector<Judge::Case> Judge::DrawCases(const OpenProblem& open, uint64_t key, int seeds) const {
  const Problem& problem = open.problem;
  std::vector<Case> cases;
  for (evaluator::CorrectnessCase& planned : evaluator::CorrectnessCases(problem, key, seeds)) {
    Case one;
    static_cast<evaluator::CorrectnessCase&>(one) = std::move(planned);
    one.arguments = evaluator::DrawArguments(problem, one);
    if (open.oracle) one.expected = open.oracle->Run(problem, one.arguments);
    one.accumulations = problem.accumulations.Evaluate(*one.size);
    // The first seed's guards are NaNs to whoever reads them as numbers; the others' are not, so that writing NaNs
    // there shows too.
    one.guard = one.GapByte();
    one.poison = one.variant % 2 == 0 ? 0xff : static_cast<uint8_t>(0x80 | evaluator::RandomBits(one.key, 8) % 128);
    one.extremes = one.DrawsExtremes(problem);
    cases.push_back(std::move(one));
  }
  return cases;
}

Trouble Judge::RunCase(Worker& worker, const LentMemory& memory, const Problem& problem, const Case& one,
                       std::vector<std::vector<uint8_t>>* outputs, bool staged) {
  const Layout layout(problem, *one.size, kGuardBytes);
  // Behind the tensors: copies of the outputs as the default stream sees them when the launch function has returned.
  std::vector<uint8_t> image(2 * layout.bytes(), one.guard);
  // Where a parameter's tensor is: an output may lie in an input's memory.
  const auto place_of = [&](const Layout::Tensor& tensor) -> const Layout::Tensor& {
    const std::optional<size_t>& input = problem.parameters[tensor.parameter].may_alias;
    return one.aliased && input ? *std::find_if(layout.tensors().begin(), layout.tensors().end(),
                                                [&](const Layout::Tensor& t) { return t.parameter == *input; })
                                : tensor;
  };
  Plan plan;
  plan.calls.push_back(layout.Arguments(1, 0));
  for (const Layout::Tensor& tensor : layout.tensors()) plan.calls[0][tensor.parameter].value = place_of(tensor).offset;
  if (staged) {
    // Something to keep the default stream busy for a while, with memory that is lent and free: the worker's process
    // must look to a kernel as it does when it is timed.
    const uint64_t used = 2 * layout.bytes();
    const uint64_t half = std::min((memory.bytes() - used) / 2, kDelayBytes) / Layout::kAlignment * Layout::kAlignment;
    plan.staged.push_back({used + half, used, half});
  }
  for (const Layout::Tensor& tensor : layout.tensors()) {
    const Parameter& parameter = problem.parameters[tensor.parameter];
    const evaluator::Rows rows = parameter.RowsAt(*one.size);
    std::vector<uint8_t> dense = one.arguments[tensor.parameter].bytes;
    if (parameter.role == Role::kOutput) std::fill(dense.begin(), dense.end(), one.poison);
    const std::vector<uint8_t> bytes =
        evaluator::SpreadRows(rows, parameter.dtype, std::move(dense), one.GapByte(parameter.role));
    const bool late = staged && parameter.role != Role::kOutput;
    std::memcpy(image.data() + (late ? layout.bytes() : 0) + tensor.offset, bytes.data(), tensor.bytes);
    if (late) plan.staged.push_back({tensor.offset, layout.bytes() + tensor.offset, tensor.bytes});
    if (parameter.IsWritten())
      plan.copies.push_back({layout.bytes() + tensor.offset, place_of(tensor).offset, tensor.bytes});
  }
  device_.Write(memory.data(), image.data(), image.size());
  if (Trouble trouble = worker.Prepare(plan)) return trouble;
  Done done;
  if (Trouble trouble = worker.Run(&done)) return trouble;
  std::vector<uint8_t> after(image.size());
  device_.Read(after.data(), memory.data(), after.size());

  if (done.refused > 0)
    return {"forbidden", "The host code calls a function of the CUDA runtime that would change the device for others."};
  if (done.allocations > 0 && !problem.allow_device_malloc)
    return {"forbidden", "The host code allocates device memory, which the problem does not allow."};
  if (done.launches == 0) return {"no_launch", "The launch function launches no kernel."};
  const auto bytes_of = [&](const Layout::Tensor& tensor) {
    const auto begin = after.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
    return std::vector<uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(tensor.bytes));
  };
  uint64_t at = 0;
  std::string before;
  for (const Layout::Tensor& tensor : layout.tensors()) {
    const Parameter& parameter = problem.parameters[tensor.parameter];
    const auto changed = [&](uint64_t begin, uint64_t end) {
      return std::memcmp(image.data() + begin, after.data() + begin, end - begin) != 0;
    };
    if (changed(at, tensor.offset)) {
      return {"out_of_bounds",
              "It writes outside its tensors, " +
                  (before.empty() ? "before " + parameter.name : "between " + before + " and " + parameter.name) + "."};
    }
    at = tensor.offset + tensor.bytes;
    before = parameter.name;
    if (!evaluator::GapsHold(parameter.RowsAt(*one.size), parameter.dtype, bytes_of(tensor),
                             one.GapByte(parameter.role)))
      return {"out_of_bounds", "It writes between the rows of " + parameter.name + "."};
    const bool in_use = std::any_of(layout.tensors().begin(), layout.tensors().end(), [&](const Layout::Tensor& t) {
      return t.parameter != tensor.parameter && &place_of(t) == &tensor;
    });
    if (parameter.role == Role::kInput && !staged && !in_use && changed(tensor.offset, at))
      return {"input_modified", "The input " + parameter.name + " was overwritten."};
  }
  if (std::memcmp(image.data() + at, after.data() + at, layout.bytes() - at) != 0)
    return {"out_of_bounds", "It writes outside its tensors, after " + before + "."};
  outputs->clear();
  std::string early;
  for (const Layout::Tensor& tensor : layout.tensors()) {
    const Parameter& parameter = problem.parameters[tensor.parameter];
    if (!parameter.IsWritten()) continue;
    std::vector<uint8_t> memory = bytes_of(place_of(tensor));
    if (std::memcmp(memory.data(), after.data() + layout.bytes() + tensor.offset, tensor.bytes) != 0)
      early = parameter.name;
    outputs->push_back(evaluator::GatherRows(parameter.RowsAt(*one.size), parameter.dtype, std::move(memory)));
  }
  if (one.expected.empty()) return {};
  size_t output = 0;
  for (const Layout::Tensor& tensor : layout.tensors()) {
    const Parameter& parameter = problem.parameters[tensor.parameter];
    if (!parameter.IsWritten()) continue;
    const Expected& expected = one.expected[tensor.parameter];
    const evaluator::ErrorBound bound =
        evaluator::BoundFor(problem, parameter, one.accumulations, expected, one.extremes);
    const evaluator::Comparison comparison =
        evaluator::Compare(parameter, parameter.ShapeAt(*one.size), (*outputs)[output++], expected, one.poison, bound);
    if (!comparison.matches) return {"wrong", comparison.sentence + "."};
  }
  if (!early.empty()) {
    return {"unsynchronised", "When the launch function has returned, " + early +
                                  " is not what it is once the whole device is idle: work on another stream is not "
                                  "joined to the default stream."};
  }
  return {};
}

Trouble Judge::Check(const OpenProblem& open, Worker& worker, const std::vector<Case>& cases, Judgement* judgement) {
  std::vector<std::vector<uint8_t>> outputs, first;
  for (const Case& one : cases) {
    ThrowIfCancelled();
    if (Trouble trouble = RunCase(worker, candidate_memory_, open.problem, one, &outputs))
      return {trouble.code, "At " + one.where + ": " + trouble.sentence};
    if (first.empty()) first = outputs;
  }
  // Once more with the first case's inputs: state kept between calls shows here, and so does a race that may go either
  // way. Sums in another order may differ in their last bits; they are right both times.
  if (Trouble trouble = RunCase(worker, candidate_memory_, open.problem, cases[0], &outputs)) {
    return {trouble.code == "wrong" ? "non_deterministic" : trouble.code,
            "Called again with the inputs of " + cases[0].where + ": " + trouble.sentence};
  }
  uint64_t used = 0;
  for (const Case& one : cases) used = std::max(used, 2 * Layout(open.problem, *one.size, kGuardBytes).bytes());
  if (device_.CountOther(candidate_memory_.data() + used, candidate_memory_.bytes() - used, kUnused) > 0)
    return {"out_of_bounds", "It writes far behind its tensors, to memory that it was not given."};
  // With its inputs copied into place on the default stream, just before: work on a stream that does not wait for that
  // one reads what was there.
  if (Trouble trouble = RunCase(worker, candidate_memory_, open.problem, cases[0], &outputs, true)) {
    if (trouble.code == "timeout" || trouble.code == "crash")
      return {trouble.code, "Called again: " + trouble.sentence};
    return {"unsynchronised",
            "When the default stream has its inputs ready only just before the call, it computes with "
            "what was there before: work on another stream does not wait for the default stream."};
  }
  judgement->metrics.emplace_back("same_bits_twice", outputs == first ? 1 : 0);
  return {};
}

// A kernel with streams or graphs of its own gets as many queues as CUDA has by default.
std::unique_ptr<Worker> Judge::WorkerFor(const evaluator::CompiledKernel& kernel, bool quick) {
  for (const std::string& symbol : evaluator::UndefinedSymbols(kernel.object)) {
    if (symbol.starts_with("cudaStreamCreate") || symbol.starts_with("cudaGraph")) return workers_->Make(8);
  }
  return workers_->Take(quick);
}

Worker& Judge::BaselineWorker(const OpenProblem& open, bool thorough) {
  const auto found = std::find_if(baselines_.begin(), baselines_.end(), [&](const Baseline& baseline) {
    return baseline.digest == open.problem.digest && baseline.thorough == thorough;
  });
  if (found != baselines_.end()) {
    baselines_.splice(baselines_.begin(), baselines_, found);
    return *baselines_.front().worker;
  }
  const evaluator::CompileOutcome compiled = compiler_.Compile(open.problem, open.problem.reference_source, thorough);
  const std::string file = open.problem.directory + "/reference.cu: ";
  if (!compiled.Succeeded()) throw Error(KGRPO_ERROR_INVALID, file + compiled.verdict + ": " + compiled.diagnosis);
  std::unique_ptr<Worker> worker = WorkerFor(compiled.kernel, true);
  worker->Open(baseline_memory_.handle());
  worker->Open(candidate_memory_.handle());
  if (const Trouble trouble = worker->Load(compiled.kernel))
    throw Error(KGRPO_ERROR_INVALID, file + trouble.code + ": " + trouble.sentence);
  baselines_.push_front({open.problem.digest, thorough, std::move(worker)});
  if (baselines_.size() > options_.baselines) {
    workers_->Retire(std::move(baselines_.back().worker));
    baselines_.pop_back();
  }
  return *baselines_.front().worker;
}

std::vector<Expected> Judge::ReferenceOutputs(const OpenProblem& open, Case one, bool thorough) {
  one.aliased = false;  // what is right is the same, and nothing can go wrong
  std::vector<std::vector<uint8_t>> outputs;
  if (const Trouble trouble = RunCase(BaselineWorker(open, thorough), baseline_memory_, open.problem, one, &outputs)) {
    throw Error(KGRPO_ERROR_INVALID,
                open.problem.directory + "/reference.cu: " + trouble.code + ": " + trouble.sentence);
  }
  std::vector<Expected> expected(open.problem.parameters.size());
  size_t output = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& parameter = open.problem.parameters[i];
    if (parameter.IsWritten()) expected[i] = evaluator::ExpectedFrom(parameter, outputs[output++]);
  }
  return expected;
}

Judgement Judge::Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough) {
  Judgement judgement;
  ThrowIfCancelled();
  const evaluator::CompileOutcome compiled = compiler_.Compile(open.problem, source, thorough);
  judgement.compile_seconds = compiled.seconds;
  judgement.compile_cached = compiled.cached;
  judgement.transient = compiled.transient;
  if (!compiled.Succeeded()) {
    judgement.verdict = compiled.verdict;
    judgement.diagnosis = compiled.diagnosis;
    return judgement;
  }
  judgement.compiled = true;
  judgement.metrics = evaluator::UsageMetrics(compiled.kernel.usage);
  std::vector<Case> cases = DrawCases(open, key, options_.seeds * (thorough ? 2 : 1));

  const Clock::time_point asked = Clock::now();
  const std::shared_ptr<void> device_lock =
      options_.lock_device ? options_.lock_device(device_.lock_name()) : std::shared_ptr<void>();
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point begin = Clock::now();
  ReserveFor(open.problem, cases);
  if (!open.oracle) {
    for (Case& one : cases) one.expected = ReferenceOutputs(open, one, thorough);
  }
  device_.Fill(candidate_memory_.data(), kUnused,
               candidate_memory_.bytes());  // nothing of an earlier candidate is left
  device_.Wait();
  // Where launches are a notable part of the reference's time, they should take both sides the same.
  const auto known = reference_.find(open.problem.digest);
  const bool quick = known == reference_.end() || known->second.launch_share > kNotableShare;
  std::unique_ptr<Worker> worker;
  const auto load_in_fresh_worker = [&] {
    workers_->Retire(std::move(worker));
    worker = WorkerFor(compiled.kernel, quick);
    worker->Open(candidate_memory_.handle());
    return worker->Load(compiled.kernel);
  };
  Trouble trouble = load_in_fresh_worker();
  const Clock::time_point loaded = Clock::now();
  if (!trouble) trouble = Check(open, *worker, cases, &judgement);
  const Clock::time_point checked = Clock::now();
  if (!trouble) {
    Judgement timed = judgement;
    trouble = Time(open, worker, cases, key, thorough, &timed);
    if (IsSuspicion(trouble)) {
      timed = judgement;
      trouble = load_in_fresh_worker();
      if (!trouble) trouble = Time(open, worker, cases, evaluator::SubKey(key, 3), thorough, &timed);
    }
    judgement = std::move(timed);
  }
  workers_->Retire(std::move(worker));
  const auto add_seconds = [&](const char* name, Clock::time_point from, Clock::time_point to) {
    judgement.metrics.emplace_back(name, std::chrono::duration<double>(to - from).count());
  };
  add_seconds("judge_wait_seconds", asked, begin);
  add_seconds("judge_load_seconds", begin, loaded);
  add_seconds("judge_check_seconds", loaded, checked);
  add_seconds("judge_time_seconds", checked, Clock::now());
  judgement.Conclude(trouble);
  if (profiler_ && judgement.correct) Profile(open, compiled.kernel, key, &judgement);
  return judgement;
}

std::string Judge::Describe() const {
  std::ostringstream text;
  text.precision(3);
  text << "compiler: " << compiler_.Describe() << "\nsandbox: " << worker_sandbox_.description()
       << "\ndevice: " << device_.name() << ", driver for CUDA " << device_.driver() << "; reaches "
       << device_.ceilings().read_bytes_per_second * 1e-9 << " GB/s of reads and "
       << device_.ceilings().fp32_operations_per_second * 1e-12 << " TFLOP/s in fp32, "
       << device_.ceilings().fp64_operations_per_second * 1e-12 << " in fp64, "
       << device_.ceilings().tensor_operations_per_second * 1e-12 << " on tensor cores by mma.sync"
       << (clocks_.known() ? "" : "; NVML is not there, so throttled clocks go unnoticed");
  if (profiler_) text << "\nprofiler: " << profiler_->Describe();
  return text.str();
}

std::string Judge::Version() const {
  std::ostringstream text;
  text << "judge " << SourceDigest() << "; " << compiler_.Version() << "; " << device_.uuid() << "; "
       << device_.driver() << "; " << options_.seeds << "; " << options_.timing.relative_error << "; "
       << options_.timing.budget_seconds << "; " << options_.timing.memory_bytes
       << (profiler_ ? "; " + profiler_->Describe() : "");
  return text.str();
}

}  // namespace kgrpo::evaluator_cuda
