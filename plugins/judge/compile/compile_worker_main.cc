// kgrpo_compile_worker: compiles for the fast route inside the sandbox, many sources in one process, so that NVRTC is
// loaded once. Started by fast_compile.cc as `kgrpo_compile_worker LIBNVRTC SCRATCH ARCHITECTURE SECONDS
// INCLUDE_DIRECTORY...` (sm_90; processor time of a compile, which ends this process if it is exceeded); talks in
// frames over descriptor 3:
//   {"device", source, name expressions, one a line}   ->  {"ok" | "error", log, PTX, linker names, one a line, cubin}
//   {"host", source, compiler options, one a line}     ->  {"ok" | "error" | "exceeded", log, shared object}
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "judge/compile/nvcc_compile.h"  // kWallOfProcessorTime
#include "process/frames.h"
#include "process/subprocess.h"

namespace {

using kgrpo::process::Subprocess;
using Parts = std::vector<std::string>;

constexpr int kSocket = 3;

// NVRTC's C interface, as far as it is used; nvrtcProgram is an opaque pointer and 0 is success.
struct Nvrtc {
  int (*create)(void** program, const char* source, const char* name, int headers, const char* const* contents,
                const char* const* names);
  int (*add_name)(void* program, const char* expression);
  int (*compile)(void* program, int options, const char* const* option);
  int (*log_size)(void* program, size_t* size);
  int (*log)(void* program, char* text);
  int (*ptx_size)(void* program, size_t* size);
  int (*ptx)(void* program, char* text);
  int (*cubin_size)(void* program, size_t* size);
  int (*cubin)(void* program, char* bytes);
  int (*lowered_name)(void* program, const char* expression, const char** name);
  int (*destroy)(void** program);

  static Nvrtc Load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      _exit(126);
    }
    Nvrtc nvrtc;
    Find(library, "nvrtcCreateProgram", nvrtc.create);
    Find(library, "nvrtcAddNameExpression", nvrtc.add_name);
    Find(library, "nvrtcCompileProgram", nvrtc.compile);
    Find(library, "nvrtcGetProgramLogSize", nvrtc.log_size);
    Find(library, "nvrtcGetProgramLog", nvrtc.log);
    Find(library, "nvrtcGetPTXSize", nvrtc.ptx_size);
    Find(library, "nvrtcGetPTX", nvrtc.ptx);
    Find(library, "nvrtcGetCUBINSize", nvrtc.cubin_size);
    Find(library, "nvrtcGetCUBIN", nvrtc.cubin);
    Find(library, "nvrtcGetLoweredName", nvrtc.lowered_name);
    Find(library, "nvrtcDestroyProgram", nvrtc.destroy);
    return nvrtc;
  }

 private:
  template <typename Function>
  static void Find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) {
      std::fprintf(stderr, "%s is missing in NVRTC\n", name);
      _exit(126);
    }
  }
};

