// The operands of the rarer arithmetic, whose handlers are in lane_ops.cc and lane_video.cc.
#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

// A result and up to three sources of 32 bits (or 16, in registers of 32).
void Lowerer::LaneOperation(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  if (op.base == "createpolicy") {  // a cache policy does not change results
    if (args.empty()) NeedOperands(statement, 2);
    in.run = FindAlu(Opcode("mov.b64")).handler;
    in.a = Constant(8, 0);
    in.d = TargetOf(args[0], 8);
    Emit(in, CostOf(op));
    return;
  }
  if (op.base == "lop3" && (op.Has("or") || op.Has("and"))) {
    NeedOperands(statement, 6);
    in.run = &Lop3Predicate;
    in.a = SourceArg(args[1], 4);
    in.b = SourceArg(args[2], 4);
    in.c = SourceArg(args[3], 4);
    in.offset = static_cast<int64_t>(args[4].bits);
    in.size = op.Has("or") ? 1 : 0;
    SetList(in, {PredicateArg(args[5], in)});
    in.d = args[0].kind == Arg::Kind::kSink ? kNoOperand : TargetOf(args[0], 4);
    in.e = SecondTarget(args[0]);
    Emit(in, CostOf(op));
    return;
  }
  in.run = FindLaneOperation(op, in);
  if (in.run == nullptr) UnsupportedInstruction(statement);
  if (args.size() < 2 || args.size() > 4) NeedOperands(statement, 4);
  if (!args[0].selector.empty()) UnsupportedInstruction(statement);
  auto selected = [&](const Arg& arg, int shift) {
    if (arg.selector.empty()) return;
    const int code = SelectorCode(arg.selector);
    if (code < 0) UnsupportedInstruction(statement);
    in.offset |= static_cast<int64_t>(code) << shift;
  };
  selected(args[1], kSelectorShiftA);
  in.a = SourceArg(args[1], 4, op.type());
  if (args.size() > 2) {
    selected(args[2], kSelectorShiftB);
    in.b = SourceArg(args[2], 4, op.type());
  }
  if (args.size() > 3) {
    if (!args[3].selector.empty()) UnsupportedInstruction(statement);
    in.c = SourceArg(args[3], 4, op.type());
  }
  in.d = TargetOf(args[0], 4);
  Emit(in, CostOf(op));
}

}  // namespace kgrpo::simt
