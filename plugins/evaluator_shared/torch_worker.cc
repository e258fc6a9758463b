#include "evaluator_shared/torch_worker.h"

#include <kgrpo/sdk/error.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include "evaluator_shared/dtype.h"
#include "evaluator_shared/frames.h"
#include "evaluator_shared/sandbox.h"  // FindHelperDirectory

namespace kgrpo::evaluator {
namespace {

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

std::vector<TorchTensor> Parse(const std::string& lines, const std::string& bytes) {
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
  static TorchWorker worker;
  return worker;
}

void TorchWorker::Start() {
  const std::string program = FindHelperDirectory() + "/kgrpo_torch_worker";
  if (access(program.c_str(), X_OK) != 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "a problem with `oracle: torchscript` is judged by " + program +
                                             ", which is not there: build the target kgrpo_torch_worker (scripts/setup "
                                             "builds it)");
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("no socket for kgrpo_torch_worker: ") + std::strerror(errno));
  socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  Subprocess::Spec spec;
  spec.argv = {program};
  spec.descriptors = {{theirs.get(), 3}, {2, 1}, {2, 2}};  // what a file prints is no output of this program's
  spec.own_session = false;                                // it ends with this process's group
  process_ = std::make_unique<Subprocess>(spec);
}

std::vector<TorchTensor> TorchWorker::Ask(const std::vector<std::string>& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (process_ == nullptr) Start();
  std::vector<std::string> answer;
  if (!WriteFrames(socket_.get(), request) || !ReadFrames(socket_.get(), &answer, kSeconds, kMostBytes)) {
    process_.reset();
    throw Error(KGRPO_ERROR_UNAVAILABLE, request.at(1) +
                                             ": kgrpo_torch_worker gave no answer: it ran out of memory, or "
                                             "took longer than " +
                                             std::to_string(static_cast<int>(kSeconds)) + " s");
  }
  if (answer.size() == 3 && answer[0] == "ok") return Parse(answer[1], answer[2]);
  throw Error(KGRPO_ERROR_INVALID, request.at(1) + ": PyTorch says: " + (answer.size() > 1 ? answer[1] : "nothing"));
}

std::vector<TorchTensor> TorchWorker::Run(const std::string& file, const std::string& dtype,
                                          const std::vector<TorchTensor>& tensors) {
  std::string bytes;
  for (const TorchTensor& tensor : tensors) bytes += tensor.bytes;
  return Ask({"run", file, dtype, Lines(tensors), std::move(bytes)});
}

std::vector<TorchTensor> TorchWorker::Replay(const std::string& file, uint64_t seed) {
  return Ask({"tape", file, std::to_string(seed)});
}

}  // namespace kgrpo::evaluator
