// A kernel decoded for the interpreter: straight arrays of instructions, each with its handler. Made by lowering.cc,
// run by the scheduler in run_grid.cc.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "simt/ptx/ptx_syntax.h"
#include "simt/state/control_flow.h"
#include "simt/state/counts.h"
#include "simt/state/unset_uses.h"

namespace kgrpo::simt {

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

// The bits of a mask that are set, the lowest first: for (const int lane : EachBit(mask)).
struct EachBit {
  explicit EachBit(uint32_t mask) : left(mask) {}
  EachBit begin() const { return *this; }
  EachBit end() const { return EachBit(0); }
  int operator*() const { return std::countr_zero(left); }
  void operator++() { left &= left - 1; }
  bool operator!=(const EachBit& other) const { return left != other.left; }
  uint32_t left;
};

// Location of an operand's 32 lanes: >= 0 a byte offset in the warp's registers, < 0 the complement of a byte offset in
// the kernel's constants (immediates and parameters, broadcast). A slot is 32 lanes of 4 bytes (types of up to 32 bits,
// the lower ones meaningful) or of 8. Predicates are one 32-bit mask.
using Operand = int32_t;
inline constexpr Operand kNoOperand = INT32_MAX;

struct Warp;
struct Instruction;
// Executes one instruction for the lanes of `mask` (not empty). The warp's pc already stands behind the instruction.
using Handler = void (*)(Warp& warp, const Instruction& instruction, uint32_t mask);

struct Instruction {
  Handler run = nullptr;
  Handler inner = nullptr;  // for handlers that wrap another (rounding modes)
  Operand d = kNoOperand, a = kNoOperand, b = kNoOperand, c = kNoOperand;
  Operand e = kNoOperand;  // a second destination (a predicate)
  Operand predicate = 0;   // always valid: an all-ones constant where the instruction has none
  uint32_t flip = 0;       // all ones for @!p
  uint32_t extra = 0;      // branch target, or first operand in Kernel::operands
  int64_t offset = 0;      // address offset, or an immediate of the handler
  uint8_t count = 1;       // vector elements
  uint8_t size = 0;        // bytes of an element in memory
  uint8_t space = 0;       // a Space
  uint16_t flags = 0;      // see the kFlag constants
  uint32_t index = 0;      // the instruction's own pc
};

enum class Space : uint8_t { kGlobal, kConst, kShared, kLocal, kParam, kGeneric };

inline constexpr uint16_t kFlagVolatile = 1;  // volatile, relaxed or stronger: may be polled
inline constexpr uint16_t kFlagAcquire = 2;
inline constexpr uint16_t kFlagRelease = 4;
inline constexpr uint16_t kFlagNegateC = 8;     // source predicate c is negated
inline constexpr uint16_t kFlagShared32 = 16;   // the address register has 32 bits
inline constexpr uint16_t kFlagNoReturn = 32;   // red: no destination
inline constexpr uint16_t kFlagAligned = 64;    // bar.sync, not barrier.sync
inline constexpr uint16_t kFlagBypassL1 = 128;  // .cg, .cv, volatile

inline constexpr uint16_t kFlagReadOnly = 256;  // ld.global.nc: may be moved across stores

inline constexpr uint16_t kFlagExchange = 512;        // atom.exch: what it stores does not depend on what was there
inline constexpr uint16_t kFlagBlockScope = 4096;     // .cta: orders within the block only
inline constexpr uint16_t kFlagPlainVolatile = 8192;  // .volatile: orders nothing else

// The cost of an instruction on a GPU; see cost.h.
struct Cost {
  Pipe pipe = Pipe::kInt;
  uint8_t latency = 0;  // a LatencyClass
  float issue = 0;      // warp instructions that ptxas makes of it
  float pipe_use = 0;   // of those, on the pipe; AddPipes says where others run
  float waits = 1;      // latencies of its class until the result is there
  bool priced = true;   // false: nobody has measured it
};

// The bytes of a block's shared memory that are reserved for NVIDIA's own software, on sm_80 and later; of those, the
// bytes that cooperative groups need.
inline constexpr uint32_t kReservedSharedBytes = 1024, kCooperativeGroupsBytes = 288;

// A word of the constants that is known only at launch.
struct ConstantPatch {
  enum class Kind : uint8_t {
    kParameter,
    kGlobal,
    kGridX,
    kGridY,
    kGridZ,
    kBlockX,
    kBlockY,
    kBlockZ,
    kDynamicShared,
    kTotalShared,
    kAggregateShared,
    kGridWorkspaceLow,
    kGridWorkspaceHigh
  };
  Kind kind = Kind::kParameter;
  bool wide = false;       // 8-byte lanes
  Type type = Type::kB32;  // kParameter: how to read and extend it
  uint32_t at = 0;         // byte offset in the constants
  uint32_t value = 0;      // kParameter: offset in the parameter block; kGlobal: index of the global
  int64_t addend = 0;
};

// A special register that is filled in when a warp or block starts.
struct SpecialSlot {
  enum class Kind : uint8_t {
    kTidX,
    kTidY,
    kTidZ,
    kCtaX,
    kCtaY,
    kCtaZ,
    kLane,
    kWarp,
    kSm,
    kLaneMaskEq,
    kLaneMaskLe,
    kLaneMaskLt,
    kLaneMaskGe,
    kLaneMaskGt
  };
  Kind kind = Kind::kTidX;
  uint32_t at = 0;  // byte offset in the warp's registers
};

struct SharedArray {
  std::string name;  // as in the source where it can be told
  uint32_t offset = 0, bytes = 0;
};

// A basic block: instructions [first, last).
struct BasicBlock {
  uint32_t first = 0, last = 0;
};

// A function that is called, not inlined; see call_ops.cc.
struct Subroutine {
  struct Place {
    uint32_t offset = 0, bytes = 0;  // within its frame
  };
  struct Register {
    Operand at = 0;
    uint8_t bytes = 0;  // 1: a predicate
  };
  std::string name;
  uint32_t pc = 0;
  uint64_t address = 0;  // the value of a pointer to it
  uint32_t frame_bytes = 0;
  std::vector<Place> results, parameters;
  std::vector<Register> registers;  // all that its code uses
};

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::vector<Cost> costs;               // by instruction
  std::vector<SourceLine> lines;         // by instruction
  std::vector<Operand> operands;         // of vector accesses and matrix instructions
  std::vector<uint32_t> branch_targets;  // of brx.idx
  std::vector<uint32_t> constants;       // words; offsets are in bytes
  std::vector<ConstantPatch> patches;
  std::vector<SpecialSlot> specials;
  // Registers that may be read before they are written: offsets in a warp's registers, and bytes.
  struct Unset {
    uint32_t at, bytes;
  };
  std::vector<Unset> unset;
  // Instructions that use registers which may be unset. All empty if there are none.
  std::vector<UnsetUse> unset_uses;
  std::vector<uint32_t> unset_use_at;  // by pc: 1 + index in unset_uses, or 0
  // The number of such registers. The first ones are unset at the start; then follow those that may get such a value;
  // then those that may get a suspect.
  uint32_t unset_registers = 0, first_unset = 0, unset_without_loads = 0;
  Operand all_lanes = 0;            // a predicate that is true
  std::vector<SharedArray> shared;  // with red zones between; the last may be the dynamic one
  std::vector<BasicBlock> blocks;
  std::vector<uint32_t> no_unroll;  // pcs of the heads of loops that ptxas is told not to unroll
  // Virtual registers that each instruction reads and writes, before they share slots: for the latency model.
  std::vector<uint32_t> mentions;       // register * 2 + (1 where written)
  std::vector<uint32_t> mention_start;  // by instruction, and the end
  uint32_t virtual_registers = 0;
  std::vector<uint8_t> is_wide_product;  // by instruction: mul.wide or mad.wide
  std::vector<uint8_t> uniform_address;  // by instruction: an atomic whose address is provably uniform in the warp
  std::vector<uint8_t> float_atomic;     // by instruction: an atomic addition of floating-point numbers
  std::vector<float> tensor_flops;       // by instruction: of a matrix instruction, by the warp
  uint32_t register_bytes = 0;           // a warp
  uint32_t static_shared_bytes = 0;      // as the GPU would allocate, without red zones
  uint32_t shared_layout_bytes = 0;      // with them; where dynamic shared memory begins
  uint32_t local_bytes = 0;              // a thread
  uint32_t parameter_bytes = 0;
  uint32_t registers_estimate = 0;
  std::vector<Subroutine> subroutines;
  Operand stack_register = kNoOperand, frame_register = kNoOperand;  // where there are any: local addresses, 64 bits
  ControlFlow control;
  bool uses_grid_sync = false;
  bool reserved_shared = false;   // its shared memory begins with the reserved part
  bool scatters_atomics = false;  // to global memory, at addresses that may differ within a warp
  bool global_atomics = false;    // or generic ones
  bool bulk_copies = false;       // cp.async.bulk
};

struct GlobalVariable {
  std::string name;
  uint64_t bytes = 0;
  uint32_t align = 1;
  bool constant = false;
  std::vector<uint8_t> initial;
  struct Reference {
    uint64_t offset;
    uint32_t global;
    int64_t addend;
  };
  std::vector<Reference> references;
};

struct Program {
  std::vector<std::string> files;
  std::vector<GlobalVariable> globals;
  std::vector<Kernel> kernels;  // by index in Module::kernels()
};

}  // namespace kgrpo::simt
