// Texture fetches, and loads and stores of surfaces. What they return is defined by the CUDA C++ programming guide
// (Texture Fetching; Texture and Surface Memory) and the PTX ISA (tex, suld, sust). Each texel is checked and counted
// as a load of global memory through the L1 would be.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "simt/alu/half_float.h"
#include "simt/check/access.h"
#include "simt/check/access_counter.h"
#include "simt/state/handlers.h"
#include "simt/state/image.h"

namespace kgrpo::simt {
namespace {

constexpr int64_t kBorderIndex = -1;

// The texels that one coordinate chooses: both of them with a linear filter, else the first.
struct Axis {
  std::array<int64_t, 2> index{};  // or kBorderIndex
  uint32_t weight = 0;             // of the second, in 1/256: the guide's 9-bit fixed point
};
using Axes = std::array<Axis, 3>;

int64_t Addressed(int64_t i, int64_t size, AddressMode mode) {
  if (i >= 0 && i < size) return i;
  const auto modulo = [](int64_t a, int64_t n) { return (a % n + n) % n; };
  switch (mode) {
    case AddressMode::kWrap: return modulo(i, size);
    case AddressMode::kMirror: {
      const int64_t at = modulo(i, 2 * size);
      return at < size ? at : 2 * size - 1 - at;
    }
    case AddressMode::kBorder: return kBorderIndex;
    default: return i < 0 ? 0 : size - 1;
  }
}

Axis AxisOf(double x, uint64_t texels, AddressMode mode, const ImageObject& object) {
  constexpr double kFar = 1099511627776.0;  // 2^40: far outside of any image
  const auto size = static_cast<int64_t>(texels);
  if (std::isnan(x)) x = 0;
  if (object.normalized_coordinates) {
    if (mode == AddressMode::kWrap && std::isfinite(x)) x -= std::floor(x);
    x *= static_cast<double>(size);  // kMirror mirrors the texel's index, which at edges of texels is not the guide's
  } else if (mode == AddressMode::kWrap || mode == AddressMode::kMirror) {
    mode = AddressMode::kClamp;
  }
  x = std::clamp(x, -kFar, kFar);
  if (!object.linear_filter) return {{Addressed(static_cast<int64_t>(std::floor(x)), size, mode), 0}, 0};
  const auto fixed = static_cast<int64_t>(std::floor((x - 0.5) * 256 + 0.5));
  const int64_t first = fixed >> 8;
  return {{Addressed(first, size, mode), Addressed(first + 1, size, mode)}, static_cast<uint32_t>(fixed & 255)};
}

// The face of a cube that a direction points to, and the coordinates in it, from 0 to 1.
struct CubePlace {
  int64_t face;
  double x, y;
};
CubePlace CubePlaceOf(double x, double y, double z) {
  const double ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  int64_t face = 0;
  double m = 0, s = 0, t = 0;
  if (ax >= ay && ax >= az) {
    face = x < 0 ? 1 : 0;
    m = ax, s = x < 0 ? z : -z, t = -y;
  } else if (ay >= az) {
    face = y < 0 ? 3 : 2;
    m = ay, s = x, t = y < 0 ? -z : z;
  } else {
    face = z < 0 ? 5 : 4;
    m = az, s = z < 0 ? -x : x, t = -y;
  }
  return {face, (s / m + 1) / 2, (t / m + 1) / 2};
}

// The texels that a lane's coordinates choose. `c`: as the instruction has them.
Axes AxesOf(const ImageObject& object, const std::array<double, 4>& c) {
  const Image& image = object.image;
  const auto axis = [&](double x, int number) {
    const uint64_t texels = number == 0 ? image.width : number == 1 ? image.height : image.depth;
    return AxisOf(x, texels, object.modes[number], object);
  };
  // An unsigned number: -1 is the last layer.
  const auto layer = [](double value, uint64_t layers) {
    return value < 0 ? static_cast<int64_t>(layers - 1)
                     : static_cast<int64_t>(std::min(value, static_cast<double>(layers - 1)));
  };
  switch (image.shape) {
    case ImageShape::k2D: return {axis(c[0], 0), axis(c[1], 1), {}};
    case ImageShape::k3D: return {axis(c[0], 0), axis(c[1], 1), axis(c[2], 2)};
    case ImageShape::k1DLayered: return {axis(c[1], 0), {}, {{layer(c[0], image.depth), 0}, 0}};
    case ImageShape::k2DLayered: return {axis(c[1], 0), axis(c[2], 1), {{layer(c[0], image.depth), 0}, 0}};
    case ImageShape::kCube:
    case ImageShape::kCubeLayered: {
      const bool layered = image.shape == ImageShape::kCubeLayered;
      const CubePlace place = layered ? CubePlaceOf(c[1], c[2], c[3]) : CubePlaceOf(c[0], c[1], c[2]);
      ImageObject face = object;
      face.normalized_coordinates = true;
      const int64_t first = layered ? 6 * layer(c[0], image.depth / 6) : 0;
      return {AxisOf(place.x, image.width, AddressMode::kClamp, face),
              AxisOf(place.y, image.height, AddressMode::kClamp, face),
              {{first + place.face, 0}, 0}};
    }
    default: return {axis(c[0], 0), {}, {}};
  }
}

uint64_t TexelAddress(const Image& image, int64_t x, int64_t y, int64_t z) {
  return image.address + (static_cast<uint64_t>(z) * image.height + static_cast<uint64_t>(y)) * image.pitch +
         static_cast<uint64_t>(x) * image.TexelBytes();
}

// The results of a texel, or of the border without one: bits of floats or integers. Channels that an image lacks are 0,
// as measured on an H100 (the guides do not define them).
std::array<uint32_t, 4> Decode(const ImageObject& object, const std::byte* texel) {
  const Image& image = object.image;
  std::array<uint32_t, 4> result{};
  const uint32_t bits = 8u * image.channel_bytes, unused = 32 - bits;
  const bool has_sign = image.kind == ChannelKind::kSigned;
  const auto most = static_cast<float>((uint64_t{1} << (bits - (has_sign ? 1 : 0))) - 1);  // of a normalized value
  // A border has the texels' format, as measured: normalized values in its steps, integers by their low bits.
  if (texel == nullptr && (object.normalized_float || image.kind == ChannelKind::kFloat)) {
    std::copy_n(object.border, image.channels, result.begin());
    for (uint32_t c = 0; object.normalized_float && c < image.channels; ++c) {
      const float border = std::clamp(std::bit_cast<float>(result[c]), has_sign ? -1.0f : 0.0f, 1.0f);
      result[c] = std::bit_cast<uint32_t>(std::round(border * most) / most);
    }
    return result;
  }
  for (uint32_t c = 0; c < image.channels; ++c) {
    uint32_t value = 0;
    std::memcpy(
        &value,
        texel == nullptr ? reinterpret_cast<const std::byte*>(&object.border[c]) : texel + c * image.channel_bytes,
        image.channel_bytes);
    const auto with_sign = static_cast<int32_t>(value << unused) >> unused;
    if (image.kind == ChannelKind::kFloat) {
      if (bits == 16) value = std::bit_cast<uint32_t>(HalfToFloat(value));
    } else if (object.normalized_float) {
      const float number = has_sign ? static_cast<float>(with_sign) : static_cast<float>(value);
      value = std::bit_cast<uint32_t>(std::max(number / most, -1.0f));
    } else if (has_sign) {
      value = static_cast<uint32_t>(with_sign);
    }
    result[c] = value;
  }
  return result;
}

const char* ShapeName(ImageShape shape) {
  constexpr const char* kNames[] = {"linear memory",     "a 1D image",        "a 2D image", "a 3D image",
                                    "layered 1D images", "layered 2D images", "a cubemap",  "layered cubemaps"};
  return kNames[static_cast<size_t>(shape)];
}

[[noreturn]] void Stop(Warp& warp, const Instruction& in, int lane, FindingCode code, uint64_t address,
                       const std::string& text) {
  Report(warp, in.index, lane, code, true, address, "", text);
  throw Fault{};
}

// Calls each(object, lanes) for the objects that the lanes of `mask` name. Ends the launch if one is no object that the
// instruction can access.
template <typename Each>
void ForObjects(Warp& warp, const Instruction& in, uint32_t mask, bool surface, Each each) {
  const uint64_t* handles = SourceAs<uint64_t>(warp, in.a);
  while (mask != 0) {
    const int first = std::countr_zero(mask);
    const uint64_t handle = handles[first];
    uint32_t lanes = 0;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      if (handles[std::countr_zero(m)] == handle) lanes |= m & (~m + 1);
    }
    mask &= ~lanes;
    const ImageObject* object = warp.grid->memory->FindObject(handle);
    if (object == nullptr || object->is_surface != surface)
      Stop(warp, in, first, FindingCode::kOutOfBounds, 0,
           std::string("uses a ") + (surface ? "surface" : "texture") +
               " object that was never created, or was destroyed before the launch");
    const ImageShape own = object->image.shape;
    ImageShape wanted = static_cast<ImageShape>(in.size);
    if (wanted == ImageShape::k1D && own == ImageShape::kLinear && in.offset == 1) wanted = own;  // tex1Dfetch
    if (surface && wanted == ImageShape::k2DLayered && own >= ImageShape::kCube)
      wanted = own;  // their faces are layers
    if (own != wanted)
      Stop(warp, in, first, FindingCode::kTrap, 0,
           std::string("accesses ") + ShapeName(own) + " as " + ShapeName(wanted) +
               (own == ImageShape::kLinear ? "; only tex1Dfetch reads linear memory" : ""));
    each(*object, lanes);
  }
}

uint32_t CoordinateBits(const Warp& warp, const Instruction& in, uint32_t number, int lane) {
  return SourceAs<uint32_t>(warp, warp.grid->kernel->operands[in.extra + in.count + number])[lane];
}

// Resolves the lanes' addresses, which are in `access`, for reading.
void ReadTexels(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, Access& access) {
  Grid& grid = *warp.grid;
  ResolveAddresses(warp, in, mask, bytes, AccessKind::kLoad, Space::kGlobal, access);
  if (grid.counter != nullptr) grid.counter->CountAccess(warp, in, mask, access, AccessKind::kLoad);
  if (!grid.checked) return;
  CheckInitialised(warp, in, mask, access);
  CheckImageReadOrder(warp, in, mask, access);
}

// The texels that a lane's fetch chooses.
Axes ChosenBy(const Warp& warp, const Instruction& in, const ImageObject& object, int lane) {
  const Image& image = object.image;
  const bool layered = IsLayered(image.shape);
  std::array<double, 4> c{};
  for (uint32_t i = 0; i < CoordinatesOf(image.shape) + (layered ? 1 : 0); ++i) {
    const uint32_t bits = CoordinateBits(warp, in, i, lane);
    const bool is_integer = in.offset == 1 || (layered && i == 0);
    c[i] =
        is_integer ? static_cast<double>(static_cast<int32_t>(bits)) : static_cast<double>(std::bit_cast<float>(bits));
  }
  if (image.shape != ImageShape::kLinear) return AxesOf(object, c);
  const auto texel = static_cast<int64_t>(c[0]);
  if (texel >= 0 && texel < static_cast<int64_t>(image.width)) return {{{{texel, 0}, 0}, {}, {}}};
  NoteFact(*warp.grid, "A kernel reads texels outside of its linear memory, which are 0",
           ": line " + std::to_string(LineAt(*warp.grid, in.index)) + " reads texel " + std::to_string(texel) + " of " +
               std::to_string(image.width));
  return {{{{kBorderIndex, 0}, 0}, {}, {}}};
}

void Fetch(Warp& warp, const Instruction& in, uint32_t mask, const ImageObject& object) {
  const Image& image = object.image;
  const bool linear_memory = image.shape == ImageShape::kLinear;
  const bool filters = object.linear_filter && !linear_memory;
  std::array<Axes, kLanes> axes;
  std::array<std::array<uint32_t, 4>, kLanes> result{};
  std::array<std::array<double, 4>, kLanes> sum{};
  for (const int l : EachBit(mask)) {
    axes[static_cast<size_t>(l)] = ChosenBy(warp, in, object, l);
  }
  const bool cube = image.shape >= ImageShape::kCube;
  const int filtered = filters ? (cube ? 2 : static_cast<int>(CoordinatesOf(image.shape))) : 0;
  for (uint32_t tap = 0; tap < (1u << filtered); ++tap) {
    Access access;
    std::array<double, kLanes> weights{};
    uint32_t reads = 0;
    const auto add = [&](int lane, const std::array<uint32_t, 4>& texel) {
      const auto l = static_cast<size_t>(lane);
      if (!filters) result[l] = texel;
      for (size_t i = 0; i < 4 && filters; ++i)
        sum[l][i] += weights[l] * static_cast<double>(std::bit_cast<float>(texel[i]));
    };
    for (const int lane : EachBit(mask)) {
      const auto l = static_cast<size_t>(lane);
      std::array<int64_t, 3> at{};
      weights[l] = 1;
      for (size_t a = 0; a < 3; ++a) {
        const Axis& axis = axes[l][a];
        const size_t second = static_cast<int>(a) < filtered ? (tap >> a) & 1u : 0;
        at[a] = axis.index[second];
        if (static_cast<int>(a) < filtered) weights[l] *= (second != 0 ? axis.weight : 256 - axis.weight) / 256.0;
      }
      if (weights[l] == 0) continue;  // so its texel does not matter
      if (std::find(at.begin(), at.end(), kBorderIndex) != at.end()) {
        add(static_cast<int>(l), linear_memory ? std::array<uint32_t, 4>{} : Decode(object, nullptr));
        continue;
      }
      access.address[l] = TexelAddress(image, at[0], at[1], at[2]);
      reads |= 1u << l;
    }
    if (reads == 0) continue;
    ReadTexels(warp, in, reads, image.TexelBytes(), access);
    for (const int l : EachBit(reads)) add(l, Decode(object, access.At(l)));
  }
  for (uint32_t i = 0; i < in.count; ++i) {
    const Operand target = warp.grid->kernel->operands[in.extra + i];
    if (target == kNoOperand) continue;
    auto* d = TargetAs<uint32_t>(warp, target);
    for (const int lane : EachBit(mask)) {
      const auto l = static_cast<size_t>(lane);
      d[l] = filters ? std::bit_cast<uint32_t>(static_cast<float>(sum[l][i])) : result[l][i];
    }
  }
}

// Sets the addresses of the surface elements that the lanes of `mask` access. Returns the lanes that access any: with
// BoundaryMode::kZero, those outside do not; with kTrap they end the launch.
uint32_t PlaceSurface(Warp& warp, const Instruction& in, uint32_t mask, const Image& image, bool stores,
                      Access& access) {
  const auto mode = static_cast<BoundaryMode>(in.offset & 0xFF);
  const uint32_t bytes = static_cast<uint32_t>(in.offset >> 8) * in.count;
  const auto shape = static_cast<ImageShape>(in.size);
  const bool layered = IsLayered(shape);
  const uint32_t coordinates = CoordinatesOf(shape) + (layered ? 1 : 0);
  const std::array<int64_t, 3> most = {static_cast<int64_t>(image.width * image.TexelBytes()) - bytes,
                                       static_cast<int64_t>(image.height) - 1, static_cast<int64_t>(image.depth) - 1};
  uint32_t inside = 0;
  for (const int l : EachBit(mask)) {
    std::array<int64_t, 3> at{};
    for (uint32_t i = 0; i < coordinates; ++i) {
      const size_t axis = !layered ? i : i == 0 ? 2 : i - 1;  // the layer comes first
      at[axis] = static_cast<int32_t>(CoordinateBits(warp, in, i, l));
    }
    const std::array<int64_t, 3> wanted = at;
    for (size_t i = 0; i < 3; ++i) at[i] = std::clamp<int64_t>(at[i], 0, std::max<int64_t>(most[i], 0));
    if ((at != wanted || most[0] < 0) && mode == BoundaryMode::kTrap)
      Stop(warp, in, l, FindingCode::kOutOfBounds, 0,
           std::string(stores ? "writes " : "reads ") + ByteCount(bytes) + " out of bounds, at byte " +
               std::to_string(wanted[0]) + " of row " + std::to_string(wanted[1]) + " of slice " +
               std::to_string(wanted[2]) + " of a surface of " + std::to_string(image.depth) + " x " +
               std::to_string(image.height) + " rows of " + std::to_string(image.width * image.TexelBytes()) +
               " bytes (x counts bytes)");
    if (at != wanted && mode == BoundaryMode::kZero) continue;
    access.address[l] = TexelAddress(image, 0, at[1], at[2]) + static_cast<uint64_t>(at[0]);
    inside |= 1u << l;
  }
  return inside;
}

// Bytes i * size to (i + 1) * size of a lane's value are in register i.
template <typename Copy>
void ForElements(Warp& warp, const Instruction& in, Copy copy) {
  const auto size = static_cast<uint32_t>(in.offset >> 8);
  for (uint32_t i = 0; i < in.count; ++i) copy(warp.grid->kernel->operands[in.extra + i], i * size, size);
}

}  // namespace

