// Our libcudart.so.13, fourth part: CUDA arrays, pitched memory, copies of rows, texture and surface objects. An array
// is memory of cudaMalloc with its rows side by side; its layout is kept here. See cudart.cc; functions that are
// missing here (mipmapped arrays) fail to load, by name.
#include <algorithm>
#include <cstring>
#include <map>

#include "interpreter/client/connection.h"
#include "interpreter/client/stream_capture.h"
#include "simt/state/image.h"

using namespace kgrpo::interpreter;  // NOLINT: a C interface in the global namespace over our own types
using kgrpo::simt::AddressMode;
using kgrpo::simt::ChannelKind;
using kgrpo::simt::Image;
using kgrpo::simt::ImageObject;
using kgrpo::simt::ImageShape;

static_assert(sizeof(CudaChannelFormat) == 20);
static_assert(sizeof(CudaResource) == 144);
static_assert(sizeof(CudaTexture) == 72);
static_assert(sizeof(CudaCopy3D) == 160);

extern "C" int cudaMalloc(void** pointer, size_t bytes);

namespace {

constexpr unsigned kLayered = 1, kSurfaceAccess = 2, kCubemap = 4, kGather = 8;  // flags of arrays
constexpr size_t kAlignment = 512, kPitchAlignment = 32;                         // cudaDeviceProp has them, too
constexpr size_t kAddressAlignment = 256;  // of cudaMalloc's memory here, so a texture's address need have no more

struct Array {
  CudaChannelFormat format;
  CudaExtent extent;  // as it was asked for
  unsigned flags;
  Image image;
};

// By handle, which is the address of the memory. A handle is looked up here and never dereferenced.
std::map<const void*, Array>& Arrays() {
  static std::map<const void*, Array> arrays;
  return arrays;
}

const Array* FindArray(const void* handle) {
  const auto found = Arrays().find(handle);
  return found != Arrays().end() ? &found->second : nullptr;
}

// Sets an image's format. Returns a CudaError.
int SetFormat(const CudaChannelFormat& format, Image* image) {
  const int bits = format.bits[0];
  int channels = 0;
  while (channels < 4 && format.bits[channels] == bits) ++channels;
  const bool others = std::any_of(format.bits + channels, format.bits + 4, [](int other) { return other != 0; });
  if ((bits != 8 && bits != 16 && bits != 32) || others || channels == 3 || format.kind < 0 || format.kind > 2 ||
      (format.kind == 2 && bits == 8))
    return kCudaInvalidChannelDescriptor;
  image->kind = static_cast<ChannelKind>(format.kind);
  image->channel_bytes = static_cast<uint8_t>(bits / 8);
  image->channels = static_cast<uint8_t>(channels);
  return kCudaSuccess;
}

// The largest images of compute capability 9.0 (CUDA C++ programming guide, Technical Specifications).
CudaExtent LargestExtent(ImageShape shape) {
  switch (shape) {
    case ImageShape::kLinear: return {size_t{1} << 28, 1, 1};
    case ImageShape::k1D: return {131072, 1, 1};
    case ImageShape::k2D: return {131072, 65536, 1};
    case ImageShape::k3D: return {16384, 16384, 16384};
    case ImageShape::k1DLayered: return {32768, 1, 2048};
    case ImageShape::kCube: return {32768, 32768, 6};
    default:  // layers of images or of cubes
      return {32768, 32768, 2048};
  }
}

// Sets shape and extent of an array's image. Returns a CudaError.
int SetExtent(const CudaExtent& extent, unsigned flags, Image* image) {
  const bool layered = (flags & kLayered) != 0, flat = extent.height == 0;
  image->shape = (flags & kCubemap) != 0 ? layered ? ImageShape::kCubeLayered : ImageShape::kCube
                 : layered               ? flat ? ImageShape::k1DLayered : ImageShape::k2DLayered
                 : extent.depth != 0     ? ImageShape::k3D
                 : flat                  ? ImageShape::k1D
                                         : ImageShape::k2D;
  image->width = extent.width;
  image->height = std::max<size_t>(extent.height, 1);
  image->depth = std::max<size_t>(extent.depth, 1);
  image->pitch = image->width * image->TexelBytes();
  const CudaExtent most = LargestExtent(image->shape);
  const bool is_cube = (flags & kCubemap) != 0;
  const bool fits = image->width >= 1 && image->width <= most.width && image->height <= most.height &&
                    image->depth <= most.depth && (!layered || extent.depth != 0) &&
                    (image->shape != ImageShape::k3D || !flat) &&
                    (!is_cube || (image->width == image->height && image->depth % 6 == 0));
  return fits ? kCudaSuccess : kCudaInvalidValue;
}

int MakeArray(void** handle, const CudaChannelFormat* format, const CudaExtent& extent, unsigned flags) {
  if (handle == nullptr || format == nullptr) return kCudaInvalidValue;
  if ((flags & ~(kLayered | kSurfaceAccess | kCubemap | kGather)) != 0) RefuseCall("a sparse or deferred CUDA array");
  Array array = {*format, extent, flags, {}};
  if (const int error = SetFormat(*format, &array.image); error != kCudaSuccess) return error;
  if (const int error = SetExtent(extent, flags, &array.image); error != kCudaSuccess) return error;
  if (const int error = WorkAtOnce(); error != kCudaSuccess) return error;
  const Reply reply = Ask(Operation::kAllocate, array.image.pitch * array.image.height * array.image.depth, 1);
  if (reply.error != kCudaSuccess) return reply.error;
  array.image.address = reply.value;
  *handle = reinterpret_cast<void*>(reply.value);
  Arrays()[*handle] = array;
  return kCudaSuccess;
}

// One side of a copy of rows.
struct Side {
  char* start = nullptr;
  size_t pitch = 0, slice = 0;  // bytes from a row, and from a slice, to the next
};

// The part of an array from a position on, in bytes, rows and slices; null where it leaves the array.
Side PartOf(const void* handle, const CudaExtent& position, const CudaExtent& extent) {
  const Array* array = FindArray(handle);
  if (array == nullptr) return {};
  const Image& image = array->image;
  const auto leaves = [](size_t from, size_t count, size_t size) { return from > size || count > size - from; };
  if (leaves(position.width, extent.width, image.pitch) || leaves(position.height, extent.height, image.height) ||
      leaves(position.depth, extent.depth, image.depth))
    return {};
  const size_t slice = image.pitch * image.height;
  char* start = reinterpret_cast<char*>(image.address);
  return {start + position.depth * slice + position.height * image.pitch + position.width, image.pitch, slice};
}

Side PitchedSide(const void* start, size_t pitch, size_t rows = 1) {
  return {static_cast<char*>(const_cast<void*>(start)), pitch, pitch * rows};
}

int Copy(const Side& target, const Side& source, const CudaExtent& extent, int kind, void* stream, bool at_once) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return kCudaSuccess;
  if (target.start == nullptr || source.start == nullptr) return SetError(kCudaInvalidValue);
  if (extent.height > 1 && (target.pitch < extent.width || source.pitch < extent.width))
    return SetError(kCudaInvalidPitchValue);
  Work work = MakeCopy(target.start, source.start, extent.width, kind);
  work.rows = extent.height;
  work.slices = extent.depth;
  work.target_pitch = target.pitch;
  work.target_slice = target.slice;
  work.source_pitch = source.pitch;
  work.source_slice = source.slice;
  return SetError(at_once ? RunAtOnce(work) : Submit(stream, std::move(work)));
}

