// kgrpo_torch_worker: runs TorchScript files for a problem with `oracle: torchscript`, so that no evaluator links
// libtorch. Started by torch_worker.cc; talks in frames over descriptor 3:
//   {"run", file, dtype, tensors, bytes}    ->  {"ok", tensors, bytes} | {"error", why}
//   {"tape", file, seed}                    ->  the same
//   {"time", file, tensors}                 ->  {"ok", "mean seconds, deviation, calls", ""} | {"error", why}
// `tensors` has a line each, "float32 5 7"; `bytes` holds their elements one after another. "run" calls the file's
// forward with them, floating ones in `dtype`; "tape" seeds PyTorch's generator and calls a forward without arguments,
// which returns a list. Results are contiguous, floating ones as they come. "time" measures forward on the GPU, as
// KernelBench does: floating tensors uniform, the others zero.
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <dlfcn.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "process/frames.h"

namespace {

using Parts = std::vector<std::string>;

constexpr int kSocket = 3;
constexpr size_t kMostBytes = size_t{16} << 30;
constexpr size_t kKeptModules = 16;

const std::pair<const char*, at::ScalarType> kTypes[] = {
    {"float32", at::kFloat}, {"float64", at::kDouble}, {"float16", at::kHalf}, {"bfloat16", at::kBFloat16},
    {"int32", at::kInt},     {"int64", at::kLong},     {"uint8", at::kByte},   {"int8", at::kChar},
    {"bool", at::kBool},     {"uint32", at::kUInt32},  {"int16", at::kShort},  {"uint16", at::kUInt16}};

at::ScalarType TypeOf(const std::string& name) {
  for (const auto& [known, type] : kTypes) {
    if (name == known) return type;
  }
  throw std::runtime_error("no dtype \"" + name + "\"");
}

std::string NameOf(at::ScalarType type) {
  for (const auto& [name, known] : kTypes) {
    if (type == known) return name;
  }
  throw std::runtime_error(std::string("the result is ") + at::toString(type) + ", which no problem knows");
}

struct TensorKind {
  at::ScalarType type;
  std::vector<int64_t> shape;
};

std::vector<TensorKind> KindsOf(const std::string& lines) {
  std::vector<TensorKind> kinds;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string type;
    words >> type;
    TensorKind kind = {TypeOf(type), {}};
    for (int64_t extent; words >> extent;) kind.shape.push_back(extent);
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

std::vector<at::Tensor> ReadTensors(const std::string& lines, const std::string& bytes) {
  std::vector<at::Tensor> tensors;
  size_t at = 0;
  for (const TensorKind& kind : KindsOf(lines)) {
    at::Tensor tensor = at::empty(kind.shape, kind.type);
    if (at + tensor.nbytes() > bytes.size()) throw std::runtime_error("a request holds too few bytes");
    std::memcpy(tensor.data_ptr(), bytes.data() + at, tensor.nbytes());
    at += tensor.nbytes();
    tensors.push_back(tensor);
  }
  return tensors;
}

Parts Answer(const std::vector<at::Tensor>& tensors) {
  std::string lines, bytes;
  for (const at::Tensor& one : tensors) {
    const at::Tensor tensor = one.contiguous();
    lines += NameOf(tensor.scalar_type());
    for (const int64_t extent : tensor.sizes()) lines += " " + std::to_string(extent);
    lines += "\n";
    bytes.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  }
  return {"ok", lines, std::move(bytes)};
}

// Loading takes ten times as long as a call at a small size.
torch::jit::Module& Module(const std::string& file) {
  static std::map<std::string, torch::jit::Module> modules;
  const auto found = modules.find(file);
  if (found != modules.end()) return found->second;
  if (modules.size() >= kKeptModules) modules.clear();
  return modules.emplace(file, torch::jit::load(file, at::kCPU)).first->second;
}

std::vector<at::Tensor> TensorsOf(const torch::jit::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> tensors;
  if (value.isTuple()) {
    for (const torch::jit::IValue& item : value.toTupleRef().elements()) tensors.push_back(item.toTensor());
    return tensors;
  }
  throw std::runtime_error("it returns a " + value.tagKind() + ", not tensors");
}

Parts Run(const Parts& request) {
  std::vector<torch::jit::IValue> arguments;
  const at::ScalarType type = TypeOf(request.at(2));
  for (const at::Tensor& tensor : ReadTensors(request.at(3), request.at(4)))
    arguments.emplace_back(tensor.is_floating_point() ? tensor.to(type) : tensor);
  return Answer(TensorsOf(Module(request.at(1)).forward(std::move(arguments))));
}

Parts Replay(const Parts& request) {
  at::manual_seed(std::stoull(request.at(2)));
  return Answer(TensorsOf(Module(request.at(1)).forward({})));
}

// Loads libtorch_cuda.so beside the libtorch_cpu.so that this process uses; its initialisers register CUDA's operators.
void RequireCuda() {
  Dl_info info = {};
  dladdr(reinterpret_cast<const void*>(&at::set_num_threads), &info);
  const std::string path = std::filesystem::path(info.dli_fname).parent_path() / "libtorch_cuda.so";
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw std::runtime_error("libtorch cannot use a GPU here: " + std::string(dlerror()));
  if (!at::hasCUDA()) throw std::runtime_error("libtorch finds no GPU");
}

// A trace names the device that it was made on.
void MoveToGpu(torch::jit::Block* block) {
  for (torch::jit::Node* node : block->nodes()) {
    for (torch::jit::Block* inner : node->blocks()) MoveToGpu(inner);
    if (node->kind() == c10::prim::Constant && node->output()->type()->kind() == c10::TypeKind::DeviceObjType)
      node->s_(c10::attr::value, "cuda");
  }
}

// The method of time_execution_with_cuda_event in KernelBench's timing.py: calls one at a time, each behind a write
// that clears the L2 cache, the first not counted; the mean. Fewer than its 100 where a call takes long.
Parts Time(const Parts& request) {
  constexpr int kWarmUps = 3, kCalls = 100, kFewestCalls = 10;
  constexpr double kMostSeconds = 2;
  RequireCuda();
  // Frees the GPU's memory also after an error: the candidates need it.
  struct Cleared {
    ~Cleared() { at::accelerator::emptyCache(); }
  } cleared;
  const at::Device gpu(at::kCUDA, 0);
  torch::jit::Module module = torch::jit::load(request.at(1), at::kCPU);
  MoveToGpu(module.get_method("forward").graph()->block());
  std::vector<double> seconds;
  {
    std::vector<torch::jit::IValue> arguments;
    for (const TensorKind& kind : KindsOf(request.at(2))) {
      const at::TensorOptions options = at::TensorOptions(kind.type).device(gpu);
      arguments.emplace_back(at::isFloatingType(kind.type) ? at::rand(kind.shape, options)
                                                           : at::zeros(kind.shape, options));
    }
    const at::Tensor cache = at::empty({32, 1024, 1024}, at::TensorOptions(at::kLong).device(gpu));
    for (int i = 0; i < kWarmUps; ++i) module.forward(arguments);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i <= kCalls; ++i) {
      const std::chrono::duration<double> used = std::chrono::steady_clock::now() - begin;
      if (i > kFewestCalls && used.count() > kMostSeconds) break;
      at::accelerator::synchronizeDevice(0);
      cache.fill_(42);
      const c10::Stream stream = at::accelerator::getCurrentStream(0);
      c10::Event from(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
      c10::Event to(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
      from.record(stream);
      module.forward(arguments);
      to.record(stream);
      at::accelerator::synchronizeDevice(0);
      if (i > 0) seconds.push_back(from.elapsedTime(to) * 1e-3);
    }
  }
  double mean = 0, squares = 0;
  for (const double one : seconds) mean += one / static_cast<double>(seconds.size());
  for (const double one : seconds) squares += (one - mean) * (one - mean);
  std::ostringstream text;
  text.precision(9);
  text << mean << " " << std::sqrt(squares / static_cast<double>(seconds.size() - 1)) << " " << seconds.size();
  return {"ok", text.str(), ""};
}

Parts Serve(const Parts& request) {
  try {
    const c10::InferenceMode guard;
    if (request.at(0) == "run") return Run(request);
    if (request.at(0) == "tape") return Replay(request);
    if (request.at(0) == "time") return Time(request);
    return {"error", "unknown request " + request.at(0)};
  } catch (const c10::Error& error) {
    return {"error", error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {"error", error.what()};
  }
}

}  // namespace

int main() {
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C asks the host to stop after what it is doing; it ends us by the socket
  // Each file is called a few times: as it is written, without compiling it for the shapes it is called with.
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::setTensorExprFuserEnabled(false);
  torch::jit::getProfilingMode() = false;
  at::set_num_threads(1);  // the same bits on every machine
  Parts request;
  while (kgrpo::process::ReadFrames(kSocket, &request, -1, kMostBytes)) {
    if (!kgrpo::process::WriteFrames(kSocket, Serve(request))) break;
  }
  return 0;
}
