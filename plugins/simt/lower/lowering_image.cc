// Texture fetches and accesses to surfaces, by objects in registers. Their handlers are in image_ops.cc.
#include <array>
#include <string>
#include <string_view>

#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"
#include "simt/state/image.h"

namespace kgrpo::simt {
namespace {

// By ImageShape, as PTX names them; linear memory is read by 1d.
constexpr std::array<std::string_view, 8> kGeometries = {"", "1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};

}  // namespace

void Lowerer::ImageOperation(const Statement& statement, const Opcode& op, Instruction& in) {
  const bool texture = op.base == "tex", store = op.base == "sust";
  if (op.Has("level") || op.Has("grad")) Unsupported("a mipmapped texture ('" + std::string(statement.opcode) + "')");
  size_t shape = 0;
  for (size_t i = 1; i < kGeometries.size(); ++i) {
    if (op.Has(kGeometries[i])) shape = i;
  }
  const Arg& image = statement.args.at(store ? 0 : 1);
  const Arg& data = statement.args.at(store ? 1 : 0);
  if (shape == 0 || (!texture && !op.Has("b")) || statement.args.size() != 2) UnsupportedInstruction(statement);
  if (image.kind != Arg::Kind::kAddress || image.elements.size() != 1) Malformed("expected an image's coordinates");
  if (image.reg < 0 || TypeBytes(TypeOf(image)) != 8)
    Unsupported("a texture reference ('" + std::string(statement.opcode) + "')");
  in.a = Register(image.reg, false);
  uint32_t slot_bytes = 4;
  List(data, in, !store, slot_bytes, op.type());
  const uint32_t bytes = TypeBytes(op.type());
  const bool fits =
      texture ? in.count == 4 && TypeBytes(op.type()) == 4 && op.type_count == 2 && op.types[1] != Type::kF16x2
              : slot_bytes == (bytes == 8 ? 8u : 4u) && in.count * bytes <= 16;
  if (!fits) UnsupportedInstruction(statement);
  const std::vector<Arg> single{image.elements[0]};
  const std::vector<Arg>& coordinates =
      image.elements[0].kind == Arg::Kind::kVector ? image.elements[0].elements : single;
  const auto of = static_cast<ImageShape>(shape);
  for (size_t i = 0; i < CoordinatesOf(of) + (IsLayered(of) ? 1 : 0); ++i)
    kernel_.operands.push_back(SourceArg(coordinates.at(i), 4, Type::kF32));
  in.size = static_cast<uint8_t>(shape);
  if (texture) {
    in.run = &FetchTexture;
    in.offset = op.types[1] == Type::kS32 ? 1 : 0;
  } else {
    in.run = store ? &StoreSurface : &LoadSurface;
    const BoundaryMode mode = op.Has("clamp")  ? BoundaryMode::kClamp
                              : op.Has("zero") ? BoundaryMode::kZero
                                               : BoundaryMode::kTrap;
    in.offset = bytes << 8 | static_cast<uint32_t>(mode);
  }
  Emit(in, CostOf(op));
}

}  // namespace kgrpo::simt
