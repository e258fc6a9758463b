#include "evaluator_cuda/device_evaluator.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "evaluator_cuda/device_errors.h"
#include "evaluator_cuda/device_evaluator_case.h"
#include "judge/compile/cuda_toolkit.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator_cuda {

using Clock = std::chrono::steady_clock;
using evaluator::Problem;

namespace {

constexpr std::chrono::seconds kOthersSeconds(5);  // kernels that stay longer are no candidate's leftovers
constexpr double kNotableShare = 0.04;             // of the reference's time; launch costs differ by up to a tenth
constexpr uint64_t kLargeShare = 8;                // lent memory above 1/8 of the device's is freed after an evaluation

// Device memory of each side, at least.
constexpr uint64_t kLeastMemory = uint64_t{64} << 20;

bool MakesStreams(const evaluator::CompiledKernel& kernel) {
  return std::any_of(kernel.undefined.begin(), kernel.undefined.end(), [](const std::string& symbol) {
    return symbol.starts_with("cudaStreamCreate") || symbol.starts_with("cudaGraph");
  });
}

uint64_t DrawSecret() {
  std::random_device system;
  return uint64_t{system()} << 32 | system();
}

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

}  // namespace

DeviceEvaluator::DeviceEvaluator(const Options& options)
    : options_(options),
      helper_directory_(options.helper_directory.empty() ? evaluator::FindHelperDirectory() : options.helper_directory),
      toolkit_(evaluator::CudaToolkit::Find()),
      tvm_ffi_(evaluator::TvmFfi::Find(options.tvm_ffi)),
      sandbox_(options.sandbox, helper_directory_, toolkit_.readable),
      worker_sandbox_(sandbox_),
      device_(options.device),
      order_key_(DrawSecret()),
      clocks_(device_.bus_id()),
      candidate_memory_(device_),
      reference_memory_(device_),
      pytorch_(device_.uuid()) {
  Worker::Options worker;
  worker.helper_directory = helper_directory_;
  worker.runtime_library = FindRuntime(toolkit_);
  worker.readable = tvm_ffi_.Readable();
  worker.device_uuid = device_.uuid();
  worker.device_node = device_.node();
  worker.call_seconds = options.call_seconds;
  // Compilers, interpreters, the first workers' contexts and our own start at the same time.
  std::future<void> compiler = std::async(std::launch::async, [this] { StartCompiler(); });
  FindWorkerSandbox(worker);
  compiler.get();
  if (options.profile) profiler_ = std::make_unique<Profiler>(sandbox_, ProfilerOptions(worker));
}

DeviceEvaluator::~DeviceEvaluator() = default;

void DeviceEvaluator::StartCompiler() {
  compiler_ = std::make_unique<evaluator::Compiler>(
      toolkit_, sandbox_, helper_directory_,
      evaluator::Compiler::Options{.route = options_.route,
                                   .seconds = options_.compile_seconds,
                                   .workers = options_.compilers,
                                   .library_directory = helper_directory_,
                                   .compute_capability = device_.compute_capability(),
                                   .cache_file = options_.compile_cache,
                                   .tvm_ffi = tvm_ffi_,
                                   .on_fallback = options_.on_compile_fallback,
                                   .stop = options_.cancelled});
  if (options_.interpret) PrepareInterpreter();
}

void DeviceEvaluator::PrepareInterpreter() {
  const int capability = device_.compute_capability();
  const char* const described_as = capability == 80 ? "a100" : capability == 89 ? "l4" : "h100";
  try {
    interpreted_checks_ = std::make_unique<InterpretedChecks>(sandbox_, helper_directory_, described_as,
                                                              options_.compilers, options_.cancelled);
  } catch (const Error& error) {
    not_interpreted_ = error.what();
  }
}

