// Textures and surfaces: values against the formulas of the CUDA C++ programming guide (Texture Fetching), and what is
// found in their uses.
#include <cmath>

#include "harness.h"
#include "image_cases.h"

namespace kgrpo::simt {
namespace {

// ---- the guide's formulas, one dimension inside the other ----

class Formula {
 public:
  explicit Formula(const ImageCase& one) : one_(one), object_(one.object), image_(one.object.image) {}

  // Channel `channel` of fetch `i`, as bits.
  uint32_t At(size_t i, size_t channel) const {
    if (channel >= image_.channels) return 0;
    const Float4& c = one_.coordinates[i];
    const auto whole = [&](size_t k) { return std::bit_cast<int32_t>(c[k]); };
    const auto layer = [&](int64_t most) { return std::min<int64_t>(static_cast<uint32_t>(whole(0)), most); };
    const auto depth = static_cast<int64_t>(image_.depth);
    switch (image_.shape) {
      case ImageShape::kLinear:
        return whole(0) < 0 || whole(0) >= static_cast<int64_t>(image_.width)
                   ? 0
                   : Bits(Texel(channel, whole(0), 0, 0), channel);
      case ImageShape::k1D: return Bits(Value(channel, {c[0]}, 0), channel);
      case ImageShape::k2D: return Bits(Value(channel, {c[0], c[1]}, 0), channel);
      case ImageShape::k3D: return Bits(Value(channel, {c[0], c[1], c[2]}, 0), channel);
      case ImageShape::k1DLayered: return Bits(Value(channel, {c[1]}, layer(depth - 1)), channel);
      case ImageShape::k2DLayered: return Bits(Value(channel, {c[1], c[2]}, layer(depth - 1)), channel);
      case ImageShape::kCube: return Bits(OnCube(channel, c[0], c[1], c[2], 0), channel);
      default: return Bits(OnCube(channel, c[1], c[2], c[3], layer(1)), channel);
    }
  }

 private:
  uint32_t Bits(double value, size_t) const {
    if (one_.is_float()) return std::bit_cast<uint32_t>(static_cast<float>(value));
    return static_cast<uint32_t>(static_cast<int64_t>(value));
  }

  double Texel(size_t channel, int64_t x, int64_t y, int64_t z) const {
    if (x < 0 || y < 0 || z < 0) {
      const double span = std::ldexp(1, 8 * image_.channel_bytes);
      if (!one_.is_float()) {  // the low bits
        const double low = std::fmod(object_.border[channel], span);
        return image_.kind == ChannelKind::kSigned && low >= span / 2 ? low - span : low;
      }
      const double border = std::bit_cast<float>(object_.border[channel]);
      if (!object_.normalized_float) return border;
      const bool has_sign = image_.kind == ChannelKind::kSigned;
      const auto steps = static_cast<float>(std::exp2(8 * image_.channel_bytes - (has_sign ? 1 : 0)) - 1);
      const double clamped = std::min(std::max(border, has_sign ? -1.0 : 0.0), 1.0);
      return static_cast<float>(std::round(clamped * steps)) / steps;
    }
    const size_t texel =
        static_cast<size_t>((z * static_cast<int64_t>(image_.height) + y) * static_cast<int64_t>(image_.width) + x);
    const uint8_t* at = &one_.texels[(texel * image_.channels + channel) * image_.channel_bytes];
    uint32_t bits = 0;
    for (int b = image_.channel_bytes; b-- > 0;) bits = bits << 8 | at[b];
    if (image_.kind == ChannelKind::kFloat) {
      if (image_.channel_bytes == 4) return static_cast<double>(std::bit_cast<float>(bits));
      return ((bits & 0x8000u) != 0 ? -1 : 1) *
             std::ldexp(1024.0 + (bits & 1023u), static_cast<int>(bits >> 10 & 31u) - 25);
    }
    const double span = std::ldexp(1, 8 * image_.channel_bytes);
    double value = bits;
    const bool is_signed = image_.kind == ChannelKind::kSigned;
    if (is_signed && value >= span / 2) value -= span;
    if (!object_.normalized_float) return value;
    return std::max(-1.0, static_cast<double>(static_cast<float>(value / (is_signed ? span / 2 - 1 : span - 1))));
  }

