#include "operations.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace kgrpo::generated {
namespace {

// Operations as text: `SIGNATURE EXPRESSION; EXPRESSION; ...`. A signature, ARGUMENTS>RESULT, counts until the next
// one. A name alone is a call with all arguments. ` ~ULPS` or ` ~ULPS,ABSOLUTE` are the bounds. A line that ends with
// `;` continues on the next; `each A B: ...` repeats its line with A, then with B in place of @.

// The same on every machine.
constexpr const char* kInteger =
    R"(uu>u $0 + $1; $0 - $1; $0 * $1; $0 & $1; $0 | $1; $0 ^ $1; ($0 << ($1 & 31)); $0 >> ($1 & 31); u>u ~$0; 0 - $0;
uu>u QuotientOf; RemainderOf; $0 < $1 ? $0 : $1; $0 > $1 ? $0 : $1; (unsigned)($0 < $1); (unsigned)($0 <= $1);
(unsigned)($0 == $1); (unsigned)($0 != $1); (unsigned)($0 > $1); uuu>u ($0 & 1u) != 0u ? $1 : $2; $0 * $1 + $2;
u>s (int)$0; u>U (unsigned long long)$0; u>S (long long)$0; u>s (int)(signed char)$0; (int)(unsigned char)$0;
(int)(short)$0; (int)(unsigned short)$0; ss>s (int)((unsigned)$0 + (unsigned)$1); (int)((unsigned)$0 - (unsigned)$1);
(int)((unsigned)$0 * (unsigned)$1); $0 & $1; $0 | $1; $0 ^ $1; su>s (int)((unsigned)$0 << ($1 & 31)); $0 >> ($1 & 31);
s>s ~$0; (int)(0 - (unsigned)$0); ss>s QuotientOf; RemainderOf; $0 < $1 ? $0 : $1; $0 > $1 ? $0 : $1;
ss>u (unsigned)($0 < $1); (unsigned)($0 <= $1); (unsigned)($0 == $1); (unsigned)($0 != $1); (unsigned)($0 > $1);
uss>s ($0 & 1u) != 0u ? $1 : $2; sss>s (int)((unsigned)$0 * (unsigned)$1 + (unsigned)$2); s>u (unsigned)$0;
s>U (unsigned long long)$0; s>S (long long)$0; s>s (int)(signed char)$0; (int)(unsigned char)$0; (int)(short)$0;
(int)(unsigned short)$0; UU>U $0 + $1; $0 - $1; $0 * $1; $0 & $1; $0 | $1; $0 ^ $1; Uu>U ($0 << ($1 & 63));
$0 >> ($1 & 63); U>U ~$0; 0 - $0; UU>U QuotientOf; RemainderOf; $0 < $1 ? $0 : $1; $0 > $1 ? $0 : $1;
UU>u (unsigned)($0 < $1); (unsigned)($0 <= $1); (unsigned)($0 == $1); (unsigned)($0 != $1); (unsigned)($0 > $1);
uUU>U ($0 & 1u) != 0u ? $1 : $2; UUU>U $0 * $1 + $2; U>u (unsigned)$0; U>s (int)$0; U>S (long long)$0;
U>s (int)(signed char)$0; (int)(unsigned char)$0; (int)(short)$0; (int)(unsigned short)$0;
SS>S (long long)((unsigned long long)$0 + (unsigned long long)$1);
(long long)((unsigned long long)$0 - (unsigned long long)$1);
(long long)((unsigned long long)$0 * (unsigned long long)$1); $0 & $1; $0 | $1; $0 ^ $1;
Su>S (long long)((unsigned long long)$0 << ($1 & 63)); $0 >> ($1 & 63); S>S ~$0;
(long long)(0 - (unsigned long long)$0); SS>S QuotientOf; RemainderOf; $0 < $1 ? $0 : $1; $0 > $1 ? $0 : $1;
SS>u (unsigned)($0 < $1); (unsigned)($0 <= $1); (unsigned)($0 == $1); (unsigned)($0 != $1); (unsigned)($0 > $1);
uSS>S ($0 & 1u) != 0u ? $1 : $2;
SSS>S (long long)((unsigned long long)$0 * (unsigned long long)$1 + (unsigned long long)$2); S>u (unsigned)$0;
S>s (int)$0; S>U (unsigned long long)$0; S>s (int)(signed char)$0; (int)(unsigned char)$0; (int)(short)$0;
(int)(unsigned short)$0; u>u (unsigned)__brev($0); (unsigned)__clz($0); (unsigned)__popc($0); (unsigned)__ffs($0);
U>u (unsigned)__clzll($0); (unsigned)__popcll($0); (unsigned)__ffsll($0); U>U __brevll; uu>u __umulhi; ss>s __mulhi;
UU>U __umul64hi; SS>S __mul64hi; uu>u __umul24; ss>s __mul24; uu>u __uhadd; __urhadd; ss>s __hadd; __rhadd;
uuu>u __byte_perm; __funnelshift_l; __funnelshift_r; __funnelshift_lc; __funnelshift_rc; __usad; ssu>u __sad;
uuu>u __dp4a; sss>s __dp4a; uuu>u __dp2a_lo; sss>s __dp2a_hi; uu>u __vadd4; __vsub4; __vadd2; __vsub2; __vabsdiffu4;
__vabsdiffs4; __vmaxu4; __vmins4; __vmaxs2; __vminu2; __vavgu4; __vavgs2; __vcmpeq4; __vcmpgts2; __vcmpltu4;
__vseteq2; __vsetgeu4; __vsadu4; __vsads2; __vaddss4; __vaddus2; __vsubss2; __vsubus4; __vhaddu4; u>u __vabs4;
__vneg2; __vabsss2; __vnegss4)";

