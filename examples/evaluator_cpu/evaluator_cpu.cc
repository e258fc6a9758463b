// evaluator_cpu - judges C functions on the CPU: compiles one, compares what it computes with the reference on random
// inputs, and times it. A problem is a folder with a reference.c. The whole of a plugin.
//
// A candidate runs in a process of its own with limits of time and memory, but not in a sandbox, and its process
// holds the clock: use it with coders that you trust.
#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/sdk/problem_folder.h>
#include <kgrpo/sdk/process.h>

#include <cmath>
#include <nlohmann/json.hpp>

struct kgrpo_evaluator {
  kgrpo::Host host;
  std::string compiler;
  double seconds;
};
struct kgrpo_problem {
  kgrpo::ProblemFolder folder;
};

namespace {

// Compiled with each kernel: computes once from inputs of a seed, writes the results, and times 21 calls: their median,
// and the 6th and 16th, a 97% interval of it.
constexpr const char* kMain = R"c(
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
void kernel(const float* x, float* y, int n);
static int order(const void* a, const void* b) { return (*(double*)a > *(double*)b) - (*(double*)a < *(double*)b); }
int main(int argc, char** argv) {
  const int n = atoi(argv[1]);
  unsigned long long state = strtoull(argv[2], NULL, 10);
  float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
  for (int i = 0; i < n; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    x[i] = (float)(state >> 40) / (1 << 23) - 1;
    y[i] = 1e30f;
  }
  kernel(x, y, n);
  fwrite(y, sizeof *y, n, stdout);
  double seconds[21];
  for (int i = 0; i < 21; ++i) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    kernel(x, y, n);
    clock_gettime(CLOCK_MONOTONIC, &b);
    seconds[i] = (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);
  }
  qsort(seconds, 21, sizeof *seconds, order);
  fprintf(stderr, "%.9g %.9g %.9g\n", seconds[10], seconds[5], seconds[15]);
  return argc != 3;
}
)c";
constexpr int kSizes[] = {1, 1000, 1 << 16};  // the last is timed

// What `options:` may hold. The host checks the pipeline against it and fills the defaults in before Create is called.
kgrpo_str OptionsSchema() {
  return kgrpo::Str(R"json({
    "title": "evaluator_cpu",
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "compiler": {"title": "compiler", "type": "string", "default": "cc", "description": "Called with -O2."},
      "seconds": {"title": "seconds", "type": "number", "exclusiveMinimum": 0, "default": 10,
                  "description": "How long a kernel's process may take."}
    }
  })json");
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_evaluator** out) {
  return kgrpo::Guard([&] {
    const auto json = nlohmann::json::parse(kgrpo::View(options));
    *out = new kgrpo_evaluator{kgrpo::Host(host), json.at("compiler").get<std::string>(),
                               json.at("seconds").get<double>()};
  });
}
void Destroy(kgrpo_evaluator* self) {
  delete self;
}

kgrpo_error* OpenProblem(kgrpo_evaluator*, kgrpo_str folder, kgrpo_problem** out) {
  return kgrpo::Guard([&] {
    *out = new kgrpo_problem{{kgrpo::View(folder), "reference.c", "void kernel(const float* x, float* y, int n);",
                              "Compute what the reference computes, for x of n numbers in [-1, 1)."}};
  });
}
void CloseProblem(kgrpo_evaluator*, kgrpo_problem* problem) {
  delete problem;
}
const kgrpo_problem_info* ProblemInfo(const kgrpo_problem* problem) {
  return &problem->folder.info();
}

// A kernel that is compiled, or the compiler's words.
struct Program {
  Program(const kgrpo_evaluator& self, std::string_view source) {
    built = kgrpo::RunProcess({self.compiler, "-O2", "-o", folder.File("program"), folder.Write("main.c", kMain),
                               folder.Write("kernel.c", source), "-lm"},
                              {/*seconds=*/60});
  }
  kgrpo::ProcessResult Run(const kgrpo_evaluator& self, int n, uint64_t seed) const {
    const kgrpo::DeviceLock lock(self.host, "cpu");  // nothing else of ours is timed or trains meanwhile
    return kgrpo::RunProcess({folder.File("program"), std::to_string(n), std::to_string(seed)}, {self.seconds});
  }
  kgrpo::TemporaryFolder folder;
  kgrpo::ProcessResult built;
};

