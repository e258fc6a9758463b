#include "sim_vs_gpu/gpu_driver.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>

namespace kgrpo::bench {
namespace {

constexpr size_t kMemoryBytes = size_t{16} << 20;

}  // namespace

// As cuda.h declares them; 0 is success.
struct GpuDriver::Functions {
  int (*init)(unsigned flags);
  int (*device_get)(int* device, int ordinal);
  int (*device_name)(char* name, int length, int device);
  int (*retain)(void** context, int device);
  int (*reset)(int device);
  int (*set_current)(void* context);
  int (*load)(void** module, const void* image);
  int (*unload)(void* module);
  int (*get_function)(void** function, void* module, const char* name);
  int (*launch)(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared, void* stream, void** parameters, void** extra);
  int (*allocate)(uint64_t* address, size_t bytes);
  int (*to_device)(uint64_t target, const void* source, size_t bytes);
  int (*to_host)(void* target, uint64_t source, size_t bytes);
  int (*fill)(uint64_t target, unsigned char value, size_t count);
  int (*synchronise)();
  int (*error_name)(int code, const char** name);
};

GpuDriver::GpuDriver() : functions_(new Functions) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("no CUDA driver: ") + dlerror());
  auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("the CUDA driver has no ") + name);
  };
  Functions& f = *functions_;
  find("cuInit", f.init);
  find("cuDeviceGet", f.device_get);
  find("cuDeviceGetName", f.device_name);
  find("cuDevicePrimaryCtxRetain", f.retain);
  find("cuDevicePrimaryCtxReset_v2", f.reset);
  find("cuCtxSetCurrent", f.set_current);
  find("cuModuleLoadData", f.load);
  find("cuModuleUnload", f.unload);
  find("cuModuleGetFunction", f.get_function);
  find("cuLaunchKernel", f.launch);
  find("cuMemAlloc_v2", f.allocate);
  find("cuMemcpyHtoD_v2", f.to_device);
  find("cuMemcpyDtoH_v2", f.to_host);
  find("cuMemsetD8_v2", f.fill);
  find("cuCtxSynchronize", f.synchronise);
  find("cuGetErrorName", f.error_name);
  if (const int code = f.init(0); code != 0) throw Error(KGRPO_ERROR_UNAVAILABLE, "cuInit says " + NameOf(code));
  if (f.device_get(&device_, 0) != 0) throw Error(KGRPO_ERROR_UNAVAILABLE, "there is no CUDA device");
  char name[128] = "";
  f.device_name(name, sizeof name - 1, device_);
  name_ = name;
  Begin();
}

GpuDriver::~GpuDriver() {
  functions_->reset(device_);
  delete functions_;
}

std::string GpuDriver::NameOf(int code) const {
  const char* name = nullptr;
  if (functions_->error_name(code, &name) != 0 || name == nullptr) return "CUDA error " + std::to_string(code);
  return name;
}

void GpuDriver::Begin() {
  void* context = nullptr;
  module_ = nullptr;
  int code = functions_->retain(&context, device_);
  if (code == 0) code = functions_->set_current(context);
  if (code == 0) code = functions_->allocate(&memory_, kMemoryBytes);
  if (code != 0) throw Error(KGRPO_ERROR_UNAVAILABLE, "no context on the device: " + NameOf(code));
}

void GpuDriver::Load(const std::string& cubin) {
  if (module_ != nullptr) functions_->unload(module_);
  module_ = nullptr;
  if (const int code = functions_->load(&module_, cubin.data()); code != 0) {
    module_ = nullptr;
    throw Error(KGRPO_ERROR_UNAVAILABLE, "the driver does not load the machine code: " + NameOf(code));
  }
}

std::string GpuDriver::Run(const std::string& kernel, uint32_t blocks, uint32_t threads,
                           const std::vector<uint64_t>& in, std::vector<uint64_t>& out,
                           std::vector<uint64_t>& scratch) {
  const Functions& f = *functions_;
  const size_t in_bytes = in.size() * 8, out_bytes = out.size() * 8, scratch_bytes = scratch.size() * 8;
  if (in_bytes + out_bytes + scratch_bytes > kMemoryBytes)
    return "the kernel's arrays exceed the device memory set aside";
  uint64_t in_at = memory_, scratch_at = in_at + in_bytes, out_at = scratch_at + scratch_bytes;
  void* function = nullptr;
  void* parameters[] = {&in_at, &out_at, &scratch_at};
  int code = f.get_function(&function, module_, kernel.c_str());
  if (code == 0) code = f.to_device(in_at, in.data(), in_bytes);
  if (code == 0) code = f.fill(scratch_at, 0, scratch_bytes + out_bytes);
  if (code == 0) code = f.launch(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr);
  if (code == 0) code = f.synchronise();
  if (code == 0 && !out.empty()) code = f.to_host(out.data(), out_at, out_bytes);
  if (code == 0) code = f.to_host(scratch.data(), scratch_at, scratch_bytes);
  if (code == 0) return "";
  const std::string text = NameOf(code);
  f.reset(device_);
  Begin();
  return text;
}

}  // namespace kgrpo::bench
