// Single results against those that an NVIDIA H200 gave (measured_h200.csv, from bench/sim_vs_gpu): instructions alone,
// and functions of CUDA's library by kernels/measured.cu.
#include <fstream>
#include <map>
#include <sstream>

#include "instruction.h"

namespace kgrpo::simt {
namespace {

struct Rows {
  std::vector<Operands> operands;
  std::vector<uint64_t> results;
};

std::map<std::string, Rows> ReadRows() {
  std::ifstream file(KGRPO_SIMT_MEASURED);
  EXPECT_TRUE(file.good()) << KGRPO_SIMT_MEASURED;
  std::map<std::string, Rows> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::stringstream fields(line);
    std::array<std::string, 4> field;  // what, a, b, result
    for (std::string& text : field) std::getline(fields, text, ',');
    auto bits = [&](size_t i) -> uint64_t { return std::stoull(field[i], nullptr, 16); };
    rows[field[0]].operands.push_back({bits(1), bits(2), 0});
    rows[field[0]].results.push_back(bits(3));
  }
  return rows;
}

// Every row whose name has a dot (instructions) or none (functions); how many names.
size_t CompareRows(bool instructions) {
  size_t compared = 0;
  for (const auto& [what, rows] : ReadRows()) {
    if ((what.find('.') != std::string::npos) != instructions) continue;
    ++compared;
    std::vector<uint64_t> results;
    if (instructions) {
      results = Apply(what, what.starts_with("setp") ? 2 : 1, rows.operands);
    } else {
      const size_t space = what.find(' ');
      Bench bench(space == std::string::npos ? "measured" : "measured_ftz");
      results = Apply(bench, what.substr(0, space) + "_of", rows.operands);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i], rows.results[i])
          << what << " of " << std::hex << rows.operands[i][0] << ", " << rows.operands[i][1] << ": " << results[i]
          << ", an H200 " << rows.results[i];
    }
  }
  return compared;
}

TEST(MeasuredH200, InstructionsGiveTheSameBits) { EXPECT_EQ(CompareRows(true), 50u); }

// Also where they start from an approximation: the library's next steps are the same, and make it exact enough.
TEST(MeasuredH200, FunctionsOfTheLibraryGiveTheSameBits) { EXPECT_EQ(CompareRows(false), 9u); }

}  // namespace
}  // namespace kgrpo::simt