// Float and double: IEEE 754 defines the results.
constexpr const char* kFloat = R"(
each rn rz ru rd: ff>f __fadd_@($0, $1); __fsub_@($0, $1); __fmul_@($0, $1); __fdiv_@($0, $1); fff>f __fmaf_@($0, $1, $2);
f>f __fsqrt_@($0); __frcp_@($0)
ff>f $0 + $1; $0 - $1; $0 * $1; $0 / $1; f>f -$0; fabsf; sqrtf; ff>f fminf; fmaxf; f>f truncf; floorf; ceilf; rintf;
roundf; nearbyintf; ff>f copysignf($0, Known($1)); fff>f fmaf; ff>f fdimf; fmodf; fs>f ldexpf($0, $1 % 40);
ff>f nextafterf; remainderf; ff>u (unsigned)($0 < $1); (unsigned)($0 <= $1); (unsigned)($0 == $1);
(unsigned)($0 != $1); (unsigned)($0 > $1); (unsigned)($0 >= $1); (unsigned)!($0 < $1);
uff>f ($0 & 1u) != 0u ? $1 : $2; f>u BitsOf; u>f __uint_as_float; f>f __saturatef)";

constexpr const char* kDouble = R"(
each rn rz ru rd: dd>d __dadd_@($0, $1); __dsub_@($0, $1); __dmul_@($0, $1); __ddiv_@($0, $1); ddd>d __fma_@($0, $1, $2);
d>d __dsqrt_@($0); __drcp_@($0)
dd>d $0 + $1; $0 - $1; $0 * $1; $0 / $1; d>d -$0; fabs; sqrt; dd>d fmin; fmax; d>d trunc; floor; ceil; rint; round;
nearbyint; dd>d copysign($0, Known($1)); ddd>d fma; dd>d fdim; fmod; ds>d ldexp($0, $1 % 40); dd>d nextafter;
remainder; dd>u (unsigned)($0 < $1); (unsigned)($0 <= $1); (unsigned)($0 == $1); (unsigned)($0 != $1);
(unsigned)($0 > $1); (unsigned)($0 >= $1); (unsigned)!($0 < $1); udd>d ($0 & 1u) != 0u ? $1 : $2; d>U BitsOf;
U>d FromBits)";

