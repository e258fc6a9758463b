#include "evaluator_sim/judge.h"

#include <cxxabi.h>
#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <utility>

#include "evaluator_shared/comparison.h"
#include "evaluator_shared/cuda_toolkit.h"
#include "evaluator_shared/random.h"
#include "evaluator_sim/version.h"

namespace kgrpo::evaluator_sim {

using evaluator::Argument;
using evaluator::Bindings;
using evaluator::Expected;
using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

namespace {

constexpr uint64_t kKeptTimingBytes = uint64_t{1} << 30;  // of all open problems
constexpr double kImplausible = 0.9;                      // of the roofline
constexpr double kThinCoverage = 0.5;                     // of an output's bytes, by sampling

std::string SizeText(const Bindings& size) {
  std::string text;
  for (const auto& [symbol, value] : size) text += (text.empty() ? "" : ", ") + symbol + "=" + std::to_string(value);
  return text;
}

std::string TimeText(double seconds) {
  std::ostringstream text;
  text << std::setprecision(4);
  if (seconds < 1e-3) {
    text << seconds * 1e6 << " us";
  } else {
    text << seconds * 1e3 << " ms";
  }
  return text.str();
}

// "k" of "_Z1kPKfi": what a person calls the kernel.
std::string KernelName(const std::string& linker_name) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(linker_name.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : linker_name;
  std::free(demangled);
  if (name.rfind("void ", 0) == 0) name = name.substr(5);
  const size_t parameters = name.rfind('(');
  return parameters == std::string::npos ? name : name.substr(0, parameters);
}

bool IsTensor(const Parameter& parameter) {
  return parameter.role != Role::kScalar;
}
bool IsWritten(const Parameter& parameter) {
  return parameter.role == Role::kOutput || parameter.role == Role::kInout;
}

std::atomic<uint64_t> g_kept_timing_bytes{0};

// An unnamed file that holds these bytes.
evaluator::Descriptor FileOf(const std::vector<uint8_t>& bytes) {
  evaluator::Descriptor file(memfd_create("kgrpo timing inputs", MFD_CLOEXEC));
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = write(file.get(), bytes.data() + at, bytes.size() - at);
    if (count <= 0)
      throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("no memory for timing inputs: ") + std::strerror(errno));
    at += static_cast<size_t>(count);
  }
  return file;
}

// The tensors of one call in device memory; freed at the end, so that a pointer kept beyond the call is caught.
class Tensors {
 public:
  Tensors(simt::DeviceMemory& memory, const Problem& problem, const std::vector<Argument>& arguments, uint64_t key)
      : memory_(memory), problem_(problem), arguments_(arguments), key_(key) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Parameter& parameter = problem.parameters[i];
      uint64_t value = 0;
      if (IsTensor(parameter)) {
        value = memory.Allocate(arguments[i].bytes.size(), parameter.name);
        if (value == 0) throw Error(KGRPO_ERROR_INVALID, "the problem's tensors do not fit the device memory limit");
        if (parameter.role == Role::kOutput) {
          memory.Poison(value, Poison(i));
        } else {
          memory.Write(value, arguments[i].bytes.data(), arguments[i].bytes.size());
        }
      } else {
        std::memcpy(&value, arguments[i].bytes.data(), arguments[i].bytes.size());
      }
      values_.push_back(value);
    }
  }
  // At the timing size: inputs mapped, outputs filled with poison only when somebody looks at them afterwards.
  Tensors(simt::DeviceMemory& memory, const Problem& problem, const TimingInputs& inputs, uint64_t key, bool poisoned)
      : memory_(memory), problem_(problem), arguments_(inputs.arguments), key_(key) {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const Parameter& parameter = problem.parameters[i];
      uint64_t value = 0;
      if (!IsTensor(parameter)) {
        std::memcpy(&value, arguments_[i].bytes.data(), arguments_[i].bytes.size());
      } else if (inputs.files[i].get() >= 0) {
        value = memory.AllocateCopy(inputs.files[i].get(), inputs.bytes[i], parameter.name);
      } else {
        value = memory.Allocate(inputs.bytes[i], parameter.name);
        if (poisoned && value != 0) memory.Poison(value, Poison(i));
      }
      if (IsTensor(parameter) && value == 0)
        throw Error(KGRPO_ERROR_INVALID, "the problem's tensors do not fit the device memory limit");
      values_.push_back(value);
    }
  }
  ~Tensors() {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (IsTensor(problem_.parameters[i])) memory_.Free(values_[i]);
    }
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  const std::vector<uint64_t>& values() const { return values_; }
  uint8_t Poison(size_t i) const { return evaluator::PoisonByte(problem_.parameters[i], evaluator::SubKey(key_, i)); }

  std::vector<uint8_t> Read(size_t i) const {
    std::vector<uint8_t> bytes(memory_.Find(values_[i])->bytes());
    memory_.Read(values_[i], bytes.data(), bytes.size());
    return bytes;
  }

  // The name of an input that no longer holds what it held, or "".
  std::string ModifiedInput() const {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (problem_.parameters[i].role != Role::kInput) continue;
      const simt::Allocation* allocation = memory_.Find(values_[i]);
      if (std::memcmp(allocation->data(), arguments_[i].bytes.data(), arguments_[i].bytes.size()) != 0)
        return problem_.parameters[i].name;
    }
    return "";
  }

 private:
  simt::DeviceMemory& memory_;
  const Problem& problem_;
  const std::vector<Argument>& arguments_;
  const uint64_t key_;
  std::vector<uint64_t> values_;
};