void FetchTexture(Warp& warp, const Instruction& in, uint32_t mask) {
  ForObjects(warp, in, mask, false, [&](const ImageObject& object, uint32_t lanes) { Fetch(warp, in, lanes, object); });
}

void LoadSurface(Warp& warp, const Instruction& in, uint32_t mask) {
  ForObjects(warp, in, mask, true, [&](const ImageObject& object, uint32_t lanes) {
    Access access;
    const uint32_t inside = PlaceSurface(warp, in, lanes, object.image, false, access);
    if (inside != 0) ReadTexels(warp, in, inside, static_cast<uint32_t>(in.offset >> 8) * in.count, access);
    ForElements(warp, in, [&](Operand target, uint32_t from, uint32_t size) {
      if (target == kNoOperand) return;
      for (const int l : EachBit(lanes)) {
        uint64_t value = 0;
        if (((inside >> l) & 1u) != 0) std::memcpy(&value, access.At(l) + from, size);
        if (size == 8) {
          TargetAs<uint64_t>(warp, target)[l] = value;
        } else {
          TargetAs<uint32_t>(warp, target)[l] = static_cast<uint32_t>(value);
        }
      }
    });
  });
}

void StoreSurface(Warp& warp, const Instruction& in, uint32_t mask) {
  ForObjects(warp, in, mask, true, [&](const ImageObject& object, uint32_t lanes) {
    Grid& grid = *warp.grid;
    Access access;
    const uint32_t inside = PlaceSurface(warp, in, lanes, object.image, true, access);
    if (inside == 0) return;
    const uint32_t bytes = static_cast<uint32_t>(in.offset >> 8) * in.count;
    ResolveAddresses(warp, in, inside, bytes, AccessKind::kStore, Space::kGlobal, access);
    if (grid.counter != nullptr) grid.counter->CountAccess(warp, in, inside, access, AccessKind::kStore);
    MarkWritten(warp, inside, access);
    const bool each = grid.checked && !NoteStores(warp, in, inside, access);
    for (const int l : EachBit(inside)) {
      std::array<std::byte, 16> value{};
      ForElements(warp, in, [&](Operand source, uint32_t from, uint32_t size) {
        const std::byte* lane = Source(warp, source) + static_cast<size_t>(l) * (size == 8 ? 8 : 4);
        std::memcpy(value.data() + from, lane, size);
      });
      if (each)
        CheckStoreOrder(warp, in, l, access, AccessKind::kStore, std::memcmp(access.At(l), value.data(), bytes) != 0);
      std::memcpy(access.At(l), value.data(), bytes);
    }
  });
}

}  // namespace kgrpo::simt
