#include "policy_qwen/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <filesystem>

namespace kgrpo::policy {
namespace {

// Loads libtorch_cuda.so from beside the libtorch_cpu.so that this process uses. Its initialisers register CUDA's
// operators with libtorch; it stays loaded.
void LoadCudaLibrary() {
  static const bool loaded = [] {
    Dl_info info;
    if (::dladdr(reinterpret_cast<void*>(&at::globalContext), &info) == 0) {
      throw Error(KGRPO_ERROR_INTERNAL, "device cuda: cannot tell where libtorch_cpu.so was loaded from");
    }
    const std::string path = std::filesystem::path(info.dli_fname).parent_path() / "libtorch_cuda.so";
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("device cuda: cannot load ") + path + ": " + ::dlerror() +
                                               "; install a libtorch with CUDA, or use \"device\": \"cpu\"");
    }
    return true;
  }();
  static_cast<void>(loaded);
}

}  // namespace

int DeviceCount() {
  LoadCudaLibrary();
  return at::globalContext().hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0;
}

at::Device OpenDevice(const std::string& name) {
  at::Device device(at::kCPU);
  try {
    device = at::Device(name);
  } catch (const c10::Error&) {
    throw Error(KGRPO_ERROR_INVALID, "device \"" + name + "\": expected cpu, cuda or cuda:N");
  }
  if (device.is_cpu()) return device;
  if (!device.is_cuda()) throw Error(KGRPO_ERROR_UNSUPPORTED, "device \"" + name + "\": expected cpu, cuda or cuda:N");
  const int count = DeviceCount();
  if (count == 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "device \"" + name +
                    "\": no GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use \"device\": \"cpu\"");
  }
  const int index = device.has_index() ? device.index() : 0;
  if (index >= count) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "device \"" + name + "\": only " + std::to_string(count) +
                                             " visible, cuda:0 to cuda:" + std::to_string(count - 1));
  }
  at::globalContext().lazyInitDevice(at::kCUDA);
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

uint64_t MachineBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

int64_t FreeBytesOf(at::Device device) {
  c10::DeviceAllocator& allocator = *c10::getDeviceAllocator(device.type());
  const auto stats = allocator.getDeviceStats(device.index());
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<int64_t>(allocator.getMemoryInfo(device.index()).first) + stats.reserved_bytes[kAll].current -
         stats.allocated_bytes[kAll].current;
}

int64_t TotalBytesOf(at::Device device) {
  return static_cast<int64_t>(c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).second);
}

void WaitForDevice(at::Device device) {
  if (device.is_cpu()) return;
  // synchronizeDevice makes the earlier device current again, which would make a context on a GPU that is not in use.
  const c10::DeviceGuard guard(device);
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

void* CurrentStream(at::Device device) {
  if (device.is_cpu()) return nullptr;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

}  // namespace kgrpo::policy