constexpr const char* kConvert = R"(
each rn rz ru rd: f>s __float2int_@($0); d>s __double2int_@($0); s>f __int2float_@($0); f>u __float2uint_@($0); d>u __double2uint_@($0);
u>f __uint2float_@($0); f>S __float2ll_@($0); d>S __double2ll_@($0); S>f __ll2float_@($0); S>d __ll2double_@($0);
f>U __float2ull_@($0); d>U __double2ull_@($0); U>f __ull2float_@($0); U>d __ull2double_@($0);
d>f __double2float_@($0)
s>d (double)$0; u>d (double)$0; f>d (double)$0; d>f (float)$0; u>f (float)(signed char)$0;
u>d (double)(signed char)$0; u>f (float)(unsigned char)$0; u>d (double)(unsigned char)$0; u>f (float)(short)$0;
u>d (double)(short)$0; u>f (float)(unsigned short)$0; u>d (double)(unsigned short)$0; s>f (float)(signed char)$0;
s>d (double)(signed char)$0; s>f (float)(unsigned char)$0; s>d (double)(unsigned char)$0; s>f (float)(short)$0;
s>d (double)(short)$0; s>f (float)(unsigned short)$0; s>d (double)(unsigned short)$0; U>f (float)(signed char)$0;
U>d (double)(signed char)$0; U>f (float)(unsigned char)$0; U>d (double)(unsigned char)$0; U>f (float)(short)$0;
U>d (double)(short)$0; U>f (float)(unsigned short)$0; U>d (double)(unsigned short)$0; S>f (float)(signed char)$0;
S>d (double)(signed char)$0; S>f (float)(unsigned char)$0; S>d (double)(unsigned char)$0; S>f (float)(short)$0;
S>d (double)(short)$0; S>f (float)(unsigned short)$0; S>d (double)(unsigned short)$0;
f>s (int)(unsigned char)__float2int_rz(Bounded($0)); d>s (int)(unsigned char)__double2int_rz(Bounded($0));
f>s (int)(short)__float2int_rz(Bounded($0)); d>s (int)(short)__double2int_rz(Bounded($0));
f>s (int)(unsigned short)__float2int_rz(Bounded($0)); d>s (int)(unsigned short)__double2int_rz(Bounded($0));
f>s (int)(signed char)__float2int_rz(Bounded($0)); d>s (int)(signed char)__double2int_rz(Bounded($0));
ss>d __hiloint2double(Exponent($0), $1); d>s __double2hiint(FromBits(BitsOf($0)));
__double2loint(FromBits(BitsOf($0))); u>f __uint_as_float; U>d FromBits; f>u BitsOf; d>U BitsOf)";

// Comparisons give 0 or 3: ptxas 13.0 leaves out conversions of a 0 or 1 (docs/interpreter.md).
constexpr const char* kHalf =
    R"(hh>h __hadd; HH>H __hadd2; hh>h __hadd_sat; HH>H __hadd2_sat; hh>h __hsub; HH>H __hsub2; hh>h __hsub_sat;
