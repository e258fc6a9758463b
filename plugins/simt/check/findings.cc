// The wording and bookkeeping of findings.
#include <kgrpo/support/demangle.h>

#include <algorithm>
#include <array>
#include <bit>

#include "simt/state/machine.h"

namespace kgrpo::simt {
namespace {

std::string Triple(const Dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

Dim3 Unravel(uint64_t index, const Dim3& shape) {
  return {static_cast<uint32_t>(index % shape.x), static_cast<uint32_t>(index / shape.x % shape.y),
          static_cast<uint32_t>(index / shape.x / shape.y)};
}

// "softmax(float const*, int)" -> "softmax"
std::string KernelName(const std::string& mangled) {
  constexpr size_t kLongest = 400;  // a candidate chose it
  const std::string name = Demangled(mangled);
  return name.empty() ? mangled.substr(0, kLongest) : name.substr(0, std::min(name.find('('), kLongest));
}

}  // namespace

const char* FindingName(FindingCode code) {
  constexpr std::array<const char*, 10> kNames = {
      "invalid_launch",    "out_of_bounds",   "misaligned", "uninitialised", "race",
      "divergent_barrier", "invalid_shuffle", "trap",       "unsupported",   "out_of_memory"};
  return kNames[static_cast<size_t>(code)];
}

ThreadId IdOf(const Grid& grid, uint64_t block, uint32_t thread) {
  return {Unravel(block, grid.config->grid), Unravel(thread, grid.config->block)};
}

ThreadId IdOf(const Warp& warp, int lane) {
  return IdOf(*warp.grid, warp.block->index, static_cast<uint32_t>(warp.id * kLanes + lane));
}

std::string NameThread(const ThreadId& id) { return "thread " + Triple(id.thread) + " of block " + Triple(id.block); }

std::string DescribeShared(const Grid& grid, uint64_t offset, uint32_t size) {
  const SharedArray *nearest = nullptr, *next = nullptr;
  // A negative address is a large number of 32 or 64 bits.
  const int64_t at = offset >> 32 == 0 ? static_cast<int32_t>(offset) : static_cast<int64_t>(offset);
  for (const SharedArray& array : grid.shared_arrays) {
    if (at < 0) {
      if (next == nullptr || array.offset < next->offset) next = &array;
      continue;
    }
    if (offset >= array.offset && offset + size <= uint64_t{array.offset} + array.bytes) {
      return "at byte " + std::to_string(offset - array.offset) + " of shared array '" + array.name + "' (" +
             std::to_string(array.bytes) + " bytes)";
    }
    if (array.offset <= offset) {
      nearest = nearest == nullptr || nearest->offset < array.offset ? &array : nearest;
    } else if (next == nullptr || array.offset < next->offset) {
      next = &array;
    }
  }
  if (next != nullptr) {
    const int64_t before = int64_t{next->offset} - at;
    const int64_t beyond = nearest == nullptr ? INT64_MAX : at - (int64_t{nearest->offset} + nearest->bytes);
    if (before <= beyond)
      return std::to_string(before) + " bytes before shared array '" + next->name + "' (" +
             std::to_string(next->bytes) + " bytes)";
  }
  if (nearest == nullptr)
    return "at byte " + std::to_string(static_cast<int64_t>(offset)) + " of shared memory, where no array is";
  const uint64_t behind = offset + size - (nearest->offset + uint64_t{nearest->bytes});
  return std::to_string(behind) + " bytes past the end of shared array '" + nearest->name + "' (" +
         std::to_string(nearest->bytes) + " bytes)";
}

std::string DescribeLocal(const Grid& grid, uint64_t offset) {
  return "at byte " + std::to_string(static_cast<int64_t>(offset)) + " of the thread's local arrays (" +
         std::to_string(grid.kernel->local_bytes) + " bytes)";
}

std::string DescribeUnfinished(const Block& block) {
  for (const Warp& warp : block.warps) {
    if (warp.alive == 0) continue;
    const Grid& grid = *warp.grid;
    uint32_t pc = warp.state == WarpState::kBarrier ? warp.barrier_pc : warp.pc, lanes = warp.active;
    if (lanes == 0) lanes = warp.alive;
    pc = std::min<uint32_t>(pc, static_cast<uint32_t>(grid.kernel->lines.size()) - 1);
    const int line = grid.kernel->lines[pc].line;
    return "kernel '" + KernelName(grid.kernel->name) + "'" + (line > 0 ? ", line " + std::to_string(line) : "") +
           ": " + NameThread(IdOf(warp, std::countr_zero(lanes))) + " still runs" +
           (grid.result->blocks_run > 0 ? ", " + std::to_string(grid.result->blocks_run) + " blocks have ended" : "");
  }
  return "";
}

void NoteFact(Grid& grid, const std::string& fact, const std::string& more) {
  std::vector<std::string>& notes = grid.result->notes;
  const auto known = [&](const std::string& note) { return note.starts_with(fact); };
  if (std::none_of(notes.begin(), notes.end(), known)) notes.push_back(fact + more);
}

// True for PTX that is the author's own text (Module::Parse's own_file): its lines may be of files in any language.
bool MayBeOfAnyFile(const Program& program) { return !program.files.empty() && program.files.back().ends_with(".ptx"); }

// ", line 3", or ", own.cuh:3" of a header; "" if the line is not known.
std::string PlaceText(const Finding& finding, bool names_file) {
  if (finding.line <= 0) return "";
  const bool header =
      names_file || finding.file.ends_with(".h") || finding.file.ends_with(".hpp") || finding.file.ends_with(".cuh");
  return header ? ", " + finding.file.substr(finding.file.rfind('/') + 1) + ":" + std::to_string(finding.line)
                : ", line " + std::to_string(finding.line);
}

Finding MakeFinding(const Grid& grid, uint32_t pc, const ThreadId& thread, FindingCode code, DeviceAddress address,
                    std::string array, const std::string& text) {
  const SourceLine line = grid.kernel->lines[pc];
  Finding finding;
  finding.code = code;
  finding.kernel = KernelName(grid.kernel->name);
  if (line.line > 0 && line.file < grid.program->files.size()) finding.file = grid.program->files[line.file];
  finding.line = line.line;
  finding.thread = thread;
  finding.address = address;
  finding.array = std::move(array);
  finding.message = "kernel '" + finding.kernel + "'" + PlaceText(finding, MayBeOfAnyFile(*grid.program)) + ": " +
                    NameThread(finding.thread) + " " + text;
  return finding;
}

void AddFinding(Grid& grid, Finding finding) {
  std::vector<Finding>& findings = grid.result->findings;
  for (Finding& known : findings) {
    if (known.code != finding.code || known.line != finding.line || finding.fatal) continue;
    ++known.times;
    known.may_be_unused = known.may_be_unused && finding.may_be_unused;
    return;
  }
  findings.push_back(std::move(finding));
  if (findings.size() >= grid.config->max_findings) throw Fault{};
}

void Report(Warp& warp, uint32_t pc, int lane, FindingCode code, bool fatal, DeviceAddress address, std::string array,
            const std::string& text, const ThreadId* other, int other_line) {
  Grid& grid = *warp.grid;
  for (Finding& known : grid.result->findings) {  // counted without building the text
    if (known.code != code || known.line != LineAt(grid, pc) || fatal) continue;
    ++known.times;
    return;
  }
  Finding finding = MakeFinding(grid, pc, IdOf(warp, lane), code, address, std::move(array), text);
  finding.fatal = fatal;
  finding.has_other = other != nullptr;
  if (other != nullptr) finding.other = *other;
  finding.other_line = other_line;
  AddFinding(grid, std::move(finding));
}

}  // namespace kgrpo::simt
