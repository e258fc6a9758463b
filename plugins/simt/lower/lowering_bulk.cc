// Bulk copies of one dimension (cp.async.bulk) and their groups. Their handlers are in bulk_copies.cc.
#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

void Lowerer::BulkCopyOperation(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const std::string name = "'" + std::string(statement.opcode) + "'";
  const bool stores = op.Has("bulk_group");
  if (op.Has("multicast::cluster") || (op.Has("shared::cluster") && op.Has("shared::cta")))
    Unsupported("a thread block cluster (" + name + ")");
  if (op.Has("tensor") || op.Has("im2col")) Unsupported("PTX instruction " + name + " (tensor maps)");
  if (op.Has("reduce") || op.Has("cp_mask") || op.Has("ignore_oob")) UnsupportedInstruction(statement);
  if (op.Has("commit_group")) {
    in.run = &CommitBulkCopies;
    Emit(in, {Pipe::kControl, 0, 1, 1});
    return;
  }
  if (op.Has("wait_group")) {
    in.run = &WaitBulkCopies;
    in.offset = static_cast<int64_t>(args.at(0).bits);
    in.size = op.Has("read") ? 1 : 0;
    Emit(in, {Pipe::kControl, static_cast<uint8_t>(LatencyClass::kBarrier), 1, 1});
    return;
  }
  if (op.Has("prefetch")) {
    in.run = &Prefetch;
    Emit(in, CostOf(op));
    return;
  }
  if (args.size() < (stores ? 3 : 4)) NeedOperands(statement, stores ? 3 : 4);
  Instruction global, barrier;
  MemoryAddress(args[stores ? 1 : 0], Opcode("st.shared"), in);
  MemoryAddress(args[stores ? 0 : 1], op, global, true);
  in.b = global.a;
  in.c = SourceArg(args[2], 4);
  if (stores) {
    in.run = &StoreBulk;
    SetList(in, {Constant(8, static_cast<uint64_t>(global.offset))});
  } else {
    in.run = &LoadBulk;
    MemoryAddress(args[3], Opcode("st.shared"), barrier);
    in.size = (barrier.flags & kFlagShared32) != 0 ? 4 : 8;
    SetList(in, {Constant(8, static_cast<uint64_t>(global.offset)), barrier.a,
                 Constant(8, static_cast<uint64_t>(barrier.offset))});
  }
  kernel_.bulk_copies = true;
  // Addresses, size and barrier travel in uniform registers: a few instructions fill them.
  Emit(in, {Pipe::kMemory, static_cast<uint8_t>(LatencyClass::kNone), 8, 1});
}

}  // namespace kgrpo::simt
