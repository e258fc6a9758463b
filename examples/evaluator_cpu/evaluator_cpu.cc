// evaluator_cpu - judges C functions on the CPU: compiles one, compares what it computes with the reference on random
// inputs, and times it. A problem is a folder with a reference.c. The whole of a plugin.
//
// A candidate runs in a process of its own with limits of time and memory, but not in a sandbox, and its process
// holds the clock: use it with coders that you trust.
#include <kgrpo/sdk/evaluator.h>
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/sdk/process.h>

#include <cmath>
#include <nlohmann/json.hpp>

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

// The schema of `options:`. The host checks the pipeline against it and fills the defaults in before Make is called.
std::string_view OptionsSchema() {
  return R"json({
    "title": "evaluator_cpu",
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "compiler": {"title": "compiler", "type": "string", "default": "cc", "description": "Called with -O2."},
      "seconds": {"title": "seconds", "type": "number", "exclusiveMinimum": 0, "default": 10,
                  "description": "How long a kernel's process may take."}
    }
  })json";
}

// A kernel that is compiled, or the compiler's words.
struct Program {
  Program(const std::string& compiler, std::string_view source)
      : built(kgrpo::RunProcess({compiler, "-O2", "-o", folder.File("program"), folder.Write("main.c", kMain),
                                 folder.Write("kernel.c", source), "-lm"},
                                {/*seconds=*/60})) {}
  kgrpo::TemporaryFolder folder;
  kgrpo::ProcessResult built;
};

// Returns the first difference of `got` from the reference's output; empty if there is none.
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

// Called from any thread, several at once.
class CpuEvaluator {
 public:
  CpuEvaluator(const kgrpo_host* host, std::string compiler, double seconds)
      : host_(host), compiler_(std::move(compiler)), seconds_(seconds) {}

  std::unique_ptr<kgrpo::ProblemFolder> Open(std::string_view folder) const {
    return std::make_unique<kgrpo::ProblemFolder>(folder, "reference.c",
                                                  "void kernel(const float* x, float* y, int n);",
                                                  "Compute what the reference does, for n numbers x in [-1, 1).");
  }

  kgrpo::Found Judge(const kgrpo::ProblemFolder& problem, std::string_view source, uint64_t seed) const {
    const Program reference(compiler_, problem.source()), candidate(compiler_, source);
    if (!reference.built.ok()) throw kgrpo::Error(KGRPO_ERROR_INVALID, "reference.c: " + reference.built.errors);
    if (!candidate.built.ok()) return {"not_compiled", candidate.built.errors.substr(0, 2000)};
    kgrpo::Found found{KGRPO_VERDICT_CORRECT};
    for (int n : kSizes) {
      const kgrpo::ProcessResult expected = Run(reference, n, seed), got = Run(candidate, n, seed);
      if (!expected.ok()) throw kgrpo::Error(KGRPO_ERROR_INVALID, "reference.c: it crashes, or takes too long");
      if (got.timed_out) return {"timeout", "n = " + std::to_string(n)};
      if (!got.ok()) return {"crash", "signal " + std::to_string(got.signal) + ", n = " + std::to_string(n)};
      const std::string difference = Difference(got.output, expected.output, n);
      if (!difference.empty()) return {"wrong", difference};
      if (std::sscanf(got.errors.c_str(), "%lf %lf %lf", &found.seconds, &found.seconds_low, &found.seconds_high) != 3)
        return {"wrong", "the kernel must not print"};
    }
    return found;
  }

  const std::string& Describe() const { return description_; }
  const std::string& time_source() const { return time_source_; }

 private:
  kgrpo::ProcessResult Run(const Program& program, int n, uint64_t seed) const {
    const kgrpo::DeviceLock lock(host_, "cpu");  // nothing else of ours is timed or trains meanwhile
    return kgrpo::RunProcess({program.folder.File("program"), std::to_string(n), std::to_string(seed)}, {seconds_});
  }

  kgrpo::Host host_;
  std::string compiler_;
  double seconds_;
  std::string description_ = "C functions, compiled with -O2, timed on this CPU; no sandbox", time_source_ = "this CPU";
};

std::unique_ptr<CpuEvaluator> Make(const kgrpo_host* host, std::string_view options) {
  const auto json = nlohmann::json::parse(options);
  return std::make_unique<CpuEvaluator>(host, json.at("compiler").get<std::string>(), json.at("seconds").get<double>());
}

}  // namespace

KGRPO_PLUGIN("evaluator_cpu", "0.1.0", "judges C functions on the CPU",
             {KGRPO_EVALUATOR_INTERFACE, &kgrpo::EvaluatorInterface<CpuEvaluator, OptionsSchema, Make>::kInterface});
