// Which blocks of a large grid stand for all of them. Used by launches that run a part of their blocks.
#ifndef KGRPO_INTERPRETER_SIMT_BLOCK_SAMPLE_H_
#define KGRPO_INTERPRETER_SIMT_BLOCK_SAMPLE_H_

#include <cstdint>
#include <vector>

namespace kgrpo::simt {

// `count` of `blocks` by their numbers, in order: spread evenly and without regard to any period of the grid. All of
// them where there are no more.
std::vector<uint64_t> SampleBlocks(uint64_t blocks, uint32_t count, uint64_t seed);

// Makes `*sample`, which SampleBlocks has chosen with that seed, up to eight times as large, as far as some ten
// milliseconds go by the `work` of its blocks (warp instructions). Returns the added ones, in order.
std::vector<uint64_t> ExtendSample(uint64_t blocks, uint64_t seed, const std::vector<uint64_t>& work,
                                   std::vector<uint64_t>* sample);

// Blocks that are alike, and those of them that are counted.
struct Stratum {
  uint64_t blocks = 0;            // how many they stand for
  std::vector<uint64_t> counted;  // by number, in order
  // One block's counts times this are its share of the stratum's.
  double weight = 1;
};

// True if a sample represents all blocks, by the known work of each and, if known, by its class
// (ClassByBlock; else empty).
bool StandsForAll(const std::vector<uint64_t>& sample, const std::vector<uint64_t>& work,
                  const std::vector<uint32_t>& classes);

// Groups of blocks that do about as much, and by the same decisions where there are few classes; together they hold
// all. The one that does most is always counted; the whole group is where it is small.
std::vector<Stratum> Stratify(const std::vector<uint64_t>& work, const std::vector<uint32_t>& classes);

// The work of the busiest multiprocessor, when each takes the next block as it finishes one, divided by
// what a block does on average; 0 where all blocks do about the same.
double BusiestBlocks(const std::vector<uint64_t>& work, uint32_t multiprocessors);

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_BLOCK_SAMPLE_H_