HH>H __hsub2_sat; hh>h __hmul; HH>H __hmul2; hh>h __hmul_sat; HH>H __hmul2_sat; hhh>h __hfma; HHH>H __hfma2;
hhh>h __hfma_relu; HHH>H __hfma2_sat; __hfma2_relu; hh>h __hmin; HH>H __hmin2; hh>h __hmax; HH>H __hmax2;
hh>h __hmin_nan; HH>H __hmin2_nan; hh>h __hmax_nan; HH>H __hmax2_nan; h>h __hneg; __habs; H>H __hneg2; __habs2;
hh>u 3u * (unsigned)__hlt($0, $1); HH>H __hlt2; hh>u 3u * (unsigned)__hle($0, $1); HH>H __hle2;
hh>u 3u * (unsigned)__heq($0, $1); HH>H __heq2; hh>u 3u * (unsigned)__hne($0, $1); HH>H __hne2;
hh>u 3u * (unsigned)__hgt($0, $1); HH>H __hgt2; hh>u 3u * (unsigned)__hge($0, $1); HH>H __hge2;
hh>u 3u * (unsigned)__hltu($0, $1); HH>H __hltu2; hh>u 3u * (unsigned)__hneu($0, $1); HH>H __hneu2;
hh>u 3u * (unsigned)__hgeu($0, $1); HH>H __hgeu2; h>h hrint; H>H h2rint; h>h hfloor; H>H h2floor; h>h hceil;
H>H h2ceil; h>h htrunc; H>H h2trunc
each rn rz ru rd: f>h __float2half_@($0); s>h __int2half_@($0); h>s __half2int_@($0); u>h __uint2half_@($0); h>u __half2uint_@($0);
S>h __ll2half_@($0); h>S __half2ll_@($0); U>h __ull2half_@($0); h>U __half2ull_@($0); h>s (int)__half2short_@($0);
s>h __ushort2half_@((unsigned short)$0)
h>f __half2float; d>h __double2half; ff>H __floats2half2_rn; hh>H __halves2half2; H>h __low2half; __high2half;
u>h FromBits16<__half>($0); h>u BitsOf
bb>b __hadd; BB>B __hadd2; bb>b __hadd_sat; BB>B __hadd2_sat; bb>b __hsub; BB>B __hsub2; bb>b __hsub_sat;
BB>B __hsub2_sat; bb>b __hmul; BB>B __hmul2; bb>b __hmul_sat; BB>B __hmul2_sat; bbb>b __hfma; BBB>B __hfma2;
bbb>b __hfma_relu; BBB>B __hfma2_sat; __hfma2_relu; bb>b __hmin; BB>B __hmin2; bb>b __hmax; BB>B __hmax2;
bb>b __hmin_nan; BB>B __hmin2_nan; bb>b __hmax_nan; BB>B __hmax2_nan; b>b __hneg; __habs; B>B __hneg2; __habs2;
bb>u 3u * (unsigned)__hlt($0, $1); BB>B __hlt2; bb>u 3u * (unsigned)__hle($0, $1); BB>B __hle2;
bb>u 3u * (unsigned)__heq($0, $1); BB>B __heq2; bb>u 3u * (unsigned)__hne($0, $1); BB>B __hne2;
bb>u 3u * (unsigned)__hgt($0, $1); BB>B __hgt2; bb>u 3u * (unsigned)__hge($0, $1); BB>B __hge2;
bb>u 3u * (unsigned)__hltu($0, $1); BB>B __hltu2; bb>u 3u * (unsigned)__hneu($0, $1); BB>B __hneu2;
bb>u 3u * (unsigned)__hgeu($0, $1); BB>B __hgeu2; b>b hrint; B>B h2rint; b>b hfloor; B>B h2floor; b>b hceil;
B>B h2ceil; b>b htrunc; B>B h2trunc
each rn rz ru rd: f>b __float2bfloat16_@($0); s>b __int2bfloat16_@($0); b>s __bfloat162int_@($0); u>b __uint2bfloat16_@($0);
b>u __bfloat162uint_@($0); S>b __ll2bfloat16_@($0); b>S __bfloat162ll_@($0); U>b __ull2bfloat16_@($0);
b>U __bfloat162ull_@($0); b>s (int)__bfloat162short_@($0); s>b __ushort2bfloat16_@((unsigned short)$0)
b>f __bfloat162float; d>b __double2bfloat16; ff>B __floats2bfloat162_rn; bb>B __halves2bfloat162; B>b __low2bfloat16;
__high2bfloat16; u>b FromBits16<__nv_bfloat16>($0); b>u BitsOf; ff>f $0 + $1; $0 * $1)";