// Makes room for the problem's cases and for the sets at its timing size.
void DeviceEvaluator::ReserveFor(const Problem& problem, const std::vector<Case>& cases) {
  const uint64_t set = TimingInputs::SetBytes(problem);
  uint64_t needed = std::max(memory_bytes_, Timer::FewestSets(set) * set);
  for (const Case& one : cases) needed = std::max(needed, 2 * Layout(problem, *one.size, kGuardBytes).bytes());
  if (needed <= std::min(candidate_memory_.bytes(), reference_memory_.bytes())) return;
  if (2 * needed > device_.total_bytes()) {
    throw Error(KGRPO_ERROR_INVALID, "problem " + problem.name + ": its timing size needs twice " +
                                         std::to_string(needed >> 20) + " MiB of device memory, and the " +
                                         device_.name() + " has " + std::to_string(device_.total_bytes() >> 20) +
                                         " MiB: lower the problem's timing size");
  }
  DropReferences();  // they have the old memory open
  candidate_memory_.Reserve(needed);
  reference_memory_.Reserve(needed);
}

void DeviceEvaluator::ReleaseLargeMemory() {
  if (candidate_memory_.bytes() <= std::max(memory_bytes_, device_.total_bytes() / kLargeShare)) return;
  DropReferences();  // they have it open
  candidate_memory_.Release();
  reference_memory_.Release();
}

void DeviceEvaluator::FindWorkerSandbox(const Worker::Options& worker) {
  const auto crowded = [this] { return device_.FreeBytes() < device_.total_bytes() / kLargeShare; };
  while (true) {
    try {
      workers_ = std::make_unique<WorkerPool>(worker_sandbox_, worker, options_.workers, crowded);
      if (memory_bytes_ == 0) StartDevice();
      return CheckWorks();
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& error) {
      std::optional<evaluator::Sandbox> weaker = worker_sandbox_.Weaker(error.what());
      if (!weaker) throw;
      workers_.reset();  // its thread reads worker_sandbox_
      worker_sandbox_ = *std::move(weaker);
    }
  }
}

// Makes the context and takes the memory to lend: an eighth of the free memory at most, and the less of it the less of
// the device is free, so that many evaluators can share one.
void DeviceEvaluator::StartDevice() {
  device_.Start();
  const auto free = static_cast<double>(device_.FreeBytes()), total = static_cast<double>(device_.total_bytes());
  memory_bytes_ = std::min(options_.timing.memory_bytes,
                           std::max(kLeastMemory, static_cast<uint64_t>(free * (free / total) / kLargeShare)));
  candidate_memory_.Reserve(memory_bytes_);
  reference_memory_.Reserve(memory_bytes_);
}

// Checks that a sandboxed worker's write to lent device memory arrives.
void DeviceEvaluator::CheckWorks() {
  {
    const WorkerPool::Demand first(*workers_, 2);  // a kernel and its reference follow
    workers_->WaitUntilFilled();                   // contexts in the making would disturb the measurements
  }
  const Held held = HoldDevice();
  device_.MeasureCeilings();
  busy_ = device_.IsBusy();
  device_.Fill(candidate_memory_.data(), 0, kOpenedBytes);
  device_.Wait();
  std::unique_ptr<Worker> worker = workers_->Take(false);
  worker->Open(candidate_memory_.handle());
  std::vector<uint8_t> seen(kOpenedBytes);
  device_.Read(seen.data(), candidate_memory_.data(), seen.size());
  no_gates_ = worker->no_gates();
  workers_->Retire(std::move(worker));
  if (!std::all_of(seen.begin(), seen.end(), [](uint8_t byte) { return byte == kOpenedByte; })) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "what a sandboxed worker writes to lent device memory does not arrive: CUDA IPC does not work here");
  }
}

