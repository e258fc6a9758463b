// Chooses blocks of a large grid that represent all of them. Used by launches that run a part of their blocks.
#pragma once

#include <cstdint>
#include <vector>

namespace kgrpo::simt {

// `count` of `blocks` by their numbers, in order: spread evenly and without regard to any period of the grid. All of
// them where there are no more.
std::vector<uint64_t> SampleBlocks(uint64_t blocks, uint32_t count, uint64_t seed);

// Enlarges `*sample`, which SampleBlocks has chosen with that seed, up to eight times, within a budget of some ten
// milliseconds estimated from the `work` of its blocks (warp instructions). Returns the added ones, in order.
std::vector<uint64_t> ExtendSample(uint64_t blocks, uint64_t seed, const std::vector<uint64_t>& work,
                                   std::vector<uint64_t>* sample);

// Blocks that are alike, and those of them that are counted.
struct Stratum {
  uint64_t blocks = 0;            // number of blocks that the stratum represents
  std::vector<uint64_t> counted;  // by number, in order
  // One block's counts times this are its share of the stratum's.
  double weight = 1;
};

// True if a sample represents all blocks, by the known work of each and, if known, by its class
// (ClassByBlock; else empty).
bool StandsForAll(const std::vector<uint64_t>& sample, const std::vector<uint64_t>& work,
                  const std::vector<uint32_t>& classes);

// Partitions the blocks into groups of about equal work and, if there are few classes, equal decisions. The block with
// most work of each group is always counted; a small group is counted whole.
// The seed chooses among blocks of equal work.
std::vector<Stratum> Stratify(const std::vector<uint64_t>& work, const std::vector<uint32_t>& classes,
                              uint64_t seed = 0);

// The work of the busiest multiprocessor, when each takes the next block as it finishes one, divided by
// what a block does on average; 0 where all blocks do about the same.
double BusiestBlocks(const std::vector<uint64_t>& work, uint32_t multiprocessors);

}  // namespace kgrpo::simt
