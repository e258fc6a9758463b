void kernel(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = (x[i] + 1) * (x[i] + 1);
}
