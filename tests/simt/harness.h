// Helpers of the interpreter's tests: loading PTX compiled at build time, arrays on the modelled device, launching.
#ifndef KGRPO_TESTS_SIMT_HARNESS_H_
#define KGRPO_TESTS_SIMT_HARNESS_H_

#include "simt/simt.h"
#include "test.h"

namespace kgrpo::simt {

inline std::string ReadPtx(const std::string& name) {
  std::ifstream file(std::string(KGRPO_SIMT_PTX) + "/" + name + ".ptx");
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct PtxText {
  std::string text;
};

// A device with one module loaded.
class Bench {
 public:
  explicit Bench(const std::string& ptx_name) : Bench(PtxText{ReadPtx(ptx_name)}) {}
  explicit Bench(const PtxText& ptx) : module(Module::Parse(ptx.text)), instance(module, memory) {}

  template <typename T>
  DeviceAddress Upload(const std::vector<T>& values, const std::string& name) {
    const DeviceAddress address = memory.Allocate(values.size() * sizeof(T), name);
    memory.Write(address, values.data(), values.size() * sizeof(T));
    return address;
  }
  template <typename T>
  DeviceAddress Reserve(size_t count, const std::string& name) {
    return memory.Allocate(count * sizeof(T), name);
  }
  template <typename T>
  std::vector<T> Download(DeviceAddress address, size_t count) const {
    std::vector<T> values(count);
    memory.Read(address, values.data(), count * sizeof(T));
    return values;
  }

  // Launches with the parameters laid out as the kernel declares them.
  template <typename... Args>
  LaunchResult Run(const std::string& kernel, LaunchConfig config, const Args&... args) {
    const int index = module->FindKernel(kernel);
    EXPECT_GE(index, 0) << kernel;
    if (index < 0) return {};
    const KernelInfo& info = module->kernels()[static_cast<size_t>(index)];
    config.parameters.assign(info.parameter_bytes, 0);
    size_t i = 0;
    [[maybe_unused]] auto put = [&](const auto& value) {
      EXPECT_LT(i, info.parameters.size()) << kernel;
      if (i >= info.parameters.size()) return;
      EXPECT_EQ(sizeof(value), info.parameters[i].size) << kernel << " parameter " << i;
      std::memcpy(config.parameters.data() + info.parameters[i].offset, &value, sizeof(value));
      ++i;
    };
    (put(args), ...);
    EXPECT_EQ(i, info.parameters.size()) << kernel;
    return Launch(instance, index, config);
  }

  DeviceMemory memory;
  std::shared_ptr<const Module> module;
  ModuleInstance instance;
};

inline LaunchConfig Config(Dim3 grid, Dim3 block, Mode mode = Mode::kChecked, uint32_t dynamic_shared = 0) {
  LaunchConfig config;
  config.grid = grid;
  config.block = block;
  config.mode = mode;
  config.dynamic_shared_bytes = dynamic_shared;
  return config;
}

inline std::string Messages(const LaunchResult& result) {
  std::string text;
  for (const Finding& finding : result.findings)
    text += std::string(FindingName(finding.code)) + ": " + finding.message + "\n";
  return text;
}
inline testing::AssertionResult IsClean(const LaunchResult& result) {
  if (result.status == LaunchStatus::kCompleted && result.findings.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << Messages(result);
}
#define EXPECT_CLEAN(result) EXPECT_TRUE(IsClean(result))

// A reproducible value in [-1, 1).
inline float Noise(uint64_t i) {
  uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull;
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 29;
  return static_cast<float>(static_cast<int64_t>(x) >> 40) / 8388608.0f;
}
inline std::vector<float> NoiseVector(size_t count, uint64_t seed = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Noise(i + (seed << 32));
  return values;
}

}  // namespace kgrpo::simt
#endif  // KGRPO_TESTS_SIMT_HARNESS_H_
