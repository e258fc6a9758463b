// Operations among the lanes of a warp, and barriers.
#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

void Lowerer::WarpOperation(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const std::string_view base = op.base;
  if (base == "activemask") {
    in.run = &ActiveMask;
    in.d = TargetOf(args.at(0), 4);
  } else if (!op.Has("sync")) {
    Unsupported("'" + std::string(statement.opcode) + "' (a warp operation without .sync)");
  } else if (base == "shfl") {
    if (args.size() != 5) Malformed("shfl with " + std::to_string(args.size()) + " operands");
    in.run = &Shuffle;
    in.size = static_cast<uint8_t>(op.Has("up")     ? ShuffleMode::kUp
                                   : op.Has("down") ? ShuffleMode::kDown
                                   : op.Has("bfly") ? ShuffleMode::kButterfly
                                                    : ShuffleMode::kIndex);
    in.a = SourceArg(args[1], 4);
    in.b = SourceArg(args[2], 4);
    in.c = SourceArg(args[3], 4);
    SetList(in, {SourceArg(args[4], 4)});
    in.d = TargetOf(args[0], 4);
    in.e = SecondTarget(args[0]);
  } else if (base == "vote") {
    in.run = &Vote;
    in.size = static_cast<uint8_t>(op.Has("all")   ? VoteMode::kAll
                                   : op.Has("any") ? VoteMode::kAny
                                   : op.Has("uni") ? VoteMode::kUniform
                                                   : VoteMode::kBallot);
    in.c = PredicateArg(args.at(1), in);
    in.b = SourceArg(args.at(2), 4);
    if (op.Has("ballot")) {
      in.d = TargetOf(args[0], 4);
    } else {
      in.e = Target(args[0]);
    }
  } else if (base == "match") {
    in.run = op.Has("any") ? &MatchAny : &MatchAll;
    in.size = static_cast<uint8_t>(TypeBytes(op.type()));
    in.a = SourceArg(args.at(1), in.size);
    in.b = SourceArg(args.at(2), 4);
    in.d = TargetOf(args[0], 4);
    in.e = SecondTarget(args[0]);
  } else if (base == "elect") {
    in.run = &ElectOne;
    in.b = SourceArg(args.at(1), 4);
    in.d = TargetOf(args[0], 4);
    in.e = SecondTarget(args[0]);
  } else {
    in.run = FindRedux(op);
    if (in.run == nullptr) UnsupportedInstruction(statement);
    in.a = SourceArg(args.at(1), 4);
    in.b = SourceArg(args.at(2), 4);
    in.d = TargetOf(args[0], 4);
  }
  Emit(in, CostOf(op));
}

void Lowerer::BarrierOperation(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  if (op.Has("cluster")) Unsupported("a thread block cluster ('" + std::string(statement.opcode) + "')");
  if (op.Has("warp")) {
    in.run = &SyncWarp;
    in.b = SourceArg(args.at(0), 4);
    Emit(in, CostOf(op));
    return;
  }
  in.run = &simt::Barrier;
  if (op.base == "bar" || op.Has("aligned")) in.flags |= kFlagAligned;
  if (op.Has("red")) {
    const bool popc = op.Has("popc");
    in.offset = static_cast<int64_t>(op.Has("and") ? BarrierKind::kReduceAnd
                                     : popc        ? BarrierKind::kReducePopc
                                                   : BarrierKind::kReduceOr);
    in.a = SourceArg(args.at(1), 4);
    if (args.size() > 3) in.b = SourceArg(args[2], 4);
    in.c = PredicateArg(args.back(), in);
    if (popc) {
      in.d = TargetOf(args[0], 4);
    } else {
      in.e = Target(args[0]);
    }
  } else {
    in.offset = static_cast<int64_t>(op.Has("arrive") ? BarrierKind::kArrive : BarrierKind::kSync);
    in.a = SourceArg(args.at(0), 4);
    if (args.size() > 1) in.b = SourceArg(args[1], 4);
  }
  Emit(in, CostOf(op));
}

}  // namespace kgrpo::simt
