// Uses of unset variables are found if they affect the result, and only then.
#include <cmath>
#include <fstream>
#include <set>

#include "harness.h"

namespace kgrpo::simt {
namespace {

constexpr uint32_t kThreads = 32;

LaunchResult RunKernel(Bench& bench, const std::string& kernel, Mode mode) {
  std::vector<float> x(kThreads * kThreads);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const DeviceAddress dx = bench.Upload(x, "x"), out = bench.Reserve<float>(kThreads * kThreads, "out");
  bench.memory.Poison(out, 0);
  return bench.Run(kernel, Config({1}, {kThreads}, mode), dx, out, int{kThreads});
}

// The lines behind the head of a kernel's function that end with `// found`.
std::set<int> LinesToFind(const std::string& kernel) {
  std::ifstream file(std::string(KGRPO_SOURCE_DIR) + "/tests/simt/kernels/unset.cu");
  std::set<int> lines;
  bool inside = false;
  int number = 1;
  for (std::string line; std::getline(file, line); ++number) {
    if (line.starts_with("extern")) inside = line.find(" " + kernel + "(") != std::string::npos;
    if (inside && line.ends_with("// found")) lines.insert(number);
  }
  return lines;
}

class UnsetOfNvcc : public testing::TestWithParam<const char*> {};

TEST_P(UnsetOfNvcc, IsFoundWhereItMatters) {
  Bench bench("unset");
  const LaunchResult result = RunKernel(bench, GetParam(), Mode::kChecked);
  std::set<int> found;
  for (const Finding& finding : result.findings) {
    EXPECT_EQ(finding.code, FindingCode::kUninitialised) << finding.message;
    found.insert(finding.line);
  }
  const std::set<int> wanted = LinesToFind(GetParam());
  EXPECT_EQ(found.empty(), wanted.empty()) << GetParam();
  for (const int line : found) EXPECT_TRUE(wanted.contains(line)) << "line " << line << " of " << GetParam();
  EXPECT_TRUE(RunKernel(bench, GetParam(), Mode::kPlain).findings.empty()) << "nothing is watched in plain launches";
}

INSTANTIATE_TEST_SUITE_P(Kernel, UnsetOfNvcc,
                         testing::Values("Sum", "Previous", "RegisterArray", "ThroughShared", "Atomic", "Counted",
                                         "FoldedBranch", "HonestPrefetch", "HonestCondition"),
                         [](const auto& kernel) { return std::string(kernel.param); });

// The message of the first finding of a body between the setting of %rd1 (out), %r1 (the thread) and %rd2 (out's
// element of the thread), and the end; %r9, %f9, %p9 and %rd9 are never set. "" where there is none.
std::string Found(const std::string& body) {
  Bench bench(
      PtxText{".version 9.0\n.target sm_90\n.address_size 64\n"
              ".visible .entry k(.param .u64 x, .param .u64 out, .param .u32 n)\n{\n"
              ".reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n.reg .f32 %f<10>;\n.reg .pred %p<10>;\n"
              ".shared .align 16 .b8 s[256];\n.local .align 16 .b8 l[16];\n"
              "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 16;\n"
              "add.s64 %rd2, %rd1, %rd2;\nmov.f32 %f1, 0f3F800000;\nmov.u32 %r2, 5;\n" +
              body + "\nret;\n}\n"});
  const LaunchResult result = RunKernel(bench, "k", Mode::kChecked);
  if (result.findings.empty()) return "";
  EXPECT_EQ(result.findings[0].code, FindingCode::kUninitialised);
  return result.findings[0].message;
}

void ExpectFound(const std::string& body, const std::string& what) {
  const std::string message = Found(body);
  EXPECT_NE(message.find(what + " that comes from a variable that was never set"), std::string::npos)
      << body << "\n"
      << (message.empty() ? "nothing is found" : message);
}

TEST(Unset, ValuesThatAreStored) {
  ExpectFound("st.global.f32 [%rd2], %f9;", "stores a value");
  ExpectFound("add.f32 %f2, %f9, %f1;\nmul.f32 %f2, %f2, %f2;\nst.global.f32 [%rd2], %f2;", "stores a value");
  ExpectFound("cvta.to.global.u64 %rd3, %rd2;\nst.f32 [%rd3], %f9;", "stores a value");
  ExpectFound("st.global.v2.f32 [%rd2], {%f9, %f9};", "stores a value");
  EXPECT_EQ(Found("st.global.v2.f32 [%rd2], {%f1, %f9};"), "") << "a gap of a structure";
  EXPECT_EQ(Found("mov.f32 %f2, %f9;\nadd.f32 %f3, %f2, %f1;"), "") << "nobody uses it";
  EXPECT_EQ(Found("mov.f32 %f2, %f9;\nmov.f32 %f2, %f1;\nst.global.f32 [%rd2], %f2;"), "") << "it was set since";
  EXPECT_EQ(Found("xor.b32 %r3, %r9, %r9;\nst.global.u32 [%rd2], %r3;"), "") << "zero, whatever it was";
}

TEST(Unset, AddressesBranchesAndAtomics) {
  ExpectFound("ld.global.f32 %f2, [%rd9];", "uses an address");
  ExpectFound("add.s64 %rd3, %rd9, 4;\nst.global.f32 [%rd3], %f1;", "uses an address");
  ExpectFound("@%p9 bra $over;\nst.global.f32 [%rd2], %f1;\n$over:", "takes a branch by a value");
  ExpectFound("setp.gt.f32 %p1, %f9, %f1;\n@!%p1 bra $over;\nst.global.f32 [%rd2], %f1;\n$over:",
              "takes a branch by a value");
  ExpectFound("@%p9 st.global.f32 [%rd2], %f1;", "stores or not by a value");
  ExpectFound("red.global.add.f32 [%rd1], %f9;", "uses a value");
  ExpectFound("@%p9 mov.f32 %f1, 0f00000000;\nst.global.f32 [%rd2], %f1;", "stores a value");
}

TEST(Unset, WhatIsChosenByOthers) {
  const std::string choose = "setp.lt.u32 %p1, %r1, 8;\n", store = "\nst.global.f32 [%rd2], %f2;";
  ExpectFound(choose + "selp.f32 %f2, %f1, %f9, %p1;" + store, "stores a value");
  EXPECT_EQ(Found("setp.lt.u32 %p1, %r1, 99;\nselp.f32 %f2, %f1, %f9, %p1;" + store), "");
  ExpectFound("selp.f32 %f2, %f1, 0f00000000, %p9;" + store, "stores a value");
  const std::string branch = "@%p2 bra $over;\nst.global.f32 [%rd2], %f1;\n$over:";
  EXPECT_EQ(Found("setp.gt.u32 %p1, %r1, 99;\nand.pred %p2, %p9, %p1;\n" + branch), "") << "false and anything";
  ExpectFound("setp.lt.u32 %p1, %r1, 99;\nand.pred %p2, %p9, %p1;\n" + branch, "takes a branch by a value");
  EXPECT_EQ(Found("setp.lt.u32 %p1, %r1, 99;\nor.pred %p2, %p1, %p9;\n" + branch), "") << "true or anything";
  ExpectFound("setp.gt.u32 %p1, %r1, 99;\nor.pred %p2, %p1, %p9;\n" + branch, "takes a branch by a value");
}

TEST(Unset, LanesByThemselves) {
  const std::string half = "setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra $set;\nmov.f32 %f9, 0f3F800000;\n$set:\n";
  ExpectFound(half + "st.global.f32 [%rd2], %f9;", "stores a value");
  EXPECT_EQ(Found(half + "@!%p1 bra $over;\nst.global.f32 [%rd2], %f9;\n$over:"), "");
  const std::string bits = "mov.b32 %r3, %f9;\n";
  EXPECT_EQ(Found(half + bits + "shfl.sync.idx.b32 %r4, %r3, 3, 31, -1;\nst.global.u32 [%rd2], %r4;"), "");
  ExpectFound(half + bits + "shfl.sync.idx.b32 %r4, %r3, 20, 31, -1;\nst.global.u32 [%rd2], %r4;", "stores a value");
  EXPECT_EQ(Found(half + bits +
                  "shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;\n@!%p1 bra $over;\nst.global.u32 [%rd2], "
                  "%r4;\n$over:"),
            "");
  ExpectFound(half + bits +
                  "shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;\n@!%p1 bra $over;\nst.global.u32 [%rd2], "
                  "%r4;\n$over:",
              "stores a value");
}

TEST(Unset, ShufflesFromLanesThatTakeNoPart) {
  const std::string part = "setp.gt.u32 %p1, %r1, 3;\n@%p1 bra $over;\n", end = "\n$over:";
  const std::string down = part + "shfl.sync.down.b32 %r4, %r2, 2, 31, 15;\n", store = "st.global.u32 [%rd2], %r4;";
  EXPECT_NE(Found(down + store + end).find("reads lane 4 by a shuffle in which that lane takes no part"),
            std::string::npos);
  EXPECT_EQ(Found(down + "setp.lt.u32 %p2, %r1, 2;\n@%p2 " + store + end), "") << "lanes 0 and 1 read 2 and 3";
  EXPECT_NE(Found(down + "shfl.sync.idx.b32 %r5, %r4, 3, 31, 15;\nst.global.u32 [%rd2], %r5;" + end), "");
}

TEST(Unset, PutTogetherAndTakenApart) {
  EXPECT_EQ(Found("mov.b64 %rd3, {%r2, %r9};\nmov.b64 {%r3, %r4}, %rd3;\nst.global.u32 [%rd2], %r3;"), "");
  ExpectFound("mov.b64 %rd3, {%r9, %r9};\nmov.b64 {%r3, %r4}, %rd3;\nst.global.u32 [%rd2], %r3;", "stores a value");
  EXPECT_EQ(Found("prmt.b32 %r3, %r2, %r9, 0x3210;\nst.global.u32 [%rd2], %r3;"), "");
}

TEST(Unset, WhoReadsWhatWasNotSetThroughMemoryIsFound) {
  const std::string shared =
      "shl.b32 %r3, %r1, 2;\nmov.u32 %r4, s;\nadd.s32 %r3, %r3, %r4;\nst.shared.f32 [%r3], %f9;\n";
  EXPECT_EQ(Found(shared), "");
  const std::string load = shared + "ld.shared.f32 %f2, [%r3];\n", store = "st.global.f32 [%rd2], %f2;";
  EXPECT_EQ(Found(load), "") << "nobody uses it";
  EXPECT_NE(Found(load + store).find("that no thread of the block has written yet"), std::string::npos);
  EXPECT_EQ(Found(shared + "st.shared.f32 [%r3], %f1;\nld.shared.f32 %f2, [%r3];"), "") << "written since";
  EXPECT_EQ(Found("st.local.f32 [l], %f9;"), "");
  EXPECT_NE(Found("st.local.f32 [l], %f9;\nld.local.f32 %f2, [l];\n" + store).find("that the thread has not written"),
            std::string::npos);
}

// A load of what nobody has written is a fault if its value is used, and is named then, wherever that is.
TEST(Unset, LoadsOfWhatNobodyWrote) {
  const std::string place = "shl.b32 %r3, %r1, 2;\nmov.u32 %r4, s;\nadd.s32 %r3, %r3, %r4;\n";
  const std::string load = place + "ld.shared.f32 %f2, [%r3];\n", store = "st.global.f32 [%rd2], %f3;";
  const auto found = [](const std::string& body) {
    return Found(body).find("reads 4 bytes that no thread of the block has written yet") != std::string::npos;
  };
  const std::string select = "selp.f32 %f3, %f2, %f1, %p1;\n", low = "setp.lt.u32 %p1, %r1, 8;\n",
                    none = "setp.gt.u32 %p1, %r1, 99;\n";
  EXPECT_EQ(Found(load + none + select + store), "") << "loaded ahead of a guard";
  EXPECT_TRUE(found(load + low + select + store));
  EXPECT_TRUE(found(load + "add.f32 %f3, %f2, %f1;\n" + store));
  EXPECT_EQ(Found(load + "add.f32 %f3, %f2, %f1;\n" + none + "@%p1 " + store), "");
  EXPECT_TRUE(found(load + "add.f32 %f3, %f2, %f1;\n" + low + "@%p1 " + store));
  EXPECT_TRUE(found(load + "setp.gt.f32 %p1, %f2, %f1;\n@%p1 bra $over;\n" + "st.global.f32 [%rd2], %f1;\n$over:"));
  EXPECT_TRUE(found(load + "red.global.add.f32 [%rd1], %f2;"));
  EXPECT_TRUE(
      found(load + "mov.b32 %r5, %f2;\ncvt.u64.u32 %rd3, %r5;\nadd.s64 %rd3, %rd1, %rd3;\nld.global.u8 %r6, [%rd3];"));
  EXPECT_TRUE(found(load + "mov.b32 %r5, %f2;\nor.b32 %r5, %r5, %r2;\nst.global.u32 [%rd2], %r5;"))
      << "some of its bits";
  EXPECT_TRUE(found(load + "st.shared.f32 [%r3+128], %f2;\nld.shared.f32 %f3, [%r3+128];\n" + store)) << "by a detour";
  EXPECT_TRUE(found(load + "mov.b32 %r5, %f2;\nshfl.sync.idx.b32 %r6, %r5, 3, 31, -1;\nst.global.u32 [%rd2], %r6;"));
  // Elements of vectors by themselves.
  const std::string pair =
      "mul.lo.u32 %r3, %r1, 8;\nmov.u32 %r4, s;\nadd.s32 %r3, %r3, %r4;\nst.shared.f32 [%r3], %f1;\n"
      "ld.shared.v2.f32 {%f2, %f3}, [%r3];\n";
  EXPECT_EQ(Found(pair + "st.global.f32 [%rd2], %f2;"), "");
  EXPECT_TRUE(found(pair + store));
}

TEST(Unset, AMatrixProductDependsOnItsAddendElementByElement) {
  const std::string product =
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f2,%f3,%f4,%f5}, {%r2,%r2,%r2,%r2}, {%r2,%r2}, "
      "{%f9,%f1,%f1,%f1};\n";
  ExpectFound(product + "st.global.f32 [%rd2], %f2;", "stores a value");
  EXPECT_EQ(Found(product + "st.global.f32 [%rd2], %f3;"), "");
}

}  // namespace
}  // namespace kgrpo::simt
