extern "C" void oracle(const double* x, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = 0.75 * x[i];
}
