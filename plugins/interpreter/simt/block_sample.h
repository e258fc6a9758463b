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

// The upper median; 0 where there are no values.
double Median(std::vector<uint64_t> values);

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_BLOCK_SAMPLE_H_