int Copy3D(const CudaCopy3D* copy, void* stream, bool at_once) {
  if (copy == nullptr) return SetError(kCudaInvalidValue);
  const Array *to = FindArray(copy->target_array), *from = FindArray(copy->source_array);
  if ((copy->target_array != nullptr && to == nullptr) || (copy->source_array != nullptr && from == nullptr))
    return SetError(kCudaInvalidValue);
  CudaExtent extent = copy->extent;  // in elements of an array, if one takes part; of pointers in bytes
  const Array* counted = to != nullptr ? to : from;
  if (counted != nullptr) extent.width *= counted->image.TexelBytes();
  const auto side = [&](const Array* array, const void* handle, CudaExtent position, const CudaPitchedPointer& other) {
    if (array != nullptr) {
      position.width *= array->image.TexelBytes();
      return PartOf(handle, position, extent);
    }
    Side pitched = PitchedSide(other.pointer, other.pitch, std::max<size_t>(other.height, 1));
    if (pitched.start != nullptr)
      pitched.start += position.depth * pitched.slice + position.height * pitched.pitch + position.width;
    return pitched;
  };
  return Copy(side(to, copy->target_array, copy->target_position, copy->target),
              side(from, copy->source_array, copy->source_position, copy->source), extent, copy->kind, stream, at_once);
}