constexpr const char* kWarp = R"(
each u s U S f d: @u>@ __shfl_sync(0xffffffffu, $0, (int)($1 & 31u)); __shfl_xor_sync(0xffffffffu, $0, (int)($1 & 31u));
@>@ __shfl_up_sync(0xffffffffu, $0, 3u, 8); __shfl_down_sync(0xffffffffu, $0, 2u, 8);
@u>@ __shfl_sync(0xffffffffu, $0, (int)$1, 8); @>@ __shfl_xor_sync(0xffffffffu, $0, 5, 8);
__shfl_up_sync(0xffffffffu, $0, 5u, 16); __shfl_down_sync(0xffffffffu, $0, 3u, 16);
@u>@ __shfl_sync(0xffffffffu, $0, (int)$1, 16); @>@ __shfl_xor_sync(0xffffffffu, $0, 9, 16);
__shfl_up_sync(0xffffffffu, $0, 9u, 32); __shfl_down_sync(0xffffffffu, $0, 5u, 32);
@u>@ __shfl_sync(0xffffffffu, $0, (int)$1, 32); @>@ __shfl_xor_sync(0xffffffffu, $0, 17, 32)
u>u __reduce_add_sync(0xffffffffu, $0); s>s __reduce_add_sync(0xffffffffu, $0);
u>u __reduce_min_sync(0xffffffffu, $0); s>s __reduce_min_sync(0xffffffffu, $0);
u>u __reduce_max_sync(0xffffffffu, $0); s>s __reduce_max_sync(0xffffffffu, $0);
u>u __reduce_and_sync(0xffffffffu, $0); __reduce_or_sync(0xffffffffu, $0); __reduce_xor_sync(0xffffffffu, $0);
__ballot_sync(0xffffffffu, (int)($0 & 4u)); s>u (unsigned)__any_sync(0xffffffffu, $0 > 1000000);
u>u (unsigned)__all_sync(0xffffffffu, (int)($0 & 0xffffu)); __match_any_sync(0xffffffffu, $0 & 3u);
U>u __match_any_sync(0xffffffffu, $0 & 5ull); u>u MatchAll($0 & 1u); MatchAll($0 >> 32 - 1 >> 1); uu>u $0 + $1;
UU>U $0 + $1; uu>u $0 ^ $1; UU>U $0 ^ $1; U>u (unsigned)($0 >> 7); ff>f $0 * $1; df>d $0 + (double)$1)";

// Bounds: the instruction's error in the CUDA programming guide or the PTX manual, plus one unit for the interpreter.
constexpr const char* kApproximate =
    R"(f>f __expf(Range($0, 80.0f)) ~100; __exp10f(Range($0, 36.0f)) ~110; exp2f(Range($0, 120.0f)) ~4;
__logf(Positive($0)) ~4,5.1106141211333e-07; __log2f(Positive($0)) ~4,5.1106141211333e-07;
__log10f(Positive($0)) ~4,3.371747880871523e-07; __sinf(Range($0, 3.14159f)) ~0,7.227499802162168e-07;
__cosf(Range($0, 3.14159f)) ~0,8.302217133485075e-07; ff>f __fdividef($0, Positive($1)) ~3;
f>f __frsqrt_rn(Positive($0)) ~1; rsqrtf(Positive($0)) ~3; TanhApprox ~0,0.0005233268860040493;
RcpApprox(Positive($0)) ~2; SqrtApprox(Positive($0)) ~2; RsqrtApprox(Positive($0)) ~3;
Ex2Approx(Range($0, 120.0f)) ~3; Lg2Approx(Positive($0)) ~3,4.76837158203125e-07;
SinApprox(Range($0, 3.14159f)) ~0,9.5367431640625e-07; CosApprox(Range($0, 3.14159f)) ~0,9.5367431640625e-07;
ff>f DivFull($0, Positive($1)) ~3; h>h hexp2(Range16($0)) ~2; hrcp(Positive16($0)) ~2; hsqrt(Positive16($0)) ~2;
hrsqrt(Positive16($0)) ~2; hlog2(Positive16($0)) ~2,0.01; hsin(Range16($0)) ~2,0.002; hcos(Range16($0)) ~2,0.002;
hexp(Range16($0)) ~2; hh>h __hdiv($0, Positive16($1)) ~1; u>f (float)($0 & 0xffffu) * 0.0625f;
f>h __float2half_rn(Range($0, 100.0f)))";

