#include "interpreter/client/runtime_state.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "interpreter/client/connection.h"

namespace kgrpo::interpreter {
namespace {

struct KnownVariable {
  const void* host;
  const char* name;
};

std::vector<KnownKernel*>& Kernels() {
  static std::vector<KnownKernel*> kernels;
  return kernels;
}

std::vector<KnownVariable>& Variables() {
  static std::vector<KnownVariable> variables;
  return variables;
}

thread_local int t_last_error = kCudaSuccess;

// The linker name of a candidate's function or variable: an object of the fast compile route registers nothing, since
// its kernels are empty functions with the names that they have in the PTX.
const char* LinkerName(const void* host) {
  Dl_info info = {};
  if (dladdr(host, &info) == 0 || info.dli_sname == nullptr || info.dli_saddr != host) return nullptr;
  return info.dli_sname;
}

}  // namespace

int SetError(int error) {
  if (error != kCudaSuccess) t_last_error = error;
  return error;
}

int Spent(const char* call, int error) {
  Spend(call);
  return SetError(error);
}

int TakeError() {
  const int error = t_last_error;
  t_last_error = kCudaSuccess;
  return error;
}

int PeekError() { return t_last_error; }

void RefuseCall(const char* what) {
  Ask(Operation::kRefused, 0, 0, 0, what, std::strlen(what));
  _exit(126);  // reached only if the evaluator has not ended the process
}

KnownKernel* AddKernel(const void* host, const char* name) {
  auto* kernel = new KnownKernel;
  kernel->host = host;
  kernel->name = name;
  Kernels().push_back(kernel);
  return kernel;
}

KnownKernel* FindKernel(const void* host) {
  for (KnownKernel* kernel : Kernels()) {
    if (kernel->host == host || kernel == host) return kernel;
  }
  const char* name = LinkerName(host);
  return name != nullptr ? AddKernel(host, name) : nullptr;
}

int Resolve(KnownKernel* kernel) {
  if (kernel == nullptr) return kCudaInvalidDeviceFunction;
  if (kernel->resolved) return kernel->error;
  struct {
    KernelReply head;
    KernelParameterReply parameters[256];
  } answer = {};
  const Reply reply = Ask(Operation::kKernel, 0, 0, 0, kernel->name, std::strlen(kernel->name), &answer, sizeof answer);
  kernel->resolved = true;
  kernel->error = reply.error;
  kernel->index = static_cast<uint32_t>(reply.value);
  kernel->reply = answer.head;
  std::memcpy(kernel->parameters, answer.parameters, sizeof answer.parameters);
  return kernel->error;
}

void AddVariable(const void* host, const char* name) { Variables().push_back({host, name}); }

const char* VariableName(const void* host) {
  const char* name = nullptr;
  for (const KnownVariable& variable : Variables()) {
    if (variable.host == host) name = variable.name;
  }
  return name != nullptr ? name : LinkerName(host);
}

int KernelAttributes(const void* function, KernelReply* out, int* shared_limit) {
  KnownKernel* kernel = FindKernel(function);
  const int error = Resolve(kernel);
  if (error != kCudaSuccess) return error;
  *out = kernel->reply;
  *shared_limit = kernel->shared_limit;
  return kCudaSuccess;
}

int SetSharedLimit(const void* function, int bytes) {
  KnownKernel* kernel = FindKernel(function);
  const int error = Resolve(kernel);
  if (error != kCudaSuccess) return error;
  const Reply reply = Ask(Operation::kSharedLimit, kernel->index, static_cast<uint64_t>(bytes));
  if (reply.error == kCudaSuccess) kernel->shared_limit = bytes;
  return reply.error;
}

int Occupancy(const void* function, int threads, size_t shared, int* blocks) {
  KnownKernel* kernel = FindKernel(function);
  const int error = Resolve(kernel);
  if (error != kCudaSuccess) return error;
  const Reply reply = Ask(Operation::kOccupancy, kernel->index, static_cast<uint64_t>(threads), shared);
  *blocks = static_cast<int>(reply.value);
  return reply.error;
}

}  // namespace kgrpo::interpreter
