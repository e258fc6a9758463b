// Random kernels, interpreted and compiled by g++: every value must be the same, bit for bit.
#include "generated/host_kernels.h"
#include "generated/kernel_generator.h"
#include "harness.h"

namespace kgrpo::simt {
namespace {

using generated::GeneratedKernel;

TEST(Generated, KernelsComputeWhatTheHostComputes) {
  Bench bench("generated");
  ASSERT_GT(kHostKernelCount, 0u);
  for (unsigned long i = 0; i < kHostKernelCount; ++i) {
    const GeneratedKernel kernel = generated::Generate(kHostKernels[i].number);
    SCOPED_TRACE(kernel.source);
    const std::vector<uint64_t> in = generated::InputsOf(kernel.number);
    std::vector<uint64_t> out(kernel.results.size() * kernel.Threads()), scratch(generated::kScratchWords);
    for (uint32_t t = 0; t < kernel.Threads(); ++t) {
      kHostKernels[i].run(reinterpret_cast<const unsigned long long*>(in.data()),
                          reinterpret_cast<unsigned long long*>(out.data()), nullptr, t);
    }
    const auto result = bench.Reserve<uint64_t>(out.size(), "out");
    ASSERT_TRUE(IsClean(bench.Run(kernel.name, Config({kernel.blocks}, {kernel.threads}), bench.Upload(in, "in"),
                                  result, bench.Upload(scratch, "scratch"))));
    const generated::Difference difference =
        generated::Compare(kernel, out, bench.Download<uint64_t>(result, out.size()), scratch, scratch);
    ASSERT_FALSE(difference.different) << "host against interpreter: " << difference.text;
  }
}

TEST(Generated, TheSameNumberIsTheSameKernel) {
  for (const uint64_t number : {0u, 5u, 17u, 1000u}) {
    EXPECT_EQ(generated::Generate(number).source, generated::Generate(number).source);
    EXPECT_EQ(generated::InputsOf(number), generated::InputsOf(number));
  }
  EXPECT_NE(generated::Generate(0).source, generated::Generate(13).source);
}

TEST(Generated, ComparisonSeesWhatDiffers) {
  GeneratedKernel kernel;
  kernel.blocks = kernel.threads = 1;
  kernel.results = {{generated::ValueType::kF32, 2, 0, "v0 = f()"}};
  const std::vector<uint64_t> none;
  auto compare = [&](uint64_t a, uint64_t b) { return generated::Compare(kernel, {a}, {b}, none, none); };
  EXPECT_FALSE(compare(0x3F800000, 0x3F800002).different);
  EXPECT_TRUE(compare(0x3F800000, 0x3F800002).within);
  EXPECT_TRUE(compare(0x3F800000, 0x3F800003).different);
  EXPECT_FALSE(compare(0x7FFFFFFF, 0xFFC00000).different);  // any NaN is as good as any other
  EXPECT_TRUE(compare(0x7FFFFFFF, 0x7F800000).different);
  kernel.results[0].ulps = 0;
  EXPECT_TRUE(compare(0x80000000, 0).different);
  EXPECT_TRUE(generated::Compare(kernel, {0}, {0}, {1}, {2}).different);
}

}  // namespace
}  // namespace kgrpo::simt
