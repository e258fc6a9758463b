// The table of generated kernels that g++ compiled: written by generate_kernels, read by generated_test.cc.
#ifndef KGRPO_TESTS_SIMT_GENERATED_HOST_KERNELS_H_
#define KGRPO_TESTS_SIMT_GENERATED_HOST_KERNELS_H_

struct HostKernel {
  unsigned long long number;
  void (*run)(const unsigned long long* in, unsigned long long* out, unsigned long long* scratch, unsigned t);
};
extern const HostKernel kHostKernels[];
extern const unsigned long kHostKernelCount;

#endif  // KGRPO_TESTS_SIMT_GENERATED_HOST_KERNELS_H_
