// kgrpo_cuda_profile: runs a compiled candidate twice on tensors of its own, the second time between cudaProfilerStart
// and cudaProfilerStop, so that a profiler that it runs under looks at one warm call. Run by profiler.cc as
// `ncu ... kgrpo_cuda_profile LIBCUDART FOLDER`, in the sandbox; FOLDER holds what profile_plan.h describes. The worker
// cannot be this program: its tensors are lent by another process, and its system call filter stops a profiler's
// threads.
//
// Exits with 0, or with 1 and a line on standard error.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_cuda/worker/fast_kernels.h"
#include "evaluator_cuda/worker/profile_plan.h"
#include "evaluator_cuda/worker/runtime.h"

// The header that declares these, cuda_profiler_api.h, is a package of its own that not every toolkit comes with.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

namespace {

using namespace kgrpo::evaluator_cuda;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "kgrpo_cuda_profile: %s\n", what.c_str());
  std::fflush(stderr);
  _exit(1);
}

void Require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) Fail(std::string(what) + ": " + RUNTIME(cudaGetErrorString)(status));
}

void ReadAll(FILE* file, void* data, size_t bytes) {
  if (bytes > 0 && std::fread(data, 1, bytes, file) != bytes) Fail("the plan is too short");
}

struct Call {
  std::vector<char> machine_code;  // kept: the runtime reads it when a kernel is first used
  std::vector<uint64_t> values;    // what the arguments point to
  std::vector<void*> arguments;
};

// Reads the plan and puts its tensors on the device.
std::unique_ptr<Call> ReadPlan(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) Fail("cannot read " + path);
  auto call = std::make_unique<Call>();
  ProfilePlanHeader header = {};
  ReadAll(file.get(), &header, sizeof header);
  std::vector<ProfileParameter> parameters(header.parameters);
  ReadAll(file.get(), parameters.data(), parameters.size() * sizeof(ProfileParameter));
  call->machine_code.resize(header.machine_code_bytes);
  ReadAll(file.get(), call->machine_code.data(), call->machine_code.size());
  std::vector<char> bytes;
  for (const ProfileParameter& parameter : parameters) {
    uint64_t value = parameter.scalar;
    if (parameter.tensor_bytes > 0) {
      void* tensor = nullptr;
      bytes.resize(parameter.tensor_bytes);
      ReadAll(file.get(), bytes.data(), bytes.size());
      Require(RUNTIME(cudaMalloc)(&tensor, parameter.tensor_bytes), "no device memory for a tensor");
      Require(RUNTIME(cudaMemcpy)(tensor, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cannot copy a tensor");
      value = reinterpret_cast<uint64_t>(tensor);
    }
    call->values.push_back(value);
  }
  for (uint64_t& value : call->values) call->arguments.push_back(&value);
  return call;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) Fail("usage: kgrpo_cuda_profile LIBCUDART FOLDER");
  // Host code of the fast route needs this library, but does not name it.
  dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
  if (const std::string failure = LoadRuntime(argv[1]); !failure.empty()) Fail(failure);
  const std::string folder = argv[2];
  Require(RUNTIME(cudaSetDevice)(0), "no device");
  const std::unique_ptr<Call> call = ReadPlan(folder + "/" + kProfilePlanFile);
  if (!call->machine_code.empty()) {
    cudaLibrary_t code = nullptr;
    Require(RUNTIME(cudaLibraryLoadData)(&code, call->machine_code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            "the machine code");
    UseDeviceCode(code);
  }
  // The candidate's output is discarded from the moment it is loaded: the profiler's table is on the same output.
  const int ours = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  void* library = dlopen((folder + "/" + kProfileObjectFile).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* why = library == nullptr ? dlerror() : nullptr;
  const auto run = library == nullptr ? nullptr : reinterpret_cast<void (*)(void**)>(dlsym(library, "kgrpo_call"));
  if (run == nullptr) {
    dup2(ours, STDERR_FILENO);
    Fail(why != nullptr ? why : "the entry function is missing");
  }
  run(call->arguments.data());
  cudaError_t status = RUNTIME(cudaDeviceSynchronize)();
  if (status == cudaSuccess) status = RUNTIME(cudaProfilerStart)();
  if (status == cudaSuccess) {
    run(call->arguments.data());
    status = RUNTIME(cudaDeviceSynchronize)();
    RUNTIME(cudaProfilerStop)();
  }
  dup2(ours, STDERR_FILENO);
  Require(status, "the kernel failed under the profiler");
  // No _exit here: what a profiler injected ends in its own exit handlers.
  return 0;
}
