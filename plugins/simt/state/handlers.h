// Handlers of everything that is not arithmetic. Lowering chooses them; see program.h for the meaning of an
// instruction's fields.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "simt/state/opcode.h"
#include "simt/state/program.h"

namespace kgrpo::simt {

// load_store.cc and memory_ops.cc. a = address, offset, space, size, count; registers in Kernel::operands from `extra`
// on. `slot_bytes` is the size of the registers' lanes (4 or 8). Null: no such access.
Handler FindLoad(Type type, uint32_t slot_bytes);
Handler FindStore(Type type, uint32_t slot_bytes);
Handler FindPack(uint32_t bytes);    // d = the operands, `size` bytes each, side by side
Handler FindUnpack(uint32_t bytes);  // the operands = parts of a
Handler FindIsSpace(Space space);    // d (a predicate) = whether generic address a lies in the space
void CopyAsync(Warp&, const Instruction&,
               uint32_t);  // a = shared address, b = global address, c = source bytes (or none); size
void CommitCopies(Warp&, const Instruction&, uint32_t);
void WaitCopies(Warp&, const Instruction&, uint32_t);  // offset = groups that may stay pending
void Prefetch(Warp&, const Instruction&, uint32_t);    // nothing

// atomic_ops.cc. d = old value (or none), a = address, b, c = operands.
Handler FindAtomic(const Opcode& opcode);
void Fence(Warp&, const Instruction&, uint32_t);
void FenceAsyncProxy(Warp&, const Instruction&, uint32_t);

// lane_ops.cc. The rarer arithmetic: d, and up to three sources of 32 bits. Sets the instruction's offset. Null: no
// such instruction.
Handler FindLaneOperation(const Opcode& opcode, Instruction& instruction);
// The code of a video instruction's selector ("b0", "h1"), -1 where there is none of that name.
int SelectorCode(std::string_view selector);
inline constexpr int kSelectorShiftA = 32, kSelectorShiftB = 36;  // their places in Instruction::offset
void Lop3Predicate(Warp&, const Instruction&, uint32_t);  // lop3.and and .or: d|e, a, b, c, operands[extra] = predicate

// unset_uses.cc. Runs the kernel's instruction with this one's index, and watches unset registers.
void WatchUnset(Warp&, const Instruction&, uint32_t);

// control_ops.cc
void Branch(Warp&, const Instruction&, uint32_t);  // extra = target
void BranchIndexed(Warp&, const Instruction&,
                   uint32_t);  // a = index, extra = first of Kernel::branch_targets, offset = how many
void Exit(Warp&, const Instruction&, uint32_t);
void TrapOperation(Warp&, const Instruction&, uint32_t);
void ReadClock32(Warp&, const Instruction&, uint32_t);
void ReadClock64(Warp&, const Instruction&, uint32_t);
void NanoSleep(Warp&, const Instruction&, uint32_t);

// call_ops.cc
// offset = index of the subroutine, or -1: a = its address; count arguments and size results, whose local addresses are
// the operands
void CallSubroutine(Warp&, const Instruction&, uint32_t);
void ReturnFromSubroutine(Warp&, const Instruction&, uint32_t);

// barrier_ops.cc
// Of reductions c = predicate, d or e = result.
enum class BarrierKind : int64_t { kSync, kArrive, kReduceAnd, kReduceOr, kReducePopc };
void Barrier(Warp&, const Instruction&, uint32_t);  // a = barrier, b = threads or none; offset = BarrierKind

// bulk_copies.cc. a = shared address, b = global address, c = bytes; operands: offset of b; of loads also the
// mbarrier's address, of `size` bytes, and its offset.
void LoadBulk(Warp&, const Instruction&, uint32_t);
void StoreBulk(Warp&, const Instruction&, uint32_t);
void CommitBulkCopies(Warp&, const Instruction&, uint32_t);
void WaitBulkCopies(Warp&, const Instruction&, uint32_t);  // offset = groups that may stay pending; size = 1: .read

// earlier_launches.cc: griddepcontrol.launch_dependents and .wait
void LetNextLaunchBegin(Warp&, const Instruction&, uint32_t);
void WaitForEarlierLaunches(Warp&, const Instruction&, uint32_t);

// image_ops.cc. a = object; size = ImageShape of the instruction, offset = detail below; operands: `count` registers of
// data, then the coordinates in PTX's order without padding.
void FetchTexture(Warp&, const Instruction&, uint32_t);  // detail: 1 where the coordinates are integers
enum class BoundaryMode : uint8_t { kTrap, kClamp, kZero };
void LoadSurface(Warp&, const Instruction&, uint32_t);   // detail: bytes of an element << 8 | BoundaryMode
void StoreSurface(Warp&, const Instruction&, uint32_t);  // likewise

// mbarrier_ops.cc. a = address.
enum class ArrivalKind : uint8_t {
  kArrive,
  kDrop,
  kExpectBytesAndArrive,
  kExpectBytes,
  kCompleteBytes,
  kAfterCopies,
  kAfterCopiesCounted
};
void MbarrierInit(Warp&, const Instruction&, uint32_t);     // b = count; none: mbarrier.inval
void MbarrierArrive(Warp&, const Instruction&, uint32_t);   // size = ArrivalKind; b = count or bytes, d = state or none
void MbarrierWait(Warp&, const Instruction&, uint32_t);     // e = result, b = state, or parity where size is 1
void MbarrierPending(Warp&, const Instruction&, uint32_t);  // d, a = state

// warp_ops.cc
enum class ShuffleMode : uint8_t { kUp, kDown, kButterfly, kIndex };
void Shuffle(Warp&, const Instruction&,
             uint32_t);  // size = ShuffleMode; d|e, a, b = lane, c = clamp, operands[extra] = mask
enum class VoteMode : uint8_t { kAll, kAny, kUniform, kBallot };
void Vote(Warp&, const Instruction&, uint32_t);        // size = VoteMode; d or e = result, c = predicate, b = mask
void MatchAny(Warp&, const Instruction&, uint32_t);    // d, a = value, b = mask; size = 4 or 8
void MatchAll(Warp&, const Instruction&, uint32_t);    // d|e
Handler FindRedux(const Opcode& opcode);               // d, a = value, b = mask
void SyncWarp(Warp&, const Instruction&, uint32_t);    // b = mask
void ActiveMask(Warp&, const Instruction&, uint32_t);  // d
void ElectOne(Warp&, const Instruction&, uint32_t);    // d|e, b = mask

// mma_ops.cc, wmma_ops.cc, matrix.cc
Handler FindLdMatrix(const Opcode& opcode, Instruction& instruction);  // operands = destinations; a = address
Handler FindMma(const Opcode& opcode, Instruction& instruction);       // operands = d, a, b, c in order
Handler FindWmma(const Opcode& opcode, Instruction& instruction);      // load, store, mma
// Calls each(address, bytes) for what a wmma.store will store; false for any other instruction.
bool ForWmmaStored(const Warp&, const Instruction&, const std::function<void(uint64_t, uint32_t)>& each);
// mma_formats.cc
Handler FindMmaOfFormat(const Opcode& opcode, Instruction& instruction);  // types not in FindMma; the same operands
Handler FindStMatrix(const Opcode& opcode, Instruction& instruction);     // operands = sources; a = address
Handler FindMoveMatrix(const Opcode& opcode);                             // operands = result, source
double MatrixOperations(const Instruction& instruction);  // multiplications and additions of a warp's mma

// print_ops.cc
void PrintFormatted(Warp&, const Instruction&,
                    uint32_t);                           // in the frame: a = format, b = arguments, c = result or none
void AssertFailed(Warp&, const Instruction&, uint32_t);  // operands: message, file, line, function

}  // namespace kgrpo::simt
