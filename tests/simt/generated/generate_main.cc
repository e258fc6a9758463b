// Writes generated kernels for generated_test.cc: `generate_kernels COUNT DEVICE_FILE HOST_FILE`, the first COUNT
// kernels that a host can run too, for nvcc and for g++.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "kernel_generator.h"

int main(int argc, char** argv) {
  using namespace kgrpo::generated;
  if (argc != 4) {
    std::fprintf(stderr, "usage: generate_kernels COUNT DEVICE_FILE HOST_FILE\n");
    return 2;
  }
  std::ofstream device(argv[2]), host(argv[3]);
  device << DevicePrelude();
  host << "#include \"host_prelude.h\"\n";
  std::string table;
  const long count = std::atol(argv[1]);
  uint64_t number = 0;
  for (long i = 0; i < count; ++number) {
    const GeneratedKernel kernel = Generate(number);
    if (!kernel.host) continue;
    ++i;
    device << kernel.source;
    host << HostSource(kernel);
    table += "  {" + std::to_string(number) + ", &" + kernel.name + "},\n";
  }
  host << "#include \"host_kernels.h\"\nextern const HostKernel kHostKernels[] = {\n"
       << table << "};\nextern const unsigned long kHostKernelCount = " << count << ";\n";
  return device.flush() && host.flush() ? 0 : 1;
}
