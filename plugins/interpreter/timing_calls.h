// Calls of a candidate at the timing size, in which some blocks run with every check: races and reads of unwritten
// memory may need a size that no correctness case has. Used by both evaluators.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "interpreter/loaded_kernel.h"
#include "interpreter/tensors.h"

namespace kgrpo::interpreter {

// One thread. What the constructor is given outlives this.
class TimingCalls {
 public:
  // `make` makes the tensors of a call.
  TimingCalls(LoadedKernel& loaded, std::function<std::unique_ptr<Tensors>()> make)
      : loaded_(loaded), make_(std::move(make)) {}

  // Calls the launch function once, with fresh tensors, which stay until the next call. Like RunCase of the correctness
  // cases, it calls again if values that others overwrite may or may not be used.
  Trouble Call(simt::Mode mode, BlockChoice choice, CallRecord* record);
  const Tensors& tensors() const { return *tensors_; }
  void FreeTensors() { tensors_.reset(); }

  // The choice of a call that checks two neighbouring blocks.
  static void AddChecks(BlockChoice* choice);
  // True if the trouble of a call in which a part of the blocks ran is certain: no launch ran before, and blocks that
  // others cannot observe do not read what skipped blocks would have written.
  static bool IsSure(const Trouble& trouble, const CallRecord& record);
  // True if outputs of a part of the blocks are final.
  static bool IsFinal(const CallRecord& record);

  // Checks in full the blocks that took a branch, or began a loop's second turn, which no checked block took before.
  // `record` is of the last call, in which all blocks ran if `whole`.
  Trouble CheckNewEdges(const CallRecord& record, bool whole, uint64_t warp_instructions);
  // What CheckNewEdges left out, since all blocks would have to run again for too long: "races in the branches and
  // loops at line 12, which only the timing size takes"; or empty.
  const std::string& not_checked() const { return not_checked_; }

  // The checks without counts: a call of some blocks, chosen by `seed`, and the blocks that took new edges in it. All
  // blocks run if `whole`, or if those that ran may depend on others. Only a `race` or `uninitialised` accuses: with
  // any other trouble the calls could not be finished.
  Trouble Check(uint64_t seed, bool whole, uint64_t warp_instructions);

 private:
  LoadedKernel& loaded_;
  const std::function<std::unique_ptr<Tensors>()> make_;
  std::unique_ptr<Tensors> tensors_;
  std::string not_checked_;
};

}  // namespace kgrpo::interpreter
