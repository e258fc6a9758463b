// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/evaluator.h - the functions of kgrpo.evaluator/1 over an evaluator class whose problems are folders with
// one file, the reference kernel: the simplest format that an evaluator may define.
#ifndef KGRPO_SDK_EVALUATOR_H
#define KGRPO_SDK_EVALUATOR_H
#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kgrpo {

// An evaluator's findings on a kernel; kgrpo_evaluation documents each member. Only the verdict is required, and the
// seconds of a correct kernel.
struct Found {
  std::string verdict;  // KGRPO_VERDICT_CORRECT, "not_compiled", "wrong", ...
  std::string diagnosis = {};
  double seconds = 0, seconds_low = 0, seconds_high = 0;
};

// A problem's folder. The plugin's Problem in the class below.
class ProblemFolder {
 public:
  // Reads `reference` ("reference.cu") of the folder. `signature`: the C declaration that a kernel must define. `task`:
  // what to compute, for prompts. Throws KGRPO_ERROR_NOT_FOUND where the file is not there or is empty.
  ProblemFolder(std::string_view folder, std::string_view reference, std::string signature, std::string task)
      : signature_(std::move(signature)), task_(std::move(task)) {
    const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
    name_ = (path.has_filename() ? path : path.parent_path()).filename().string();
    std::ifstream file(path / reference, std::ios::binary);
    source_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (source_.empty()) throw Error(KGRPO_ERROR_NOT_FOUND, (path / reference).string() + ": no reference kernel");
    info_.struct_size = sizeof(info_);
    info_.name = info_.title = Str(name_);
    info_.split = KGRPO_LITERAL("train");
    info_.signature = Str(signature_);
    info_.task = Str(task_);
    info_.source = Str(source_);
  }
  ProblemFolder(const ProblemFolder&) = delete;
  ProblemFolder& operator=(const ProblemFolder&) = delete;

  const kgrpo_problem_info& info() const { return info_; }
  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }  // the reference

 private:
  std::string name_, source_, signature_, task_;
  kgrpo_problem_info info_{};
};

// `Evaluator` has, all called from any thread:
//   std::unique_ptr<ProblemFolder> Open(std::string_view folder) const;
//   Found Judge(const ProblemFolder& problem, std::string_view source, uint64_t seed) const;
//   const std::string& Describe() const;     what is in force, for the run's record
//   const std::string& time_source() const;  "this CPU"
// `Schema` gives its options' JSON Schema, `Make` makes one from (host, options as JSON).
template <typename Evaluator, std::string_view (*Schema)(),
          std::unique_ptr<Evaluator> (*Make)(const kgrpo_host* host, std::string_view options)>
class EvaluatorInterface {
  static const Evaluator& Of(const kgrpo_evaluator* self) { return *reinterpret_cast<const Evaluator*>(self); }
  static const ProblemFolder& Of(const kgrpo_problem* problem) {
    return *reinterpret_cast<const ProblemFolder*>(problem);
  }

  static kgrpo_str OptionsSchema() { return Str(Schema()); }
  static kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_evaluator** out) {
    return Guard([&] { *out = reinterpret_cast<kgrpo_evaluator*>(Make(host, View(options)).release()); });
  }
  static void Destroy(kgrpo_evaluator* self) { delete reinterpret_cast<Evaluator*>(self); }
  static kgrpo_error* OpenProblem(kgrpo_evaluator* self, kgrpo_str folder, kgrpo_problem** out) {
    return Guard([&] { *out = reinterpret_cast<kgrpo_problem*>(Of(self).Open(View(folder)).release()); });
  }
  static void CloseProblem(kgrpo_evaluator*, kgrpo_problem* problem) {
    delete reinterpret_cast<ProblemFolder*>(problem);
  }
  static const kgrpo_problem_info* ProblemInfo(const kgrpo_problem* problem) { return &Of(problem).info(); }

  static void Put(const Evaluator& self, const Found& found, kgrpo_evaluation_sink sink) {
    kgrpo_evaluation evaluation{};
    evaluation.struct_size = sizeof(evaluation);
    evaluation.compiled = found.verdict == KGRPO_VERDICT_NOT_COMPILED ? 0 : 1;
    evaluation.correct = found.verdict == KGRPO_VERDICT_CORRECT ? 1 : 0;
    evaluation.verdict = Str(found.verdict);
    evaluation.diagnosis = Str(found.diagnosis);
    evaluation.time_source = Str(self.time_source());
    if (evaluation.correct != 0) {
      evaluation.seconds = found.seconds;
      evaluation.seconds_low = found.seconds_low;
      evaluation.seconds_high = found.seconds_high;
    }
    sink.put(sink.context, &evaluation);
  }
  static kgrpo_error* Evaluate(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                               kgrpo_evaluation_sink sink) {
    return Guard([&] { Put(Of(self), Of(self).Judge(Of(problem), View(request->source), request->seed), sink); });
  }
  static kgrpo_str Describe(const kgrpo_evaluator* self) { return Str(Of(self).Describe()); }

 public:
  static constexpr kgrpo_evaluator_interface kInterface = {sizeof(kgrpo_evaluator_interface),
                                                           OptionsSchema,
                                                           Create,
                                                           Destroy,
                                                           OpenProblem,
                                                           CloseProblem,
                                                           ProblemInfo,
                                                           Evaluate,
                                                           Describe,
                                                           /*get_extension=*/nullptr};
};

}  // namespace kgrpo
#endif
