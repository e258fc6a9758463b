__global__ void scores(const float* q, const float* k, float* out, int g, int t, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < g * t * t) {
    int to = i % t;
    int from = (i / t) % t;
    int group = i / (t * t);
    const float* one = q + (group * t + from) * d;
    const float* other = k + (group * t + to) * d;
    float sum = 0;
    for (int e = 0; e < d; e++) sum += one[e] * other[e];
    out[i] = 0.5f * sum;
  }
}

extern "C" void launch(const float* q, const float* k, float* out, int g, int t, int d) {
  scores<<<(g * t * t + 255) / 256, 256>>>(q, k, out, g, t, d);
}
