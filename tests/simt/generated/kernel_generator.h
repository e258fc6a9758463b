// Random well-formed kernels: the same number gives the same kernel everywhere. bench/sim_vs_gpu compares their
// results on a GPU and in the interpreter; generated_test.cc compares the interpreter with the host's compiler, for the
// kernels that a host can run.
//
// A kernel is `extern "C" __global__ void k<number>(const unsigned long long* in, unsigned long long* out, unsigned
// long long* scratch)`. Thread t of the grid writes its result r to out[r * threads + t]; scratch starts as zeros and
// receives the results of atomics. Every value that the kernel computes is a result, so that the first difference
// points to the wrong operation.
#ifndef KGRPO_TESTS_SIMT_GENERATED_KERNEL_GENERATOR_H_
#define KGRPO_TESTS_SIMT_GENERATED_KERNEL_GENERATOR_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo::generated {

// The part of the language that a kernel tests. kApproximate and kMath: operations that hardware approximates.
enum class Kind {
  kInteger,
  kFloat,
  kDouble,
  kConvert,
  kControl,
  kHalf,
  kWarp,
  kShared,
  kAtomic,
  kMemory,
  kMatrix,
  kApproximate,
  kMath
};
inline constexpr int kKinds = 13;
const char* KindName(Kind kind);

enum class ValueType { kU32, kU64, kF32, kF64, kF16, kBf16, kF16x2, kBf16x2 };

// A result and its comparison: bit for bit if both bounds are 0 (all NaNs are equal), otherwise within either bound.
struct Result {
  ValueType type = ValueType::kU32;
  double ulps = 0, absolute = 0;
  std::string text;  // the expression, for reports
};

struct GeneratedKernel {
  uint64_t number = 0;
  Kind kind = Kind::kInteger;
  std::string name;
  std::string source;  // the function, without the prelude
  std::vector<Result> results;
  uint32_t blocks = 2, threads = 64;  // threads a block
  bool host = false;                  // a host's compiler can compile it
  uint32_t Threads() const { return blocks * threads; }
};

inline constexpr uint32_t kInputWords = 1024, kScratchWords = 512;

GeneratedKernel Generate(uint64_t number);
// The inputs of kernel `number`: kInputWords words, rich in zeros, infinities, NaNs, subnormal and extreme numbers.
std::vector<uint64_t> InputsOf(uint64_t number);

// The CUDA source before the kernels of a translation unit.
std::string DevicePrelude();
// The kernels as functions of a host's compiler: `extern "C" void k<number>(in, out, scratch, block, thread)`. Needs
// host_prelude.h.
std::string HostSource(const GeneratedKernel& kernel);

// The first result at which two runs of the kernel differ. `within` says whether any was unequal but within its bounds.
struct Difference {
  bool different = false, within = false;
  std::string text;
};
Difference Compare(const GeneratedKernel& kernel, const std::vector<uint64_t>& out, const std::vector<uint64_t>& other,
                   const std::vector<uint64_t>& scratch, const std::vector<uint64_t>& other_scratch);

}  // namespace kgrpo::generated
#endif  // KGRPO_TESTS_SIMT_GENERATED_KERNEL_GENERATOR_H_