std::vector<int64_t> ShapeAt(const Parameter& parameter, const Bindings& size) {
  std::vector<int64_t> shape;
  for (const evaluator::Expression& dimension : parameter.shape) shape.push_back(dimension.EvaluateInteger(size));
  return shape;
}

// The least time the problem's traffic and arithmetic allow on the device.
double RooflineSeconds(const Problem& problem, const simt::Device& device) {
  const double bytes = problem.needed_bytes.Evaluate(problem.timing),
               flops = problem.needed_flops.Evaluate(problem.timing);
  const double fastest_pipe = std::max({device.fp32_rate * 64, device.half_rate * 128, device.tensor_flops_per_cycle});
  return std::max(bytes / device.dram_bytes_per_second,
                  flops / (fastest_pipe * device.multiprocessors * device.clock_hz));
}

}  // namespace

OpenProblem::OpenProblem(const std::string& directory, const std::string& cache_directory)
    : problem_(evaluator::LoadProblem(directory)) {
  if (problem_.oracle_source) oracle_ = evaluator::Oracle::Load(problem_, cache_directory);
}

OpenProblem::~OpenProblem() {
  g_kept_timing_bytes -= kept_bytes_;
}

std::shared_ptr<const TimingInputs> OpenProblem::Timing() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (timing_) return timing_;
  auto inputs = std::make_shared<TimingInputs>();
  inputs->arguments = evaluator::DrawArguments(problem_, problem_.timing, evaluator::KeyFromText(problem_.digest), 0);
  inputs->bytes.resize(inputs->arguments.size());
  inputs->files.resize(inputs->arguments.size());
  uint64_t total = 0;
  for (size_t i = 0; i < inputs->arguments.size(); ++i) {
    const Parameter& parameter = problem_.parameters[i];
    if (!IsTensor(parameter)) continue;
    std::vector<uint8_t> bytes = std::exchange(inputs->arguments[i].bytes, {});
    inputs->bytes[i] = bytes.size();
    if (parameter.role == Role::kOutput) continue;
    inputs->files[i] = FileOf(bytes);
    total += bytes.size();
  }
  if (g_kept_timing_bytes.fetch_add(total) + total <= kKeptTimingBytes) {
    kept_bytes_ = total;
    timing_ = inputs;
  } else {
    g_kept_timing_bytes -= total;
  }
  return inputs;
}

struct Judge::Run {
  Run(const OpenProblem& open_problem, evaluator::CompiledKernel compiled, std::shared_ptr<const simt::Module> module,
      const simt::Device& device, const DeviceSession::Limits& limits)
      : open(open_problem), kernel(std::move(compiled)), session(std::move(module), kernel.usage, device, limits) {}
  const OpenProblem& open;
  evaluator::CompiledKernel kernel;
  DeviceSession session;
  std::unique_ptr<Worker> worker;
  bool thorough = false;
  uint64_t warp_instructions = 0;
  std::vector<std::vector<uint8_t>> first_outputs;  // of the first case, for the repetition
};

Judge::Judge(const Options& options)
    : options_(options),
      helper_directory_(options.helper_directory.empty() ? evaluator::FindHelperDirectory() : options.helper_directory),
      toolkit_(evaluator::CudaToolkit::Find(options.cuda_home)),
      sandbox_(options.sandbox, helper_directory_, toolkit_.readable),
      device_(simt::Device::Load(helper_directory_ + "/devices/" + options.device + ".yaml")),
      compiler_(toolkit_, sandbox_, helper_directory_,
                {options.route, options.compile_seconds, options.concurrency, helper_directory_}),
      workers_(sandbox_, helper_directory_, options.concurrency, static_cast<uint64_t>(options.host_seconds * 4) + 1) {}

