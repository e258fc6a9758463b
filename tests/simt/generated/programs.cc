// Kernels that test more than expressions: control flow, warps, shared memory, atomics, memory, tensor cores.
#include <map>
#include <string>

#include "builder.h"

namespace kgrpo::generated {
namespace {

using Words = std::map<char, std::string>;

// The text with the word of each @letter.
std::string With(const char* text, const Words& words) {
  std::string made;
  for (; *text != '\0'; ++text) {
    if (*text == '@')
      made += words.at(*++text);
    else
      made += *text;
  }
  return made;
}

// Statements that give a value of the type ('*': the type that was drawn), which they name $. Type 0: statements
// without a value.
struct Form {
  char type;
  const char *text, *description;
};

void Write(Builder& b, const Form& form, const Words& words, char type = 0) {
  if (form.type == 0)
    b.Line(With(form.text, words));
  else
    b.Add(form.type == '*' ? type : form.type, With(form.text, words), With(form.description, words));
}

std::string Text(uint64_t number) { return std::to_string(number); }

// Both integers and floats, to mix.
std::vector<Operation> Mixed() {
  std::vector<Operation> all = Operations(Kind::kInteger);
  const std::vector<Operation> floats = Operations(Kind::kFloat);
  all.insert(all.end(), floats.begin(), floats.end());
  return all;
}

// @n the type's name, @s a value, @c a condition, @p a step, @1 to @3 expressions.
constexpr Form kControlForms[] = {
    {'*', "@n $ = @s; if ((@c & 3u) == 1u) { $ = @1; } else if ((@c & 3u) == 2u) { $ = @2; }", "if of @c: @1 or @2"},
    {'*', "@n $ = @s; for (unsigned n = 0; n < (@c & 7u); ++n) { @p(@1); if ($ == @s) break; }",
     "loop of @c & 7 over @1"},
    {'*',
     "@n $ = @s; switch (@c % 6u) { case 0: $ = @1; break; case 1: $ = @2; case 2: @p@s; break; case 3: $ = @3; "
     "break; case 4: break; default: @p(@2); }",
     "switch of @c"},
    {'*',
     "@n $ = @s; { unsigned n = @c & 15u; while (n != 0u) { n = (n & 1u) != 0u ? n - 1u : n >> 1; if (n == 3u) "
     "continue; @p(@2); } }",
     "while of @c over @2"},
    {'*',
     "@n $ = @s; for (unsigned n = 0; n < 3u; ++n) { for (unsigned m = 0; m <= (@c >> n & 3u); ++m) { if (((n + m + "
     "t) & 1u) != 0u) @p(@1); else @p(@3); } }",
     "nested loops of @c"},
    {'*', "@n $ = @s; do { if ((t & 4u) != 0u) { @p(@1); if ((@c & 8u) != 0u) break; } @p(@2); } while (0);",
     "early end by @c"}};

// @w a mask of y's bits.
constexpr Form kWarpForms[] = {
    {'u',
     "unsigned $ = @x; { const unsigned m = __ballot_sync(0xffffffffu, (int)(@y & @wu)); if ((@y & @wu) != 0u) $ = "
     "__shfl_sync(m, @x, __ffs((int)m) - 1) + __reduce_add_sync(m, @x); }",
     "shuffle and sum among the lanes of a ballot over @y"},
    {'u',
     "unsigned $ = @x; for (int n = 16; n > 0; n >>= 1) { $ += __shfl_down_sync(0xffffffffu, $, (unsigned)n) ^ @y; "
     "__syncwarp(); }",
     "a warp's sum of @x"},
    {'u',
     "unsigned $ = 0u; if ((threadIdx.x & 16u) != 0u) { $ = __reduce_max_sync(0xffff0000u, @x); } else { $ = "
     "__ballot_sync(0x0000ffffu, (int)(@y & 1u)); }",
     "each half of a warp on its own"},
    {'u',
     "unsigned $ = 0u; { const unsigned m = __match_any_sync(0xffffffffu, @x & 3u); $ = __popc(m) + __shfl_sync(m, @y, "
     "__ffs((int)m) - 1); }",
     "groups of equal @x"}};

// @n the type's name, @a an array of @k threads' values (4 times as many bytes: @b), @m a change of the type.
constexpr Form kSharedForms[] = {
    {'*', "__shared__ @n @a[@k]; @a[threadIdx.x] = @x; __syncthreads(); @n $ = @a[@y % @ku];",
     "gather of @x from shared memory"},
    {'*',
     "__shared__ @n @a[@k]; @a[@ku - 1u - threadIdx.x] = @x; __syncthreads(); for (unsigned n = 1u; n < @ku; n <<= 1) "
     "{ const @n other = threadIdx.x >= n ? @a[threadIdx.x - n] : @a[threadIdx.x]; __syncthreads(); @a[threadIdx.x] = "
     "other@m; __syncthreads(); } @n $ = @a[threadIdx.x];",
     "a scan in shared memory"},
    {'u',
     "unsigned $ = (unsigned)__syncthreads_count((int)(@y & 3u)) + 1000u * (unsigned)__syncthreads_and((int)(@y | 1u)) "
     "+ 2000u * (unsigned)__syncthreads_or((int)(@y & 64u));",
     "reductions at barriers over @y"},
    {'u',
     "__shared__ __align__(4) unsigned char @a[@b]; for (unsigned n = 0; n < 4u; ++n) @a[n * @ku + threadIdx.x] = "
     "(unsigned char)(@y >> (8u * n)); __syncthreads(); unsigned $ = ((const unsigned*)@a)[threadIdx.x];",
     "bytes of @y through shared memory"},
    {'*',
     "__shared__ @n @a[@k]; if (threadIdx.x < @ku / 2u) { @a[threadIdx.x] = @x; @a[threadIdx.x + @ku / 2u] = @x; } "
     "__syncthreads(); @n $ = @a[(threadIdx.x * 5u + 1u) % @ku]; asm volatile(\"bar.sync 1, @k;\" ::: \"memory\");",
     "half the threads write"},
    {'*', "__shared__ @n @a[@k]; @a[threadIdx.x] = @x; __syncwarp(); @n $ = @a[threadIdx.x ^ 9u]; __syncthreads();",
     "a warp's exchange through shared memory"}};

// @p a place in the scratch memory, @w a word there, @n the same as an int, @l a 64-bit value, @i a number.
constexpr Form kAtomicForms[] = {
    {0, "atomicAdd(@w, @x);", ""},
    {0, "atomicMax(@w, @x); ", ""},
    {0, "atomicMin(@n, (int)@x);", ""},
    {0, "atomicXor(@w, @x);", ""},
    {0, "atomicOr(@w, @x); ", ""},
    {0, "atomicAdd(@p, @l);", ""},
    {0, "atomicMax((long long*)(@p), (long long)@l);", ""},
    {0, "atomicInc(@w, 37u);", ""},
    // Sums that are exact in any order.
    {0, "atomicAdd((float*)(@p), (float)(@x & 15u)); atomicAdd((double*)(@p + 8u), (double)(@x & 1023u) * 0.5);", ""},
    {0, "atomicAdd((__half2*)(@p), __floats2half2_rn((float)(@x & 3u), (float)(@y & 3u)));", ""},
    {0,
     "{ unsigned seen = *(volatile unsigned*)@w; while ((@x >> 3) > seen) { const unsigned was = atomicCAS(@w, seen, "
     "@x >> 3); if (was == seen) break; seen = was; } }",
     ""},
    // The fifth word on its own: a minimum and sums in one word depend on their order.
    {'u',
     "__shared__ unsigned s@i[5]; if (threadIdx.x < 5u) s@i[threadIdx.x] = threadIdx.x == 4u ? 37u : 0u; "
     "__syncthreads(); atomicAdd(&s@i[@y & 3u], @x); atomicMin(&s@i[4], @x); __syncthreads(); unsigned $ = s@i[t % "
     "5u];",
     "sums in shared memory"}};

// @i a number, @1 and @2 places in the scratch memory.
constexpr Form kMemoryForms[] = {
    {'u', "const uint4 q@i = ((const uint4*)in)[@x & 511u]; unsigned $ = q@i.x ^ q@i.y + q@i.z * q@i.w;",
     "a load of 16 bytes"},
    {'s', "const short4 q@i = __ldg((const short4*)in + (@x & 1023u)); int $ = q@i.x * 3 + q@i.y - q@i.z ^ q@i.w;",
     "a load of four shorts"},
    {'s', "int $ = (int)((const signed char*)in)[@x & 8191u] * 256 + (int)((const unsigned char*)in)[@y & 8191u];",
     "loads of bytes"},
    {'u',
     "unsigned a@i[12]; for (unsigned n = 0; n < 12u; ++n) a@i[n] = @x * n + @y; a@i[@y % 12u] ^= t; unsigned $ = "
     "a@i[@x % 12u] + a@i[(@x >> 8) % 12u];",
     "a local array"},
    {'U', "unsigned long long $ = __ldcs(in + (@x & 1023u)) + __ldcg(in + (@y & 1023u)) * 3ull;",
     "loads with cache hints"},
    {'f', "const float2 q@i = ((const float2*)in)[@x & 1023u]; float $ = __fadd_rn(q@i.x, q@i.y);",
     "a load of two floats"},
    {'u',
     "union { unsigned long long whole; unsigned short part[4]; } q@i; q@i.whole = in[@y & 1023u]; q@i.part[@x & 3u] = "
     "(unsigned short)@x; unsigned $ = (unsigned)(q@i.whole >> 13);",
     "a union"},
    {0,
     "if (t < 128u) { ((unsigned char*)(scratch + @1u))[t] = (unsigned char)@x; ((unsigned short*)(scratch + "
     "@2u))[t] = (unsigned short)(@y >> 5); }",
     ""}};

}  // namespace

void WriteControl(Builder& b) {
  const std::vector<Operation> all = Mixed();
  const auto any_type = [&] { return "usUf"[b.random.Below(4)]; };
  for (int i = 0; i < 4; ++i) {
    const char type = any_type();
    b.AddExpression(type, b.Expression(all, type));
  }
  for (int i = 0; i < 6; ++i) {
    const char type = any_type();
    const std::string start = b.Value(type), condition = b.Value('u');
    const std::string one = b.Expression(all, type), two = b.Expression(all, type), three = b.Expression(all, type);
    const std::string step = type == 'f'   ? "$ = $ * 0.5f + "
                             : type == 's' ? "$ = (int)((unsigned)$ * 3u) ^ "
                                           : "$ = $ * 3u ^ ";
    Write(b, kControlForms[b.random.Below(6)],
          {{'n', CppType(type)}, {'s', start}, {'c', condition}, {'p', step}, {'1', one}, {'2', two}, {'3', three}},
          type);
  }
}

void WriteWarp(Builder& b) {
  b.kernel.threads = b.random.Below(2) == 0 ? 64 : 96;
  b.Straight(8);
  for (int i = 0; i < 4; ++i) {
    const std::string x = b.Value('u'), y = b.Value('u'), who = Text(1 + b.random.Below(7));
    Write(b, kWarpForms[b.random.Below(4)], {{'x', x}, {'y', y}, {'w', who}});
  }
}

void WriteShared(Builder& b) {
  constexpr uint32_t kThreads[] = {32, 64, 96, 128};
  const uint32_t n = b.kernel.threads = kThreads[b.random.Below(4)];
  b.Straight(4);
  for (uint64_t i = 0; i < 5; ++i) {
    const char type = "ufUs"[b.random.Below(4)];
    const std::string x = b.Value(type), y = b.Value('u');
    const std::string change = type == 'f' ? " * 0.5f" : type == 's' ? " ^ 5" : " + 3u";
    Write(b, kSharedForms[b.random.Below(6)],
          {{'n', CppType(type)},
           {'a', "s" + Text(i)},
           {'k', Text(n)},
           {'b', Text(4 * n)},
           {'m', change},
           {'x', x},
           {'y', y}},
          type);
  }
}

void WriteAtomic(Builder& b) {
  b.Straight(3);
  for (uint64_t i = 0; i < 8; ++i) {
    const std::string x = b.Value('u'), y = b.Value('u'), wide = b.Value('U');
    const std::string place = "scratch + (" + Text(i * 16) + "u + (" + y + " & 7u))";
    const std::string word = "((unsigned*)(" + place + "))", number = "((int*)(" + place + "))";
    Write(b, kAtomicForms[b.random.Below(12)],
          {{'p', place}, {'w', word}, {'n', number}, {'l', wide}, {'i', Text(i)}, {'x', x}, {'y', y}});
  }
}

void WriteMemory(Builder& b) {
  b.Straight(4);
  for (uint64_t i = 0; i < 6; ++i) {
    const std::string x = b.Value('u'), y = b.Value('u');
    Write(b, kMemoryForms[b.random.Below(8)],
          {{'x', x}, {'y', y}, {'i', Text(i)}, {'1', Text(i * 64)}, {'2', Text(i * 64 + 16)}});
  }
}

void WriteMatrix(Builder& b) {
  b.kernel.threads = 64;
  // Small integers are exact in every format, whatever the order of the sum; fractions are not.
  const bool exact = b.random.Below(2) == 0;
  const bool bf16 = b.random.Below(2) == 0;
  Words words = {
      {'v', exact ? "(float)((int)(w >> (8 * n) & 15u) - 8)" : "(float)((int)(w >> (8 * n) & 255u) - 128) * 0.0078f"},
      {'p', bf16 ? "__floats2bfloat162_rn" : "__floats2half2_rn"},
      {'t', bf16 ? "__nv_bfloat162" : "__half2"},
      {'f', bf16 ? "bf16" : "f16"}};
  const auto line = [&](const char* text) { b.Line(With(text, words)); };
  line("unsigned a[4], b[2];");
  words['n'] = b.Number(900);
  line("for (int r = 0; r < 6; ++r) { const unsigned w = (unsigned)in[(t * 7u + @nu + (unsigned)r * 64u) & 1023u];");
  line("  float low, high; { const int n = 0; low = @v; } { const int n = 2; high = @v; }");
  line(
      "  const @t p = @p(low, high); const unsigned bits = *(const unsigned*)&p; if (r < 4) a[r] = bits; else b[r - 4] "
      "= bits; }");
  const bool small = b.random.Below(3) == 0;
  line("float c[4] = {1.0f, -2.0f, 3.0f, 0.5f};");
  line(
      small
          ? R"(asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.@f.@f.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};" )"
            R"(: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));)"
          : R"(asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.@f.@f.f32 )"
            R"({%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : )"
            R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));)");
  for (uint64_t i = 0; i < 4; ++i) b.AddExpression('f', "c[" + Text(i) + "]", 0, exact ? 0 : 1e-4);
  line("int e[4] = {1, 2, 3, 4};");
  words['s'] = b.random.Below(2) == 0 ? "s8.s8" : "u8.s8";
  line(R"(asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.@s.s32 )"
       R"({%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+r"(e[0]), "+r"(e[1]), "+r"(e[2]), "+r"(e[3]) : )"
       R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));)");
  for (uint64_t i = 0; i < 4; ++i) b.AddExpression('s', "e[" + Text(i) + "]");
  line("double g[2] = {1.0, 2.0}; { const double x = (double)(int)(a[0] & 255u), y = (double)(int)(b[0] & 1023u);");
  line(
      R"(asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};" : "+d"(g[0]), "+d"(g[1]) : )"
      R"("d"(x), "d"(y)); })");
  b.AddExpression('d', "g[0]");
  b.AddExpression('d', "g[1]");
}

}  // namespace kgrpo::generated
