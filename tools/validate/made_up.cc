#include "validate/made_up.h"

#include <kgrpo/sdk/text.h>

#include <map>
#include <vector>

namespace kgrpo::validate {

const char* MadeUpKernel() {
  return R"(#include <cuda_runtime.h>

__global__ void vector_add_kernel(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" void launch(const float* a, const float* b, float* c, int n) {
  vector_add_kernel<<<(n + 255) / 256, 256>>>(a, b, c, n);
}
)";
}

const char* MadeUpFasterKernel() {
  return R"(#include <cuda_runtime.h>

__global__ void vector_add_kernel(const float4* a, const float4* b, float4* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = make_float4(a[i].x + b[i].x, a[i].y + b[i].y, a[i].z + b[i].z, a[i].w + b[i].w);
}

extern "C" void launch(const float* a, const float* b, float* c, int n) {
  vector_add_kernel<<<(n / 4 + 255) / 256, 256>>>((const float4*)a, (const float4*)b, (float4*)c, n / 4);
}
)";
}

const kgrpo_problem_info& MadeUpProblem() {
  static const kgrpo_str traits[] = {KGRPO_LITERAL("memory-bound")};
  static const kgrpo_problem_info info = {
      .struct_size = sizeof(kgrpo_problem_info),
      .name = KGRPO_LITERAL("made_up_vector_add"),
      .title = KGRPO_LITERAL("Vector addition"),
      .family = KGRPO_LITERAL("elementwise"),
      .split = KGRPO_LITERAL("train"),
      .task = KGRPO_LITERAL("Compute c[i] = a[i] + b[i] for each i below n. n is a multiple of 4."),
      .signature = KGRPO_LITERAL("extern \"C\" void launch(const float* a, const float* b, float* c, int n)"),
      .source = Str(MadeUpKernel()),
      .traits = traits,
      .trait_count = 1,
      .refused = {},
      .flags = nullptr,
      .flag_count = 0};
  return info;
}

kgrpo_evaluation CorrectKernel(double seconds) {
  // The returned evaluations borrow these, so they must live as long as the process.
  static std::map<double, std::vector<kgrpo_metric>> metrics;
  static const kgrpo_remark remark = {sizeof(kgrpo_remark),  0, KGRPO_LITERAL("Memory"), KGRPO_LITERAL("bound by"),
                                      KGRPO_LITERAL("DRAM"), 0};
  static const kgrpo_remark* const remarks[] = {&remark};
  std::vector<kgrpo_metric>& own = metrics[seconds];
  if (own.empty()) {
    own = {Measured("dram_bytes", seconds * 2e12),
           Measured("registers", seconds < 1e-3 ? 96.0 : 16.0),  // rewards may penalise many
           Measured("occupancy", 0.75)};
  }
  kgrpo_evaluation evaluation{};
  evaluation.struct_size = sizeof(evaluation);
  evaluation.compiled = evaluation.correct = 1;
  evaluation.verdict = KGRPO_LITERAL(KGRPO_VERDICT_CORRECT);
  evaluation.seconds = seconds;
  evaluation.seconds_low = seconds * 0.99;
  evaluation.seconds_high = seconds * 1.01;
  evaluation.speedup = 1e-3 / seconds;
  evaluation.time_source = KGRPO_LITERAL("made up");
  evaluation.diagnosis = KGRPO_LITERAL("bound by memory");
  evaluation.metrics = own.data();
  evaluation.metric_count = own.size();
  evaluation.remarks = remarks;
  evaluation.remark_count = 1;
  return evaluation;
}

kgrpo_evaluation WrongKernel(const char* verdict) {
  kgrpo_evaluation evaluation{};
  evaluation.struct_size = sizeof(evaluation);
  evaluation.verdict = Str(verdict);
  evaluation.compiled = View(evaluation.verdict) != KGRPO_VERDICT_NOT_COMPILED;
  evaluation.diagnosis = KGRPO_LITERAL("made up");
  return evaluation;
}

kgrpo_coder_answer AnswerWith(const char* source) {
  kgrpo_coder_answer answer{};
  answer.struct_size = sizeof(answer);
  answer.outcome = KGRPO_CODER_OK;
  answer.source = Str(source);
  answer.summary = KGRPO_LITERAL("vectorised loads");
  answer.prompt_tokens = 900;
  answer.completion_tokens = 300;
  answer.cost = 0.004;
  answer.seconds = 2;
  answer.attempts = 1;
  return answer;
}

kgrpo_coder_answer AnswerWithout(kgrpo_coder_outcome outcome) {
  kgrpo_coder_answer answer{};
  answer.struct_size = sizeof(answer);
  answer.outcome = outcome;
  answer.message = KGRPO_LITERAL("made up");
  answer.attempts = 1;
  return answer;
}

}  // namespace kgrpo::validate