// Empty where `got` is what the reference gave; otherwise the first difference.
std::string Difference(const std::string& got, const std::string& expected, int n) {
  if (got.size() != expected.size()) return "the kernel must not print";
  const auto* y = reinterpret_cast<const float*>(got.data());
  const auto* reference = reinterpret_cast<const float*>(expected.data());
  for (int i = 0; i < n; ++i) {
    if (std::abs(y[i] - reference[i]) <= 1e-5F + 1e-4F * std::abs(reference[i])) continue;  // not for NaN
    return "n = " + std::to_string(n) + ": y[" + std::to_string(i) + "] is " + std::to_string(y[i]) +
           ", the reference gives " + std::to_string(reference[i]);
  }
  return "";
}

void Judge(const kgrpo_evaluator& self, const kgrpo_problem& problem, std::string_view source, uint64_t seed,
           kgrpo_evaluation_sink sink) {
  kgrpo_evaluation found{};
  found.struct_size = sizeof found;
  found.time_source = KGRPO_LITERAL("this CPU");
  std::string diagnosis;
  const auto put = [&](std::string_view verdict) {
    found.verdict = kgrpo::Str(verdict);
    found.correct = verdict == KGRPO_VERDICT_CORRECT;
    found.diagnosis = kgrpo::Str(diagnosis);
    sink.put(sink.context, &found);
  };
  const Program reference(self, problem.folder.source()), candidate(self, source);
  if (!reference.built.ok()) throw kgrpo::Error(KGRPO_ERROR_INVALID, "reference.c: " + reference.built.errors);
  diagnosis = candidate.built.errors.substr(0, 2000);
  if (!candidate.built.ok()) return put("not_compiled");
  found.compiled = 1;
  for (int n : kSizes) {
    const kgrpo::ProcessResult expected = reference.Run(self, n, seed), got = candidate.Run(self, n, seed);
    if (!expected.ok()) throw kgrpo::Error(KGRPO_ERROR_INVALID, "reference.c: it crashes, or takes too long");
    diagnosis = "signal " + std::to_string(got.signal) + ", n = " + std::to_string(n);
    if (got.timed_out || !got.ok()) return put(got.timed_out ? "timeout" : "crash");
    diagnosis = Difference(got.output, expected.output, n);
    if (!diagnosis.empty()) return put("wrong");
    if (std::sscanf(got.errors.c_str(), "%lf %lf %lf", &found.seconds, &found.seconds_low, &found.seconds_high) != 3) {
      diagnosis = "the kernel must not print";
      return put("wrong");
    }
  }
  put(KGRPO_VERDICT_CORRECT);
}

kgrpo_error* Baseline(kgrpo_evaluator* self, kgrpo_problem* problem, kgrpo_evaluation_sink sink) {
  return kgrpo::Guard([&] { Judge(*self, *problem, problem->folder.source(), /*seed=*/1, sink); });
}
kgrpo_error* Evaluate(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                      kgrpo_evaluation_sink sink) {
  return kgrpo::Guard([&] { Judge(*self, *problem, kgrpo::View(request->source), request->seed, sink); });
}

kgrpo_str Describe(const kgrpo_evaluator*) {
  return KGRPO_LITERAL("C functions, compiled with -O2, timed on this CPU; no sandbox");
}

const kgrpo_evaluator_interface kInterface = {sizeof(kgrpo_evaluator_interface),
                                              OptionsSchema,
                                              Create,
                                              Destroy,
                                              OpenProblem,
                                              CloseProblem,
                                              ProblemInfo,
                                              Baseline,
                                              Evaluate,
                                              Describe,
                                              /*report=*/nullptr,
                                              /*check_problem=*/nullptr};

}  // namespace

KGRPO_PLUGIN("evaluator_cpu", "0.1.0", "judges C functions on the CPU", {KGRPO_EVALUATOR_INTERFACE, &kInterface});
