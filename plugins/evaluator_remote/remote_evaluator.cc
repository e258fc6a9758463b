#include "evaluator_remote/remote_evaluator.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/evaluation_json.h>

#include <filesystem>
#include <memory>
#include <utility>

namespace kgrpo::evaluator_remote {
namespace {

using Json = nlohmann::ordered_json;

// Limit for the first answer: `check` and `plugins validate` make an instance too, and should not seem to hang.
constexpr double kFirstWaitSeconds = 5;

Json Parsed(const HttpAnswer& answer) { return Json::parse(answer.body, nullptr, false); }

bool IsObject(const HttpAnswer& answer) { return Parsed(answer).is_object(); }

std::string NameOf(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::string Text(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

// A refusal that every server would give.
[[noreturn]] void ThrowRefusal(const HttpAnswer& answer) {
  const Json json = Parsed(answer);
  const std::string message = json.is_object() && json.contains("error") ? Text(json["error"], "message") : "";
  const std::string said = message.empty() ? "the server answers HTTP " + std::to_string(answer.status) : message;
  if (answer.status == 401)
    throw Error(KGRPO_ERROR_INVALID, said + "; its token goes into the variable that token_env names");
  throw Error(KGRPO_ERROR_INVALID, said);
}

std::string CodeOf(const HttpAnswer& answer) {
  const Json json = Parsed(answer);
  return json.is_object() && json.contains("error") ? Text(json["error"], "code") : "";
}

void Declare(const Json& about, const Host& host) {
  for (const Json& metric : about.value("metrics", Json::array())) {
    const std::string name = Text(metric, "name"), label = Text(metric, "label"), unit = Text(metric, "unit"),
                      group = Text(metric, "group");
    host.Declare({.name = name,
                  .label = label,
                  .group = group,
                  .kind = static_cast<kgrpo_metric_kind>(metric.value("kind", 0)),
                  .unit = unit,
                  .direction = static_cast<kgrpo_metric_direction>(metric.value("direction", 0)),
                  .combination = static_cast<kgrpo_metric_combination>(metric.value("combination", 0))});
  }
}

std::vector<kgrpo_str> Views(const std::vector<std::string>& texts) {
  std::vector<kgrpo_str> views;
  views.reserve(texts.size());
  for (const std::string& text : texts) views.push_back(Str(text));
  return views;
}

}  // namespace

RemoteProblem::RemoteProblem(std::string name, ProblemFiles files)
    : name_(std::move(name)), sha256_(ProblemDigest(files)), files_(std::move(files)) {}

void RemoteProblem::Describe(const Json& json) {
  title_ = Text(json, "title");
  family_ = Text(json, "family");
  split_ = Text(json, "split");
  task_ = Text(json, "task");
  signature_ = Text(json, "signature");
  source_ = Text(json, "source");
  refused_ = Text(json, "refused");
  traits_ = json.value("traits", std::vector<std::string>());
  flags_ = json.value("flags", std::vector<std::string>());
  trait_views_ = Views(traits_);
  flag_views_ = Views(flags_);
  info_ = {sizeof info_,  Str(name_),         Str(title_),       Str(family_),        Str(split_),
           Str(task_),    Str(signature_),    Str(source_),      trait_views_.data(), trait_views_.size(),
           Str(refused_), flag_views_.data(), flag_views_.size()};
}

RemoteEvaluator::RemoteEvaluator(const Host& host, RemoteOptions options)
    : device_(std::move(options.device)), pool_(std::move(options.pool)) {
  const HttpAnswer answer = pool_.Ask("/v1/evaluator", "", IsObject, kFirstWaitSeconds);
  if (answer.status != 200) ThrowRefusal(answer);
  const Json about = Parsed(answer);
  Declare(about, host);
  std::string devices, device_text;
  for (const Json& device : about.value("devices", Json::array())) {
    const std::string name = Text(device, "name");
    if (device_text.empty() && (device_.empty() || device_ == name)) device_text = Text(device, "description");
    devices += (devices.empty() ? "" : ", ") + name;
  }
  if (device_text.empty())
    throw Error(KGRPO_ERROR_INVALID,
                "options.device: the servers do not judge for \"" + device_ + "\"; they do for " + devices);
  for (const std::string& address : pool_.Addresses())
    description_ += (description_.empty() ? "servers: " : ", ") + address;
  description_ += "\n" + Text(about, "evaluator") + " " + Text(about, "version") + " there\n" + device_text;
  Compare(about, host);
}

// Servers of different versions or options judge differently: a run should not mix them unnoticed.
void RemoteEvaluator::Compare(const Json& first, const Host& host) {
  for (const std::string& address : pool_.Addresses()) {
    const HttpAnswer answer = pool_.AskOne(address, "/v1/evaluator");
    if (answer.status != 200 || !IsObject(answer)) {
      host.Warn(address + " does not answer yet; it is asked again during the run");
      continue;
    }
    const Json about = Parsed(answer);
    for (const char* key : {"evaluator", "version", "sha256", "options"}) {
      if (about.value(key, Json()) == first.value(key, Json())) continue;
      host.Warn(address + " judges with another " + key + " than the others: " + about.value(key, Json()).dump() +
                ", not " + first.value(key, Json()).dump() + "; evaluations may differ by the server that gave them");
      break;
    }
  }
}

// Sends a request with the problem under `key` (empty: the problem is the body itself): by its digest, and with its
// files where a server does not know the digest.
Json RemoteEvaluator::AskAbout(RemoteProblem& problem, const std::string& path, Json body, const char* key) {
  for (;;) {
    const bool with_files = problem.send_files_;
    Json named = {{"name", problem.name_}, {"sha256", problem.sha256_}};
    if (with_files) named["files"] = problem.files_;
    if (*key == '\0')
      body = named;
    else
      body[key] = named;
    const HttpAnswer answer = pool_.Ask(path, DumpJson(body), IsObject);
    if (answer.status == 200) return Parsed(answer);
    if (with_files || CodeOf(answer) != "unknown_problem") ThrowRefusal(answer);
    problem.send_files_ = true;
  }
}

Json RemoteEvaluator::Result(RemoteProblem& problem, Json body) {
  if (!device_.empty()) body["devices"] = {device_};
  const Json answer = AskAbout(problem, "/v1/evaluations", std::move(body), "problem");
  if (!answer.contains("results") || !answer["results"].is_array() || answer["results"].empty())
    throw Error(KGRPO_ERROR_INTERNAL,
                "a server's answer has no \"results\": is it a kgrpo-host serve of this version?");
  return answer["results"][0];
}

std::unique_ptr<RemoteProblem> RemoteEvaluator::Open(const std::string& directory) {
  auto problem = std::make_unique<RemoteProblem>(NameOf(directory), ReadProblemFiles(directory));
  problem->Describe(AskAbout(*problem, "/v1/problems", Json::object(), ""));
  return problem;
}

Evaluation RemoteEvaluator::Baseline(RemoteProblem& problem, uint64_t seed, bool thorough) {
  const Json body = {{"seed", seed}, {"thoroughness", thorough ? "thorough" : "quick"}};
  return EvaluationFromAnswer(Result(problem, body).value("baseline", Json()));
}

Evaluation RemoteEvaluator::Evaluate(RemoteProblem& problem, std::string_view source, uint64_t seed, bool thorough) {
  const Json body = {{"source", source}, {"seed", seed}, {"thoroughness", thorough ? "thorough" : "quick"}};
  return EvaluationFromAnswer(Result(problem, body).value("evaluation", Json()));
}

}  // namespace kgrpo::evaluator_remote
