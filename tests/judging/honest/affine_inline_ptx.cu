// problem: tests/evaluator/problems/affine
// style: inline PTX: cache hints on loads and stores, a predicated tail, fma
// cuda: correct
// sim: correct
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  unsigned block, thread;
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  asm("mov.u32 %0, %%tid.x;" : "=r"(thread));
  const int i = block * blockDim.x + thread;
  float result = 0.0f;
  asm volatile(
      "{\n"
      "  .reg .pred inside;\n"
      "  .reg .f32 a, b;\n"
      "  setp.lt.s32 inside, %1, %2;\n"
      "  @inside ld.global.nc.L1::no_allocate.f32 a, [%3];\n"
      "  @inside ld.global.cs.f32 b, [%4];\n"
      "  @inside fma.rn.f32 %0, a, 0f40000000, b;\n"
      "  @inside st.global.cs.f32 [%5], %0;\n"
      "}\n"
      : "+f"(result)
      : "r"(i), "r"(n), "l"(__cvta_generic_to_global(x + i)), "l"(__cvta_generic_to_global(y + i)),
        "l"(__cvta_generic_to_global(out + i))
      : "memory");
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
