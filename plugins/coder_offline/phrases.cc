#include "coder_offline/phrases.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace kgrpo::coder_offline {
namespace {

using enum Technique;

// By technique: its phrases, separated by |. A number behind = is the phrase's own value.
constexpr std::pair<Technique, std::string_view> kPhrases[] = {
    {kTile,
     "tile*|tiling|shared memory|shared mem|smem|shared tile*|shared memory tile*|shared memory tiling|"
     "tile* shared memory|tiling shared memory|block tile*|block tiling|cache block*|loop block*|blocked loop*|"
     "stage* shared memory|stage* tile* shared memory|cache tile* shared memory|load* tile* shared memory|"
     "scratchpad"},
    {kRegister,
     "register block*|register tile*|register tiling|block* registers|tile* registers|micro tile*|microtile*|"
     "thread coarsen*|coarsen*|coarsen* threads|thread tile*|thread tiling|outputs per thread|results per thread|"
     "rows per thread|multiple outputs per thread|several outputs per thread|more work per thread|"
     "accumulate* registers"},
    {kVectorize,
     "vector*|vectori* load*|vectori* memory access*|vector load*|vector width|float4=4|float4 load*=4|"
     "float4 vector*=4|float4 vectori* load*=4|vectori* float4=4|vectori* load* float4=4|vectori* float4 load*=4|"
     "int4=4|int4 load*=4|128 bit load*=4|float2=2|float2 load*=2|vectori* float2=2|vectori* load* float2=2|"
     "64 bit load*=2|wide load*|wider load*"},
    {kUnroll, "unroll*|loop unroll*|unroll* loop*|unroll* inner loop*|pragma unroll|instruction level parallelism|ilp"},
    {kGridStride,
     "grid stride|grid stride loop*|gridstride|grid strided loop*|persistent threads|persistent kernel*|"
     "fewer blocks"},
    {kCoalesce,
     "coalesc*|coalesc* access*|coalesc* load*|coalesc* memory access*|coalesc* global memory|"
     "coalesc* loop interchange|interchange loop*|loop interchange|swap loop*|swap indices|swap thread indices|"
     "reorder loop*|contiguous access*|consecutive addresses|adjacent threads|"
     "neighbouring threads|let neighbouring threads"},
    {kFuse, "fuse*|fusing|fusion|fuse* kernel*|fuse* passes|kernel fusion|merge kernel*|combine kernel*|single kernel"},
    {kShuffle,
     "shuffle*|shuffling|shfl*|warp shuffle*|warp shuffle* reduc*|warp shuffle* scan*|warp level reduc*|"
     "warp level primitive*|warp level|warp reduc*|warp per row|one warp per row|shuffle* reduc*"},
    {kCooperate,
     "block per row|one block per row|cooperat*|cooperative block*|block reduc*|block level reduc*|"
     "block wide reduc*|block cooperat*|parallel reduc*|tree reduc*|parallelize row*|split row*|whole block|"
     "block row*"},
    {kOnePass,
     "one pass|single pass|online|online softmax|single pass online|one pass online|two passes one|passes one|"
     "merge passes|combine passes|fewer passes|last block*"},
    {kRestrict,
     "restrict|read only|readonly|read only restrict|read only cache|restrict read only|const restrict|"
     "restrict pointers|ldg|no alias*"},
    {kBlock,
     "block size|blocksize|block dim*|blockdim|threads per block|threads block|block* threads|thread block size|"
     "occupancy|larger block*=512|bigger block*=512|smaller block*=128|larger block size=512|"
     "smaller block size=128"},
    {kHoist,
     "hoist*|hoist* invariant*|loop invariant*|hoist* loop invariant*|precompute*|compute once|reuse computed|"
     "common subexpression*|move out loop"},
    {kBranchless,
     "branchless|divergen*|remove* divergen*|reduce divergen*|avoid* divergen*|eliminat* divergen*|"
     "warp divergence|remove* warp divergence|avoid* warp divergence|reduce warp divergence|remove* branch*|"
     "avoid* branch*|eliminat* branch*|without branch*|predicat*|sequential addressing"},
    {kPad,
     "pad*|pad* shared memory|pad* shared|pad* shared tile*|pad* tile*|padding shared memory|"
     "pad* against bank conflict*|bank conflict*|avoid* bank conflict*|remove* bank conflict*|"
     "avoid* shared memory bank conflict*|shared memory bank conflict*|no bank conflict*|without bank conflict*|"
     "lay out shared memory without bank conflict*"},
    {kFast,
     "fast intrinsic*|intrinsic*|fast math|fast math intrinsic*|fast exp*|approximate*|approximate intrinsic*|"
     "special function unit*"},
    {kHalf, "half precision|half|half2|fp16|float16|lower precision|reduced precision|16 bit float*"},
    {kPrivatize,
     "privati*|privati* histogram*|privati* shared memory|privati* histogram* shared memory|private histogram*|"
     "private cop*|private counter*|shared memory histogram*|shared histogram*|shared memory atomic*|"
     "shared atomic*|local histogram*|avoid* global atomic*|fewer atomic*|reduce contention|add up within*|"
     "add up within block* before atomic* global memory|give block* more elements"},
    {kPrefetch,
     "prefetch*|prefetch* next tile*|double buffer*|software pipelin*|pipelin*|next tile*|overlap load* compute"},
    {kLaunchBounds, "launch bound*|limit register*"},
    {kNarrow,
     "32 bit ind*=32|32 bit integer*=32|32 bit offset*=32|32 bit arithmetic=32|int32 ind*=32|int ind*=32|"
     "narrow* ind*|64 bit ind*=32"},
};

}  // namespace

std::span<const Phrase> Phrases() {
  static const std::vector<Phrase> kAll = [] {
    std::vector<Phrase> all;
    for (auto [technique, phrases] : kPhrases) {
      while (!phrases.empty()) {
        const std::string_view phrase = phrases.substr(0, phrases.find('|'));
        phrases.remove_prefix(std::min(phrases.size(), phrase.size() + 1));
        const std::string_view words = phrase.substr(0, phrase.find('='));
        all.push_back({words, technique});
        if (words != phrase)
          std::from_chars(words.data() + words.size() + 1, phrase.data() + phrase.size(), all.back().value);
      }
    }
    return all;
  }();
  return kAll;
}

}  // namespace kgrpo::coder_offline
