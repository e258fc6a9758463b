#include "serve/service.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/evaluation_json.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/cancel.h"
#include "serve/openapi.h"

namespace kgrpo::serve {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr auto kLookEvery = std::chrono::milliseconds(20);  // between checks for a client that left, and for a stop
constexpr int kLongestRetryAfter = 60;
constexpr int kTries = 10;  // tries of an evaluation that another request's cancellation ended

std::string Dump(const Json& json) { return DumpJson(json) + "\n"; }

void AnswerJson(const Json& json, httplib::Response& response) { response.set_content(Dump(json), "application/json"); }

double SecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// HTTP status and error code for an evaluator's failure. `of_kernel`: the problem's reference was judged before it.
struct Failure {
  int status;
  const char* code;
};
Failure FailureOf(kgrpo_error_code code, bool of_kernel = false) {
  switch (code) {
    case KGRPO_ERROR_INVALID:
    case KGRPO_ERROR_NOT_FOUND: return of_kernel ? Failure{422, "not_judged"} : Failure{422, "invalid_problem"};
    case KGRPO_ERROR_UNSUPPORTED: return of_kernel ? Failure{422, "not_judged"} : Failure{422, "unsupported"};
    case KGRPO_ERROR_UNAVAILABLE: return {503, "unavailable"};
    case KGRPO_ERROR_CANCELLED: return {503, "cancelled"};
    default: return {500, "internal"};
  }
}

// "softmax_long", or "softmax_long and 2 more".
std::string ProblemsOf(const EvaluationsRequest& request) {
  std::set<std::string> names;
  for (const EvaluationRequest& one : request.evaluations) names.insert(one.problem.name);
  return *names.begin() + (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "");
}

}  // namespace

// One kernel on one device.
struct Service::Unit {
  size_t evaluation;  // index into the request's evaluations
  size_t device;
  std::shared_ptr<ServedProblem> problem;

  // Set when it ends:
  std::optional<Evaluation> found, baseline;
  std::optional<HttpError> error;
  double queue_seconds = 0, seconds = 0;
};

// A request under way. Lives until its answer is written and its last job has ended.
struct Service::Pending {
  std::shared_ptr<Clients::Claim> claim;
  EvaluationsRequest request;
  std::vector<Unit> units;
  std::shared_ptr<EvaluationQueue::Ticket> ticket;
  std::atomic<bool> cancelled{false};
  Clock::time_point start = Clock::now();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<size_t> ended;  // indices of finished units, in order of completion
};

// Counts a request as being answered while the object exists.
class Service::Active {
 public:
  explicit Active(std::atomic<size_t>& count) : count_(count) { ++count_; }
  ~Active() { --count_; }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  std::atomic<size_t>& count_;
};

Service::Service(ServiceOptions options, std::vector<ServedDevice> devices, const std::vector<std::string>& problems,
                 Json about)
    : options_(std::move(options)),
      devices_(std::move(devices)),
      about_(std::move(about)),
      clients_(options_.tokens),
      problems_(problems, devices_.size(), options_.inline_code),
      queue_(options_.workers, options_.queue),
      http_(options_.http) {
  DeclareMetrics();
  AddRoutes();
}

Service::~Service() = default;

