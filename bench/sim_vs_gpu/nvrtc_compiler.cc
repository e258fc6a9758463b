#include "sim_vs_gpu/nvrtc_compiler.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>

#include <utility>

namespace kgrpo::bench {
namespace {

// The functions of NVRTC that are called; 0 is success.
using Create = int (*)(void** program, const char* source, const char* name, int headers, const char* const* contents,
                       const char* const* names);
using CompileProgram = int (*)(void* program, int options, const char* const* option);
using Destroy = int (*)(void** program);
using Size = int (*)(void* program, size_t* size);
using Get = int (*)(void* program, char* text);

template <typename Function>
Function Find(void* library, const char* name) {
  auto function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string(name) + " is missing in NVRTC");
  return function;
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(const std::string& library, std::vector<std::string> include_directories)
    : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)), include_directories_(std::move(include_directories)) {
  if (library_ == nullptr) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("NVRTC cannot be loaded: ") + dlerror());
}

std::string NvrtcCompiler::Text(void* program, const char* size, const char* get) const {
  size_t bytes = 0;
  if (Find<Size>(library_, size)(program, &bytes) != 0 || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (Find<Get>(library_, get)(program, text.data()) != 0) return "";
  return text;
}

NvrtcCompiler::Compiled NvrtcCompiler::Compile(const std::string& source, std::vector<std::string> options) const {
  for (const std::string& directory : include_directories_) options.push_back("--include-path=" + directory);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  void* program = nullptr;
  if (Find<Create>(library_, "nvrtcCreateProgram")(&program, source.c_str(), "generated.cu", 0, nullptr, nullptr) != 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "NVRTC makes no program");
  const int code = Find<CompileProgram>(library_, "nvrtcCompileProgram")(program, static_cast<int>(pointers.size()),
                                                                         pointers.data());
  Compiled compiled;
  std::string log;
  if (code == 0) {
    compiled.ptx = Text(program, "nvrtcGetPTXSize", "nvrtcGetPTX");
    compiled.cubin = Text(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN");
  } else {
    log = Text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
  }
  Find<Destroy>(library_, "nvrtcDestroyProgram")(&program);
  if (code != 0) throw Error(KGRPO_ERROR_INVALID, log);
  // PTX comes with its terminating zero.
  while (!compiled.ptx.empty() && compiled.ptx.back() == '\0') compiled.ptx.pop_back();
  return compiled;
}

}  // namespace kgrpo::bench
