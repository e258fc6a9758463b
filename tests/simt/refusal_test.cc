// Unsupported code is refused with its name and place, text that is no PTX with its line; nothing crashes.
#include <kgrpo/sdk/error.h>

#include "harness.h"

namespace kgrpo::simt {
namespace {

const char kHead[] = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::string MessageOf(const std::string& ptx, kgrpo_error_code code) {
  try {
    const std::shared_ptr<const Module> module = Module::Parse(ptx);
    for (const KernelInfo& kernel : module->kernels())
      if (!kernel.refused.empty() && code == KGRPO_ERROR_UNSUPPORTED) return kernel.refused;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "parsed";
}
std::string Kernel(const std::string& body) {
  return std::string(kHead) + ".visible .entry k()\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<3>;\n" +
         body + "\nret;\n}\n";
}
std::string Refused(const std::string& body) { return MessageOf(Kernel(body), KGRPO_ERROR_UNSUPPORTED); }
std::string Bad(const std::string& ptx) { return MessageOf(ptx, KGRPO_ERROR_INVALID); }

// A short text may stand for much work: it is refused before the work is done. Each takes below a second.
TEST(Refusal, BoundsTheWorkThatATextStandsFor) {
  std::string ranges, chain, doubling;
  for (int i = 0; i < 2000; ++i)
    ranges += "{ .reg .b64 %x" + std::to_string(i) + "_<1000000>; mov.b64 %x" + std::to_string(i) + "_999999, 1; }\n";
  EXPECT_EQ(Refused(ranges), "parsed") << "registers that nothing mentions cost nothing";
  const auto function = [](int i, const std::string& body) {
    return ".func f" + std::to_string(i) + "()\n{\n" + body + "ret;\n}\n";
  };
  for (int i = 5000; i-- > 0;) chain += function(i, i == 4999 ? "" : "call f" + std::to_string(i + 1) + ", ();\n");
  for (int i = 40; i-- > 0;) {
    const std::string next = "call f" + std::to_string(i + 1) + ", ();\n";
    doubling += function(i, i == 39 ? "" : next + next);
  }
  const std::string entry = ".visible .entry k()\n{\ncall f0, ();\nret;\n}\n";
  EXPECT_THAT(MessageOf(kHead + chain + entry, KGRPO_ERROR_UNSUPPORTED),
              testing::HasSubstr("a chain of more than 1000"));
  EXPECT_THAT(MessageOf(kHead + doubling + entry, KGRPO_ERROR_UNSUPPORTED),
              testing::HasSubstr("a kernel of more than 4 million statements"));
  std::string wide = ".reg .b32 %z<200000>;\n";
  for (int i = 0; i < 100'000; ++i) {
    wide += "mov.b32 %z" + std::to_string(i) + ", 1;\nL" + std::to_string(i) + ":\n";
    if (i > 0) wide += "@%p1 bra L" + std::to_string(i - 1) + ";\n";
  }
  EXPECT_THAT(Refused(wide), testing::HasSubstr("registers and"));
}

TEST(Refusal, NamesTheFeature) {
  EXPECT_EQ(Refused("wgmma.fence.sync.aligned;"),
            "PTX line 9: PTX instruction 'wgmma.fence.sync.aligned' is not supported by the GPU interpreter");
  EXPECT_EQ(Refused("mbarrier.arrive.shared::cluster.b64 _, [%r1];"),
            "PTX line 9: a thread block cluster ('mbarrier.arrive.shared::cluster.b64') is not supported by the GPU "
            "interpreter");
  EXPECT_EQ(
      Refused("barrier.cluster.arrive.aligned;"),
      "PTX line 9: a thread block cluster ('barrier.cluster.arrive.aligned') is not supported by the GPU interpreter");
  EXPECT_EQ(Refused("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], %r3, [%r4];"),
            "PTX line 9: a thread block cluster ('cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
            "bytes') is not supported by the GPU interpreter");
  EXPECT_EQ(Refused("mov.u32 %r1, %nonsense;"),
            "PTX line 9: special register %nonsense ('mov.u32') is not supported by the GPU interpreter");
  EXPECT_EQ(Refused("call.uni cudaLaunchDevice, ();"),
            "PTX line 9: a call of 'cudaLaunchDevice', which is no part of the kernel's source, is not supported by "
            "the GPU interpreter");
  EXPECT_EQ(
      Refused("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4},{%r1,%r2,%r3,%r4},"
              "{%r1,%r2,%r3,%r4},{%r1,%r2,%r3,%r4}, %r5, 0;"),
      "PTX line 9: PTX instruction 'mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32' is not supported by the "
      "GPU interpreter");
  EXPECT_EQ(Refused("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];"),
            "PTX line 9: a tensor address ('cp.async.bulk.tensor.2d.global.shared::cta.bulk_group') is not "
            "supported by the GPU interpreter");
  EXPECT_EQ(Refused("shfl.bfly.b32 %r1, %r2, 1, 31;"),
            "PTX line 9: 'shfl.bfly.b32' (a warp operation without .sync) is not supported by the GPU interpreter");
  EXPECT_EQ(Refused(".loc 1 42 3\nvadd4.u32.u32.u32 %r1.b10, %r2, %r3, %r4;"),
            "PTX line 10: PTX instruction 'vadd4.u32.u32.u32' is not supported by the GPU interpreter");
}

TEST(Refusal, OfVariablesThatNoMemoryHolds) {
  for (const char* size : {"2555000000000000000", "[4294967296][4294967296", "300000000"}) {
    const std::string extent = size[0] == '[' ? std::string(size).substr(1) : size;
    const std::string text =
        ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 x[" + extent + "] = {1, 2};\n";
    EXPECT_THROW(Module::Parse(text), Error) << text;
  }
}

TEST(Refusal, NamesTheSourceLine) {
  const std::string ptx = Kernel(".loc 1 42 3\nwgmma.fence.sync.aligned;") + "\t.file\t1 \"/tmp/kernel.cu\"\n";
  EXPECT_EQ(MessageOf(ptx, KGRPO_ERROR_UNSUPPORTED),
            "kernel.cu:42: PTX instruction 'wgmma.fence.sync.aligned' is not supported by the GPU interpreter");
}

// All that docs/interpreter.md lists as refused.
TEST(Refusal, NamesInstructionAndLineOfEach) {
  for (const std::string body :
       {"isspacep.shared::cluster %p1, %rd1;", "mapa.shared::cluster.u32 %r1, %r2, %r3;",
        "ld.shared::cluster.u32 %r1, [%r2];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
        "getctarank.shared::cluster.u32 %r1, %r2;", "barrier.cluster.wait.aligned;",
        "mbarrier.try_wait.shared::cluster.b64 %p1, [%r1], %rd1;",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], %r2;",
        // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one instruction
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], %r2, "
        "[%r3], %rs1;",
        "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1, {%r1}];",
        "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 3;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1,%r2,%r3,%r4}, %rd1, %rd2, 1, 1, 1, 0, 0;",
        "wgmma.wait_group.sync.aligned 0;", "setmaxnreg.inc.sync.aligned.u32 240;",
        "tld4.r.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%rd1, {%r1,%r2}];", "sured.b.add.2d.u32.trap [%rd1, {%r1,%r2}], %r3;",
        "tex.level.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%rd1, {%r1,%r2}], %r3;",
        "tex.grad.1d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%rd1, {%r1}], {%r2}, {%r3};",
        "tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%rd1, %rd2, {%r1,%r2}];",
        "tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}|%p1, [%rd1, {%r1,%r2}];", "sust.p.2d.b32.trap [%rd1, {%r1,%r2}], {%r3};",
        "txq.width.b32 %r1, [%rd1];", "suq.width.b32 %r1, [%rd1];", "alloca.u64 %rd1, %rd2, 8;", "stacksave.u64 %rd1;",
        "atom.global.exch.b128 %rd1, [%rd2], %rd3;", "ld.global.b128 %rd1, [%rd2];",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4},{%r1,%r2},"
        "{%r1,%r2},{%r1,%r2,%r3,%r4}, %r5, 0;",
        "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r1,%r2},{%r1},{%r1},{%r1,%r2};",
        "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%rd1}, [%rd2], %r1;",
        "vadd.u32.u32.u32.sat %r1.b0, %r2, %r3, %r4;", "multimem.ld_reduce.global.add.f32 %r1, [%rd1];",
        "vote.ballot.b32 %r1, %p1;", "shfl.up.b32 %r1, %r2, 1, 0;", "tcgen05.fence::before_thread_sync;"}) {
    const std::string opcode = body.substr(0, body.find_first_of(" ;"));
    const std::string said =
        MessageOf(Kernel(".loc 1 42 3\n" + body) + ".file 1 \"/tmp/kernel.cu\"\n", KGRPO_ERROR_UNSUPPORTED);
    EXPECT_TRUE(said.starts_with("kernel.cu:42: ")) << body << "\n" << said;
    EXPECT_NE(said.find("'" + opcode + "'"), std::string::npos) << body << "\n" << said;
  }
  // A call of a missing function is refused by the function's name.
  for (const std::string function : {"malloc", "cudaLaunchDeviceV2", "cudaGetParameterBufferV2"})
    EXPECT_NE(Refused("call.uni " + function + ", ();").find("PTX line 9: a call of '" + function + "'"),
              std::string::npos);
}