int AddObject(const ImageObject& object, unsigned long long* handle) {
  const Reply reply = Ask(Operation::kAddObject, 0, 0, 0, &object, sizeof object);
  if (reply.error == kCudaSuccess) *handle = reply.value;
  return SetError(reply.error);
}

// Sets the image that a resource names. Returns a CudaError.
int SetImage(const CudaResource& resource, Image* image) {
  constexpr int kOfArray = 0, kOfMipmappedArray = 1, kOfLinear = 2, kOfPitched = 3;
  if (resource.type == kOfMipmappedArray) RefuseCall("a mipmapped array");
  if (resource.type == kOfArray) {
    const Array* array = FindArray(resource.array);
    if (array == nullptr) return kCudaInvalidValue;
    *image = array->image;
    return kCudaSuccess;
  }
  if (resource.type != kOfLinear && resource.type != kOfPitched) return kCudaInvalidValue;
  const bool linear = resource.type == kOfLinear;
  const int error = SetFormat(linear ? resource.linear.format : resource.pitched.format, image);
  if (error != kCudaSuccess) return error;
  image->address = reinterpret_cast<uintptr_t>(linear ? resource.linear.pointer : resource.pitched.pointer);
  image->shape = linear ? ImageShape::kLinear : ImageShape::k2D;
  image->width = linear ? resource.linear.bytes / image->TexelBytes() : resource.pitched.width;
  image->height = linear ? 1 : resource.pitched.height;
  image->pitch = linear ? 0 : resource.pitched.pitch;
  const CudaExtent most = LargestExtent(image->shape);
  const bool fits = image->address % kAddressAlignment == 0 && image->width >= 1 && image->width <= most.width &&
                    image->height >= 1 && image->height <= most.height;
  const bool rows_fit =
      linear || (image->pitch % kPitchAlignment == 0 && image->width * image->TexelBytes() <= image->pitch &&
                 image->pitch <= 16 * kgrpo::simt::kMostTexels);
  return fits && rows_fit ? kCudaSuccess : kCudaInvalidValue;
}

}  // namespace

extern "C" {

CudaChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w, int kind) { return {{x, y, z, w}, kind}; }

int cudaMallocArray(void** array, const CudaChannelFormat* format, size_t width, size_t height, unsigned flags) {
  return Spent(__func__, MakeArray(array, format, {width, height, 0}, flags));
}

int cudaMalloc3DArray(void** array, const CudaChannelFormat* format, CudaExtent extent, unsigned flags) {
  return Spent(__func__, MakeArray(array, format, extent, flags));
}

int cudaFreeArray(void* array) {
  Spend(__func__);
  if (array == nullptr) return kCudaSuccess;
  if (Arrays().erase(array) == 0) return SetError(kCudaInvalidValue);
  if (const int error = WorkAtOnce(); error != kCudaSuccess) return SetError(error);
  return SetError(Ask(Operation::kFree, reinterpret_cast<uintptr_t>(array)).error);
}

int cudaArrayGetInfo(CudaChannelFormat* format, CudaExtent* extent, unsigned* flags, void* array) {
  const Array* found = FindArray(array);
  if (found == nullptr) return SetError(kCudaInvalidValue);
  if (format != nullptr) *format = found->format;
  if (extent != nullptr) *extent = found->extent;
  if (flags != nullptr) *flags = found->flags;
  return kCudaSuccess;
}

int cudaGetChannelDesc(CudaChannelFormat* format, const void* array) {
  return cudaArrayGetInfo(format, nullptr, nullptr, const_cast<void*>(array));
}

int cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pitch == nullptr) return SetError(kCudaInvalidValue);
  *pitch = (width + kAlignment - 1) / kAlignment * kAlignment;
  return cudaMalloc(pointer, *pitch * height);
}

int cudaMalloc3D(CudaPitchedPointer* pointer, CudaExtent extent) {
  if (pointer == nullptr) return SetError(kCudaInvalidValue);
  *pointer = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&pointer->pointer, &pointer->pitch, extent.width, extent.height * extent.depth);
}

int cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                 size_t height, int kind) {
  return Copy(PitchedSide(target, target_pitch), PitchedSide(source, source_pitch), {width, height, 1}, kind, nullptr,
              true);
}

int cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                      size_t height, int kind, void* stream) {
  return Copy(PitchedSide(target, target_pitch), PitchedSide(source, source_pitch), {width, height, 1}, kind, stream,
              false);
}

