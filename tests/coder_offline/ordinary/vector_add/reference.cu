#include <cuda_runtime.h>

// CUDA kernel: C = A + B   (a[i] in this comment is not code)
__global__ void vectorAdd(float *a, float *b, float *c, int n)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n)
    {
        c[idx] = a[idx] + b[idx];
    }
}

extern "C" void launch(const float *a, const float *b, float *c, int n)
{
    int threadsPerBlock = 256;
    int blocksPerGrid = (n + threadsPerBlock - 1) / threadsPerBlock;
    vectorAdd<<<blocksPerGrid, threadsPerBlock>>>((float *)a, (float *)b, c, n);
}