// Of functions of headers, inlined in one another, it is the user's line.
TEST(Refusal, NamesTheUsersLineBehindHeaders) {
  const std::string ptx = Kernel(
                              ".loc 2 103 9, function_name $f0, inlined_at 1 11 3\n.loc 3 292 5, function_name $f1, "
                              "inlined_at 2 103 9\n.loc 3 190 23, function_name $f2, inlined_at 3 292 5\n"
                              "wgmma.fence.sync.aligned;") +
                          ".file 1 \"/tmp/kernel.cu\"\n.file 2 \"/cuda/include/one.h\"\n.file\t3 \"two.h\"\n";
  EXPECT_EQ(MessageOf(ptx, KGRPO_ERROR_UNSUPPORTED),
            "kernel.cu:11: PTX instruction 'wgmma.fence.sync.aligned' is not supported by the GPU interpreter");
}

TEST(Refusal, TextThatIsNoPtx) {
  EXPECT_EQ(Bad("int main() {}"), "PTX line 1: unexpected 'int'");
  EXPECT_EQ(Bad(std::string(kHead) + ".visible .entry k("), "PTX line 4: expected a name, found the end of the text");
  EXPECT_EQ(Refused("add.s32 %r1, %r99, 1;"),
            "PTX line 9: special register %r99 ('add.s32') is not supported by the GPU interpreter");
  EXPECT_EQ(Bad(Kernel("add.s32 %r1, {%r2,%r3}, 1;")), "PTX line 9: an operand of the wrong kind");
  EXPECT_EQ(Bad(Kernel("cvt.u64.u32 %rd1;")), "PTX line 9: an operand is missing");
  EXPECT_EQ(Bad(Kernel("bra nowhere;")), "PTX line 9: no label 'nowhere'");
  EXPECT_EQ(Bad(Kernel("@%p9 bra x;")), "PTX line 9: unknown register '%p9'");
  EXPECT_EQ(Bad(Kernel("mov.u32 %r1, 12z;")), "PTX line 9: '12z' is not a number");
}

