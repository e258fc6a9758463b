// Kernels of common styles against the same computation on the host, with all checks on and no findings.
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "harness.h"

namespace kgrpo::simt {
namespace {

class Basic : public testing::TestWithParam<Mode> {
 protected:
  LaunchConfig Shape(Dim3 grid, Dim3 block, uint32_t dynamic_shared = 0) const {
    return Config(grid, block, GetParam(), dynamic_shared);
  }
  Bench bench{"basic"};
};
INSTANTIATE_TEST_SUITE_P(Modes, Basic, testing::Values(Mode::kChecked, Mode::kPlain),
                         [](const auto& info) { return info.param == Mode::kChecked ? "Checked" : "Plain"; });

TEST_P(Basic, AddsVectorsWithAPartialLastBlock) {
  const int n = 1000;
  const auto a = NoiseVector(n, 1), b = NoiseVector(n, 2);
  const auto c = bench.Reserve<float>(n, "c");
  EXPECT_CLEAN(bench.Run("Add", Shape({8}, {128}), bench.Upload(a, "a"), bench.Upload(b, "b"), c, n));
  const auto result = bench.Download<float>(c, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(result[i], a[i] + b[i]) << i;
}

TEST_P(Basic, VectorisedGridStrideLoop) {
  const int n = 4096;
  const auto a = NoiseVector(n, 1), b = NoiseVector(n, 2);
  const auto c = bench.Reserve<float>(n, "c");
  EXPECT_CLEAN(bench.Run("AddGridStride4", Shape({3}, {96}), bench.Upload(a, "a"), bench.Upload(b, "b"), c, n / 4));
  const auto result = bench.Download<float>(c, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(result[i], a[i] + b[i]) << i;
}

TEST_P(Basic, Reductions) {
  const int n = 10000;
  const auto x = NoiseVector(n, 3);
  double sum = 0;
  for (const float v : x) sum += v;
  for (const char* kernel : {"ReduceShared", "ReduceShuffle"}) {
    const auto out = bench.Upload(std::vector<float>{0.0f}, "out");
    EXPECT_CLEAN(bench.Run(kernel, Shape({7}, {256}), bench.Upload(x, "x"), out, n));
    EXPECT_NEAR(bench.Download<float>(out, 1)[0], sum, 1e-3) << kernel;
  }
}

TEST_P(Basic, MatrixProducts) {
  const int n = 128;
  const auto a = NoiseVector(n * n, 4), b = NoiseVector(n * n, 5);
  std::vector<double> expected(n * n, 0.0);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) expected[i * n + j] += static_cast<double>(a[i * n + k]) * b[k * n + j];
  const auto da = bench.Upload(a, "a"), db = bench.Upload(b, "b");
  struct Case {
    const char* name;
    Dim3 grid, block;
  };
  for (const Case& test : {Case{"MatmulNaive", {8, 8}, {16, 16}}, Case{"MatmulUncoalesced", {8, 8}, {16, 16}},
                           Case{"MatmulTiled16", {8, 8}, {16, 16}}, Case{"MatmulTiled32", {4, 4}, {32, 32}},
                           Case{"MatmulRegister", {2, 2}, {16, 16}}, Case{"MatmulVector", {2, 2}, {16, 16}}}) {
    const auto c = bench.Reserve<float>(n * n, "c");
    EXPECT_CLEAN(bench.Run(test.name, Shape(test.grid, test.block), da, db, c, n)) << test.name;
    const auto result = bench.Download<float>(c, n * n);
    for (int i = 0; i < n * n; ++i) ASSERT_NEAR(result[i], expected[i], 1e-4) << test.name << " " << i;
  }
}

TEST_P(Basic, Transposes) {
  const int rows = 70, columns = 100;
  const auto in = NoiseVector(rows * columns, 6);
  for (const char* kernel : {"TransposeNaive", "TransposeTile", "TransposePadded"}) {
    const auto out = bench.Reserve<float>(rows * columns, "out");
    EXPECT_CLEAN(bench.Run(kernel, Shape({4, 3}, {32, 8}), bench.Upload(in, "in"), out, rows, columns)) << kernel;
    const auto result = bench.Download<float>(out, rows * columns);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) ASSERT_EQ(result[c * rows + r], in[r * columns + c]) << kernel;
  }
}

TEST_P(Basic, Softmax) {
  const int rows = 5, columns = 300;
  const auto x = NoiseVector(rows * columns, 7);
  const auto y = bench.Reserve<float>(rows * columns, "y");
  EXPECT_CLEAN(bench.Run("SoftmaxRow", Shape({rows}, {128}), bench.Upload(x, "x"), y, columns));
  const auto result = bench.Download<float>(y, rows * columns);
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c) sum += std::exp(static_cast<double>(x[r * columns + c]));
    for (int c = 0; c < columns; ++c)
      ASSERT_NEAR(result[r * columns + c], std::exp(static_cast<double>(x[r * columns + c])) / sum, 1e-7);
  }
}

