// Random textures and coordinates, and their fetches on the interpreter. Shared by image_test.cc, which compares them
// with the CUDA C++ programming guide's formulas, and by tests/evaluator_cuda/image_gpu_test.cc, which compares them
// with a GPU.
#ifndef KGRPO_TESTS_SIMT_IMAGE_CASES_H
#define KGRPO_TESTS_SIMT_IMAGE_CASES_H

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "simt/simt.h"

namespace kgrpo::simt {

using Float4 = std::array<float, 4>;
using Bits4 = std::array<uint32_t, 4>;

struct ImageCase {
  ImageObject object;  // its address is not set
  std::vector<uint8_t> texels;
  std::vector<Float4> coordinates;  // as the kernel takes them; layers and integer coordinates by their bits

  bool is_linear() const { return object.image.shape == ImageShape::kLinear; }
  bool is_float() const { return object.image.kind == ChannelKind::kFloat || object.normalized_float; }
  std::string kernel() const {
    constexpr const char* kNames[] = {"linear",        "one",           "two",  "three",
                                      "layers_of_one", "layers_of_two", "cube", "layers_of_cubes"};
    return kNames[static_cast<size_t>(object.image.shape)] + std::string(is_float() ? "_float4" : "_uint4");
  }
};

inline std::ostream& operator<<(std::ostream& out, const ImageCase& one) {
  const ImageObject& o = one.object;
  return out << one.kernel() << " " << o.image.width << "x" << o.image.height << "x" << o.image.depth << ", kind "
             << int{static_cast<uint8_t>(o.image.kind)} << ", " << int{o.image.channels} << " channels of "
             << int{o.image.channel_bytes} << " bytes, filter " << o.linear_filter << ", normalized coordinates "
             << o.normalized_coordinates << ", values " << o.normalized_float << ", modes "
             << int{static_cast<uint8_t>(o.modes[0])} << int{static_cast<uint8_t>(o.modes[1])}
             << int{static_cast<uint8_t>(o.modes[2])};
}

// Case `number`: its shape is number % 8.
inline ImageCase MakeImageCase(uint64_t number, size_t fetches) {
  uint64_t state = number * 0x9E3779B97F4A7C15ull + 1;
  const auto draw = [&state](uint64_t below) {  // xorshift64*
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 0x2545F4914F6CDD1Dull >> 11) % below;
  };
  ImageCase one;
  ImageObject& object = one.object;
  Image& image = object.image;
  image.shape = static_cast<ImageShape>(number % 8);
  const bool cube = image.shape >= ImageShape::kCube;
  const bool flat = one.is_linear() || image.shape == ImageShape::k1D || image.shape == ImageShape::k1DLayered;
  const bool layered = image.shape == ImageShape::k1DLayered || image.shape == ImageShape::k2DLayered;
  image.width = 1 + draw(37);
  image.height = cube ? image.width : flat ? 1 : 1 + draw(29);
  image.depth = image.shape == ImageShape::kCubeLayered ? 12
                : cube                                  ? 6
                : layered                               ? 1 + draw(3)
                : image.shape == ImageShape::k3D        ? 1 + draw(11)
                                                        : 1;
  image.kind = static_cast<ChannelKind>(draw(3));
  image.channel_bytes = static_cast<uint8_t>(image.kind == ChannelKind::kFloat ? 2u << draw(2) : 1u << draw(3));
  image.channels = static_cast<uint8_t>(1u << draw(3));
  image.pitch = image.width * image.TexelBytes();
  object.normalized_float = image.kind != ChannelKind::kFloat && image.channel_bytes < 4 && draw(2) != 0;
  object.linear_filter = one.is_float() && !one.is_linear() && draw(3) != 0;
  object.normalized_coordinates = !one.is_linear() && draw(2) != 0;
  for (AddressMode& mode : object.modes)
    mode = static_cast<AddressMode>(object.normalized_coordinates ? draw(4) : 1 + 2 * draw(2));
  for (uint32_t& colour : object.border)
    colour = one.is_float() ? std::bit_cast<uint32_t>(static_cast<float>(draw(100)) / 64)
                            : static_cast<uint32_t>(draw(1000));
  one.texels.resize(image.pitch * image.height * image.depth);
  for (size_t i = 0; i < one.texels.size(); i += image.channel_bytes) {
    // Numbers from -1 to 1, in steps that a half has, too.
    const float number_of = (static_cast<float>(draw(2049)) - 1024) / 1024;
    const auto half = static_cast<uint16_t>(0x3800u + draw(1024) + 0x8000u * draw(2));  // 0.5 to 1, and negative
    const uint32_t bits = image.kind != ChannelKind::kFloat ? static_cast<uint32_t>(draw(uint64_t{1} << 32))
                          : image.channel_bytes == 2        ? half
                                                            : std::bit_cast<uint32_t>(number_of);
    for (uint32_t b = 0; b < image.channel_bytes; ++b) one.texels[i + b] = static_cast<uint8_t>(bits >> (8 * b));
  }
  const std::array<uint64_t, 3> sizes = {image.width, image.height, image.depth};
  for (size_t i = 0; i < fetches; ++i) {
    Float4 c{};
    size_t at = 0;
    if (IsLayered(image.shape)) c[at++] = std::bit_cast<float>(static_cast<int32_t>(draw(5)) - 1);
    if (one.is_linear()) c[at++] = std::bit_cast<float>(static_cast<int32_t>(draw(image.width + 8)) - 4);
    for (size_t axis = 0; axis < 3 && at < 4; ++axis) {
      const float unit = static_cast<float>(draw(1 << 20)) / static_cast<float>(1 << 20);
      const auto size = static_cast<float>(sizes[axis]);
      // Half of them in steps of 1/8, so that some lie on texels' centres and edges.
      const float coarse = static_cast<float>(draw(2) != 0 ? 1 : 0);
      float x = cube ? 2 * unit - 1 : object.normalized_coordinates ? 4 * unit - 1.5f : 2 * size * unit - size / 2;
      if (coarse != 0 && !cube) x = static_cast<float>(static_cast<int>(x * 8)) / 8;
      c[at++] = x;
    }
    one.coordinates.push_back(c);
  }
  return one;
}

