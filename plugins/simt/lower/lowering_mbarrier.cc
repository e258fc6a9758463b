// mbarrier instructions: barriers in shared memory. Their handlers are in mbarrier_ops.cc.
#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

void Lowerer::PhaseBarrierOperation(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const Cost cost{Pipe::kMemory, static_cast<uint8_t>(LatencyClass::kShared), 1, 1};
  // Its scope may be the cluster: each block is alone in its own.
  if ((op.Has("cluster") && !op.Has("shared::cta") && !op.Has("shared")) || op.Has("shared::cluster") ||
      op.Has("multicast::cluster"))
    Unsupported("a thread block cluster ('" + std::string(statement.opcode) + "')");
  if (op.Has("pending_count")) {
    in.run = &MbarrierPending;
    in.a = SourceArg(args.at(1), 8);
    in.d = TargetOf(args[0], 4);
    Emit(in, cost);
    return;
  }
  if (args.empty()) NeedOperands(statement, 1);
  const bool wait = op.Has("test_wait") || op.Has("try_wait");
  const bool copies = op.base == "cp";
  // The address is the first operand or, behind a result, the second.
  const size_t at = args[0].kind == Arg::Kind::kAddress ? 0 : 1;
  if (args.size() <= at) NeedOperands(statement, 2);
  MemoryAddress(args[at], op, in);
  const Arg* value = args.size() > at + 1 ? &args[at + 1] : nullptr;
  if (wait) {
    if (at != 1 || value == nullptr) NeedOperands(statement, 3);
    in.run = &MbarrierWait;
    in.size = op.Has("parity") ? 1 : 0;
    in.b = SourceArg(*value, in.size == 1 ? 4 : 8);
    in.e = Target(args[0]);
  } else if (op.Has("init") || op.Has("inval")) {
    in.run = &MbarrierInit;
    if (op.Has("init")) {
      if (value == nullptr) NeedOperands(statement, 2);
      in.b = SourceArg(*value, 4);
    }
  } else {
    in.run = &MbarrierArrive;
    const bool arrive = op.Has("arrive");
    in.size = static_cast<uint8_t>(copies && op.Has("noinc")       ? ArrivalKind::kAfterCopiesCounted
                                   : copies                        ? ArrivalKind::kAfterCopies
                                   : op.Has("arrive_drop")         ? ArrivalKind::kDrop
                                   : arrive && op.Has("expect_tx") ? ArrivalKind::kExpectBytesAndArrive
                                   : op.Has("expect_tx")           ? ArrivalKind::kExpectBytes
                                   : op.Has("complete_tx")         ? ArrivalKind::kCompleteBytes
                                                                   : ArrivalKind::kArrive);
    if (!arrive && !copies && !op.Has("arrive_drop") && !op.Has("expect_tx") && !op.Has("complete_tx"))
      UnsupportedInstruction(statement);
    if (op.Has("arrive_drop") && op.Has("expect_tx")) UnsupportedInstruction(statement);
    if (value != nullptr) in.b = SourceArg(*value, 4);
    if (at == 1 && args[0].kind != Arg::Kind::kSink) in.d = TargetOf(args[0], 8);
  }
  Emit(in, cost);
}

}  // namespace kgrpo::simt
