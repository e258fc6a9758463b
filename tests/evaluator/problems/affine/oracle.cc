extern "C" void oracle(const double* x, const double* y, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = 2 * x[i] + y[i];
}
