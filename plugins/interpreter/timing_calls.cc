#include "interpreter/timing_calls.h"

#include <algorithm>
#include <vector>

#include "interpreter/code_not_judged.h"  // LinesOfEdges

namespace kgrpo::interpreter {
namespace {

// The warp instructions of a checked block, some 50 ms. Afterwards it runs on without checks.
constexpr uint64_t kCheckedInstructions = 300'000;

}  // namespace

Trouble TimingCalls::Call(simt::Mode mode, BlockChoice choice, CallRecord* record) {
  constexpr int kMostCalls = 8;
  std::vector<simt::RacingReads> racing_reads;
  choice.racing_reads = &racing_reads;
  for (int calls = 1;; ++calls) {
    *record = CallRecord();
    tensors_.reset();
    tensors_ = make_();
    const Trouble trouble = loaded_.Call(*tensors_, mode, choice, record);
    if (trouble.code != "race" || !record->may_be_unused || calls == kMostCalls) return trouble;
    racing_reads.resize(std::max(racing_reads.size(), record->racing_reads.size()));
    for (size_t l = 0; l < record->racing_reads.size(); ++l) racing_reads[l].Add(record->racing_reads[l]);
    tensors_.reset();
    if (Trouble again = loaded_.Start()) return again;  // the call that was stopped has ended its process
  }
}

void TimingCalls::AddChecks(BlockChoice* choice) {
  choice->choose_checked = 2;
  choice->checked_instructions = kCheckedInstructions;
}

bool TimingCalls::IsSure(const Trouble& trouble, const CallRecord& record) {
  return (trouble.code == "race" || trouble.code == "uninitialised") && record.launches == 1 && record.independent;
}

bool TimingCalls::IsFinal(const CallRecord& record) {
  return record.launches == 1 && record.independent && !record.host_writes && !record.reads_back;
}

Trouble TimingCalls::CheckNewEdges(const CallRecord& record, bool whole, uint64_t warp_instructions) {
  constexpr size_t kMostBlocks = 4;            // of a launch
  constexpr uint64_t kMostAgain = 30'000'000;  // warp instructions, where all blocks must run again
  std::vector<std::vector<uint64_t>> blocks;
  std::vector<std::pair<uint32_t, uint32_t>> edges;  // of a kernel each
  for (const auto& [kernel, firsts] : record.firsts) {
    std::vector<uint64_t>& of_launch = blocks.emplace_back();
    for (const simt::Coverage::First& first : firsts) {
      if (loaded_.session.coverage()[kernel].Unchecked(first.at) == 0) continue;
      edges.emplace_back(kernel, first.at);
      if (of_launch.size() == kMostBlocks) continue;
      if (std::find(of_launch.begin(), of_launch.end(), first.block) == of_launch.end())
        of_launch.push_back(first.block);
    }
    std::sort(of_launch.begin(), of_launch.end());
  }
  if (edges.empty()) return {};
  const auto leave_out = [&] {
    not_checked_ = "races in the branches and loops at " +
                   LinesOfEdges(loaded_.session.module(), edges, loaded_.kernel.source) +
                   ", which only the timing size takes";
    return Trouble{};
  };
  if (whole && record.warp_instructions > kMostAgain) return leave_out();
  tensors_.reset();
  if (Trouble trouble = loaded_.Restore()) return trouble;
  CallRecord checked;
  const Trouble trouble = Call(simt::Mode::kPlain,
                               {.warp_instructions = warp_instructions,
                                .checked_instructions = kCheckedInstructions,
                                .checked_blocks = &blocks,
                                .only_checked = !whole},
                               &checked);
  return checked.out_of_budget ? leave_out() : trouble;
}

Trouble TimingCalls::Check(uint64_t seed, bool whole, uint64_t warp_instructions) {
  constexpr uint32_t kSampled = 24, kFurther = 8;
  BlockChoice choice = {.further_seed = seed, .warp_instructions = warp_instructions};
  AddChecks(&choice);
  loaded_.session.KeepState();
  CallRecord record;
  if (!whole) {
    choice.blocks = kSampled;
    choice.further_blocks = kFurther;
    const Trouble trouble = Call(simt::Mode::kCounted, choice, &record);
    if (IsSure(trouble, record)) return trouble;
    if (!trouble && IsFinal(record)) return CheckNewEdges(record, false, warp_instructions);
    tensors_.reset();
    if (Trouble again = loaded_.Start()) return again;
  }
  if (Trouble trouble = Call(simt::Mode::kPlain, choice, &record)) return trouble;
  return CheckNewEdges(record, true, warp_instructions);
}

}  // namespace kgrpo::interpreter