// Another kernel of the module runs; the refused one, when it is launched, says why not.
TEST(Refusal, OfAKernelThatIsNotLaunched) {
  Bench bench(PtxText{std::string(kHead) +
                      ".visible .entry other()\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n{\n"
                      "tex.grad.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%rd1, {%r1,%r2}], {%r1,%r2}, {%r1,%r2};\n}\nret;\n}\n"
                      ".visible .entry cluster()\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{\nret;\n}\n" +
                      Kernel("mov.u32 %r1, 5;").substr(sizeof kHead - 1)});
  EXPECT_CLEAN(bench.Run("k", Config({1}, {32})));
  const LaunchResult refused = bench.Run("other", Config({1}, {32}));
  ASSERT_EQ(refused.findings.size(), 1u);
  EXPECT_EQ(refused.findings[0].code, FindingCode::kUnsupported);
  EXPECT_EQ(refused.findings[0].message,
            "The simulated device cannot run it: PTX line 9: a mipmapped texture ('tex.grad.2d.v4.f32.f32') is not "
            "supported by the GPU interpreter");
  EXPECT_EQ(bench.Run("cluster", Config({1}, {32})).findings.at(0).code, FindingCode::kUnsupported);
}

// However deep a text nests what may hold its like: the parser's stack is the host's.
TEST(Refusal, TextThatNestsWithoutEnd) {
  const auto many = [](const std::string& piece) {
    std::string text;
    for (int i = 0; i < 200000; ++i) text += piece;
    return text;
  };
  const std::string deep = "PTX line 9: nested more than 256 deep";
  EXPECT_EQ(Bad(Kernel("and.pred %p1, %p2, " + many("!") + "%p3;")), deep);
  EXPECT_EQ(Bad(Kernel("mov.b64 " + many("{") + ";")), deep);
  EXPECT_EQ(Bad(Kernel(many("{"))), deep);
  EXPECT_EQ(Bad(std::string(kHead) + ".global .b8 g[4] = " + many("{") + ";"), "PTX line 4: nested more than 256 deep");
}

// Whatever a byte is changed to, the answer is a module or an error.
TEST(Refusal, DamagedTextNeverCrashes) {
  const std::string whole = ReadPtx("basic").substr(0, 20000);
  int parsed = 0, refused = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    std::string text = whole;
    const auto at = static_cast<size_t>((Noise(3 * i) + 1) / 2 * static_cast<float>(text.size() - 1));
    const auto kind = i % 3;
    if (kind == 0) text[at] = static_cast<char>(Noise(3 * i + 1) * 127);
    if (kind == 1) text.erase(at, 1 + i % 40);
    if (kind == 2) text.resize(at);
    try {
      Module::Parse(text);
      ++parsed;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_EQ(parsed + refused, 400);
}

}  // namespace
}  // namespace kgrpo::simt
