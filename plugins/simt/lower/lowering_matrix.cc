// Tensor core instructions.
#include <algorithm>

#include "simt/alu/matrix.h"
#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

// Adds an address offset to the address first: the instruction's offset field holds the operation's own data.
void Lowerer::AddAddressOffset(Instruction& in) {
  Instruction add;
  add.predicate = in.predicate;
  add.flip = in.flip;
  const bool narrow = (in.flags & kFlagShared32) != 0;
  const Opcode sum_op(narrow ? "add.u32" : "add.u64");
  add.run = FindAlu(sum_op).handler;
  add.a = in.a;
  add.b = Constant(narrow ? 4 : 8, static_cast<uint64_t>(in.offset));
  in.a = EmitToNewRegister(add, narrow ? Type::kB32 : Type::kB64, {});
}

void Lowerer::Matrix(const Statement& statement, const Opcode& op, Instruction& in) {
  if (op.Has("sp") || op.Has("sp::ordered_metadata")) UnsupportedInstruction(statement);  // sparse
  if (op.base == "ldmatrix") {
    in.run = FindLdMatrix(op, in);
  } else if (op.base == "stmatrix") {
    in.run = FindStMatrix(op, in);
  } else if (op.base == "movmatrix") {
    in.run = FindMoveMatrix(op);
  } else if (op.base == "mma") {
    in.run = FindMma(op, in);
    if (in.run == nullptr) in.run = FindMmaOfFormat(op, in);
  } else if (op.base == "wmma") {
    in.run = FindWmma(op, in);
  }
  if (in.run == nullptr) UnsupportedInstruction(statement);
  const uint32_t bytes = op.type() == Type::kF64 ? 8 : 4;
  std::vector<Operand> list;
  auto add = [&](const Arg& arg, bool definition) {
    const std::vector<Arg> single{arg};
    for (const Arg& element : arg.kind == Arg::Kind::kVector ? arg.elements : single) {
      list.push_back(definition ? TargetOf(element, bytes) : SourceArg(element, bytes));
    }
  };
  const std::vector<Arg>& args = statement.args;
  const bool store = op.base == "stmatrix" || (op.base == "wmma" && op.Has("store"));
  const bool load = op.base == "ldmatrix" || (op.base == "wmma" && op.Has("load"));
  if (load || store) {
    const int64_t detail = in.offset;
    MemoryAddress(args.at(store ? 0 : 1), op, in);
    if (in.offset != 0) AddAddressOffset(in);
    in.offset = detail;
    add(args.at(store ? 1 : 0), load);
    if (op.base == "wmma") in.b = args.size() > 2 ? SourceArg(args[2], 4) : kNoOperand;
  } else {
    for (size_t i = 1; i < args.size(); ++i) add(args[i], false);
    std::vector<Operand> sources = std::move(list);
    list.clear();
    add(args.at(0), true);
    list.insert(list.end(), sources.begin(), sources.end());
  }
  SetList(in, list);
  tensor_flops_ = static_cast<float>(MatrixOperations(in));
  Shape shape;
  if (ReadShape(op, shape) && op.base == "mma" && tensor_flops_ == 0)
    tensor_flops_ = 2.0f * static_cast<float>(shape.m * shape.n * shape.k);
  Cost cost = CostOf(op);
  if (load)
    cost.latency = static_cast<uint8_t>(static_cast<Space>(in.space) == Space::kShared ? LatencyClass::kShared
                                                                                       : LatencyClass::kGlobal);
  if (op.base == "wmma" && (load || store)) cost.pipe = Pipe::kMemory;
  // wmma is several instructions: m16n8k16, or from and to global memory one access for every 4 or 8 bytes of a lane.
  if (op.base == "wmma" && !load && !store) cost.issue = std::max(1.0f, tensor_flops_ / 4096);
  if (tensor_flops_ > 0) PriceProduct(op, shape.m, shape.k, static_cast<double>(tensor_flops_), &cost);
  if (op.base == "wmma" && (load || store) && static_cast<Space>(in.space) != Space::kShared)
    cost.issue = cost.pipe_use = static_cast<float>(FragmentAccesses(in));
  if (store) cost.latency = static_cast<uint8_t>(LatencyClass::kNone);
  Emit(in, cost);
}

}  // namespace kgrpo::simt