void Service::Run(const std::function<bool()>& stop) {
  std::thread http([this] { http_.Run(); });
  while (!stop()) std::this_thread::sleep_for(kLookEvery);
  draining_ = true;
  spdlog::info("draining: {} requests are being answered", active_.load());
  const Clock::time_point start = Clock::now();
  bool cancelled = false;
  while (active_ > 0) {
    if (!cancelled && SecondsBetween(start, Clock::now()) > options_.drain_seconds) {
      spdlog::warn("{} requests are not answered after {} s: their evaluations are cancelled", active_.load(),
                   options_.drain_seconds);
      RequestCancel();
      cancelled = true;
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  http_.Stop();
  http.join();
}

// ---- routes -------------------------------------------------------------------------------------

void Service::AddRoutes() {
  http_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response&) {
    HttpServer::RequireOneLength(request);
    CheckToken(request);
    return httplib::Server::HandlerResponse::Unhandled;
  });
  http_.OnAnswer([this](const httplib::Request& request, const httplib::Response& response) {
    CountRequest(request.path, response.status);
  });
  http_.OnEnd([this](const httplib::Request& request, const httplib::Response& response, const RequestNote& note) {
    Log(request, response, note);
  });
  http_.Get("/", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(OpenApiPage(), "text/html; charset=utf-8");
  });
  http_.Get("/openapi.json",
            [](const httplib::Request&, httplib::Response& response) { AnswerJson(OpenApi(), response); });
  http_.Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
    AnswerJson(Health(), response);
    if (draining_) response.status = 503;
  });
  http_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(MetricsText(), "text/plain; version=0.0.4");
  });
  http_.Get("/v1/evaluator", [this](const httplib::Request&, httplib::Response& response) {
    Json json = about_;
    json["devices"] = Json::array();
    for (const ServedDevice& device : devices_)
      json["devices"].push_back({{"name", device.name}, {"description", device.evaluator->Describe()}});
    AnswerJson(json, response);
  });
  http_.Get("/v1/problems", [this](const httplib::Request&, httplib::Response& response) {
    Json list = Json::array();
    for (const auto& [name, problem] : problems_.named())
      list.push_back({{"name", name}, {"sha256", problem->sha256()}});
    AnswerJson({{"problems", list}}, response);
  });
  http_.Get(R"(/v1/problems/([A-Za-z0-9_.-]+))", [this](const httplib::Request& request, httplib::Response& response) {
    AnswerJson(DescribeProblem(*problems_.Find({request.matches[1], "", {}})), response);
  });
  http_.Post("/v1/problems", [this](const httplib::Request& request, httplib::Response& response,
                                    const httplib::ContentReader& read) {
    const Active active(active_);
    AnswerJson(DescribeProblem(*problems_.Find(ReadProblem(ParseBody(HttpServer::ReadBody(request, read), 1), ""))),
               response);
  });
  http_.Post("/v1/evaluations",
             [this](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& read) {
               PostEvaluations(request, response, read);
             });
}

// /healthz needs no token, since load balancers have none.
void Service::CheckToken(const httplib::Request& request) {
  if (clients_.empty() || request.path == "/healthz") return;
  const std::string given = request.get_header_value("Authorization");
  if (Clients::Client* client = clients_.Find(given)) {
    HttpServer::Note().token = client->of.name;
    return;
  }
  HttpServer::CloseAfterwards();  // the body is not read
  throw HttpError(401, "unauthorized",
                  given.empty() ? "this service wants a token: send \"Authorization: Bearer TOKEN\""
                                : "the token is not this service's");
}

Json Service::DescribeProblem(ServedProblem& problem) const {
  try {
    const kgrpo_problem_info& info = problem.Open(devices_.front(), 0).info();
    Json json = {{"name", Copy(info.name)},     {"sha256", problem.sha256()}, {"title", Copy(info.title)},
                 {"family", Copy(info.family)}, {"split", Copy(info.split)},  {"signature", Copy(info.signature)},
                 {"task", Copy(info.task)},     {"source", Copy(info.source)}};
    json["traits"] = Json::array();
    for (size_t i = 0; i < info.trait_count; ++i) json["traits"].push_back(Copy(info.traits[i]));
    json["refused"] = Copy(info.refused);
    json["flags"] = Json::array();
    for (size_t i = 0; i < info.flag_count; ++i) json["flags"].push_back(Copy(info.flags[i]));
    return json;
  } catch (const Error& error) {
    const Failure failure = FailureOf(error.code());
    throw HttpError(failure.status, failure.code, problem.WithoutPath(error.what()));
  }
}

// ---- evaluations --------------------------------------------------------------------------------

std::vector<Service::Unit> Service::UnitsOf(const EvaluationsRequest& request) {
  std::vector<Unit> units;
  for (size_t i = 0; i < request.evaluations.size(); ++i) {
    const EvaluationRequest& one = request.evaluations[i];
    const std::shared_ptr<ServedProblem> problem = problems_.Find(one.problem);
    if (one.devices.empty()) units.push_back({i, 0, problem, {}, {}, {}});
    for (const std::string& name : one.devices) {
      const auto found = std::ranges::find(devices_, name, &ServedDevice::name);
      if (found == devices_.end()) {
        std::string all;
        for (const ServedDevice& device : devices_) all += (all.empty() ? "" : ", ") + device.name;
        throw HttpError(400, "unknown_device",
                        "devices: this service does not judge for \"" + name + "\"; it does for " + all);
      }
      units.push_back({i, static_cast<size_t>(found - devices_.begin()), problem, {}, {}, {}});
    }
  }
  return units;
}

