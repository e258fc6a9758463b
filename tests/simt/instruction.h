// Runs one PTX instruction as a kernel on given bits. Used by tests of the arithmetic.
#ifndef KGRPO_TESTS_SIMT_INSTRUCTION_H_
#define KGRPO_TESTS_SIMT_INSTRUCTION_H_

#include <array>
#include <string>
#include <vector>

#include "harness.h"
#include "simt/state/opcode.h"

namespace kgrpo::simt {

using Operands = std::array<uint64_t, 3>;

// The text of kernel "k": thread i applies the instruction to the words from 3i on and stores one word (for setp 1 or
// 0). `count`: the number of operands. The third operand of slct has its second type.
inline std::string KernelOf(const std::string& text, int count) {
  const Opcode op(text);
  const uint32_t to = op.base == "setp" ? 8 : TypeBytes(op.types[0]);
  const uint32_t from = TypeBytes(op.types[op.base == "cvt" ? 1 : 0]);
  auto name = [](const char* letter, uint32_t bytes) { return "%" + std::string(letter) + std::to_string(8 * bytes); };
  std::string code =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
      ".reg .pred %p; .reg .b16 %a16, %b16, %c16, %d16; .reg .b32 %a32, %b32, %c32, %d32, %i;\n"
      ".reg .b64 %a64, %b64, %c64, %d64, %w, %x<4>;\nld.param.u64 %x0, [in];\nld.param.u64 %x1, [out];\n"
      "mov.u32 %i, %tid.x;\nmul.wide.u32 %x2, %i, 24;\nadd.s64 %x0, %x0, %x2;\nmul.wide.u32 %x3, %i, 8;\n"
      "add.s64 %x1, %x1, %x3;\n";
  std::string operands;
  for (int i = 0; i < count; ++i) {
    const char letter[] = {static_cast<char>('a' + i), 0};
    const uint32_t bytes = op.base == "slct" && i == 2 ? TypeBytes(op.types[1]) : from;
    code += "ld.global.u64 %w, [%x0+" + std::to_string(8 * i) + "];\n";
    code += bytes == 8 ? "mov.b64" : "cvt.u" + std::to_string(8 * bytes) + ".u64";
    code += " " + name(letter, bytes) + ", %w;\n";
    operands += ", " + name(letter, bytes);
  }
  if (op.base == "setp") {
    code += text + " %p" + operands + ";\nselp.u64 %d64, 1, 0, %p;\n";
  } else {
    code += text + " " + name("d", to) + operands + ";\n";
    if (to != 8) code += "cvt.u64.u" + std::to_string(8 * to) + " %d64, " + name("d", to) + ";\n";
  }
  return code + "st.global.u64 [%x1], %d64;\nret;\n}\n";
}

// Runs `kernel` of the module over at most 1024 sets of operands.
inline std::vector<uint64_t> Apply(Bench& bench, const std::string& kernel, const std::vector<Operands>& operands) {
  std::vector<uint64_t> in;
  for (const Operands& set : operands) in.insert(in.end(), set.begin(), set.end());
  const auto out = bench.Reserve<uint64_t>(operands.size(), "out");
  EXPECT_CLEAN(bench.Run(kernel, Config({1}, {static_cast<uint32_t>(operands.size())}), bench.Upload(in, "in"), out));
  return bench.Download<uint64_t>(out, operands.size());
}
inline std::vector<uint64_t> Apply(const std::string& text, int count, const std::vector<Operands>& operands) {
  Bench bench(PtxText{KernelOf(text, count)});
  return Apply(bench, "k", operands);
}

}  // namespace kgrpo::simt
#endif  // KGRPO_TESTS_SIMT_INSTRUCTION_H_
