// Texture and surface objects: how a kernel sees an allocation as an image. Made for a candidate's host code
// (interpreter/client/cudart_images.cc), kept by DeviceMemory, used by ops/image_ops.cc. Plain data, because it also
// travels from the sandboxed worker to the evaluator.
#pragma once

#include <cstdint>

namespace kgrpo::simt {

// kLinear: linear memory, read by tex1Dfetch. The others have the geometry of PTX's .1d, .2d, .3d, .a1d, .a2d, .cube
// and .acube.
enum class ImageShape : uint8_t { kLinear, k1D, k2D, k3D, k1DLayered, k2DLayered, kCube, kCubeLayered };

constexpr bool IsLayered(ImageShape shape) {
  return shape == ImageShape::k1DLayered || shape == ImageShape::k2DLayered || shape == ImageShape::kCubeLayered;
}
// The coordinates of a texel, of a cube's direction: without the layer, which comes before them.
constexpr uint32_t CoordinatesOf(ImageShape shape) {
  constexpr uint8_t kCount[] = {1, 1, 2, 3, 1, 2, 3, 3};
  return kCount[static_cast<uint8_t>(shape)];
}

// As cudaChannelFormatKind.
enum class ChannelKind : uint8_t { kSigned, kUnsigned, kFloat };

// As cudaTextureAddressMode.
enum class AddressMode : uint8_t { kWrap, kClamp, kMirror, kBorder };

// Texels at `address`, `pitch` bytes from a row to the next; the rows of slices, layers and faces follow each other.
struct Image {
  uint64_t address = 0;
  uint64_t width = 0, height = 1, depth = 1;  // in texels; depth also counts layers, and faces of a cube
  uint64_t pitch = 0;
  ImageShape shape = ImageShape::kLinear;
  ChannelKind kind = ChannelKind::kFloat;
  uint8_t channel_bytes = 4, channels = 1;

  uint32_t TexelBytes() const { return uint32_t{channel_bytes} * channels; }
};

struct ImageObject {
  Image image;
  bool is_surface = false;
  // The rest is of textures, as cudaTextureDesc has it.
  bool linear_filter = false;
  bool normalized_coordinates = false;
  bool normalized_float = false;  // cudaReadModeNormalizedFloat
  AddressMode modes[3] = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  uint32_t border[4] = {};  // bits of floats, or of integers where those are read
};

// The most texels in a dimension, of any shape; the runtime has lower limits by shape.
inline constexpr uint64_t kMostTexels = uint64_t{1} << 28, kMostRows = uint64_t{1} << 17;

// False for an object that no runtime of ours makes: it came from a process that is not trusted.
constexpr bool IsValid(const ImageObject& object) {
  const Image& image = object.image;
  const auto is_any = [](uint32_t value, uint32_t a, uint32_t b, uint32_t c) {
    return value == a || value == b || value == c;
  };
  bool valid = image.shape <= ImageShape::kCubeLayered && image.kind <= ChannelKind::kFloat &&
               is_any(image.channel_bytes, 1, 2, 4) && is_any(image.channels, 1, 2, 4) && image.width >= 1 &&
               image.width <= kMostTexels && image.height >= 1 && image.height <= kMostRows && image.depth >= 1 &&
               image.depth <= kMostRows && image.pitch <= 16 * kMostTexels;
  for (const AddressMode mode : object.modes) valid = valid && mode <= AddressMode::kBorder;
  return valid && (image.kind != ChannelKind::kFloat || image.channel_bytes > 1);
}

}  // namespace kgrpo::simt