TEST_P(Basic, Histograms) {
  const int n = 5000;
  std::vector<unsigned char> x(n);
  std::vector<unsigned> expected(256);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<unsigned char>(127 + 120 * Noise(i));
    ++expected[x[i]];
  }
  for (const char* kernel : {"HistogramShared", "HistogramGlobal"}) {
    const auto bins = bench.Upload(std::vector<unsigned>(256), "bins");
    EXPECT_CLEAN(bench.Run(kernel, Shape({40}, {128}), bench.Upload(x, "x"), bins, n)) << kernel;
    EXPECT_EQ(bench.Download<unsigned>(bins, 256), expected) << kernel;
  }
}

TEST_P(Basic, ScanInDynamicSharedMemory) {
  const int n = 200;
  std::vector<int> x(n), expected(n);
  for (int i = 0; i < n; ++i) {
    x[i] = i * 7 % 13 - 5;
    expected[i] = x[i] + (i % 64 == 0 ? 0 : expected[i - 1]);
  }
  const auto y = bench.Reserve<int>(n, "y");
  EXPECT_CLEAN(bench.Run("ScanBlock", Shape({4}, {64}, 2 * 64 * 4), bench.Upload(x, "x"), y, n));
  EXPECT_EQ(bench.Download<int>(y, n), expected);
}

TEST_P(Basic, LoopsOfDifferentLength) {
  const int n = 100;
  std::vector<unsigned> x(n);
  std::vector<int> expected(n);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<unsigned>(1 + i * 37 % 1000);
    for (unsigned v = x[i]; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) ++expected[i];
  }
  const auto steps = bench.Reserve<int>(n, "steps");
  EXPECT_CLEAN(bench.Run("Divergent", Shape({2}, {64}), bench.Upload(x, "x"), steps, n));
  EXPECT_EQ(bench.Download<int>(steps, n), expected);
}

TEST_P(Basic, ValuesCarriedAroundLoops) {
  const int n = 64;
  const auto x = NoiseVector(n, 9);
  const auto y = bench.Reserve<float>(n, "y");
  EXPECT_CLEAN(bench.Run("Carried", Shape({1}, {n}), bench.Upload(x, "x"), y, n));
  const auto result = bench.Download<float>(y, n);
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int k = 0; k < n; ++k) {
      sum += static_cast<double>(x[(i + k) % n]) * x[(i * 3 + k) % n] +
             static_cast<double>(x[(i * 5 + k) % n]) * x[k / 4 * 4];
    }
    ASSERT_NEAR(result[i], sum, 1e-4) << i;
  }
}

TEST_P(Basic, LocalConstantGlobalMemoryAndSwitch) {
  const int n = 90;
  struct Offsets {
    int values[5];
  } offsets = {{10, 20, 30, 40, 50}};
  const float coefficients[4] = {1.0f, -2.0f, 0.5f, 3.0f};
  const auto out = bench.Reserve<float>(n, "out");
  EXPECT_CLEAN(bench.Run("Mixed", Shape({3}, {32}), out, offsets, n));
  const auto result = bench.Download<float>(out, n);
  for (int i = 0; i < n; ++i) {
    float v = (i * 0.25f + (i + n) % 8) * coefficients[i % 4] + static_cast<float>(offsets.values[i % 5]);
    switch (i % 7) {
      case 0: v += 1; break;
      case 1: v *= 2; break;
      case 2: v = -v; break;
      case 3: v = v * v; break;
      case 4: v -= 100; break;
      case 5: v = 5; break;
      default: v = v / 3; break;
    }
    ASSERT_FLOAT_EQ(result[i], v) << i;
  }
  int counter = 0;
  bench.memory.Read(bench.instance.GlobalAddress("counter"), &counter, 4);
  EXPECT_EQ(counter, 12);
}

