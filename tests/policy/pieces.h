// Compares the pieces of gradients that a backward pass reports with the final gradients. Used by
// backward_pieces_test.cc and gpu_scorer_test.cc.
#ifndef KGRPO_TESTS_POLICY_PIECES_H_
#define KGRPO_TESTS_POLICY_PIECES_H_

#include "golden.h"
#include "test.h"

namespace kgrpo::policy {

class ToldPieces {
 public:
  void Add(const at::Tensor& piece) { told_.emplace_back(piece.storage_offset(), ToDoubles(piece)); }

  // The offset of each piece, in the order of the reports.
  std::vector<int64_t> Begins() const {
    std::vector<int64_t> begins;
    for (const auto& [begin, values] : told_) begins.push_back(begin);
    return begins;
  }

  // Fails the test unless every element of `buffer` was reported once, with its final value.
  void ExpectAllOnceAndFinal(const at::Tensor& buffer) const {
    const std::vector<double> final = ToDoubles(buffer);
    std::vector<int> times(final.size(), 0);
    for (const auto& [begin, values] : told_) {
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t at = static_cast<size_t>(begin - buffer.storage_offset()) + i;
        ++times.at(at);
        ASSERT_EQ(values[i], final[at]) << "element " << at << " changed after it was told";
      }
    }
    EXPECT_TRUE(std::ranges::all_of(times, [](int one) { return one == 1; }));
  }
  size_t count() const { return told_.size(); }

 private:
  std::vector<std::pair<int64_t, std::vector<double>>> told_;  // begin, values
};

}  // namespace kgrpo::policy

#endif  // KGRPO_TESTS_POLICY_PIECES_H_