  int64_t Index(int64_t i, int64_t n, AddressMode mode) const {
    const bool repeats = object_.normalized_coordinates;
    while (mode == AddressMode::kWrap && repeats && (i < 0 || i >= n)) i += i < 0 ? n : -n;
    while (mode == AddressMode::kMirror && repeats && (i < 0 || i >= n)) i = i < 0 ? -1 - i : 2 * n - 1 - i;
    if (mode == AddressMode::kBorder) return i < 0 || i >= n ? -1 : i;
    return std::min(std::max<int64_t>(i, 0), n - 1);
  }

  // The value at coordinates x, the last of which is the outermost; `layer` is the slice of images below three
  // dimensions.
  double Value(size_t channel, std::vector<float> x, int64_t layer) const {
    std::vector<int64_t> at;
    return Along(channel, x, layer, x.size(), at);
  }
  double Along(size_t channel, const std::vector<float>& x, int64_t layer, size_t left,
               std::vector<int64_t>& at) const {
    if (left == 0) {
      std::array<int64_t, 3> place = {0, 0, x.size() < 3 ? layer : 0};
      for (size_t i = 0; i < at.size(); ++i) place[at.size() - 1 - i] = at[i];
      return Texel(channel, place[0], place[1], place[2]);
    }
    const size_t axis = left - 1;
    const std::array<uint64_t, 3> sizes = {image_.width, image_.height, image_.depth};
    const auto n = static_cast<int64_t>(sizes[axis]);
    double scaled = static_cast<double>(x[axis]);
    if (object_.normalized_coordinates) {
      if (object_.modes[axis] == AddressMode::kWrap) scaled -= std::floor(scaled);
      scaled *= static_cast<double>(n);
    }
    const auto with = [&](int64_t i) {
      at.push_back(Index(i, n, object_.modes[axis]));
      const double value = Along(channel, x, layer, left - 1, at);
      at.pop_back();
      return value;
    };
    if (!object_.linear_filter) return with(static_cast<int64_t>(std::floor(scaled)));
    const double from = std::floor(scaled - 0.5);
    const double weight = std::floor((scaled - 0.5 - from) * 256 + 0.5) / 256;  // may round to 1
    const auto i = static_cast<int64_t>(from);
    return (weight < 1 ? (1 - weight) * with(i) : 0) + (weight > 0 ? weight * with(i + 1) : 0);
  }

  // The table of Cubemap Textures: face, and coordinates in it, by the largest component.
  double OnCube(size_t channel, float x, float y, float z, int64_t layer) const {
    const float c[3] = {x, y, z};
    size_t main = 0;
    for (size_t i = 1; i < 3; ++i) main = std::fabs(c[i]) > std::fabs(c[main]) ? i : main;
    const size_t face = 2 * main + (c[main] < 0 ? 1 : 0);
    const double m = std::fabs(static_cast<double>(c[main]));
    const double s[6] = {-z, z, x, x, x, -x}, t[6] = {-y, -y, z, -z, -y, -y};
    ImageCase own = one_;
    own.object.normalized_coordinates = false;
    std::fill(own.object.modes, own.object.modes + 3, AddressMode::kClamp);
    // In double: the coordinates of a face are no floats.
    const auto width = static_cast<double>(image_.width);
    return Formula(own).Face(channel, (s[face] / m + 1) / 2 * width, (t[face] / m + 1) / 2 * width,
                             6 * layer + static_cast<int64_t>(face));
  }
  double Face(size_t channel, double x, double y, int64_t z) const {
    const auto n = static_cast<int64_t>(image_.width);
    const auto texel = [&](int64_t i, int64_t j) {
      return Texel(channel, Index(i, n, AddressMode::kClamp), Index(j, n, AddressMode::kClamp), z);
    };
    if (!object_.linear_filter) return texel(static_cast<int64_t>(std::floor(x)), static_cast<int64_t>(std::floor(y)));
    const auto split = [](double v, int64_t* i) {
      const double from = std::floor(v - 0.5);
      *i = static_cast<int64_t>(from);
      return std::floor((v - 0.5 - from) * 256 + 0.5) / 256;
    };
    int64_t i = 0, j = 0;
    const double a = split(x, &i), b = split(y, &j);
    return (1 - a) * (1 - b) * texel(i, j) + a * (1 - b) * texel(i + 1, j) + (1 - a) * b * texel(i, j + 1) +
           a * b * texel(i + 1, j + 1);
  }