// Every special register that ptxas accepts, for block (1, 2, 0) of a grid of 3 x 4 x 1.
TEST(SpecialRegisters, HaveTheValuesOfAnH100) {
  std::vector<std::pair<std::string, uint32_t>> wanted;
  std::istringstream known(
      "tid.x 0 tid.z 0 ntid.x 32 ntid.y 2 ctaid.x 1 ctaid.y 2 nctaid.x 3 nctaid.y 4 clusterid.x 1 clusterid.y 2 "
      "clusterid.z 0 nclusterid.x 3 nclusterid.y 4 nclusterid.z 1 cluster_ctaid.x 0 cluster_ctaid.y 0 "
      "cluster_ctaid.z 0 cluster_nctaid.x 1 cluster_nctaid.y 1 cluster_nctaid.z 1 cluster_ctarank 0 "
      "cluster_nctarank 1 laneid 0 warpid 0 nwarpid 64 nsmid 132 smid 7 gridid 0 lanemask_eq 1 lanemask_le 1 "
      "lanemask_lt 0 lanemask_ge 0xFFFFFFFF lanemask_gt 0xFFFFFFFE clock_hi 0 globaltimer_hi 0 "
      "reserved_smem_offset_begin 0 reserved_smem_offset_end 1024 reserved_smem_offset_cap 1024 "
      "reserved_smem_offset_0 0 reserved_smem_offset_1 736 dynamic_smem_size 100 total_smem_size 140 "
      "aggr_smem_size 1280");
  for (std::string name, value; known >> name >> value;)
    wanted.emplace_back(name, static_cast<uint32_t>(std::stoul(value, nullptr, 0)));
  for (const char* vector :
       {"tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"})
    wanted.emplace_back(std::string(vector) + ".w", 0);
  for (int i = 0; i < 8; ++i) wanted.emplace_back("pm" + std::to_string(i), 0);
  for (int i = 0; i < 32; ++i) wanted.emplace_back("envreg" + std::to_string(i), 0);
  const size_t narrow = wanted.size();
  for (int i = 0; i < 8; ++i) wanted.emplace_back("pm" + std::to_string(i) + "_64", 0);
  wanted.emplace_back("gridid", 0);
  wanted.emplace_back("current_graph_exec", 0);
  std::string body =
      "setp.ne.u32 %p1, %ctaid.x, 1; @%p1 ret; setp.ne.u32 %p1, %ctaid.y, 2; @%p1 ret;\n"
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; or.b32 %r1, %r1, %r2; setp.ne.u32 %p1, %r1, 0; @%p1 ret;\n"
      "ld.param.u64 %rd1, [out]; st.shared.u32 [fixed], %r1;\n";
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool wide = i >= narrow;
    body += std::string(wide ? "mov.u64 %rd2, %" : "mov.u32 %r1, %") + wanted[i].first + "; " +
            (wide ? "cvt.u32.u64 %r1, %rd2; " : "") + "st.global.u32 [%rd1+" + std::to_string(4 * i) + "], %r1;\n";
  }
  body += "mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%rd1+" +
          std::to_string(4 * wanted.size()) +
          "], %r1;\n"
          // The reserved part is memory in front of the kernel's own.
          "mov.u32 %r2, %reserved_smem_offset_1; mov.u32 %r1, fixed; setp.lt.u32 %p1, %r1, 1024; @%p1 trap;\n"
          "st.shared.u32 [%r2], %r1; ld.shared.u32 %r1, [%r2+284];\n";
  Bench bench(
      PtxText{".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
              ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<3>;\n.shared .align 4 .b8 fixed[40];\n" +
              body + "ret;\n}\n"});
  ASSERT_EQ(bench.module->kernels()[0].refused, "");
  const auto out = bench.Reserve<uint32_t>(wanted.size() + 1, "out");
  wanted.emplace_back("is_explicit_cluster", 0);
  EXPECT_CLEAN(bench.Run("k", Config({3, 4}, {32, 2}, Mode::kChecked, 100), out));
  const auto got = bench.Download<uint32_t>(out, wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(got[i], wanted[i].second) << wanted[i].first;
}

// Each half of each element of a vector by itself: a number before a NaN, and zeros by their signs.
TEST(VectorAtomics, TakeMinimaAndMaximaOfHalves) {
  const auto result = [](const std::string& opcode) {
    Bench bench(
        PtxText{".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
                ".reg .b32 %r<5>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, 0x3C004000;\n"
                "mov.u32 %r2, 0x80007E00;\natom.global." +
                opcode + " {%r3, %r4}, [%rd1], {%r1, %r2};\nst.global.u32 [%rd1+8], %r3;\nret;\n}\n"});
    const DeviceAddress out = bench.Upload(std::vector<uint32_t>{0x40003C00, 0x0000BC00, 7}, "out");
    EXPECT_CLEAN(bench.Run("k", Config({1}, {1}), out));
    EXPECT_EQ(bench.Download<uint32_t>(out, 3)[2], 0x40003C00u) << "what was there before";
    const auto both = bench.Download<uint32_t>(out, 2);
    return std::pair{both[0], both[1]};
  };
  EXPECT_EQ(result("max.noftz.v2.f16x2"), std::pair(0x40004000u, 0x0000BC00u));
  EXPECT_EQ(result("min.noftz.v2.f16x2"), std::pair(0x3C003C00u, 0x8000BC00u));
  // As bfloat16s 7E00 is a large number.
  EXPECT_EQ(result("max.noftz.v2.bf16x2"), std::pair(0x40004000u, 0x00007E00u));
  EXPECT_EQ(result("min.noftz.v2.bf16x2"), std::pair(0x3C003C00u, 0x8000BC00u));
}

}  // namespace
}  // namespace kgrpo::simt
