// The GPU that this folder's tests use.
#ifndef KGRPO_TESTS_EVALUATOR_CUDA_TEST_DEVICE_H
#define KGRPO_TESTS_EVALUATOR_CUDA_TEST_DEVICE_H

#include <cstdlib>
#include <string>

namespace kgrpo::evaluator_cuda {

// The number N of KGRPO_TEST_DEVICE=cuda:N; 0 if it is not set.
inline int TestDevice() {
  const char* device = std::getenv("KGRPO_TEST_DEVICE");
  const std::string name = device == nullptr ? "" : device;
  const size_t colon = name.find(':');
  return colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
}

}  // namespace kgrpo::evaluator_cuda

#endif
