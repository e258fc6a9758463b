// The state in which a launch starts: its constants, and each block with its warps.
#include <algorithm>
#include <cstring>

#include "simt/state/machine.h"

namespace kgrpo::simt {
namespace {

// The value of a word of the constants that depends on the launch.
uint64_t ValueOf(const ConstantPatch& patch, const Grid& grid) {
  const LaunchConfig& config = *grid.config;
  if (patch.kind == ConstantPatch::Kind::kParameter) {
    uint64_t value = 0;
    std::memcpy(&value, config.parameters.data() + patch.value, TypeBytes(patch.type));
    if (TypeIsSigned(patch.type) && TypeBytes(patch.type) < 8) {
      const uint32_t shift = 64 - 8 * TypeBytes(patch.type);
      value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
    }
    return value;
  }
  const uint64_t dynamic = config.dynamic_shared_bytes;
  const uint32_t total = config.dynamic_shared_bytes + grid.kernel->static_shared_bytes;
  const uint64_t workspace = grid.workspace == nullptr ? 0 : grid.workspace->address();
  // By kind, from kGridX on.
  const Dim3 &g = config.grid, &b = config.block;
  const uint32_t aggregate = kReservedSharedBytes + (total + 127) / 128 * 128;
  const uint64_t values[] = {
      g.x, g.y, g.z, b.x, b.y, b.z, dynamic, total, aggregate, workspace & 0xFFFFFFFFu, workspace >> 32};
  if (patch.kind == ConstantPatch::Kind::kGlobal) return 0;
  return values[static_cast<size_t>(patch.kind) - static_cast<size_t>(ConstantPatch::Kind::kGridX)];
}

// The value of a special register in lane `l` of a warp.
uint32_t ValueOf(SpecialSlot::Kind kind, const Warp& warp, uint32_t l) {
  const Dim3& shape = warp.grid->config->block;
  const uint32_t thread = static_cast<uint32_t>(warp.id) * kLanes + l;
  switch (kind) {
    case SpecialSlot::Kind::kTidX: return thread % shape.x;
    case SpecialSlot::Kind::kTidY: return thread / shape.x % shape.y;
    case SpecialSlot::Kind::kTidZ: return thread / shape.x / shape.y;
    case SpecialSlot::Kind::kCtaX: return warp.block->id.x;
    case SpecialSlot::Kind::kCtaY: return warp.block->id.y;
    case SpecialSlot::Kind::kCtaZ: return warp.block->id.z;
    case SpecialSlot::Kind::kLane: return l;
    case SpecialSlot::Kind::kWarp: return static_cast<uint32_t>(warp.id);
    case SpecialSlot::Kind::kSm: return static_cast<uint32_t>(warp.block->index % 132);
    case SpecialSlot::Kind::kLaneMaskEq: return 1u << l;
    case SpecialSlot::Kind::kLaneMaskLe: return l == 31 ? kAllLanes : (2u << l) - 1;
    case SpecialSlot::Kind::kLaneMaskLt: return (1u << l) - 1;
    case SpecialSlot::Kind::kLaneMaskGe: return ~((1u << l) - 1);
    case SpecialSlot::Kind::kLaneMaskGt: return l == 31 ? 0 : ~((2u << l) - 1);
  }
  return 0;
}

// Returns true if a special register differs among blocks. Special registers share no slot, so the others keep their
// values when a warp starts its next block.
bool DiffersAmongBlocks(SpecialSlot::Kind kind) {
  return kind == SpecialSlot::Kind::kCtaX || kind == SpecialSlot::Kind::kCtaY || kind == SpecialSlot::Kind::kCtaZ ||
         kind == SpecialSlot::Kind::kSm;
}

// The warp's id, block and grid must be set. `first_use`: its registers are new in this launch.
void FillSpecials(Warp& warp, const Grid& grid, bool first_use) {
  const Dim3& shape = grid.config->block;
  const bool flat = shape.y == 1 && shape.z == 1;
  const uint32_t first = static_cast<uint32_t>(warp.id) * kLanes;
  for (const SpecialSlot& slot : grid.kernel->specials) {
    if (!first_use && !DiffersAmongBlocks(slot.kind)) continue;
    auto* lanes = reinterpret_cast<uint32_t*>(warp.registers + slot.at);
    if (slot.kind == SpecialSlot::Kind::kTidX && flat) {  // the usual case; divisions are slow
      for (uint32_t l = 0; l < kLanes; ++l) lanes[l] = first + l;
      continue;
    }
    if (DiffersAmongBlocks(slot.kind)) {
      std::fill_n(lanes, kLanes, ValueOf(slot.kind, warp, 0));
      continue;
    }
    for (uint32_t l = 0; l < kLanes; ++l) lanes[l] = ValueOf(slot.kind, warp, l);
  }
}

void StartWarp(Warp& warp, Block& block, Grid& grid, uint32_t id, std::byte* registers, bool first_use) {
  const uint64_t threads = grid.config->block.Count();
  warp.registers = registers;
  warp.sources = {registers, reinterpret_cast<const std::byte*>(grid.constants.data())};
  warp.pc = 0;
  warp.limit = UINT32_MAX;
  const uint64_t lanes = std::min<uint64_t>(kLanes, threads - uint64_t{id} * kLanes);
  warp.active = warp.alive = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
  warp.carry = 0;
  warp.state = WarpState::kReady;
  warp.group_count = 0;
  warp.id = static_cast<int>(id);
  warp.block = &block;
  warp.grid = &grid;
  warp.barrier = -1;
  warp.clock = 1;
  warp.wait = {};
  if (grid.checked) {
    warp.known.assign(size_t{grid.kernel->bulk_copies ? 3u : 2u} * grid.agents, 0);
    warp.fenced = false;
    warp.fenced_in_block = {};
    warp.times = {};
    warp.all_before = 0;
    warp.pair_known.clear();
    warp.waited = 0;
    warp.lane_known.fill(0);
    warp.events.resize(grid.kernel->code.size());
    // A register that nothing sets may hold any value: here NaNs.
    for (const Kernel::Unset& one : grid.kernel->unset) std::memset(registers + one.at, 0xFF, one.bytes);
    const Kernel& kernel = *grid.kernel;
    warp.unset.assign(grid.watches_loads || kernel.first_unset != 0 ? kernel.unset_registers : 0, {});
    std::fill_n(warp.unset.begin(), kernel.first_unset, UnsetRegister{kAllLanes, 0});
    warp.tainted = kernel.first_unset != 0;
    warp.suspects.clear();
  }
  warp.copies.clear();
  warp.bulk_groups.fill(0);
  warp.calls.clear();
  warp.executed = warp.splits = 0;
  warp.yield = false;
  FillSpecials(warp, grid, first_use);
}

}  // namespace

void PatchConstants(Grid& grid) {
  for (const ConstantPatch& patch : grid.kernel->patches) {
    if (patch.kind == ConstantPatch::Kind::kGlobal) continue;  // filled in at load
    const uint64_t value = ValueOf(patch, grid);
    for (uint32_t l = 0; l < kLanes; ++l) {
      uint32_t* word = &grid.constants[patch.at / 4 + l * (patch.wide ? 2 : 1)];
      word[0] = static_cast<uint32_t>(value);
      if (patch.wide) word[1] = static_cast<uint32_t>(value >> 32);
    }
  }
}

void StartBlock(Block& block, Grid& grid, uint64_t index) {
  const Kernel& kernel = *grid.kernel;
  const LaunchConfig& config = *grid.config;
  const uint32_t warps = grid.warps_per_block;
  block.index = index;
  block.id = {static_cast<uint32_t>(index % config.grid.x),
              static_cast<uint32_t>(index / config.grid.x % config.grid.y),
              static_cast<uint32_t>(index / config.grid.x / config.grid.y)};
  const bool first_use = block.warps.size() != warps;
  if (first_use) {
    block.warps.resize(warps);
    const size_t bytes = static_cast<size_t>(warps) * kernel.register_bytes;
    block.registers = std::make_unique<std::byte[]>(bytes + 64);
    std::memset(block.registers.get(), 0, bytes + 64);
    block.shared_bytes.resize(grid.shared_limit + 64);
    if (!grid.checked) block.local.Assign(static_cast<size_t>(warps) * kLanes * kernel.local_bytes, 0);
  }
  auto aligned = [](std::byte* p) { return p + (64 - reinterpret_cast<uintptr_t>(p) % 64) % 64; };
  block.shared = aligned(block.shared_bytes.data());
  // Shared memory starts with arbitrary values: here NaNs, unless the launch gives a byte.
  if (grid.shared_limit != 0) std::memset(block.shared, config.unwritten_shared.value_or(0xFF), grid.shared_limit);
  if (grid.checked) {
    block.shared_written.assign(grid.shared_limit / 64 + 1, 0);
    // Cooperative groups clear single bits of the reserved part.
    if (kernel.reserved_shared) std::fill_n(block.shared_written.begin(), kReservedSharedBytes / 64, ~uint64_t{0});
    block.shared_pending.assign(grid.shared_limit / 64 + 1, 0);
    block.shared_sources.assign(kernel.bulk_copies ? grid.shared_limit / 16 + 1 : 0, 0);
    block.copies_pending = 0;
    // Local memory starts with arbitrary values too.
    block.local.Assign(static_cast<size_t>(warps) * kLanes * kernel.local_bytes, 0xFF);
    block.local_written.assign(block.local.size() / 64 + 1, 0);
    block.shared_shadow.Reset(grid.shared_limit, warps);
    block.stored_suspects.clear();
  }
  block.barriers = {};
  block.phase_barriers.clear();
  block.published.clear();
  block.grid_waits.clear();
  block.bulk_copies.clear();
  block.done_warps = block.next_warp = block.polls = 0;
  std::byte* registers = aligned(block.registers.get());
  for (uint32_t w = 0; w < warps; ++w) {
    StartWarp(block.warps[w], block, grid, w, registers + static_cast<size_t>(w) * kernel.register_bytes, first_use);
  }
}

}  // namespace kgrpo::simt
