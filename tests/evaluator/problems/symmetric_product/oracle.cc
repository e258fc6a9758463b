extern "C" void oracle(const double* a, const int64_t* b, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += a[i * n + k] * static_cast<double>(b[k * n + j]);
}