std::unique_ptr<Judge::Run> Judge::Prepare(const OpenProblem& open, const std::string& source, bool thorough,
                                           Judgement* judgement) {
  evaluator::CompileOutcome compiled = compiler_.Compile(open.problem(), source, thorough);
  judgement->compile_seconds = compiled.seconds;
  if (!compiled.Succeeded()) {
    judgement->verdict = compiled.verdict;
    judgement->diagnosis = compiled.diagnosis;
    return nullptr;
  }
  judgement->compiled = true;
  std::shared_ptr<const simt::Module> module;
  if (compiled.kernel.ptx.empty()) {
    judgement->verdict = "no_launch";
    judgement->diagnosis = "The source defines no kernel.";
    return nullptr;
  }
  try {
    module = simt::Module::Parse(compiled.kernel.ptx);
  } catch (const Error& error) {
    judgement->verdict = "unsupported";
    judgement->diagnosis = std::string("The simulated device cannot run it: ") + error.what();
    return nullptr;
  }
  DeviceSession::Limits limits;
  limits.warp_instructions = options_.warp_instructions;
  limits.device_malloc = open.problem().allow_device_malloc;
  limits.host_seconds = options_.host_seconds;
  auto run = std::make_unique<Run>(open, std::move(compiled.kernel), std::move(module), device_, limits);
  run->thorough = thorough;
  run->worker = workers_.Take();
  if (const Trouble trouble = run->session.Load(*run->worker, run->kernel.object)) {
    judgement->verdict = trouble.code;
    judgement->diagnosis = trouble.sentence;
    return nullptr;
  }
  return run;
}

std::vector<Expected> Judge::ReferenceOutputs(const OpenProblem& open, const std::vector<Argument>& arguments) {
  Judgement judgement;
  const Problem& problem = open.problem();
  std::unique_ptr<Run> run = Prepare(open, problem.reference_source, false, &judgement);
  if (!run)
    throw Error(KGRPO_ERROR_INVALID,
                problem.directory + "/reference.cu: " + judgement.verdict + ": " + judgement.diagnosis);
  const Tensors tensors(run->session.memory(), problem, arguments, 0);
  CallRecord record;
  if (const Trouble trouble = run->session.Call(*run->worker, tensors.values(), simt::Mode::kPlain, 0, &record)) {
    throw Error(KGRPO_ERROR_INVALID, problem.directory + "/reference.cu: " + trouble.code + ": " + trouble.sentence);
  }
  std::vector<Expected> expected(problem.parameters.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!IsWritten(parameter)) continue;
    const evaluator::DTypeInfo& info = evaluator::Info(parameter.dtype);
    const std::vector<uint8_t> bytes = tensors.Read(i);
    for (size_t at = 0; at < bytes.size(); at += info.size) {
      if (info.is_floating) {
        expected[i].reals.push_back(evaluator::LoadDouble(parameter.dtype, bytes.data() + at));
      } else {
        expected[i].wholes.push_back(evaluator::LoadInteger(parameter.dtype, bytes.data() + at));
      }
    }
  }
  return expected;
}

Trouble Judge::RunCase(Run& run, const Bindings& size, const std::string& where, uint64_t key, int variant,
                       simt::Mode mode, bool repeat) {
  const Problem& problem = run.open.problem();
  const std::vector<Argument> arguments = evaluator::DrawArguments(problem, size, key, variant);
  const Tensors tensors(run.session.memory(), problem, arguments, key);
  CallRecord record;
  Trouble trouble = run.session.Call(*run.worker, tensors.values(), mode, 0, &record);
  run.warp_instructions += record.warp_instructions;
  if (trouble) return {trouble.code, "At " + where + ": " + trouble.sentence};
  if (record.launches == 0) return {"no_launch", "At " + where + ": the launch function launches no kernel."};
  if (const std::string name = tensors.ModifiedInput(); !name.empty()) {
    return {"input_modified", "At " + where + ": the input " + name + " was overwritten."};
  }
  if (repeat) {
    size_t output = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!IsWritten(problem.parameters[i])) continue;
      if (tensors.Read(i) != run.first_outputs[output++]) {
        return {"non_deterministic",
                "Called again with the same inputs it gives another " + problem.parameters[i].name + "."};
      }
    }
    return {};
  }
  const std::vector<Expected> expected =
      run.open.oracle() != nullptr ? run.open.oracle()->Run(problem, arguments) : ReferenceOutputs(run.open, arguments);
  const double accumulations = problem.accumulations.Evaluate(size);
  const bool first = run.first_outputs.empty();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!IsWritten(parameter)) continue;
    const evaluator::ErrorBound bound = evaluator::BoundFor(problem, parameter, accumulations, expected[i]);
    std::vector<uint8_t> got = tensors.Read(i);
    const evaluator::Comparison comparison =
        evaluator::Compare(parameter, ShapeAt(parameter, size), got, expected[i], tensors.Poison(i), bound);
    if (!comparison.matches) return {"wrong", "At " + where + ": " + comparison.sentence + "."};
    if (first) run.first_outputs.push_back(std::move(got));
  }
  return {};
}