  const ImageCase& one_;
  const ImageObject& object_;
  const Image& image_;
};

TEST(Image, FetchesAreTheGuidesFormulas) {
  const std::string ptx = ReadPtx("image");
  for (uint64_t number = 0; number < 240; ++number) {
    const ImageCase one = MakeImageCase(number, 128);
    std::string messages;
    const std::vector<Bits4> values = FetchInterpreted(one, ptx, &messages);
    ASSERT_EQ(messages, "") << one;
    const Formula formula(one);
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t channel = 0; channel < 4; ++channel) {
        ASSERT_EQ(values[i][channel], formula.At(i, channel))
            << one << ", channel " << channel << " at " << one.coordinates[i][0] << ", " << one.coordinates[i][1]
            << ", " << one.coordinates[i][2] << ": " << std::bit_cast<float>(values[i][channel]) << " and "
            << std::bit_cast<float>(formula.At(i, channel));
      }
    }
  }
}

// ---- uses ----

class ImageUse : public testing::Test {
 protected:
  ImageUse() : bench_("image") {}

  // An image of floats; the memory is not written.
  ImageObject Floats(uint64_t width, uint64_t height, ImageShape shape = ImageShape::k2D) {
    ImageObject object;
    object.image = {.width = width, .height = height, .pitch = 4 * width, .shape = shape};
    object.image.address = bench_.Reserve<float>(width * height, "image");
    return object;
  }
  uint64_t Surface(ImageObject object) {
    object.is_surface = true;
    return bench_.memory.AddObject(object);
  }
  LaunchResult Fetch(const std::string& kernel, uint64_t texture, const std::vector<Float4>& coordinates) {
    const DeviceAddress c = bench_.Upload(coordinates, "coordinates");
    const DeviceAddress out = bench_.Reserve<Float4>(coordinates.size(), "out");
    return bench_.Run(kernel, Config({1}, {32}), texture, c, out, static_cast<int>(coordinates.size()));
  }
  void Write(const ImageObject& object, const std::vector<float>& values) {
    bench_.memory.Write(object.image.address, values.data(), 4 * values.size());
  }
  static void ExpectOne(const LaunchResult& result, FindingCode code, const std::string& text) {
    ASSERT_EQ(result.findings.size(), 1u) << Messages(result);
    EXPECT_EQ(result.findings[0].code, code);
    EXPECT_NE(result.findings[0].message.find(text), std::string::npos) << result.findings[0].message;
  }

  Bench bench_;
};

TEST_F(ImageUse, ReadsOnlyWhatWasWritten) {
  ImageObject object = Floats(8, 8);
  Write(object, NoiseVector(63));
  object.linear_filter = true;
  const uint64_t texture = bench_.memory.AddObject(object);
  EXPECT_CLEAN(Fetch("two_float4", texture, {{7.5f, 6.5f}}));  // the row below has the weight 0
  ExpectOne(Fetch("two_float4", texture, {{7.25f, 7.5f}}), FindingCode::kUninitialised,
            "reads 4 bytes that nothing has written, at byte 252 of 'image' (256 bytes)");
}

