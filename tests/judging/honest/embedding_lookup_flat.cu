// problem: problems/embedding_lookup
// style: a thread an element; rows found by a multiplication and a shift instead of a division, streaming stores
// cuda: correct
// sim: correct
struct Divisor {
  unsigned value;
  double inverse;
};

__global__ void Lookup(const float* table, const int* index, float* out, unsigned elements, Divisor width,
                       float scale) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= elements) return;
  unsigned row = static_cast<unsigned>(at * width.inverse);
  int d = static_cast<int>(at - row * width.value);
  if (d < 0) {  // rounding may have gone one too far either way
    --row;
    d += width.value;
  } else if (d >= static_cast<int>(width.value)) {
    ++row;
    d -= width.value;
  }
  __stcs(out + at, scale * __ldg(table + static_cast<size_t>(__ldg(index + row)) * width.value + d));
}

extern "C" void launch(const float* table, const int* index, float* out, int n, int width, float scale) {
  const unsigned elements = static_cast<unsigned>(n) * static_cast<unsigned>(width);
  Lookup<<<(elements + 255) / 256, 256>>>(table, index, out, elements,
                                          Divisor{static_cast<unsigned>(width), 1.0 / width}, scale);
}
