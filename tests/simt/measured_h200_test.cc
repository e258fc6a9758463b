// Single results against those that an NVIDIA H200 gave (measured_h200.csv, from bench/sim_vs_gpu): instructions by PTX
// written here, functions of CUDA's library by kernels/measured.cu.
#include <fstream>
#include <map>
#include <sstream>

#include "evaluator_sim/simt/opcode.h"
#include "harness.h"

namespace kgrpo::simt {
namespace {

struct Row {
  uint64_t a = 0, b = 0, result = 0;
};

std::map<std::string, std::vector<Row>> ReadRows() {
  std::ifstream file(KGRPO_SIMT_MEASURED);
  EXPECT_TRUE(file.good()) << KGRPO_SIMT_MEASURED;
  std::map<std::string, std::vector<Row>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::stringstream fields(line);
    std::string what, a, b, result;
    std::getline(std::getline(std::getline(std::getline(fields, what, ','), a, ','), b, ','), result, ',');
    rows[what].push_back({std::stoull(a, nullptr, 16), std::stoull(b, nullptr, 16), std::stoull(result, nullptr, 16)});
  }
  return rows;
}

// A kernel whose thread i applies the instruction to words 2i and 2i + 1 and stores a word.
std::string KernelOf(const std::string& text) {
  const Opcode op(text);
  const bool compares = op.base == "setp";
  const uint32_t to = TypeBytes(op.types[0]), from = TypeBytes(op.types[op.type_count > 1 ? 1 : 0]);
  auto name = [](char letter, uint32_t bytes) { return "%" + std::string(1, letter) + std::to_string(8 * bytes); };
  auto narrow = [&](char letter, int word) {
    return (from == 8 ? "mov.b64" : "cvt.u" + std::to_string(8 * from) + ".u64") + " " + name(letter, from) + ", %w" +
           std::to_string(word) + ";\n";
  };
  std::string code =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
      ".reg .pred %p; .reg .b16 %a16, %b16, %d16; .reg .b32 %a32, %b32, %d32, %i; .reg .b64 %a64, %b64, %d64;\n"
      ".reg .b64 %w<2>, %x<4>;\nld.param.u64 %x0, [in];\nld.param.u64 %x1, [out];\nmov.u32 %i, %tid.x;\n"
      "mul.wide.u32 %x2, %i, 16;\nadd.s64 %x0, %x0, %x2;\nmul.wide.u32 %x3, %i, 8;\nadd.s64 %x1, %x1, %x3;\n"
      "ld.global.u64 %w0, [%x0];\nld.global.u64 %w1, [%x0+8];\n" +
      narrow('a', 0) + narrow('b', 1);
  if (compares) {
    code += text + " %p, " + name('a', from) + ", " + name('b', from) + ";\nselp.u64 %d64, 1, 0, %p;\n";
  } else {
    code += text + " " + name('d', to) + ", " + name('a', from) + ";\n";
    if (to != 8) code += "cvt.u64.u" + std::to_string(8 * to) + " %d64, " + name('d', to) + ";\n";
  }
  return code + "st.global.u64 [%x1], %d64;\nret;\n}\n";
}

std::vector<uint64_t> Interpret(Bench& bench, const std::string& kernel, const std::vector<Row>& rows) {
  std::vector<uint64_t> in;
  for (const Row& row : rows) in.insert(in.end(), {row.a, row.b});
  const auto out = bench.Reserve<uint64_t>(rows.size(), "out");
  EXPECT_CLEAN(bench.Run(kernel, Config({1}, {static_cast<uint32_t>(rows.size())}), bench.Upload(in, "in"), out));
  return bench.Download<uint64_t>(out, rows.size());
}

// Every row whose name has a dot (instructions) or none (functions); how many names.
size_t CompareRows(bool instructions) {
  size_t compared = 0;
  for (const auto& [what, rows] : ReadRows()) {
    if ((what.find('.') != std::string::npos) != instructions) continue;
    ++compared;
    const size_t space = what.find(' ');
    Bench bench(instructions ? Ptx{KernelOf(what)}
                             : Ptx{ReadPtx(space == std::string::npos ? "measured" : "measured_ftz")});
    const std::vector<uint64_t> results = Interpret(bench, instructions ? "k" : what.substr(0, space) + "_of", rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(results[i], rows[i].result) << what << " of " << std::hex << rows[i].a << ", " << rows[i].b << ": "
                                            << results[i] << ", an H200 " << rows[i].result;
    }
  }
  return compared;
}

TEST(MeasuredH200, InstructionsGiveTheSameBits) {
  EXPECT_EQ(CompareRows(true), 50u);
}

// Also where they start from an approximation: the library's next steps are the same, and make it exact enough.
TEST(MeasuredH200, FunctionsOfTheLibraryGiveTheSameBits) {
  EXPECT_EQ(CompareRows(false), 9u);
}

}  // namespace
}  // namespace kgrpo::simt