// Bounds: twice the guide's error of the function, plus one.
constexpr const char* kMath =
    R"(f>f expf ~3; exp2f ~5; exp10f ~5; expm1f ~3; logf ~3; log2f ~3; log10f ~5; log1pf ~3; sinf ~5; cosf ~5; tanf ~9;
asinf ~5; acosf ~5; atanf ~5; sinhf ~7; coshf ~5; tanhf ~5; asinhf ~7; acoshf ~9; atanhf ~7; cbrtf ~3; rcbrtf ~3;
rsqrtf ~5; erff ~5; erfcf ~9; erfinvf ~5; erfcinvf ~9; erfcxf ~9; normcdff ~11; normcdfinvf ~11; lgammaf ~121,0.0001;
tgammaf ~11; sinpif ~3; cospif ~3; ff>f powf ~9; atan2f ~7; hypotf ~7; rhypotf ~5; d>d exp ~3; exp2 ~3; exp10 ~3;
expm1 ~3; log ~3; log2 ~3; log10 ~3; log1p ~3; sin ~5; cos ~5; tan ~5; asin ~5; acos ~5; atan ~5; sinh ~5; cosh ~3;
tanh ~3; asinh ~7; acosh ~7; atanh ~5; cbrt ~3; rcbrt ~3; rsqrt ~3; erf ~5; erfc ~11; erfinv ~11; erfcinv ~13;
erfcx ~9; normcdf ~11; normcdfinv ~17; tgamma ~21; sinpi ~5; cospi ~5; lgamma ~200,1e-09; dd>d pow ~5; atan2 ~5;
hypot ~5; fu>f $0 * (float)($1 % 17u); du>d $0 * (double)($1 % 17u); f>d (double)$0; u>f __uint_as_float)";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Takes what is before the separator off the text.
std::string TakeUntil(std::string* text, const std::string& separator) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string taken = text->substr(0, end);
  text->erase(0, std::min(end + separator.size(), text->size()));
  return taken;
}

void ReadLine(std::string line, std::vector<Operation>* operations) {
  std::string arguments;
  char result = 0;
  while (!line.empty()) {
    std::string item = TakeUntil(&line, "; ");
    if (const size_t arrow = item.find('>'); arrow < 4 && item.find(' ') == arrow + 2) {
      arguments = item.substr(0, arrow);
      result = item[arrow + 1];
      item.erase(0, arrow + 3);
    }
    Operation operation{result, arguments, TakeUntil(&item, " ~")};
    if (!item.empty()) operation.ulps = std::stod(TakeUntil(&item, ","));
    if (!item.empty()) operation.absolute = std::stod(item);
    if (operation.text.find_first_of("$(") == std::string::npos) {
      operation.text += "($0";
      for (size_t i = 1; i < arguments.size(); ++i) operation.text += ", $" + std::to_string(i);
      operation.text += ")";
    }
    operations->push_back(std::move(operation));
  }
}

std::vector<Operation> Read(const char* text) {
  std::vector<Operation> operations;
  std::istringstream lines(Replaced(text, ";\n", "; "));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream names(line.starts_with("each ") ? TakeUntil(&line, ": ").substr(5) : "@");
    for (std::string name; names >> name;) ReadLine(Replaced(line, "@", name), &operations);
  }
  return operations;
}

}  // namespace

std::vector<Operation> Operations(Kind kind) {
  static const std::map<Kind, const char*> kTexts = {
      {Kind::kFloat, kFloat}, {Kind::kDouble, kDouble}, {Kind::kConvert, kConvert},         {Kind::kHalf, kHalf},
      {Kind::kWarp, kWarp},   {Kind::kMath, kMath},     {Kind::kApproximate, kApproximate},
  };
  const auto found = kTexts.find(kind);
  return Read(found == kTexts.end() ? kInteger : found->second);
}

}  // namespace kgrpo::generated
