// Measurements of a counted launch: the inputs of the time model. Sums over the sampled blocks unless said otherwise.
#pragma once

#include <array>    // pipes
#include <cstddef>  // sizes
#include <cstdint>  // counts
#include <string>   // array names
#include <vector>   // arrays, blocks

namespace kgrpo::simt {

// The execution pipes of a streaming multiprocessor that the model tells apart.
enum class Pipe {
  kFp32,  // float add, multiply, fma
  kInt,   // integer add, logic, shift, compare, select, integer multiply-add
  kHalf,  // half2, bfloat162
  kFp64,
  kSpecial,  // ex2, lg2, rcp, rsqrt, sin, cos, tanh; conversions
  kMemory,   // loads, stores, atomics, shuffles: the load/store unit's instruction queue
  kTensor,   // mma, wmma
  kControl,  // branches, barriers, votes
  kSerial,   // in cycles, what a multiprocessor does for one warp after the other: fences, sleeps, splits of a warp
  kCount
};
const char* PipeName(Pipe pipe);

// Bins of reuse distances between two touches of the same 64 bytes: 2^(i - 1) to 2^i lines that the block fetches or
// writes.
inline constexpr size_t kReuseDistances = 24;
using ByDistance = std::array<double, kReuseDistances>;

// Global memory traffic of one array (allocation).
struct ArrayTraffic {
  std::string name;
  uint64_t address = 0;                 // of the allocation
  uint64_t bytes = 0;                   // its size
  uint64_t low = UINT64_MAX, high = 0;  // the counted blocks touch bytes in [low, high)
  double load_requests = 0;             // warp instructions
  double load_sectors = 0;              // 32-byte sectors asked of the L1
  double load_ideal_sectors = 0;        // sectors that the requested bytes would fill without gaps
  // The part of load_sectors that an L1 of kL1Shares[i] times Counts::l1_share bytes per block passes on to the L2.
  std::array<double, 3> l1_miss_sectors{};
  double store_requests = 0;
  double store_sectors = 0;  // sent to the L2, after the L1 has combined stores that follow one another
  double store_ideal_sectors = 0;
  double store_partial_sectors = 0;  // of store_sectors, those that arrive filled only in part
  double store_partial_lines = 0;    // 128-byte lines with such a sector, as often as they are sent
  double atomic_requests = 0;
  double atomic_sectors = 0;
  double unique_load_sectors = 0;   // sum over blocks of the distinct sectors a block loads
  double unique_store_sectors = 0;  // sum over blocks of the distinct sectors a block writes
  double unique_store_bytes = 0;    // the same in bytes
  double whole_store_sectors = 0;   // of unique_store_sectors, those that the block fills
  double unique_load_pairs = 0;     // the same in 64 bytes, which the L2 fetches together
  ByDistance load_again{};          // repeated fetches of such a unit by a block, after the L1 has lost it
  ByDistance store_again{};         // repeated writes to one by a block
  double all_load_sectors = 0;      // distinct over all sampled blocks together
  double all_store_sectors = 0;
};

// Latency terms that an instruction's result may wait for.
enum class LatencyTerm {
  kAlu,
  kFp64,
  kSpecial,
  kTensor,
  kShared,
  kShuffle,
  kConstant,
  kL1,
  kL2,
  kDram,
  kAtomic,
  kBarrier,
  kTransfer,  // of each sector that the warp moves ahead, while all warps of its multiprocessor do the same
  kCount
};
inline constexpr auto kLatencyTerms = static_cast<size_t>(LatencyTerm::kCount);

// Latencies in cycles, of instructions that depend on one another.
struct Latencies {
  double alu = 4, fp64 = 8, special = 18, tensor = 33, shared = 29, shuffle = 24, constant = 8, l1 = 39, l2 = 270,
         dram = 620, atomic = 330, barrier = 25;
  double transfer = 0;      // of a launch: see LatenciesOf in time_model.h
  double nanosecond = 1.9;  // the same, of a sleep
  std::array<double, kLatencyTerms> ByTerm() const {
    return {alu, fp64, special, tensor, shared, shuffle, constant, l1, l2, dram, atomic, barrier, transfer};
  }
};

// The longest chain of dependent instructions by latency term, so that a chain that was found once can be timed for
// other latencies.
struct LatencyPath {
  double issue = 0;  // cycles that its instructions take to issue, and that no latency explains
  std::array<double, kLatencyTerms> steps{};  // number of waits for each latency
  double Cycles(const Latencies& latencies) const {
    double cycles = issue;
    const auto by_term = latencies.ByTerm();
    for (size_t i = 0; i < kLatencyTerms; ++i) cycles += steps[i] * by_term[i];
    return cycles;
  }
  void Add(const LatencyPath& other, double times) {
    issue += times * other.issue;
    for (size_t i = 0; i < kLatencyTerms; ++i) steps[i] += times * other.steps[i];
  }
};

// The L1 sizes for which misses are counted, in units of a block's even share.
inline constexpr std::array<double, 3> kL1Shares = {0.5, 1, 2};

// Latency of a typical warp of one sampled block: its instructions in the order of a list scheduler, each waiting for
// its operands.
struct BlockLatency {
  LatencyPath hit;          // from start to end, every L1 miss served by the L2
  LatencyPath miss;         // every L1 miss served by DRAM
  LatencyPath fetched;      // as `hit`, if all that the warp loads ahead had arrived already
  double instructions = 0;  // issued by the warp
  // The part of what the warp loads beyond the L1 that it asks for ahead: by asynchronous copies, or by loads that are
  // stored to shared memory only after an earlier tile was read. Less if there are few such tiles.
  double ahead = 0;
  double weight = 1;  // blocks of the launch that it stands for, relative to the others'
  // Adds `times` such chains, in which DRAM serves the fraction `from_dram` of the L1 misses.
  void AddTo(LatencyPath* sum, double times, double from_dram) const {
    sum->Add(hit, times * (1 - from_dram));
    sum->Add(miss, times * from_dram);
  }
};

// Demands of instructions on the device. The same figures as in Counts, but told apart by instruction or by source
// line.
struct Demand {
  double issued = 0;
  std::array<double, static_cast<size_t>(Pipe::kCount)> pipe{};
  double tensor_flops = 0;
  double requests = 0, sectors = 0, ideal_sectors = 0;  // global loads and stores
  double l1_wavefronts = 0;
  double l2_sectors = 0;  // stores, atomics, and loads that a block's even share of the L1 does not hold
  double local_sectors = 0;
  double shared_requests = 0, shared_wavefronts = 0, shared_ideal_wavefronts = 0;
  double shared_atomic_wavefronts = 0;
  double exchange_wavefronts = 0;
  double atomic_operations = 0;
  double chain = 0;  // cycles of the longest chains of the typical warps

