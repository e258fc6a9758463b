// Fetches of every geometry, at coordinates in memory, and copies through surfaces. Also run on a GPU
// (tests/evaluator_cuda/image_gpu_test.cc).
#define FETCH(name, type, value)                                                                          \
  extern "C" __global__ void name##_##type(cudaTextureObject_t t, const float4* c, type* out, int n) {    \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                                                  \
    if (i >= n) return;                                                                                   \
    const float4 a = c[i];                                                                                \
    const int layer = __float_as_int(a.x);                                                                \
    (void)layer;                                                                                          \
    out[i] = value;                                                                                       \
  }
#define FETCHES(type)                                                          \
  FETCH(linear, type, tex1Dfetch<type>(t, __float_as_int(a.x)))                \
  FETCH(one, type, tex1D<type>(t, a.x))                                        \
  FETCH(two, type, (tex2D<type>(t, a.x, a.y)))                                 \
  FETCH(three, type, (tex3D<type>(t, a.x, a.y, a.z)))                          \
  FETCH(layers_of_one, type, (tex1DLayered<type>(t, a.y, layer)))              \
  FETCH(layers_of_two, type, (tex2DLayered<type>(t, a.y, a.z, layer)))         \
  FETCH(cube, type, (texCubemap<type>(t, a.x, a.y, a.z)))                      \
  FETCH(layers_of_cubes, type, (texCubemapLayered<type>(t, a.y, a.z, a.w, layer)))
FETCHES(float4)
FETCHES(uint4)

// to[y][x] = from[y + dy][x + dx], a warp a row.
#define SHIFT(mode)                                                                                              \
  extern "C" __global__ void shift_##mode(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int dx, int dy) {    \
    const short2 value = surf2Dread<short2>(from, 4 * (static_cast<int>(threadIdx.x) + dx), blockIdx.x + dy,     \
                                            cudaBoundaryMode##mode);                                             \
    surf2Dwrite(value, to, 4 * threadIdx.x, blockIdx.x);                                                         \
  }
SHIFT(Zero)
SHIFT(Clamp)
SHIFT(Trap)

extern "C" __global__ void write_volume(cudaSurfaceObject_t to, int dx) {
  surf3Dwrite(make_float4(threadIdx.x, blockIdx.x, blockIdx.y, 1), to, 16 * (threadIdx.x + dx), blockIdx.x, blockIdx.y);
}
extern "C" __global__ void write_layer(cudaSurfaceObject_t to, unsigned char value, int at) {
  surf2DLayeredwrite(value, to, threadIdx.x, at, 1);
}
extern "C" __global__ void misaligned(cudaSurfaceObject_t to) {
  surf1Dwrite(1.0f, to, 2);
}

// One launch writes what it reads by a texture, or as a surface.
extern "C" __global__ void write_then_fetch(cudaSurfaceObject_t s, cudaTextureObject_t t, float* out) {
  surf2Dwrite(2.0f, s, 4 * threadIdx.x, 0);
  __syncthreads();
  out[threadIdx.x] = tex2D<float>(t, 31.5f - threadIdx.x, 0.5f);
}
extern "C" __global__ void fetch_then_write(cudaSurfaceObject_t s, cudaTextureObject_t t, float* out) {
  out[threadIdx.x] = tex2D<float>(t, 31.5f - threadIdx.x, 0.5f);
  __syncthreads();
  surf2Dwrite(2.0f, s, 4 * threadIdx.x, 0);
}