TEST_F(ImageUse, StaysWithinItsMemory) {
  ImageObject object = Floats(16, 1, ImageShape::kLinear);
  Write(object, NoiseVector(16));
  object.image.width = 24;  // a size in bytes that the memory does not have
  const uint64_t texture = bench_.memory.AddObject(object);
  const auto at = [](int i) { return Float4{std::bit_cast<float>(i)}; };
  const LaunchResult outside = Fetch("linear_float4", texture, {at(-1), at(24), at(15)});
  EXPECT_CLEAN(outside);  // of the texture: zeros
  ASSERT_EQ(outside.notes.size(), 1u);
  EXPECT_NE(outside.notes[0].find("outside of its linear memory"), std::string::npos);
  ExpectOne(Fetch("linear_float4", texture, {at(16)}), FindingCode::kOutOfBounds,
            "reads 4 bytes out of bounds, just past the end of 'image' (64 bytes)");
  bench_.memory.Free(object.image.address);
  ExpectOne(Fetch("linear_float4", texture, {at(0)}), FindingCode::kOutOfBounds, "freed");
}

TEST_F(ImageUse, NeedsAnObjectOfItsKind) {
  const ImageObject object = Floats(8, 8);
  Write(object, NoiseVector(64));
  const uint64_t texture = bench_.memory.AddObject(object);
  ExpectOne(Fetch("three_float4", texture, {{1, 1, 1}}), FindingCode::kTrap, "accesses a 2D image as a 3D image");
  ExpectOne(Fetch("two_float4", Surface(object), {{1, 1}}), FindingCode::kOutOfBounds, "texture object that was never");
  EXPECT_TRUE(bench_.memory.RemoveObject(texture));
  EXPECT_FALSE(bench_.memory.RemoveObject(texture));
  ExpectOne(Fetch("two_float4", texture, {{1, 1}}), FindingCode::kOutOfBounds, "or was destroyed before the launch");
  ImageObject linear = Floats(8, 1, ImageShape::kLinear);
  ExpectOne(Fetch("one_float4", bench_.memory.AddObject(linear), {{1}}), FindingCode::kTrap,
            "only tex1Dfetch reads linear memory");
}

TEST_F(ImageUse, SurfacesKeepTheirBounds) {
  const int width = 32, height = 4;
  ImageObject from = Floats(width, height), to = Floats(width, height);
  Write(from, NoiseVector(static_cast<size_t>(width * height)));
  const auto value = [&](int x, int y) {
    return NoiseVector(static_cast<size_t>(width * height))[static_cast<size_t>(y * width + x)];
  };
  const LaunchConfig config = Config({4}, {32});
  const auto shift = [&](const char* kernel, int dx, int dy) {
    return bench_.Run(kernel, config, Surface(from), Surface(to), dx, dy);
  };
  EXPECT_CLEAN(shift("shift_Zero", 3, -1));
  std::vector<float> got = bench_.Download<float>(to.image.address, static_cast<size_t>(width * height));
  for (int i = 0; i < width * height; ++i) {
    const int x = i % width + 3, y = i / width - 1;
    ASSERT_EQ(got[static_cast<size_t>(i)], x < width && y >= 0 ? value(x, y) : 0.0f) << i;
  }
  EXPECT_CLEAN(shift("shift_Clamp", -5, 2));
  got = bench_.Download<float>(to.image.address, static_cast<size_t>(width * height));
  for (int i = 0; i < width * height; ++i)
    ASSERT_EQ(got[static_cast<size_t>(i)], value(std::max(i % width - 5, 0), std::min(i / width + 2, height - 1))) << i;
  EXPECT_CLEAN(shift("shift_Trap", 0, 0));
  ExpectOne(shift("shift_Trap", 1, 0), FindingCode::kOutOfBounds,
            "reads 4 bytes out of bounds, at byte 128 of row 0 of slice 0 of a surface of 1 x 4 rows of 128 bytes");
}