  Demand& operator+=(const Demand& other);
  Demand& operator*=(double factor);
};

struct LineDemand : Demand {
  std::string file;  // as the compiler names it; "" and line 0 where it says nothing
  int line = 0;
};

// Values of Counts::busiest_atomic_turns if fewer atomics reached the L2: the inputs of advice.
struct FewerAtomicTurns {
  double by_warp = 0;     // if the lanes of a warp that meet at one address added up first
  double by_block = 0;    // if all that a block adds to one address were added up first
  double of_a_block = 0;  // the part of by_block that each block adds, where all blocks meet
};

struct Counts {
  std::string kernel;
  uint64_t grid_blocks = 0;
  uint64_t sampled_blocks = 0;
  // If blocks differ: the work of the busiest multiprocessor, in units of the mean block. Else 0.
  double busiest_blocks = 0;
  uint32_t threads_per_block = 0;
  uint32_t warps_per_block = 0;
  double issued = 0;               // warp instructions as the GPU's own code would have them (see cost.h)
  double thread_instructions = 0;  // the same, weighted by active lanes
  std::array<double, static_cast<size_t>(Pipe::kCount)> pipe{};  // warp instructions by pipe
  double tensor_flops = 0;

  std::vector<ArrayTraffic> arrays;  // in order of addresses
  double l1_share = 0;               // bytes of L1 a block
  double l1_wavefronts = 0;          // cycles of the L1's tag stage: 128-byte lines touched per request
  double local_sectors = 0;          // spilled or indexed local arrays: what they send to the L2 and fetch from there
  double local_lines = 0;            // of these arrays, as l1_wavefronts: lanes share a line at the same index only
  double local_partial_lines = 0, local_partial_sectors = 0;  // as store_partial_lines and store_partial_sectors
  double local_bytes = 0;                                     // of a thread
  double constant_cycles = 0;  // of constant memory, for the words beyond the first of each request
  double waited_cycles = 0;    // of the launch: its longest chain of warps that wait for one another (Waits)
  double unpriced = 0;         // of `issued`: instructions without a price (cost.h)
  int unpriced_line = 0;       // the source line of one of them
  double shared_requests = 0;
  double shared_wavefronts = 0;               // cycles of shared memory, with bank conflicts
  double shared_ideal_wavefronts = 0;         // without
  double merged_loads = 0;                    // shared loads that ptxas merges into another's vector load
  double shared_atomic_wavefronts = 0;        // with same-address serialisation
  double shared_atomic_ideal_wavefronts = 0;  // had lanes at one address added up first
  double exchange_wavefronts = 0;       // shuffles, and reads of threadIdx: they pass through shared memory's data path
  double global_atomic_operations = 0;  // 32-byte sectors that atomic instructions touch
  // Turns of the busiest atomic unit of the L2, extrapolated to the whole grid. In a turn, every address of a sector is
  // served once.
  double busiest_atomic_turns = 0;
  FewerAtomicTurns fewer_atomic_turns;
  double atomic_operations_by_block = 0;  // global_atomic_operations if each block added up first
  double barriers = 0;                    // warp arrivals
  double divergent_branches = 0;          // branches that split a warp
  double branches = 0;
  std::vector<BlockLatency> latency;  // one a sampled block
  std::vector<double> block_issued;   // issued, by sampled block: how uneven the work is
  std::vector<LineDemand> lines;      // by file and line

  // Multiplies all sums by `factor`, for counts that represent more work than they include.
  void Scale(double factor);
  // Adds the counts of other blocks of the same launch. Both must already be scaled to all the blocks that they
  // represent.
  void Add(const Counts& other);
};

}  // namespace kgrpo::simt
