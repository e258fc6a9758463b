// Shared by loads, stores, atomics and asynchronous copies: from addresses to host memory, with bounds,
// alignment, and the checks and counts of the launch's mode.
#pragma once

#include <cstdint>
#include <string>

#include "simt/state/machine.h"

namespace kgrpo::simt {

enum class AccessKind : uint8_t { kLoad, kStore, kAtomic };

// The pattern of the lanes' addresses if all lanes take part. kUniform: all the same. kContiguous: each `bytes` after
// the one before. kGeneral: any other.
enum class Pattern : uint8_t { kGeneral, kUniform, kContiguous };

// One access of a warp, resolved.
struct Access {
  // Addresses within `space`; a generic address that points to global memory is kept as a global address. ResolveRow
  // sets only the first one if nothing is checked or counted.
  uint64_t address[kLanes];
  std::byte* host[kLanes];  // where not direct
  bool direct;              // a lane's bytes lie at host address base + address
  uint64_t base;
  Space space;  // kGlobal (constants too), kShared, kLocal or kParam
  Pattern pattern;
  Allocation* allocation;  // kGlobal: of all lanes, or null where they differ
  uint32_t bytes;          // a lane, all elements
  uint32_t distinct;       // lanes that are not followed by another at the same address (checked; may hold too many)
  // Which lanes' registers a lane's bytes go to: its own; of ldmatrix a row's; of wmma.load its own, all of
  // them.
  enum class Target : uint8_t { kLane, kRow, kTransposedRow, kFragment } target = Target::kLane;