void Service::PostEvaluations(const httplib::Request& request, httplib::Response& response,
                              const httplib::ContentReader& read) {
  auto active = std::make_shared<Active>(active_);
  if (draining_) {
    HttpServer::CloseAfterwards();
    throw HttpError(503, "draining", "the service is shutting down", 1);
  }
  const std::shared_ptr<Pending> pending =
      Submit(ReadEvaluations(ParseBody(HttpServer::ReadBody(request, read), queue_.limit())),
             clients_.Find(request.get_header_value("Authorization")));
  if (!pending->request.stream) return AnswerWhole(*pending, response);
  Stream(pending, response, [this, pending, active](bool) { CancelUnlessEnded(*pending); });
}

void Service::CancelUnlessEnded(Pending& pending) {
  {
    const std::lock_guard<std::mutex> lock(pending.mutex);
    if (pending.ended.size() == pending.units.size()) return;
  }
  pending.cancelled = true;
  queue_.Cancel(*pending.ticket);
  metrics_.Count("requests_aborted_total");
}

std::shared_ptr<Service::Pending> Service::Submit(EvaluationsRequest request, Clients::Client* client) {
  auto pending = std::make_shared<Pending>();
  HttpServer::Note().problem = ProblemsOf(request);
  pending->units = UnitsOf(request);
  pending->request = std::move(request);
  const size_t count = pending->units.size();
  if (count > queue_.limit()) {
    throw HttpError(413, "too_many",
                    "the request asks for " + std::to_string(count) + " evaluations, and the queue holds " +
                        std::to_string(queue_.limit()) + ": send them in parts");
  }
  if (client != nullptr && (pending->claim = Clients::Take(*client, count)) == nullptr) {
    metrics_.Count("requests_refused_total", {{"reason", "client_limit"}});
    throw HttpError(429, "client_limit",
                    client->of.name + " may have " + std::to_string(client->of.most_under_way) +
                        " evaluations under way: wait for answers, or send fewer at a time",
                    1);
  }
  std::vector<std::function<void()>> jobs;
  for (size_t i = 0; i < count; ++i) jobs.emplace_back([this, pending, i] { Judge(*pending, i); });
  pending->ticket = queue_.Submit(std::move(jobs));
  if (pending->ticket == nullptr) {
    metrics_.Count("requests_refused_total", {{"reason", "queue_full"}});
    const int seconds = std::clamp(static_cast<int>(std::ceil(queue_.SecondsUntilRoom(count))), 1, kLongestRetryAfter);
    throw HttpError(429, "queue_full",
                    "the queue is full: " + std::to_string(queue_.waiting()) +
                        " evaluations wait; try again in about " + std::to_string(seconds) + " s, or elsewhere",
                    seconds);
  }
  return pending;
}

// [a thread of the queue]
void Service::Judge(Pending& pending, size_t number) {
  Unit& unit = pending.units[number];
  const EvaluationRequest& asked = pending.request.evaluations[unit.evaluation];
  const ServedDevice& device = devices_[unit.device];
  const Clock::time_point start = Clock::now();
  unit.queue_seconds = SecondsBetween(pending.start, start);
  const CancelScope scope(&pending.cancelled);
  for (int left = kTries; left > 0; --left) {
    try {
      if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "the service is shutting down");
      unit.baseline = unit.problem->Baseline(device, unit.device, asked.seed, asked.thorough);
      if (asked.source) {
        unit.found = device.evaluator->Evaluate(unit.problem->Open(device, unit.device), *asked.source, asked.seed,
                                                asked.thorough);
        unit.found->CompareWith(*unit.baseline);
      }
    } catch (const Error& error) {
      // An evaluator may judge equal kernels of several requests once. If one of these requests is cancelled, the
      // others try again.
      if (error.code() == KGRPO_ERROR_CANCELLED && !CancelRequested() && left > 1) continue;
      const Failure failure = FailureOf(error.code(), unit.baseline.has_value());
      unit.error.emplace(failure.status, failure.code, unit.problem->WithoutPath(error.what()));
    } catch (const std::exception& error) {
      unit.error.emplace(500, "internal", unit.problem->WithoutPath(error.what()));
    }
    break;
  }
  unit.seconds = SecondsBetween(start, Clock::now());
  metrics_.Observe("queue_seconds", {}, unit.queue_seconds);
  metrics_.Observe("evaluation_seconds", {{"device", device.name}}, unit.seconds);
  if (unit.error)
    metrics_.Count("evaluation_errors_total", {{"device", device.name}, {"code", unit.error->code}});
  else
    metrics_.Count("evaluations_total",
                   {{"device", device.name}, {"verdict", (unit.found ? unit.found : unit.baseline)->verdict}});
  const std::lock_guard<std::mutex> lock(pending.mutex);
  pending.ended.push_back(number);
  pending.changed.notify_one();
}