TEST_F(ImageUse, SurfacesOfOtherShapes) {
  ImageObject volume;
  volume.image = {.width = 8, .height = 3, .depth = 2, .pitch = 128, .shape = ImageShape::k3D, .channels = 4};
  volume.image.address = bench_.Reserve<Float4>(48, "volume");
  EXPECT_CLEAN(bench_.Run("write_volume", Config({3, 2}, {8}), Surface(volume), 0));
  const std::vector<Float4> got = bench_.Download<Float4>(volume.image.address, 48);
  for (size_t i = 0; i < 48; ++i)
    EXPECT_EQ(got[i],
              (Float4{static_cast<float>(i % 8), static_cast<float>(i / 8 % 3), static_cast<float>(i / 24), 1}));
  ExpectOne(bench_.Run("write_volume", Config({3, 2}, {8}), Surface(volume), 1), FindingCode::kOutOfBounds,
            "writes 16 bytes out of bounds, at byte 128 of row 0 of slice 0");
  ImageObject layers;
  layers.image = {.width = 16,
                  .height = 2,
                  .depth = 3,
                  .pitch = 16,
                  .shape = ImageShape::k2DLayered,
                  .kind = ChannelKind::kUnsigned,
                  .channel_bytes = 1};
  layers.image.address = bench_.Upload(std::vector<uint8_t>(96, 1), "layers");
  EXPECT_CLEAN(bench_.Run("write_layer", Config({1}, {16}), Surface(layers), uint8_t{7}, 1));
  const std::vector<uint8_t> bytes = bench_.Download<uint8_t>(layers.image.address, 96);
  for (size_t i = 0; i < 96; ++i) EXPECT_EQ(bytes[i], i / 16 == 3 ? 7 : 1) << i;
  ExpectOne(bench_.Run("misaligned", Config({1}, {1}), Surface(Floats(8, 1, ImageShape::k1D))),
            FindingCode::kMisaligned, "not a multiple of 4");
}

TEST_F(ImageUse, ReadsWhatTheLaunchWrites) {
  const ImageObject object = Floats(32, 1);
  Write(object, NoiseVector(32));
  const uint64_t texture = bench_.memory.AddObject(object);
  const DeviceAddress out = bench_.Reserve<float>(32, "out");
  const LaunchResult late = bench_.Run("write_then_fetch", Config({1}, {32}), Surface(object), texture, out);
  ExpectOne(late, FindingCode::kRace, "sees only what was written before the launch");
  EXPECT_TRUE(late.findings[0].has_other);
  EXPECT_EQ(late.findings[0].line, late.findings[0].other_line + 2);
  EXPECT_CLEAN(bench_.Run("fetch_then_write", Config({1}, {32}), Surface(object), texture, out));
}

// A fetch is counted as global loads of its texels, one load for each that the filter reads.
TEST_F(ImageUse, IsCountedAsLoads) {
  ImageObject object = Floats(64, 4);
  Write(object, NoiseVector(256));
  for (const bool filter : {false, true}) {
    object.linear_filter = filter;
    std::vector<Float4> coordinates;
    for (int i = 0; i < 32; ++i) coordinates.push_back({static_cast<float>(i) + 0.75f, 1.75f});
    const DeviceAddress c = bench_.Upload(coordinates, "coordinates");
    const DeviceAddress out = bench_.Reserve<Float4>(32, "out");
    const LaunchResult result =
        bench_.Run("two_float4", Config({1}, {32}, Mode::kCounted), bench_.memory.AddObject(object), c, out, 32);
    double requests = 0, sectors = 0;
    for (const ArrayTraffic& array : result.counts.arrays) {
      if (array.name == "image") requests = array.load_requests, sectors = array.load_sectors;
    }
    EXPECT_EQ(requests, filter ? 4 : 1);
    EXPECT_EQ(sectors, filter ? 18 : 4);  // 128 bytes: four sectors, or five from the second texel on
  }
}

}  // namespace
}  // namespace kgrpo::simt