Parts Lines(const std::string& text) {
  Parts lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Headers that NVRTC lacks or need not read: their device side is built into it.
struct VirtualHeader {
  const char* name;
  const char* text;
};

constexpr const char* kIntegers =
    "#ifndef KGRPO_DEVICE_INTEGERS\n#define KGRPO_DEVICE_INTEGERS\n"
    "typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short "
    "uint16_t;\n"
    "typedef int int32_t; typedef unsigned int uint32_t; typedef long int64_t; typedef unsigned long uint64_t;\n"
    "typedef long intptr_t; typedef unsigned long uintptr_t;\n"
    "namespace std {\nusing ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t; using ::int32_t; using "
    "::uint32_t;\nusing ::int64_t; using ::uint64_t; using ::intptr_t; using ::uintptr_t; using ::size_t; using "
    "::ptrdiff_t;\n}\n#endif\n";
constexpr const char* kLimits =
    "#ifndef FLT_MAX\n#define FLT_MAX 3.402823466e+38F\n#define FLT_MIN 1.175494351e-38F\n#define FLT_EPSILON "
    "1.192092896e-07F\n"
    "#define DBL_MAX 1.7976931348623157e+308\n#define DBL_MIN 2.2250738585072014e-308\n#define DBL_EPSILON "
    "2.2204460492503131e-16\n"
    "#endif\n#ifndef INT_MAX\n#define CHAR_BIT 8\n#define INT_MAX 2147483647\n#define INT_MIN (-INT_MAX - 1)\n#define "
    "UINT_MAX 0xffffffffU\n"
    "#define LLONG_MAX 0x7fffffffffffffffLL\n#endif\n#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n"
    "#define NAN __int_as_float(0x7fffffff)\n#endif\n";

const std::vector<VirtualHeader>& VirtualHeaders() {
  static const std::vector<VirtualHeader> kHeaders = [] {
    std::vector<VirtualHeader> headers = {{"kgrpo_integers.h", kIntegers},
                                          {"stdint.h", kIntegers},
                                          {"cstdint", kIntegers},
                                          {"kgrpo_limits.h", kLimits},
                                          {"float.h", kLimits},
                                          {"cfloat", kLimits},
                                          {"limits.h", kLimits},
                                          {"climits", kLimits},
                                          {"math.h", kLimits},
                                          {"cmath", kLimits}};
    // Device code's usual names from these headers are built in. Any other is an error here, and nvcc then decides.
    for (const char* name : {"cuda_runtime.h",
                             "cuda_runtime_api.h",
                             "device_launch_parameters.h",
                             "device_functions.h",
                             "cuda.h",
                             "stdio.h",
                             "cstdio",
                             "stdlib.h",
                             "cstdlib",
                             "string.h",
                             "cstring",
                             "stddef.h",
                             "cstddef",
                             "algorithm",
                             "assert.h",
                             "cassert",
                             "time.h",
                             "ctime",
                             "errno.h",
                             "cerrno",
                             "chrono",
                             "exception",
                             "functional",
                             "iostream",
                             "map",
                             "memory",
                             "mutex",
                             "numeric",
                             "random",
                             "set",
                             "span",
                             "sstream",
                             "stdexcept",
                             "string",
                             "string_view",
                             "unordered_map",
                             "vector"})
      headers.push_back({name, ""});
    return headers;
  }();
  return kHeaders;
}

Parts CompileDevice(const Nvrtc& nvrtc, const Parts& request, const std::string& architecture,
                    const Parts& include_directories) {
  Parts expressions = Lines(request[2]);
  std::vector<const char*> contents, names;
  for (const VirtualHeader& header : VirtualHeaders()) {
    contents.push_back(header.text);
    names.push_back(header.name);
  }
  const std::string source = "#include \"kgrpo_integers.h\"\n#include \"kgrpo_limits.h\"\n" + request[1];
  void* program = nullptr;
  if (nvrtc.create(&program, source.c_str(), "kernel.cu", static_cast<int>(names.size()), contents.data(),
                   names.data()) != 0) {
    return {"error", "NVRTC cannot make a program", "", "", ""};
  }
  for (const std::string& expression : expressions) nvrtc.add_name(program, expression.c_str());
  Parts options = {"-arch=" + architecture, "-std=c++17", "-lineinfo"};
  for (const std::string& directory : include_directories) options.push_back("-I" + directory);
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const int status = nvrtc.compile(program, static_cast<int>(arguments.size()), arguments.data());
  Parts answer = {status == 0 ? "ok" : "error", "", "", "", ""};
  size_t size = 0;
  if (nvrtc.log_size(program, &size) == 0 && size > 1) {
    answer[1].resize(size);
    nvrtc.log(program, answer[1].data());
    answer[1].resize(size - 1);
  }
  if (status == 0 && nvrtc.ptx_size(program, &size) == 0 && size > 1) {
    answer[2].resize(size);
    nvrtc.ptx(program, answer[2].data());
    answer[2].resize(size - 1);
  }
  if (status == 0 && nvrtc.cubin_size(program, &size) == 0 && size > 0) {
    answer[4].resize(size);
    nvrtc.cubin(program, answer[4].data());
  }
  for (const std::string& expression : expressions) {
    const char* lowered = nullptr;
    if (status == 0 && nvrtc.lowered_name(program, expression.c_str(), &lowered) == 0) answer[3] += lowered;
    answer[3] += "\n";
  }
  nvrtc.destroy(&program);
  return answer;
}

// Lets this process use `seconds` more of processor time; a child that it starts has at least as much.
void LimitTime(uint64_t seconds) {
  rusage usage = {};
  rlimit limit = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max,
                                    static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1 + seconds);
  setrlimit(RLIMIT_CPU, &limit);
}

Parts CompileHost(const Parts& request, const std::string& scratch, double seconds) {
  const std::string input = scratch + "/host.cc", output = scratch + "/host.so";
  std::ofstream(input, std::ios::binary) << request[1];
  std::vector<std::string> argv = {"g++",
                                   "-std=c++17",
                                   "-O0",
                                   "-fPIC",
                                   "-shared",
                                   "-nostdlib",
                                   "-pipe",
                                   "-fvisibility=default",
                                   "-fmax-errors=3",
                                   "-fno-diagnostics-show-caret",  // it would quote whatever file a #line names
                                   "-Wl,--hash-style=gnu"};
  for (const std::string& option : Lines(request[2])) argv.push_back(option);
  argv.insert(argv.end(), {input, "-o", output});
  unlink(output.c_str());
  Subprocess::Spec spec;
  spec.argv = argv;
  spec.directory = scratch;
  spec.own_session = false;
  const Subprocess::Result result = Subprocess::Run(spec, kgrpo::evaluator::kWallOfProcessorTime * seconds);
  std::ostringstream object;
  if (result.Succeeded()) object << std::ifstream(output, std::ios::binary).rdbuf();
  unlink(input.c_str());
  unlink(output.c_str());
  const bool exceeded = result.timed_out || result.cpu_seconds >= seconds;
  return {result.Succeeded() ? "ok" : exceeded ? "exceeded" : "error", result.output, object.str()};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const Nvrtc nvrtc = Nvrtc::Load(argv[1]);
  const std::string scratch = argv[2], architecture = argv[3];
  const auto seconds = static_cast<uint64_t>(std::atoll(argv[4]));
  const Parts include_directories(argv + 5, argv + argc);
  Parts request;
  while (kgrpo::process::ReadFrames(kSocket, &request, -1)) {
    LimitTime(seconds);
    Parts answer = {"error", "unknown request", "", "", ""};
    if (request.size() == 3 && request[0] == "device")
      answer = CompileDevice(nvrtc, request, architecture, include_directories);
    if (request.size() == 3 && request[0] == "host")
      answer = CompileHost(request, scratch, static_cast<double>(seconds));
    if (!kgrpo::process::WriteFrames(kSocket, answer)) break;
  }
  return 0;
}
