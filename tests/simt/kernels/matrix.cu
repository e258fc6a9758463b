// Tensor core products of one warp.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// a: 16 x 16 by rows, b: 16 x 16 by columns, leading dimension 24 and 16
extern "C" __global__ void Wmma(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 1.0f);
  wmma::load_matrix_sync(fa, a, 24);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2;
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
// The same through shared memory, b by rows, c stored by columns, halves summed in halves
extern "C" __global__ void WmmaShared(const half* a, const half* b, half* c) {
  __shared__ __align__(32) half s[16 * 16];
  for (int i = threadIdx.x; i < 256; i += 32) s[i] = b[i];
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, a, 24);
  wmma::load_matrix_sync(fb, s, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_col_major);
}

// mma.sync fed by ldmatrix: a 16 x 16 by rows (24 apart), b 16 x 8 by rows (16 apart; transposed on the way)
extern "C" __global__ void Mma(const half* a, const half* b, float* c) {
  __shared__ __align__(16) half sa[16 * 24], sb[16 * 16];
  for (int i = threadIdx.x; i < 16 * 24; i += 32) sa[i] = a[i];
  for (int i = threadIdx.x; i < 16 * 16; i += 32) sb[i] = b[i];
  __syncthreads();
  const int lane = threadIdx.x;
  unsigned ra[4], rb[2];
  const unsigned pa = static_cast<unsigned>(__cvta_generic_to_shared(&sa[(lane % 16) * 24 + lane / 16 * 8]));
  const unsigned pb = static_cast<unsigned>(__cvta_generic_to_shared(&sb[(lane % 16) * 16]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
  float d[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  const int g = lane / 4, t = lane % 4;
  c[g * 8 + t * 2] = d[0];
  c[g * 8 + t * 2 + 1] = d[1];
  c[(g + 8) * 8 + t * 2] = d[2];
  c[(g + 8) * 8 + t * 2 + 1] = d[3];
}

// c = a b + start, of bytes; a lies by rows, b by columns.
template <typename T, int kM, int kN>
__device__ void WmmaOfBytes(const T* a, const T* b, int* c, int start, bool saturate) {
  wmma::fragment<wmma::matrix_a, kM, kN, 16, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, kM, kN, 16, T, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, kM, kN, 16, int> fc;
  wmma::fill_fragment(fc, start);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  if (saturate)
    wmma::mma_sync(fc, fa, fb, fc, true);
  else
    wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, kN, wmma::mem_row_major);
}
extern "C" __global__ void WmmaSigned(const signed char* a, const signed char* b, int* c, int start) {
  WmmaOfBytes<signed char, 16, 16>(a, b, c, start, false);
}
extern "C" __global__ void WmmaUnsignedTall(const unsigned char* a, const unsigned char* b, int* c, int start) {
  WmmaOfBytes<unsigned char, 32, 8>(a, b, c, start, false);
}
extern "C" __global__ void WmmaUnsignedWide(const unsigned char* a, const unsigned char* b, int* c, int start) {
  WmmaOfBytes<unsigned char, 8, 32>(a, b, c, start, true);
}