void DeviceEvaluator::ThrowIfCancelled() const {
  if (options_.cancelled && options_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
}

// Returns true if another program's kernels were on the device until now: beside them, honest kernels seem to hide
// work. A candidate's leftover kernels end soon after its process. Throws Error(KGRPO_ERROR_UNAVAILABLE) if kernels
// stay, since no judgement is possible then.
bool DeviceEvaluator::OthersHeldUp() const {
  const Clock::time_point begin = Clock::now();
  bool busy = false;
  while (device_.IsBusy()) {
    busy = true;
    ThrowIfCancelled();
    if (Clock::now() - begin > kOthersSeconds) {
      throw Error(KGRPO_ERROR_UNAVAILABLE,
                  "kernels of another program run on " + device_.name() + " (" + device_.uuid() +
                      "), so a candidate's time cannot be judged: end that program (nvidia-smi lists them), or "
                      "choose another device with the evaluator's option device");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return busy;
}

// Returns a worker with as many hardware queues as CUDA has by default if the kernel makes streams or graphs, else one
// with few.
std::unique_ptr<Worker> DeviceEvaluator::WorkerFor(const evaluator::CompiledKernel& kernel, bool quick) {
  if (MakesStreams(kernel)) return workers_->Make(kUsualConnections);
  if (ahead_.empty()) return workers_->Take(quick);
  std::unique_ptr<Worker> worker = std::move(ahead_.front());
  ahead_.pop_front();
  return worker;
}

Trouble DeviceEvaluator::LoadInto(std::unique_ptr<Worker> worker, const evaluator::CompiledKernel& kernel,
                                  Workers* workers) {
  workers->push_back(std::move(worker));
  workers->back()->Open(candidate_memory_.handle());
  return workers->back()->Load(kernel);
}

Trouble DeviceEvaluator::LoadInFreshWorker(const evaluator::CompiledKernel& kernel, bool quick, Workers* workers) {
  return LoadInto(WorkerFor(kernel, quick), kernel, workers);
}

// Returns the part of launches in the reference's time, once it is known.
std::optional<double> DeviceEvaluator::LaunchShare(const Problem& problem) {
  const std::lock_guard<std::mutex> lock(launch_share_mutex_);
  const auto known = launch_share_.find(problem.digest);
  return known == launch_share_.end() ? std::nullopt : std::optional(known->second);
}

void DeviceEvaluator::Retire(Workers* workers) {
  for (std::unique_ptr<Worker>& worker : *workers) workers_->Retire(std::move(worker));
  workers->clear();
}

// Takes the host's lock for the next place on the device. So evaluations are served in order, and this wait counts as a
// wait for the device.
DeviceEvaluator::Held DeviceEvaluator::HoldNext() {
  Held held;
  if (options_.lock_device) held.device_lock = options_.lock_device("next on " + device_.lock_name());
  held.lock = std::unique_lock<std::mutex>(next_mutex_);
  return held;
}

DeviceEvaluator::Held DeviceEvaluator::HoldDevice() {
  Held held;
  if (options_.lock_device) held.device_lock = options_.lock_device(device_.lock_name());
  held.lock = std::unique_lock<std::mutex>(mutex_);
  return held;
}

InterpretedChecks::Running DeviceEvaluator::Interpret(const OpenProblem& open, const evaluator::CompiledKernel& kernel,
                                                      const std::vector<Case>& cases, bool thorough) {
  InterpretedChecks::ExpectedOf expected;
  if (open.oracle) expected = [&cases](size_t i, const std::vector<evaluator::Argument>&) { return cases[i].expected; };
  return interpreted_checks_->Start(
      open.problem, kernel, {cases.begin(), cases.end()}, std::move(expected),
      [this, &open, thorough] { return CompiledReference(open, thorough); }, &open);
}

// Everything that the judgement of one kernel has on the device. Ends in the order that others need it.
struct DeviceEvaluator::Turn {
  explicit Turn(DeviceEvaluator& e) : evaluator(e) {}
  ~Turn() {
    if (!held.lock.owns_lock()) return;
    for (std::unique_ptr<Worker>& worker : evaluator.ahead_) evaluator.workers_->GiveBack(std::move(worker));
    evaluator.ahead_.clear();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  DeviceEvaluator& evaluator;
  Held held;
  std::optional<LargeMemory> large_memory;
  std::unique_ptr<Worker> worker;  // for the candidate
  bool quick = false;
  Clock::time_point begin;  // when the device was free
};

// Takes the workers that the evaluation will need for its reference and for further pairs, so that the device does not
// wait for a process to start. A worker that cannot be had is taken later, or done without.
std::deque<std::unique_ptr<Worker>> DeviceEvaluator::TakeAhead(const OpenProblem& open, bool thorough, bool quick) {
  const bool in_turns = thorough && LaunchShare(open.problem).value_or(0) > Timer::kLaunchShare;
  const size_t pairs = in_turns ? options_.timing.most_pairs : 1;
  const size_t known = std::min(pairs, CountReferences(open.problem, thorough, quick)), wanted = 2 * pairs - known - 1;
  std::deque<std::unique_ptr<Worker>> workers;
  const WorkerPool::Demand demand(*workers_, wanted);
  try {
    while (workers.size() < wanted) workers.push_back(workers_->Take(quick));
  } catch (const Error&) {
  }
  return workers;
}

// Waits for the device, with all that can be had before in hand.
std::unique_ptr<DeviceEvaluator::Turn> DeviceEvaluator::TakeTurn(const OpenProblem& open,
                                                                 const evaluator::CompiledKernel& kernel,
                                                                 const std::vector<Case>& cases, bool thorough) {
  // The next evaluation takes its worker processes before the device is free. Only one evaluation does so, since each
  // process holds device memory.
  std::optional<Held> next = HoldNext();
  const bool quick = LaunchShare(open.problem).value_or(1) > kNotableShare;
  std::unique_ptr<Worker> worker = MakesStreams(kernel) ? workers_->Make(kUsualConnections) : workers_->Take(quick);
  std::deque<std::unique_ptr<Worker>> ahead = TakeAhead(open, thorough, quick);
  auto turn = std::make_unique<Turn>(*this);
  turn->quick = quick;
  turn->worker = std::move(worker);
  turn->held = HoldDevice();
  next.reset();
  turn->begin = Clock::now();
  ahead_ = std::move(ahead);
  turn->large_memory.emplace(*this);
  ReserveFor(open.problem, cases);
  return turn;
}

KernelEvaluation DeviceEvaluator::Evaluate(const OpenProblem& open, const std::string& source, uint64_t key,
                                           bool thorough, bool show_hidden) {
  KernelEvaluation evaluation;
  ThrowIfCancelled();
  std::optional<WorkerPool::Demand> demand(std::in_place, *workers_, 1);
  const evaluator::CompileOutcome compiled = compiler_->Compile(open.problem, source, thorough);
  if (!evaluator::TakeCompiled(compiled, &evaluation)) return evaluation;
  std::vector<Case> cases = DrawCases(open, source, key, thorough, show_hidden);

  InterpretedChecks::Running interpreting;
  // The interpreter runs no libraries.
  const bool uses_libraries = evaluator::UsesFormLibraries(compiled.kernel);
  if (interpreted_checks_ && !uses_libraries) interpreting = Interpret(open, compiled.kernel, cases, thorough);
  try {
    CompiledReference(open, thorough);  // before the device is held
  } catch (const Error&) {
    // Told when the reference is needed.
  }
  const Clock::time_point asked = Clock::now();
  const auto between = [this](const OutOfMemory& error) {
    ThrowIfCancelled();
    if (options_.on_wait_for_memory) options_.on_wait_for_memory(error.what());
  };
  std::unique_ptr<Turn> turn = WaitForMemory(kMemoryPatienceSeconds, between, [&] {
    std::unique_ptr<Turn> taken = TakeTurn(open, compiled.kernel, cases, thorough);
    LeaveOutImpossible(open, &cases);
    if (!open.oracle && !open.checker) {
      for (Case& one : cases) {
        if (!one.left_out) one.expected = ReferenceOutputs(open, one);
      }
    }
    return taken;
  });
  demand.reset();
  device_.Fill(candidate_memory_.data(), kUnused,
               candidate_memory_.bytes());  // nothing of an earlier candidate is left
  device_.Wait();
  Workers workers;
  InterpretedFinding finding;
  Trouble trouble = LoadInto(std::move(turn->worker), compiled.kernel, &workers);
  const Clock::time_point loaded = Clock::now();
  if (!trouble) trouble = Check(open, *workers.front(), cases, &evaluation);
  const Clock::time_point checked = Clock::now();
  // A kernel that a check has accused by now need not be timed: the verdict is the check's whatever its time says.
  KernelEvaluation timed = evaluation;
  const bool wait = interpreting.valid() && MayBeExplained(trouble);
  bool accused = false;
  if (wait && interpreting.IsDone()) {
    finding = interpreting.Get();
    accused = IsFinding(finding.trouble);
  }
  Trouble of_time;
  if (!trouble && !accused)
    of_time = TimeUntilSure(open, compiled.kernel, &workers, cases, {key, thorough, turn->quick}, &timed);
  Retire(&workers);
  const Clock::time_point begin = turn->begin, timed_at = Clock::now();
  turn.reset();
  if (wait && interpreting.valid()) finding = interpreting.Get();
  trouble = Decide(trouble, finding.trouble);
  if (!trouble) {
    evaluation = std::move(timed);
    trouble = of_time;
  }
  const auto add_seconds = [&](const char* name, Clock::time_point from, Clock::time_point to) {
    evaluation.metrics.emplace_back(name, std::chrono::duration<double>(to - from).count());
  };
  add_seconds("judge_wait_seconds", asked, begin);
  add_seconds("judge_load_seconds", begin, loaded);
  add_seconds("judge_check_seconds", loaded, checked);
  add_seconds("judge_time_seconds", checked, timed_at);
  add_seconds("judge_interpret_seconds", timed_at, Clock::now());
  if (show_hidden) trouble.sentence = evaluator::NameTimingSize(open.problem, std::move(trouble.sentence));
  evaluation.Conclude(trouble);
  if (finding.transient) evaluation.transient = true;
  if (evaluation.correct) {
    for (const std::string& note : finding.notes) evaluation.diagnosis += " " + note + ".";
    evaluation.KeepNotJudged(finding.not_judged);
    if (finding.trouble) evaluation.diagnosis += " Checks: device only: " + finding.trouble.sentence;
    if (interpreted_checks_ && uses_libraries)
      evaluation.diagnosis += " Checks: device only: its host code uses a library that the interpreter lacks.";
    const bool interpreted = interpreted_checks_ && !uses_libraries && !finding.trouble;
    evaluation.metrics.emplace_back("checks_interpreted", interpreted ? 1 : 0);
  }
  if (profiler_ && evaluation.correct && !uses_libraries) {
    const Held held = HoldDevice();
    const LargeMemory large_memory(*this);
    ReserveFor(open.problem, {});
    Profile(open, compiled.kernel, key, &evaluation);
  }
  return evaluation;
}

std::string DeviceEvaluator::Describe() const {
  std::ostringstream text;
  text.precision(3);
  text << "compiler: " << compiler_->Describe() << "\nsandbox: " << worker_sandbox_.description()
       << "\ndevice: " << device_.name() << ", driver for CUDA " << device_.driver() << "; reaches "
       << device_.ceilings().read_bytes_per_second * 1e-9 << " GB/s of reads and "
       << device_.ceilings().fp32_operations_per_second * 1e-12 << " TFLOP/s in fp32, "
       << device_.ceilings().fp64_operations_per_second * 1e-12 << " in fp64, "
       << device_.ceilings().tensor_operations_per_second * 1e-12 << " on tensor cores by mma.sync"
       << (no_gates_.empty() ? "" : "; short kernels are timed with their launches: " + no_gates_)
       << (busy_ ? "; kernels of another program run on it: times will not repeat" : "")
       << (clocks_.known() ? "" : "; NVML is missing, so throttled clocks are not detected");
  text << "\nchecks: "
       << (interpreted_checks_
               ? "every correctness case is interpreted too, with every check; whole numbers at correctness sizes"
               : "device only")
       << (not_interpreted_.empty() ? "" : ": " + not_interpreted_);
  if (profiler_) text << "\nprofiler: " << profiler_->Describe();
  return text.str();
}

std::string DeviceEvaluator::Version() const {
  std::ostringstream text;
  text << "evaluator " << SourceDigest() << "; " << compiler_->Version() << "; " << device_.uuid() << "; "
       << device_.driver() << "; " << options_.seeds << "; " << options_.timing.precision.relative_error << "; "
       << options_.timing.precision.clear_share << "; " << options_.timing.budget_seconds << "; "
       << options_.timing.memory_bytes << "; " << tvm_ffi_.folder << (no_gates_.empty() ? "" : "; no gates")
       << (interpreted_checks_ ? "; interpreted" : "") << (profiler_ ? "; " + profiler_->Describe() : "");
  return text.str();
}

}  // namespace kgrpo::evaluator_cuda
