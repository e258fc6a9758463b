// Programmatic dependent launches: kernels that let the next one begin, and kernels that begin early.
#define LAUNCH_DEPENDENTS() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")

extern "C" __global__ void produce_and_trigger(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2 * x[i];
  LAUNCH_DEPENDENTS();
}
extern "C" __global__ void trigger_and_produce(const float* x, float* y) {
  LAUNCH_DEPENDENTS();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2 * x[i];
}
extern "C" __global__ void produce(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2 * x[i];
}

extern "C" __global__ void read_and_wait(const float* y, float* z) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float other[64];
  other[threadIdx.x] = 3;
  __syncthreads();
  const float value = y[i] + other[63 - threadIdx.x];
  WAIT();
  z[i] = value;
}
extern "C" __global__ void wait_and_read(const float* y, float* z) {
  WAIT();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = y[i];
}
// One thread waits for all: what it waited for is visible to those that meet it at a barrier.
extern "C" __global__ void wait_in_one(const float* y, float* z) {
  if (threadIdx.x == 40) WAIT();
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = y[i];
}
extern "C" __global__ void wait_in_one_without_barrier(const float* y, float* z) {
  if (threadIdx.x == 40) WAIT();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = y[i];
}
// Writes where the launch before reads.
extern "C" __global__ void write_and_wait(const float* y, float* x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  WAIT();
}
extern "C" __global__ void trigger_wait_produce(const float* x, float* y) {
  LAUNCH_DEPENDENTS();
  WAIT();
  y[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}
extern "C" __global__ void wait_trigger_produce(const float* x, float* y) {
  WAIT();
  LAUNCH_DEPENDENTS();
  y[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}
