// The interpreter's texture fetches against a GPU's, bit for bit: random textures at random coordinates. Skipped where
// there is no GPU.
#include <cuda_runtime_api.h>

#include "interpreter/client/cuda_types.h"
#include "simt/image_cases.h"
#include "test.h"
#include "test_device.h"

asm(R"(
.section .rodata
kgrpo_image_ptx:
.incbin ")" KGRPO_IMAGE_PTX R"("
.byte 0
.previous
)");
extern "C" const char kgrpo_image_ptx[];

namespace kgrpo::evaluator_cuda {
namespace {

using simt::Bits4;
using simt::ChannelKind;
using simt::Float4;
using simt::Image;
using simt::ImageCase;
using simt::ImageShape;

// The structures of our libcudart, which is built without the toolkit's headers.
#define SAME_PLACE(own, member, theirs, name)                                  \
  static_assert(offsetof(interpreter::own, member) == offsetof(theirs, name)); \
  static_assert(sizeof(interpreter::own::member) == sizeof(theirs::name))
SAME_PLACE(CudaResource, flags, cudaResourceDesc, flags);
SAME_PLACE(CudaTexture, read_mode, cudaTextureDesc, readMode);
SAME_PLACE(CudaTexture, border, cudaTextureDesc, borderColor);
SAME_PLACE(CudaTexture, normalized_coordinates, cudaTextureDesc, normalizedCoords);
SAME_PLACE(CudaTexture, seamless_cubemap, cudaTextureDesc, seamlessCubemap);
SAME_PLACE(CudaCopy3D, source, cudaMemcpy3DParms, srcPtr);
SAME_PLACE(CudaCopy3D, extent, cudaMemcpy3DParms, extent);
SAME_PLACE(CudaCopy3D, kind, cudaMemcpy3DParms, kind);
SAME_PLACE(CudaLaunchConfig, stream, cudaLaunchConfig_t, stream);
SAME_PLACE(CudaLaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
SAME_PLACE(CudaDeviceProperties, texture_pitch_alignment, cudaDeviceProp, texturePitchAlignment);
static_assert(offsetof(interpreter::CudaResource, linear.bytes) == offsetof(cudaResourceDesc, res.linear.sizeInBytes));
static_assert(offsetof(interpreter::CudaResource, pitched.pitch) ==
              offsetof(cudaResourceDesc, res.pitch2D.pitchInBytes));
static_assert(sizeof(interpreter::CudaTexture) == sizeof(cudaTextureDesc));
static_assert(sizeof(interpreter::CudaLaunchAttribute) == sizeof(cudaLaunchAttribute));
static_assert(offsetof(interpreter::CudaLaunchAttribute, value) == offsetof(cudaLaunchAttribute, val));

#define EXPECT_SUCCESS(call) EXPECT_EQ(call, cudaSuccess) << #call

class ImageGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "needs an NVIDIA GPU";
    ASSERT_EQ(cudaSetDevice(TestDevice()), cudaSuccess);
    ASSERT_EQ(cudaLibraryLoadData(&library_, kgrpo_image_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0), cudaSuccess);
  }
  void TearDown() override {
    if (library_ != nullptr) cudaLibraryUnload(library_);
  }

