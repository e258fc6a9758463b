// Reads and checks the JSON of a request to the service, and reports every mistake with its place. Used by service.cc.
#ifndef KGRPO_SERVE_REQUESTS_H
#define KGRPO_SERVE_REQUESTS_H

#include <kgrpo/support/problem_files.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo::serve {

// A problem by name, by the digest of its files, or with its files.
struct ProblemRequest {
  std::string name;
  std::string sha256;  // empty: any problem with the name
  std::optional<ProblemFiles> files;
};

// One kernel, for one device or several.
struct EvaluationRequest {
  ProblemRequest problem;
  std::optional<std::string> source;  // unset: only the reference is judged
  uint64_t seed = 0;
  bool thorough = false;
  std::vector<std::string> devices;  // empty: the service's first
};

struct EvaluationsRequest {
  std::vector<EvaluationRequest> evaluations;
  bool batch = false;   // given as a list; the answer is a list too
  bool stream = false;  // send each result as soon as it is there
};

// Parses JSON of at most 32 levels, in linear time. Throws HttpError; 413 before parsing if the body lists more
// evaluations than `most_evaluations`, or holds many more values than so many need.
nlohmann::json ParseBody(const std::string& body, size_t most_evaluations);

// Throw HttpError with the path of the mistake: "evaluations[2].seed: ...".
EvaluationsRequest ReadEvaluations(const nlohmann::json& body);
ProblemRequest ReadProblem(const nlohmann::json& json, const std::string& path);

}  // namespace kgrpo::serve
#endif