Trouble Judge::Time(Run& run, Judgement* judgement) {
  const Problem& problem = run.open.problem();
  const std::shared_ptr<const TimingInputs> inputs = run.open.Timing();
  const uint64_t key = evaluator::KeyFromText(problem.digest);
  CallRecord record;
  {
    const Tensors tensors(run.session.memory(), problem, *inputs, key, false);
    const uint32_t blocks = options_.sampled_blocks * (run.thorough ? 2 : 1);
    Trouble trouble = run.session.Call(*run.worker, tensors.values(), simt::Mode::kCounted, blocks, &record);
    if (trouble && (trouble.code == "crash" || trouble.code == "forbidden" || trouble.code == "invalid_launch")) {
      return {trouble.code, "At the timing size: " + trouble.sentence};
    }
    // A kernel that works on what skipped blocks should have written may fault or wait for ever, and one whose host
    // code looks at results may decide on garbage: then nothing is sampled.
    if (trouble || (record.reads_back && !record.complete)) record.launches = 0;
  }
  const bool whole = record.launches == 0;
  if (whole) {
    run.worker = workers_.Take();
    if (Trouble trouble = run.session.Load(*run.worker, run.kernel.object)) return trouble;
    record = CallRecord();
    const Tensors tensors(run.session.memory(), problem, *inputs, key, false);
    Trouble trouble = run.session.Call(*run.worker, tensors.values(), simt::Mode::kCounted, UINT32_MAX, &record);
    if (trouble) return {trouble.code, "At the timing size: " + trouble.sentence};
    if (record.launches == 0) return {"no_launch", "At the timing size the launch function launches no kernel."};
  }

  double seconds = record.copy_seconds, dram_bytes = 0, l2_bytes = 0;
  size_t longest = 0;
  std::map<std::string, double> terms;
  for (size_t i = 0; i < record.estimates.size(); ++i) {
    const simt::TimeEstimate& estimate = record.estimates[i];
    if (!std::isfinite(estimate.seconds)) return {"invalid_launch", estimate.sentence};
    seconds += estimate.seconds;
    dram_bytes += estimate.dram_bytes;
    l2_bytes += estimate.l2_bytes;
    if (estimate.seconds > record.estimates[longest].seconds) longest = i;
    for (const simt::TimeTerm& term : estimate.terms) terms[term.name] += term.seconds;
  }
  const double floor = RooflineSeconds(problem, device_);
  if (seconds < kImplausible * floor) {
    return {"implausible", "Its modelled time, " + TimeText(seconds) + ", is below the " + TimeText(floor) +
                               " that the problem's traffic and arithmetic take on this device: it does less work than "
                               "the problem needs."};
  }
  // Sampling sees only a part of the blocks; where they write too little, every block runs and the outputs are looked
  // at.
  for (size_t i = 0; i < problem.parameters.size() && !whole; ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (parameter.role != Role::kOutput) continue;
    double sectors = 0;
    for (const simt::Counts& counts : record.counts) {
      const double scale =
          static_cast<double>(counts.grid_blocks) / static_cast<double>(std::max<uint64_t>(1, counts.sampled_blocks));
      for (const simt::ArrayTraffic& array : counts.arrays) {
        if (array.name == parameter.name) sectors += scale * (array.unique_store_sectors + array.atomic_sectors);
      }
    }
    const auto bytes = static_cast<double>(inputs->bytes[i]);
    if (sectors * 32 >= kThinCoverage * bytes) continue;
    const Tensors tensors(run.session.memory(), problem, *inputs, key, true);
    CallRecord all;
    if (Trouble trouble = run.session.Call(*run.worker, tensors.values(), simt::Mode::kPlain, 0, &all)) {
      return {trouble.code, "At the timing size: " + trouble.sentence};
    }
    const std::vector<uint8_t> got = tensors.Read(i);
    const auto untouched = static_cast<double>(std::count(got.begin(), got.end(), tensors.Poison(i)));
    if (untouched > (1 - kThinCoverage) * bytes) {
      return {"wrong", "At the timing size most of " + parameter.name + " was never written."};
    }
  }

  const simt::TimeEstimate& main = record.estimates[longest];
  const simt::KernelResources& resources = record.resources[longest];
  judgement->seconds = seconds;
  std::string text = "Modelled time " + TimeText(seconds) + " (" + TimeSource() + ", no GPU used).";
  if (record.launches > 1) {
    std::ostringstream share;
    share << " " << record.launches << " launches; the longest, " << KernelName(record.counts[longest].kernel)
          << ", takes " << std::lround(100 * main.seconds / seconds) << "%.";
    text += share.str();
  }
  judgement->diagnosis = text + (main.sentence.empty() ? "" : " It is " + main.sentence + ".");
  const auto add = [judgement](const std::string& name, double value) { judgement->metrics.emplace_back(name, value); };
  add("launches", static_cast<double>(record.launches));
  add("registers", resources.registers_per_thread);
  add("spill_bytes", resources.spill_bytes);
  add("shared_bytes",
      static_cast<double>(resources.static_shared_bytes) + static_cast<double>(resources.dynamic_shared_bytes));
  add("occupancy", main.occupancy.fraction);
  add("dram_bytes", dram_bytes);
  add("l2_bytes", l2_bytes);
  add("roofline_seconds", floor);
  add("roofline_fraction", floor / seconds);
  for (const auto& [name, value] : terms) add("seconds/" + name, value);
  return {};
}

