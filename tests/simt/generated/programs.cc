// Kernels that test more than expressions: control flow, warps, shared memory, atomics, memory, tensor cores.
#include <string>

#include "builder.h"

namespace kgrpo::generated {
namespace {

std::string Text(uint64_t number) {
  return std::to_string(number);
}

// Both integers and floats, to mix.
std::vector<Operation> Mixed() {
  std::vector<Operation> all = IntegerOperations();
  const std::vector<Operation> floats = FloatOperations();
  all.insert(all.end(), floats.begin(), floats.end());
  return all;
}

char AnyType(Builder& b) {
  constexpr char kTypes[] = {'u', 's', 'U', 'f'};
  return kTypes[b.random.Below(4)];
}

}  // namespace

void WriteControl(Builder& b) {
  const std::vector<Operation> all = Mixed();
  for (int i = 0; i < 4; ++i) {
    const char type = AnyType(b);
    b.AddExpression(type, b.Expression(all, type));
  }
  for (int i = 0; i < 6; ++i) {
    const char type = AnyType(b);
    const std::string name = CppType(type), start = b.Value(type), condition = b.Value('u');
    const std::string one = b.Expression(all, type), two = b.Expression(all, type), three = b.Expression(all, type);
    const std::string step = type == 'f'   ? "$ = $ * 0.5f + "
                             : type == 's' ? "$ = (int)((unsigned)$ * 3u) ^ "
                                           : "$ = $ * 3u ^ ";
    switch (b.random.Below(6)) {
      case 0:
        b.Add(type,
              name + " $ = " + start + "; if ((" + condition + " & 3u) == 1u) { $ = " + one + "; } else if ((" +
                  condition + " & 3u) == 2u) { $ = " + two + "; }",
              "if of " + condition + ": " + one + " or " + two);
        break;
      case 1:
        b.Add(type,
              name + " $ = " + start + "; for (unsigned n = 0; n < (" + condition + " & 7u); ++n) { " + step + "(" +
                  one + "); if ($ == " + start + ") break; }",
              "loop of " + condition + " & 7 over " + one);
        break;
      case 2:
        b.Add(type,
              name + " $ = " + start + "; switch (" + condition + " % 6u) { case 0: $ = " + one +
                  "; break; case 1: $ = " + two + "; case 2: " + step + start + "; break; case 3: $ = " + three +
                  "; break; case 4: break; default: " + step + "(" + two + "); }",
              "switch of " + condition);
        break;
      case 3:
        b.Add(type,
              name + " $ = " + start + "; { unsigned n = " + condition +
                  " & 15u; while (n != 0u) { n = (n & 1u) != 0u ? n - "
                  "1u : n >> 1; if (n == 3u) continue; " +
                  step + "(" + two + "); } }",
              "while of " + condition + " over " + two);
        break;
      case 4:
        b.Add(type,
              name + " $ = " + start + "; for (unsigned n = 0; n < 3u; ++n) { for (unsigned m = 0; m <= (" + condition +
                  " >> n & 3u); ++m) { if (((n + m + t) & 1u) != 0u) " + step + "(" + one + "); else " + step + "(" +
                  three + "); } }",
              "nested loops of " + condition);
        break;
      default:
        b.Add(type,
              name + " $ = " + start + "; do { if ((t & 4u) != 0u) { " + step + "(" + one + "); if ((" + condition +
                  " & 8u) != 0u) break; } " + step + "(" + two + "); } while (0);",
              "early end by " + condition);
    }
  }
}

void WriteWarp(Builder& b) {
  b.kernel.threads = b.random.Below(2) == 0 ? 64 : 96;
  b.Straight(8);
  for (int i = 0; i < 4; ++i) {
    const std::string x = b.Value('u'), y = b.Value('u'), who = Text(1 + b.random.Below(7));
    switch (b.random.Below(4)) {
      case 0:
        b.Add('u',
              "unsigned $ = " + x + "; { const unsigned m = __ballot_sync(0xffffffffu, (int)(" + y + " & " + who +
                  "u)); if ((" + y + " & " + who + "u) != 0u) $ = __shfl_sync(m, " + x +
                  ", __ffs((int)m) - 1) + __reduce_add_sync(m, " + x + "); }",
              "shuffle and sum among the lanes of a ballot over " + y);
        break;
      case 1:
        b.Add('u',
              "unsigned $ = " + x +
                  "; for (int n = 16; n > 0; n >>= 1) { $ += __shfl_down_sync(0xffffffffu, $, (unsigned)n) ^ " + y +
                  "; __syncwarp(); }",
              "a warp's sum of " + x);
        break;
      case 2:
        b.Add('u',
              "unsigned $ = 0u; if ((threadIdx.x & 16u) != 0u) { $ = __reduce_max_sync(0xffff0000u, " + x +
                  "); } else { $ = __ballot_sync(0x0000ffffu, (int)(" + y + " & 1u)); }",
              "each half of a warp on its own");
        break;
      default:
        b.Add('u',
              "unsigned $ = 0u; { const unsigned m = __match_any_sync(0xffffffffu, " + x +
                  " & 3u); $ = __popc(m) + "
                  "__shfl_sync(m, " +
                  y + ", __ffs((int)m) - 1); }",
              "groups of equal " + x);
    }
  }
}

void WriteShared(Builder& b) {
  constexpr uint32_t kThreads[] = {32, 64, 96, 128};
  const uint32_t n = b.kernel.threads = kThreads[b.random.Below(4)];
  const std::string threads = Text(n) + "u";
  b.Straight(4);
  for (int i = 0; i < 5; ++i) {
    constexpr char kTypes[] = {'u', 'f', 'U', 's'};
    const char type = kTypes[b.random.Below(4)];
    const std::string name = CppType(type), array = "s" + Text(static_cast<uint64_t>(i));
    const std::string x = b.Value(type), y = b.Value('u');
    const std::string declare = "__shared__ " + name + " " + array + "[" + Text(n) + "]; ";
    switch (b.random.Below(6)) {
      case 0:
        b.Add(type,
              declare + array + "[threadIdx.x] = " + x + "; __syncthreads(); " + name + " $ = " + array + "[" + y +
                  " % " + threads + "];",
              "gather of " + x + " from shared memory");
        break;
      case 1:
        b.Add(type,
              declare + array + "[" + threads + " - 1u - threadIdx.x] = " + x +
                  "; __syncthreads(); for (unsigned n = 1u; n < " + threads + "; n <<= 1) { const " + name +
                  " other = threadIdx.x >= n ? " + array + "[threadIdx.x - n] : " + array +
                  "[threadIdx.x]; __syncthreads(); " + array + "[threadIdx.x] = other" +
                  (type == 'f'   ? " * 0.5f"
                   : type == 's' ? " ^ 5"
                                 : " + 3u") +
                  "; __syncthreads(); } " + name + " $ = " + array + "[threadIdx.x];",
              "a scan in shared memory");
        break;
      case 2:
        b.Add('u',
              "unsigned $ = (unsigned)__syncthreads_count((int)(" + y +
                  " & 3u)) + 1000u * (unsigned)__syncthreads_and((int)(" + y +
                  " | 1u)) + 2000u * (unsigned)__syncthreads_or((int)(" + y + " & 64u));",
              "reductions at barriers over " + y);
        break;
      case 3:
        b.Add('u',
              "__shared__ __align__(4) unsigned char " + array + "[" + Text(4 * n) +
                  "]; for (unsigned n = 0; n < 4u; ++n) " + array + "[n * " + threads +
                  " + threadIdx.x] = (unsigned char)(" + y +
                  " >> (8u * n)); __syncthreads(); unsigned $ = "
                  "((const unsigned*)" +
                  array + ")[threadIdx.x];",
              "bytes of " + y + " through shared memory", 0, 0);
        break;
      case 4:
        b.Add(type,
              declare + "if (threadIdx.x < " + threads + " / 2u) { " + array + "[threadIdx.x] = " + x + "; " + array +
                  "[threadIdx.x + " + threads + " / 2u] = " + x + "; } __syncthreads(); " + name + " $ = " + array +
                  "[(threadIdx.x * 5u + 1u) % " + threads + "]; asm volatile(\"bar.sync 1, " + Text(n) +
                  ";\" ::: \"memory\");",
              "half the threads write");
        break;
      default:
        b.Add(type,
              declare + array + "[threadIdx.x] = " + x + "; __syncwarp(); " + name + " $ = " + array +
                  "[threadIdx.x ^ 9u]; __syncthreads();",
              "a warp's exchange through shared memory");
    }
  }
}

void WriteAtomic(Builder& b) {
  b.Straight(3);
  for (int i = 0; i < 8; ++i) {
    const std::string x = b.Value('u'), y = b.Value('u'), wide = b.Value('U');
    const std::string slot = "(" + Text(static_cast<uint64_t>(i) * 16) + "u + (" + y + " & 7u))";
    const std::string word = "((unsigned*)(scratch + " + slot + "))", number = "((int*)(scratch + " + slot + "))";
    switch (b.random.Below(12)) {
      case 0:
        b.Line("atomicAdd(" + word + ", " + x + ");");
        break;
      case 1:
        b.Line("atomicMax(" + word + ", " + x + "); ");
        break;
      case 2:
        b.Line("atomicMin(" + number + ", (int)" + x + ");");
        break;
      case 3:
        b.Line("atomicXor(" + word + ", " + x + ");");
        break;
      case 4:
        b.Line("atomicOr(" + word + ", " + x + "); ");
        break;
      case 5:
        b.Line("atomicAdd(scratch + " + slot + ", " + wide + ");");
        break;
      case 6:
        b.Line("atomicMax((long long*)(scratch + " + slot + "), (long long)" + wide + ");");
        break;
      case 7:
        b.Line("atomicInc(" + word + ", 37u);");
        break;
      case 8:  // sums that are exact in any order
        b.Line("atomicAdd((float*)(scratch + " + slot + "), (float)(" + x + " & 15u)); atomicAdd((double*)(scratch + " +
               slot + " + 8u), (double)(" + x + " & 1023u) * 0.5);");
        break;
      case 9:
        b.Line("atomicAdd((__half2*)(scratch + " + slot + "), __floats2half2_rn((float)(" + x + " & 3u), (float)(" + y +
               " & 3u)));");
        break;
      case 10:
        b.Line("{ unsigned seen = *(volatile unsigned*)" + word + "; while ((" + x +
               " >> 3) > seen) { const unsigned was = atomicCAS(" + word + ", seen, " + x +
               " >> 3); if (was == seen) break; seen = was; } }");
        break;
      default: {
        const std::string array = "s" + Text(static_cast<uint64_t>(i));
        b.Add('u',
              // the fifth word on its own: a minimum and sums in one word depend on their order
              "__shared__ unsigned " + array + "[5]; if (threadIdx.x < 5u) " + array +
                  "[threadIdx.x] = threadIdx.x == 4u ? 37u : 0u; __syncthreads(); atomicAdd(&" + array + "[" + y +
                  " & 3u], " + x + "); atomicMin(&" + array + "[4], " + x +
                  "); __syncthreads(); unsigned $ = " + array + "[t % 5u];",
              "sums in shared memory");
      }
    }
  }
}

void WriteMemory(Builder& b) {
  b.Straight(4);
  for (int i = 0; i < 6; ++i) {
    const std::string x = b.Value('u'), y = b.Value('u'), at = Text(static_cast<uint64_t>(i));
    switch (b.random.Below(8)) {
      case 0:
        b.Add('u',
              "const uint4 q" + at + " = ((const uint4*)in)[" + x + " & 511u]; unsigned $ = q" + at + ".x ^ q" + at +
                  ".y + q" + at + ".z * q" + at + ".w;",
              "a load of 16 bytes");
        break;
      case 1:
        b.Add('s',
              "const short4 q" + at + " = __ldg((const short4*)in + (" + x + " & 1023u)); int $ = q" + at +
                  ".x * 3 + q" + at + ".y - q" + at + ".z ^ q" + at + ".w;",
              "a load of four shorts");
        break;
      case 2:
        b.Add('s',
              "int $ = (int)((const signed char*)in)[" + x + " & 8191u] * 256 + (int)((const unsigned char*)in)[" + y +
                  " & 8191u];",
              "loads of bytes");
        break;
      case 3:
        b.Add('u',
              "unsigned a" + at + "[12]; for (unsigned n = 0; n < 12u; ++n) a" + at + "[n] = " + x + " * n + " + y +
                  "; a" + at + "[" + y + " % 12u] ^= t; unsigned $ = a" + at + "[" + x + " % 12u] + a" + at + "[(" + x +
                  " >> 8) % 12u];",
              "a local array");
        break;
      case 4:
        b.Add('U', "unsigned long long $ = __ldcs(in + (" + x + " & 1023u)) + __ldcg(in + (" + y + " & 1023u)) * 3ull;",
              "loads with cache hints");
        break;
      case 5:
        b.Add('f',
              "const float2 q" + at + " = ((const float2*)in)[" + x + " & 1023u]; float $ = __fadd_rn(q" + at +
                  ".x, q" + at + ".y);",
              "a load of two floats");
        break;
      case 6:
        b.Add('u',
              "union { unsigned long long whole; unsigned short part[4]; } q" + at + "; q" + at + ".whole = in[" + y +
                  " & 1023u]; q" + at + ".part[" + x + " & 3u] = (unsigned short)" + x + "; unsigned $ = (unsigned)(q" +
                  at + ".whole >> 13);",
              "a union");
        break;
      default:
        b.Line("if (t < 128u) { ((unsigned char*)(scratch + " + Text(static_cast<uint64_t>(i) * 64) +
               "u))[t] = (unsigned char)" + x + "; ((unsigned short*)(scratch + " +
               Text(static_cast<uint64_t>(i) * 64 + 16) + "u))[t] = (unsigned short)(" + y + " >> 5); }");
    }
  }
}

void WriteMatrix(Builder& b) {
  b.kernel.threads = 64;
  // Small integers are exact in every format, whatever the order of the sum; fractions are not.
  const bool exact = b.random.Below(2) == 0;
  const std::string value =
      exact ? "(float)((int)(w >> (8 * n) & 15u) - 8)" : "(float)((int)(w >> (8 * n) & 255u) - 128) * 0.0078f";
  const bool bf16 = b.random.Below(2) == 0;
  const std::string pair = bf16 ? "__floats2bfloat162_rn" : "__floats2half2_rn",
                    type = bf16 ? "__nv_bfloat162" : "__half2";
  b.Line("unsigned a[4], b[2];");
  b.Line("for (int r = 0; r < 6; ++r) { const unsigned w = (unsigned)in[(t * 7u + " + b.Number(900) +
         "u + (unsigned)r * 64u) & 1023u];");
  b.Line("  float low, high; { const int n = 0; low = " + value + "; } { const int n = 2; high = " + value + "; }");
  b.Line("  const " + type + " p = " + pair +
         "(low, high); const unsigned bits = *(const unsigned*)&p; if (r < 4) a[r] = bits; else b[r - 4] = bits; }");
  const std::string name = bf16 ? "bf16" : "f16";
  const double loose = exact ? 0 : 1e-4;
  const bool small = b.random.Below(3) == 0;
  b.Line("float c[4] = {1.0f, -2.0f, 3.0f, 0.5f};");
  if (small) {
    b.Line("asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32." + name + "." + name +
           ".f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};\" : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]) "
           ": \"r\"(a[0]), "
           "\"r\"(a[1]), \"r\"(b[0]));");
  } else {
    b.Line("asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32." + name + "." + name +
           ".f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};\" : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), "
           "\"+f\"(c[3]) : "
           "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));");
  }
  for (int i = 0; i < 4; ++i) b.AddExpression('f', "c[" + Text(static_cast<uint64_t>(i)) + "]", 0, loose);
  b.Line("int e[4] = {1, 2, 3, 4};");
  const std::string signs = b.random.Below(2) == 0 ? "s8.s8" : "u8.s8";
  b.Line("asm volatile(\"mma.sync.aligned.m16n8k32.row.col.s32." + signs +
         ".s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};\" : \"+r\"(e[0]), \"+r\"(e[1]), \"+r\"(e[2]), "
         "\"+r\"(e[3]) : "
         "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));");
  for (int i = 0; i < 4; ++i) b.AddExpression('s', "e[" + Text(static_cast<uint64_t>(i)) + "]");
  b.Line("double g[2] = {1.0, 2.0}; { const double x = (double)(int)(a[0] & 255u), y = (double)(int)(b[0] & 1023u);");
  b.Line(
      "asm volatile(\"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};\" : \"+d\"(g[0]), "
      "\"+d\"(g[1]) : "
      "\"d\"(x), \"d\"(y)); }");
  b.AddExpression('d', "g[0]");
  b.AddExpression('d', "g[1]");
}

}  // namespace kgrpo::generated
