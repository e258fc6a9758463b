// Machine code of PTX instructions on a GPU: how many machine instructions, on which pipe, with which latency. PTX is
// not machine code: moves and address conversions vanish, an exact division is a subroutine. The figures are what ptxas
// 13 emits for sm_90.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simt/state/opcode.h"
#include "simt/state/program.h"

namespace kgrpo::simt {

enum class LatencyClass : uint8_t {
  kNone,
  kAlu,
  kSpecial,
  kFp64,
  kTensor,
  kShared,
  kShuffle,
  kGlobal,
  kLocal,
  kConstant,
  kAtomic,
  kBarrier
};

// Where the price of instructions of this base was measured, or how it was estimated. Empty: it has no price, and
// neither has an instruction that the interpreter learns later, until it has a row.
std::string_view PriceSource(std::string_view base);

Cost CostOf(const Opcode& opcode);

// The cost of a product of matrices with so many operations, by type and shape: see kProducts.
void PriceProduct(const Opcode& opcode, uint32_t m, uint32_t k, double operations, Cost* cost);

// Adds to `pipes` the use by `times` instructions of this cost. Roots, exponentials and the like in single precision
// also use the pipes of the instructions that they consist of.
void AddPipes(const Cost& cost, double times, std::array<double, static_cast<size_t>(Pipe::kCount)>& pipes);

// True for a shuffle: it passes through the data path of shared memory without accessing any.
inline bool Exchanges(const Cost& cost) {
  return cost.pipe == Pipe::kMemory && static_cast<LatencyClass>(cost.latency) == LatencyClass::kShuffle;
}

}  // namespace kgrpo::simt