  // The texels in the memory that the case's shape asks for.
  static cudaResourceDesc MakeResource(const ImageCase& one) {
    const Image& image = one.object.image;
    const int bits = 8 * image.channel_bytes, channels = image.channels;
    const cudaChannelFormatDesc format = {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                                          channels > 2 ? bits : 0, static_cast<cudaChannelFormatKind>(image.kind)};
    cudaResourceDesc resource = {};
    if (one.is_linear()) {
      resource.resType = cudaResourceTypeLinear;
      EXPECT_SUCCESS(cudaMalloc(&resource.res.linear.devPtr, one.texels.size()));
      EXPECT_SUCCESS(
          cudaMemcpy(resource.res.linear.devPtr, one.texels.data(), one.texels.size(), cudaMemcpyHostToDevice));
      resource.res.linear.desc = format;
      resource.res.linear.sizeInBytes = one.texels.size();
      return resource;
    }
    const bool cube = image.shape >= ImageShape::kCube;
    const bool layered = simt::IsLayered(image.shape);
    const bool flat = image.shape == ImageShape::k1D || image.shape == ImageShape::k1DLayered;
    const bool deep = cube || layered || image.shape == ImageShape::k3D;
    resource.resType = cudaResourceTypeArray;
    EXPECT_SUCCESS(cudaMalloc3DArray(&resource.res.array.array, &format,
                                     {image.width, flat ? 0 : image.height, deep ? image.depth : 0},
                                     (layered ? cudaArrayLayered : 0u) | (cube ? cudaArrayCubemap : 0u)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = {const_cast<uint8_t*>(one.texels.data()), image.pitch, image.width, image.height};
    copy.dstArray = resource.res.array.array;
    copy.extent = {image.width, image.height, image.depth};
    copy.kind = cudaMemcpyHostToDevice;
    EXPECT_SUCCESS(cudaMemcpy3D(&copy));
    return resource;
  }

  std::vector<Bits4> FetchOnDevice(const ImageCase& one) {
    cudaResourceDesc resource = MakeResource(one);
    cudaTextureDesc description = {};
    for (int i = 0; i < 3; ++i) description.addressMode[i] = static_cast<cudaTextureAddressMode>(one.object.modes[i]);
    description.filterMode = one.object.linear_filter ? cudaFilterModeLinear : cudaFilterModePoint;
    description.readMode = one.object.normalized_float ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    std::memcpy(description.borderColor, one.object.border, sizeof description.borderColor);
    description.normalizedCoords = one.object.normalized_coordinates ? 1 : 0;
    cudaTextureObject_t texture = 0;
    EXPECT_SUCCESS(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    const size_t n = one.coordinates.size();
    void *coordinates = nullptr, *out = nullptr;
    EXPECT_SUCCESS(cudaMalloc(&coordinates, n * sizeof(Float4)));
    EXPECT_SUCCESS(cudaMalloc(&out, n * sizeof(Bits4)));
    EXPECT_SUCCESS(cudaMemcpy(coordinates, one.coordinates.data(), n * sizeof(Float4), cudaMemcpyHostToDevice));
    cudaKernel_t kernel = nullptr;
    EXPECT_SUCCESS(cudaLibraryGetKernel(&kernel, library_, one.kernel().c_str()));
    int count = static_cast<int>(n);
    void* arguments[] = {&texture, &coordinates, &out, &count};
    EXPECT_SUCCESS(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3((count + 63) / 64), dim3(64), arguments,
                                    0, nullptr));
    std::vector<Bits4> values(n);
    EXPECT_SUCCESS(cudaMemcpy(values.data(), out, n * sizeof(Bits4), cudaMemcpyDeviceToHost));
    EXPECT_SUCCESS(cudaDestroyTextureObject(texture));
    EXPECT_SUCCESS(one.is_linear() ? cudaFree(resource.res.linear.devPtr) : cudaFreeArray(resource.res.array.array));
    EXPECT_SUCCESS(cudaFree(coordinates));
    EXPECT_SUCCESS(cudaFree(out));
    return values;
  }

  cudaLibrary_t library_ = nullptr;
};

// Without a filter the bits are equal. How a filter's sum is rounded is not documented: values within a step of the
// weights, 1/256 of the range of two texels, and a line that says how many differ.
TEST_F(ImageGpuTest, FetchesAsTheInterpreterDoes) {
  constexpr uint64_t kCases = 2000;
  size_t filtered = 0, different = 0;
  double most = 0;
  int failed = 0;  // cases: the first value of each is shown
  for (uint64_t number = 0; number < kCases && failed < 10; ++number) {
    const ImageCase one = simt::MakeImageCase(number, 256);
    if (one.object.linear_filter && one.object.image.shape >= ImageShape::kCube) continue;  // refused
    std::string messages;
    const std::vector<Bits4> own = simt::FetchInterpreted(one, kgrpo_image_ptx, &messages);
    ASSERT_EQ(messages, "") << one;
    const std::vector<Bits4> device = FetchOnDevice(one);
    if (HasFatalFailure()) return;
    bool right = true;
    for (size_t i = 0; i < own.size() && right; ++i) {
      for (size_t channel = 0; channel < 4 && right; ++channel) {
        const uint32_t a = own[i][channel], b = device[i][channel];
        const Float4& at = one.coordinates[i];
        if (!one.object.linear_filter) {
          right = a == b;
          EXPECT_EQ(a, b) << one << ", channel " << channel << " at " << at[0] << ", " << at[1] << ", " << at[2];
          continue;
        }
        ++filtered;
        if (a == b) continue;
        ++different;
        const double error = std::fabs(static_cast<double>(std::bit_cast<float>(a)) - std::bit_cast<float>(b));
        most = std::max(most, error);
        right = error <= 2.0 / 256;
        EXPECT_LE(error, 2.0 / 256) << one << ", channel " << channel << " at " << at[0] << ", " << at[1] << ", "
                                    << at[2] << ": " << std::bit_cast<float>(a) << " and " << std::bit_cast<float>(b);
      }
    }
    if (!right) ++failed;
  }
  std::printf("linear filter: %zu of %zu values differ from the GPU's, by at most %.3g\n", different, filtered, most);
  EXPECT_TRUE(failed > 0 || filtered > 50000u);
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