Json Service::ResultJson(const Pending& pending, size_t number) const {
  const Unit& unit = pending.units[number];
  Json json = {{"device", devices_[unit.device].name}};
  if (unit.error) {
    json["error"] = {{"code", unit.error->code}, {"message", unit.error->what()}};
    return json;
  }
  if (unit.found) {
    json["evaluation"] = EvaluationToJson(*unit.found);
    if (unit.found->correct) json["speedup"] = unit.found->speedup;
  }
  json["baseline"] = EvaluationToJson(*unit.baseline);
  json["queue_seconds"] = unit.queue_seconds;
  json["evaluate_seconds"] = unit.seconds;
  return json;
}

// Notes the verdicts for the log: "correct", or "correct 3, wrong 1"; an impossible evaluation counts by its code.
void Service::NoteVerdicts(const Pending& pending) {
  std::map<std::string, size_t> counts;
  RequestNote& note = HttpServer::Note();
  for (const Unit& unit : pending.units) {
    ++counts[unit.error ? unit.error->code : (unit.found ? unit.found : unit.baseline)->verdict];
    if (unit.error && note.cause.empty()) note.cause = unit.error->code + ": " + unit.error->what();
  }
  for (const auto& [verdict, count] : counts) {
    note.verdict += (note.verdict.empty() ? "" : ", ") + verdict;
    if (pending.units.size() > 1) note.verdict += " " + std::to_string(count);
  }
}

void Service::AnswerWhole(Pending& pending, httplib::Response& response) {
  {
    std::unique_lock<std::mutex> lock(pending.mutex);
    while (!pending.changed.wait_for(lock, kLookEvery, [&] { return pending.ended.size() == pending.units.size(); })) {
      if (!HttpServer::ClientGone()) continue;
      lock.unlock();
      CancelUnlessEnded(pending);
      HttpServer::CloseAfterwards();
      throw HttpError(kClientGone, "client_gone", "the client has left");
    }
  }
  NoteVerdicts(pending);
  std::vector<Json> answers;
  for (const EvaluationRequest& one : pending.request.evaluations)
    answers.push_back({{"problem", one.problem.name}, {"results", Json::array()}});
  if (std::ranges::all_of(pending.units, [](const Unit& unit) { return unit.error.has_value(); }))
    throw HttpError(*pending.units.front().error);  // nothing could be judged
  for (size_t i = 0; i < pending.units.size(); ++i)
    answers[pending.units[i].evaluation]["results"].push_back(ResultJson(pending, i));
  if (pending.request.batch)
    AnswerJson({{"evaluations", answers}}, response);
  else
    AnswerJson(answers.front(), response);
}

// Sends one line for each result as it ends, and a last line {"done": true, ...}.
void Service::Stream(const std::shared_ptr<Pending>& pending, httplib::Response& response,
                     httplib::ContentProviderResourceReleaser ended) {
  const auto provide = [this, pending, sent = size_t{0}](size_t, httplib::DataSink& sink) mutable {
    std::vector<size_t> ended;
    {
      std::unique_lock<std::mutex> lock(pending->mutex);
      while (!pending->changed.wait_for(lock, kLookEvery, [&] { return pending->ended.size() > sent; })) {
        if (HttpServer::ClientGone()) return false;
      }
      ended.assign(pending->ended.begin() + static_cast<std::ptrdiff_t>(sent), pending->ended.end());
    }
    for (const size_t number : ended) {
      const size_t evaluation = pending->units[number].evaluation;
      Json line = {{"index", evaluation}, {"problem", pending->request.evaluations[evaluation].problem.name}};
      line.update(ResultJson(*pending, number));
      const std::string text = Dump(line);
      if (!sink.write(text.data(), text.size())) return false;
    }
    sent += ended.size();
    if (sent < pending->units.size()) return true;
    NoteVerdicts(*pending);
    const std::string end = Dump({{"done", true}, {"results", sent}});
    if (!sink.write(end.data(), end.size())) return false;
    sink.done();
    return true;
  };
  response.set_chunked_content_provider("application/x-ndjson", provide, std::move(ended));
}

}  // namespace kgrpo::serve