int cudaMemcpy2DToArray(void* target, size_t x, size_t y, const void* source, size_t pitch, size_t width, size_t height,
                        int kind) {
  const CudaExtent extent = {width, height, 1};
  return Copy(PartOf(target, {x, y, 0}, extent), PitchedSide(source, pitch), extent, kind, nullptr, true);
}

int cudaMemcpy2DToArrayAsync(void* target, size_t x, size_t y, const void* source, size_t pitch, size_t width,
                             size_t height, int kind, void* stream) {
  const CudaExtent extent = {width, height, 1};
  return Copy(PartOf(target, {x, y, 0}, extent), PitchedSide(source, pitch), extent, kind, stream, false);
}

int cudaMemcpy2DFromArray(void* target, size_t pitch, const void* source, size_t x, size_t y, size_t width,
                          size_t height, int kind) {
  const CudaExtent extent = {width, height, 1};
  return Copy(PitchedSide(target, pitch), PartOf(source, {x, y, 0}, extent), extent, kind, nullptr, true);
}

int cudaMemcpy2DFromArrayAsync(void* target, size_t pitch, const void* source, size_t x, size_t y, size_t width,
                               size_t height, int kind, void* stream) {
  const CudaExtent extent = {width, height, 1};
  return Copy(PitchedSide(target, pitch), PartOf(source, {x, y, 0}, extent), extent, kind, stream, false);
}

// Deprecated, and still in use: whole rows.
int cudaMemcpyToArray(void* target, size_t x, size_t y, const void* source, size_t bytes, int kind) {
  const Array* array = FindArray(target);
  if (array == nullptr || x != 0 || bytes % array->image.pitch != 0) return SetError(kCudaInvalidValue);
  const size_t pitch = array->image.pitch;
  return cudaMemcpy2DToArray(target, 0, y, source, pitch, pitch, bytes / pitch, kind);
}

int cudaMemcpy3D(const CudaCopy3D* copy) { return Copy3D(copy, nullptr, true); }

int cudaMemcpy3DAsync(const CudaCopy3D* copy, void* stream) { return Copy3D(copy, stream, false); }

int cudaCreateTextureObject(unsigned long long* handle, const CudaResource* resource, const CudaTexture* texture,
                            const void* view) {
  Spend(__func__);
  if (handle == nullptr || resource == nullptr || texture == nullptr) return SetError(kCudaInvalidValue);
  if (view != nullptr) RefuseCall("a resource view of a texture");
  if (texture->srgb != 0) RefuseCall("an sRGB texture");
  if (texture->seamless_cubemap != 0) RefuseCall("a seamless cubemap");
  ImageObject object;
  if (const int error = SetImage(*resource, &object.image); error != kCudaSuccess) return SetError(error);
  const bool is_float = object.image.kind == ChannelKind::kFloat;
  object.linear_filter = texture->filter_mode == 1;
  // A GPU takes texels of neighbouring faces in a way that is not documented.
  if (object.linear_filter && object.image.shape >= ImageShape::kCube) RefuseCall("a linear filter of a cubemap");
  object.normalized_coordinates = texture->normalized_coordinates != 0;
  object.normalized_float = texture->read_mode == 1 && !is_float;
  for (int i = 0; i < 3; ++i) {
    if (texture->address_mode[i] < 0 || texture->address_mode[i] > 3) return SetError(kCudaInvalidValue);
    object.modes[i] = static_cast<AddressMode>(texture->address_mode[i]);
  }
  std::copy_n(texture->border, 4, object.border);
  if (object.normalized_float && object.image.channel_bytes == 4) return SetError(kCudaInvalidNormSetting);
  if (object.linear_filter && object.image.shape != ImageShape::kLinear && !is_float && !object.normalized_float)
    return SetError(kCudaInvalidFilterSetting);
  return AddObject(object, handle);
}

int cudaCreateSurfaceObject(unsigned long long* handle, const CudaResource* resource) {
  Spend(__func__);
  if (handle == nullptr || resource == nullptr || resource->type != 0) return SetError(kCudaInvalidValue);
  const Array* array = FindArray(resource->array);
  if (array == nullptr || (array->flags & kSurfaceAccess) == 0) return SetError(kCudaInvalidValue);
  ImageObject object;
  object.image = array->image;
  object.is_surface = true;
  return AddObject(object, handle);
}

int cudaDestroyTextureObject(unsigned long long handle) {
  return Spent(__func__, Ask(Operation::kRemoveObject, handle).error);
}

int cudaDestroySurfaceObject(unsigned long long handle) {
  return Spent(__func__, Ask(Operation::kRemoveObject, handle).error);
}

}  // extern "C"