Judgement Judge::Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough) {
  Judgement judgement;
  std::unique_ptr<Run> run = Prepare(open, source, thorough, &judgement);
  if (!run) return judgement;

  const Problem& problem = open.problem();
  struct Case {
    const Bindings* size;
    std::string where;
    uint64_t key;
  };
  std::vector<Case> cases;
  for (const Bindings& size : problem.visible)
    cases.push_back({&size, SizeText(size), evaluator::SubKey(key, cases.size())});
  for (const Bindings& size : problem.hidden)
    cases.push_back({&size, "a size that is not shown", evaluator::SubKey(key, cases.size())});

  Trouble trouble;
  const int seeds = options_.seeds * (thorough ? 2 : 1);
  for (int variant = 0; variant < seeds && !trouble; ++variant) {
    // The first seed runs with every check; what depends on data is caught by the comparison of the others.
    const simt::Mode mode = variant == 0 ? simt::Mode::kChecked : simt::Mode::kPlain;
    for (size_t i = 0; i < cases.size() && !trouble; ++i) {
      trouble = RunCase(*run, *cases[i].size, cases[i].where,
                        evaluator::SubKey(cases[i].key, static_cast<uint64_t>(variant)), variant, mode, false);
    }
  }
  // Once more with the first case's inputs, at other addresses: state kept between calls shows here.
  if (!trouble)
    trouble =
        RunCase(*run, *cases[0].size, cases[0].where, evaluator::SubKey(cases[0].key, 0), 0, simt::Mode::kPlain, true);
  if (!trouble) trouble = Time(*run, &judgement);
  judgement.metrics.emplace_back("checked_warp_instructions", static_cast<double>(run->warp_instructions));
  if (trouble) {
    judgement.verdict = trouble.code;
    judgement.diagnosis = trouble.sentence;
    judgement.seconds = 0;
    return judgement;
  }
  judgement.correct = true;
  judgement.verdict = "right";
  return judgement;
}

std::string Judge::TimeSource() const {
  return device_.name + " model";
}

std::string Judge::Describe() const {
  return "compiler: " + compiler_.Describe() + "\nsandbox: " + sandbox_.description() + "\ndevice: " + TimeSource() +
         ", kernels interpreted; no GPU is used";
}

std::string Judge::Version() const {
  return std::string("judge ") + SourceDigest() + "; " + compiler_.Version() + "; " + options_.device + "; " +
         std::to_string(options_.seeds) + "; " + std::to_string(options_.sampled_blocks) + "; " +
         std::to_string(options_.warp_instructions);
}

}  // namespace kgrpo::evaluator_sim