// The values that the kernel fetches on the interpreter; findings are added to `messages`.
inline std::vector<Bits4> FetchInterpreted(const ImageCase& one, const std::string& ptx, std::string* messages) {
  const std::shared_ptr<const Module> module = Module::Parse(ptx);
  DeviceMemory memory;
  ModuleInstance instance(module, memory);
  const auto upload = [&memory](const void* from, size_t bytes, const char* name) {
    const DeviceAddress address = memory.Allocate(bytes, name);
    if (from != nullptr) memory.Write(address, from, bytes);
    return address;
  };
  ImageObject object = one.object;
  object.image.address = upload(one.texels.data(), one.texels.size(), "texels");
  const size_t n = one.coordinates.size();
  const uint64_t texture = memory.AddObject(object);
  const DeviceAddress coordinates = upload(one.coordinates.data(), n * sizeof(Float4), "coordinates");
  const DeviceAddress out = upload(nullptr, n * sizeof(Bits4), "out");
  LaunchConfig config;
  config.grid = {static_cast<uint32_t>((n + 63) / 64)};
  config.block = {64};
  const uint64_t words[] = {texture, coordinates, out, n};
  config.parameters.assign(reinterpret_cast<const uint8_t*>(words), reinterpret_cast<const uint8_t*>(words) + 28);
  const LaunchResult result = Launch(instance, module->FindKernel(one.kernel()), config);
  for (const Finding& finding : result.findings) *messages += finding.message + "\n";
  std::vector<Bits4> values(n);
  memory.Read(out, values.data(), n * sizeof(Bits4));
  return values;
}

}  // namespace kgrpo::simt
#endif
