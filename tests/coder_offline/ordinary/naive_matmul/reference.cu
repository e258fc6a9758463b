__global__ void matmul(const float* A, const float *B, float* C, int N) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < N && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < N; k++) {
            sum += A[(long long)row * N + k] * B[(long long)k * N + col];
        }
        C[(long long)row * N + col] = sum;
    }
}

extern "C" void launch(const float* A, const float* B, float* C, int n) {
    dim3 threads(16, 16);
    dim3 blocks((n + 15) / 16, (n + 15) / 16);
    matmul<<<blocks, threads>>>(A, B, C, n);
}
