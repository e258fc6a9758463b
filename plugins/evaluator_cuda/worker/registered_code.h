// The device code that a candidate built by nvcc registered with the runtime when it was loaded: nvcc puts the machine
// code into the object, and constructors there register it. Filled by interposed.cc; read by placement.cc, which loads
// the code once more where its variables lie better, and by fast_kernels.cc, which then puts those kernels in place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kgrpo::evaluator_cuda {

struct DeviceVariable {
  std::string name;
  uint64_t bytes;
};

struct RegisteredCode {
  std::vector<const void*> fatbins;
  std::map<const void*, std::string> names;  // of kernels and variables, by their host symbols
  std::vector<DeviceVariable> variables;     // in global memory
  bool used = false;                         // a host symbol was looked up already
};

// Of this process, which loads one candidate.
RegisteredCode& Registered();

}  // namespace kgrpo::evaluator_cuda
