#include "judge/process/torch_worker.h"

#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <sstream>
#include <string_view>
#include <utility>

#include "judge/problem/dtype.h"
#include "judge/sandbox/sandbox.h"  // FindHelperDirectory

namespace kgrpo::evaluator {
namespace {

using process::Subprocess;

constexpr double kSeconds = 600;  // of one request
constexpr size_t kMostBytes = size_t{16} << 30;

std::string Lines(const std::vector<TorchTensor>& tensors) {
  std::string text;
  for (const TorchTensor& tensor : tensors) {
    text += tensor.dtype;
    for (const int64_t extent : tensor.shape) text += " " + std::to_string(extent);
    text += "\n";
  }
  return text;
}

// `answer`: a line each, and the bytes of all of them.
std::vector<TorchTensor> Parse(const std::vector<std::string>& answer) {
  const std::string &lines = answer[0], &bytes = answer[1];
  std::vector<TorchTensor> tensors;
  std::istringstream stream(lines);
  size_t at = 0;
  for (std::string line; std::getline(stream, line);) {
    TorchTensor tensor;
    std::istringstream words(line);
    words >> tensor.dtype;
    const std::optional<DType> dtype = DTypeFromName(tensor.dtype);
    size_t size = dtype ? Info(*dtype).size : 0;
    for (int64_t extent; words >> extent; size *= static_cast<size_t>(extent)) tensor.shape.push_back(extent);
    if (!dtype || at + size > bytes.size())
      throw Error(KGRPO_ERROR_INTERNAL, "kgrpo_torch_worker gave a malformed answer: " + line);
    tensor.bytes = bytes.substr(at, size);
    at += size;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

TorchWorker& TorchWorker::Shared() {
  static TorchWorker worker("");
  return worker;
}

Subprocess::Spec TorchWorker::Spec(int socket) const {
  const std::string program = FindHelperDirectory() + "/kgrpo_torch_worker";
  if (access(program.c_str(), X_OK) != 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "a problem with `oracle: torchscript` is judged by " + program +
                                             ", which is not there: build the target kgrpo_torch_worker (scripts/setup "
                                             "builds it)");
  }
  Subprocess::Spec spec;
  spec.argv = {program};
  spec.descriptors = {
      {socket, process::Helper::kSocket}, {2, 1}, {2, 2}};  // what a file prints is no output of this program's
  spec.own_session = false;                                 // it ends with this process's group
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("CUDA_VISIBLE_DEVICES=")) spec.environment.emplace_back(*variable);
  }
  spec.environment.push_back("CUDA_VISIBLE_DEVICES=" + gpu_);
  return spec;
}

std::vector<std::string> TorchWorker::Ask(const std::vector<std::string>& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!helper_) helper_.emplace([this](int socket) { return Spec(socket); });
  std::optional<std::vector<std::string>> said = helper_->Ask(request, kSeconds, kMostBytes);
  if (!said) {
    helper_.reset();
    throw Error(KGRPO_ERROR_UNAVAILABLE, request.at(1) +
                                             ": kgrpo_torch_worker gave no answer: it ran out of memory, or "
                                             "took longer than " +
                                             std::to_string(static_cast<int>(kSeconds)) + " s");
  }
  std::vector<std::string>& answer = *said;
  if (answer.size() == 3 && answer[0] == "ok") return {std::move(answer[1]), std::move(answer[2])};
  throw Error(KGRPO_ERROR_INVALID, request.at(1) + ": PyTorch says: " + (answer.size() > 1 ? answer[1] : "nothing"));
}

std::vector<TorchTensor> TorchWorker::Run(const std::string& file, const std::string& dtype,
                                          const std::vector<TorchTensor>& tensors) {
  std::string bytes;
  for (const TorchTensor& tensor : tensors) bytes += tensor.bytes;
  return Parse(Ask({"run", file, dtype, Lines(tensors), std::move(bytes)}));
}

std::vector<TorchTensor> TorchWorker::Replay(const std::string& file, uint64_t seed) {
  return Parse(Ask({"tape", file, std::to_string(seed)}));
}

TorchTime TorchWorker::Time(const std::string& file, const std::vector<TorchTensor>& tensors) {
  const std::vector<std::string> answer = Ask({"time", file, Lines(tensors)});
  TorchTime time;
  std::istringstream words(answer[0]);
  if (!(words >> time.mean_seconds >> time.deviation >> time.calls) || time.mean_seconds <= 0)
    throw Error(KGRPO_ERROR_INTERNAL, "kgrpo_torch_worker gave a malformed answer: " + answer[0]);
  return time;
}

}  // namespace kgrpo::evaluator
