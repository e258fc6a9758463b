void kernel(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) {
    float sum = 1;
    for (int k = 0; k < 7; ++k) sum = sum * x[i] + 1;
    y[i] = sum;
  }
}
