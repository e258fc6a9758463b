#include <math.h>
#define THREADS 256

__global__ void softmax(const float* input, float* output, int cols) {
    __shared__ float shared[THREADS];
    const float* row = input + blockIdx.x * cols;
    float* out = output + blockIdx.x * cols;
    int tid = threadIdx.x;

    float local_max = -1e30f;
    for (int c = tid; c < cols; c += blockDim.x) local_max = fmaxf(local_max, row[c]);
    shared[tid] = local_max;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride >>= 1) {
        if (tid < stride) shared[tid] = max(shared[tid], shared[tid + stride]);
        __syncthreads();
    }
    float row_max = shared[0];
    __syncthreads();

    float local_sum = 0.0f;
    for (int c = tid; c < cols; c += blockDim.x) local_sum += expf(row[c] - row_max);
    shared[tid] = local_sum;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride >>= 1) {
        if (tid < stride) shared[tid] += shared[tid + stride];
        __syncthreads();
    }
    float sum = shared[0];
    for (int c = tid; c < cols; c += blockDim.x) out[c] = expf(row[c] - row_max) / sum;
}

extern "C" void launch(const float* input, float* output, int rows, int cols) {
    softmax<<<rows, THREADS>>>(input, output, cols);
}