  // Valid for the lanes of the instruction's mask.
  std::byte* At(int lane) const { return direct ? reinterpret_cast<std::byte*>(base + address[lane]) : host[lane]; }
};

// Computes the addresses of `mask`'s lanes and checks that [address, address + bytes) is theirs to touch. A lane that
// is out of bounds or misaligned is reported and ends the launch (throws Fault).
void Resolve(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access);
// The same where ResolveRow has refused, or not all lanes take part.
void ResolveLanes(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access);
// The same for addresses already in access.address, all in `space` (or generic).
void ResolveAddresses(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Space space,
                      Access& access);

// access_row.cc
// Returns the pattern of all 32 lanes' addresses; `bytes` is a power of two.
Pattern PatternOf(const uint64_t* address, uint32_t bytes);
// Does the same as Resolve if all lanes take part, their addresses are all the same or side by side in global or shared
// memory, and they may be accessed. Else returns false without side effects.
bool ResolveRow(Warp& warp, const Instruction& in, uint32_t bytes, AccessKind kind, Access& access);

// Returns the allocation that holds `address`, or null. Tries the recently found ones first.
Allocation* FindAllocation(Grid& grid, DeviceAddress address);
// The shared array that holds [low, end), or null.
const SharedArray* ArrayAround(const Grid& grid, uint64_t low, uint64_t end);
// The bits of a generic address that say which memory it points to.
inline constexpr uint64_t kGenericWindow = 0xFFF0'0000'0000'0000;

// "1 byte", "4 bytes"
std::string ByteCount(uint32_t bytes);

// initialised.cc
// Checked mode: reads of bytes that nobody wrote are reported; or, of a load of registers (`elements` of each lane),
// the values become suspects. `of_matrix`: see LaunchConfig::unwritten_shared.
void CheckInitialised(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, uint32_t elements = 0,
                      bool of_matrix = false);
// "reads 4 bytes that no thread of the block has written yet, at byte 4 of shared array 's' (32 bytes)"
std::string UnwrittenText(const Grid& grid, Space space, uint64_t address, uint32_t bytes);
// Marks bytes as written.
void MarkWritten(Warp& warp, uint32_t mask, const Access& access);
// Checked mode: marks the bytes of `mask`'s lanes in shared or local memory as unwritten, because the stored values
// were unset.
void MarkUnwritten(Warp& warp, uint32_t mask, const Access& access);

// race.cc, race_together.cc
// Checked mode: race detection for the loads of a warp; `elements` as above.
void CheckLoadOrder(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, uint32_t elements = 0);
// The same for a read by a texture or surface: the launch's own earlier writes there are races, whatever lies between.
void CheckImageReadOrder(Warp& warp, const Instruction& in, uint32_t mask, const Access& access);
// The finding of an access of a thread of the warp's block that races with the earlier one. `why`: instead of the
// synchronisation that is missing.
Finding RaceOf(const Warp& warp, uint32_t pc, uint32_t thread, Space space, uint64_t address, uint32_t bytes,
               const char* now, AccessCell earlier, const char* then, const std::string& why = "");

// unset_uses.cc
// Checked mode: the value that `lane` loads (and all lanes of `mask` that load it from there) is a suspect in the
// elements with a bit in `elements`. The address, bytes and cause of `what` must be set.
void AddSuspect(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, int lane, uint32_t elements,
                Suspect what);
// True if the uses of what the load `in` sets can be watched.
inline bool IsWatched(const Kernel& kernel, const Instruction& in) {
  return !kernel.unset_use_at.empty() && kernel.unset_use_at[in.index] != 0 &&
         kernel.unset_uses[kernel.unset_use_at[in.index] - 1].loads;
}
// Marks the registers that the load `in` sets as suspects; call it once they have been added.
void SetSuspects(Warp& warp, const Instruction& in, uint32_t mask);
// Checked mode: the lanes of `mask` have shuffled from those that `from` names, which take no part.
void AddShuffleSuspects(Warp& warp, const Instruction& in, uint32_t mask, const uint32_t* from);
// The key of Block::stored_suspects for a byte of shared or local memory.
inline uint64_t StoredKey(Space space, uint64_t offset) { return uint64_t{space == Space::kLocal} << 63 | offset / 4; }
// Starts to watch the instructions that use registers which may be unset: from the start of a launch those that were
// never set, with `loads` all.
void Watch(Grid& grid, bool loads);
// The same for one lane's store or atomic, before its bytes are written; `changes` says whether they differ from what
// is there.
void CheckStoreOrder(Warp& warp, const Instruction& in, int lane, const Access& access, AccessKind kind, bool changes);
// The same for the stores of a warp; call it before CheckStoreOrder. True: no race is possible, whatever the values
// are. False: nothing was recorded, and each lane must be checked by itself.
bool NoteStores(Warp& warp, const Instruction& in, uint32_t mask, const Access& access);

// release_order.cc
// Checked mode: order through memory, see race_shadow.h. NoteFence: a fence covers the warp's accesses and those that
// it knows of. NoteRelease: an atomic operation or volatile store releases the accesses covered by earlier fences (a
// release operation is a fence itself). NoteAcquire: an atomic operation or volatile load learns of the accesses
// released at its addresses. Learn: a warp learns of what was announced.
void NoteFence(Warp& warp, bool within_block);
void Learn(Warp& warp, const Announced& announced);
// A fence.proxy.async: bulk copies see what the warp did and knows of.
void NoteProxyFence(Warp& warp);
void NoteRelease(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, bool is_atomic);
void NoteAcquire(Warp& warp, const Instruction& in, uint32_t mask, const Access& access);

// pending_copies.cc
// Checked mode: a cp.async of `lane` to `target` begins, or a wait completes it. Between the two, any other access to
// these bytes is a race.
void BeginCopy(Warp& warp, const Instruction& in, int lane, const Access& target);
void EndCopy(Warp& warp, const Instruction& in, int lane, const Access& target);
// Returns true if a lane of `mask` accesses bytes that a pending copy will write, or writes bytes that a pending copy
// will read.
bool TouchesCopies(const Warp& warp, uint32_t mask, const Access& access, bool writes);
// The same for one lane; reports the race of the two. `verb` is what the lane does: "reads".
bool ReportPending(Warp& warp, const Instruction& in, int lane, const Access& access, bool writes, const char* verb);

// Returns the bits of `bytes` bytes at `offset` in their word of a bitmap with one bit per byte. Accesses are aligned,
// so they stay within one word.
inline uint64_t BitsOf(uint64_t offset, uint32_t bytes) { return ((uint64_t{1} << bytes) - 1) << (offset % 64); }

}  // namespace kgrpo::simt
