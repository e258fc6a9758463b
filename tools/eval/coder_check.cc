// `kgrpo-host coder-check FILE`: asks a pipeline's coder once, and shows request, answer, time and cost.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kgrpo/support/number_text.h>  // FormatDollars
#include "base/cancel.h"
#include "base/log.h"
#include "cli/command_line.h"
#include "cli/session.h"
#include "common/arguments.h"
#include "eval/command.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kTellEvery(10);

constexpr const char* kSuggestion =
    "Let each thread read and write several neighbouring elements at once, as float4 where the addresses allow it.";

struct CoderCheckOptions {
  std::string file;
  std::string problem;
  std::string evaluator;
  std::string suggestion;
  std::vector<std::string> settings;
  bool json = false;
};

// True if the coder worked, whether or not it wrote a kernel.
bool CoderAnswered(const CoderAnswer& answer) {
  return answer.outcome == KGRPO_CODER_OK || answer.outcome == KGRPO_CODER_NOT_APPLICABLE ||
         answer.outcome == KGRPO_CODER_UNCLEAR;
}

// Shows debug messages while it exists, such as the retries of a coder.
class TellingAll {
 public:
  explicit TellingAll(const Globals& globals) : globals_(globals) {
    if (!globals_.quiet) SetLogLevel(LogLevel::kDebug);
  }
  ~TellingAll() {
    if (!globals_.quiet && !globals_.verbose) SetLogLevel(LogLevel::kInfo);
  }
  TellingAll(const TellingAll&) = delete;
  TellingAll& operator=(const TellingAll&) = delete;

 private:
  const Globals& globals_;
};

// Makes one call. Ctrl-C cancels it; a message reports the waiting time every kTellEvery.
CoderAnswer Ask(const Globals& globals, Coder& coder, const kgrpo_coder_request& request) {
  using std::chrono::steady_clock;
  const TellingAll telling(globals);
  std::mutex mutex;
  std::condition_variable landed;
  bool done = false, cancelled = false;
  std::optional<CoderAnswer> answer;
  std::exception_ptr failure;
  const auto start = steady_clock::now();
  auto tell_at = start + kTellEvery;
  coder.Implement(request, [&](std::optional<CoderAnswer> given, const std::exception_ptr& error) {
    const std::lock_guard lock(mutex);
    answer = std::move(given);
    failure = error;
    done = true;
    landed.notify_one();
  });
  std::unique_lock lock(mutex);
  while (!landed.wait_for(lock, std::chrono::milliseconds(100), [&] { return done; })) {
    if (steady_clock::now() >= tell_at && !globals.quiet && !cancelled) {
      const auto waited = std::chrono::duration_cast<std::chrono::seconds>(tell_at - start);
      std::fprintf(stderr, "no answer for %lld s; Ctrl-C ends the call\n", static_cast<long long>(waited.count()));
      tell_at += kTellEvery;
    }
    if (!CancelRequested() || cancelled) continue;
    cancelled = true;
    lock.unlock();
    coder.Cancel();
    lock.lock();
  }
  // After Ctrl-C, a complete answer is shown all the same.
  if (cancelled && !(answer && answer->outcome != KGRPO_CODER_FAILED)) {
    const double cost = answer ? answer->cost : 0;
    throw Error(KGRPO_ERROR_CANCELLED,
                "stopped by the user" +
                    (cost > 0 ? "; the call that was cut short may be billed, at up to " + FormatDollars(cost) : ""));
  }
  if (failure) std::rethrow_exception(failure);
  return *std::move(answer);
}

// The problem to ask about: its folder, and a note for users on which of the file's problems it is.
struct Chosen {
  std::string folder;
  std::string which;
};

// The problem that --problem names, by its folder or by its name in the file; else the file's first.
Chosen ProblemOf(const CoderCheckOptions& options, const PipelineConfig& config) {
  if (IsFolder(options.problem))
    return {ProblemFolder(options.problem, {}, options.file, ProblemArgument::kOption), ""};
  std::vector<std::string> folders = config.train_problems;
  folders.insert(folders.end(), config.heldout_problems.begin(), config.heldout_problems.end());
  if (folders.empty())
    throw Error(KGRPO_ERROR_INVALID, options.file + " names no problem: choose one by --problem DIR");
  if (options.problem.empty()) {
    if (folders.size() == 1) return {folders.front(), ""};
    return {folders.front(),
            " (the first of " + std::to_string(folders.size()) + "; --problem NAME chooses another one)"};
  }
  return {ProblemFolder(options.problem, folders, options.file, ProblemArgument::kOption), ""};
}

void PrintBlock(const char* title, const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return;
  std::printf("---- %s\n    %s\n", title, PrintableText(text.substr(0, end + 1)).c_str());  // indents further lines
}

void PrintAnswer(const CoderAnswer& answer) {
  PrintBlock("answer", answer.text);
  PrintBlock("kernel", answer.source);
  std::printf("----\noutcome   %s%s\n", CoderOutcomeName(answer.outcome),
              answer.outcome == KGRPO_CODER_OK ? ": a kernel was found; it was neither compiled nor judged" : "");
  if (!answer.summary.empty()) std::printf("summary   %s\n", PrintableText(answer.summary).c_str());
  if (!answer.message.empty()) std::printf("message   %s\n", PrintableText(answer.message).c_str());
  if (answer.reused)
    std::printf("source    a recording or a cache: nothing was asked now, and nothing paid\n");
  else
    std::printf("time      %.2f s, %u %s\n", answer.seconds, answer.attempts,
                answer.attempts == 1 ? "attempt" : "attempts");
  std::printf("tokens    %llu sent, %llu answered%s\ncost      $%.6f\n",
              static_cast<unsigned long long>(answer.prompt_tokens),
              static_cast<unsigned long long>(answer.completion_tokens), answer.reused ? ", when it was recorded" : "",
              answer.cost);
  if (answer.estimated)
    std::printf(
        "estimate  some of these tokens and of this cost: the service reported no counts, or may bill an attempt that "
        "gave no answer\n");
}

int CheckCoder(const Globals& globals, const CoderCheckOptions& options) {
  Session session(globals);
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  request.evaluator = options.evaluator;
  request.roles = {Role::kCoder, Role::kEvaluator};
  request.needs_train_problems = false;
  request.ignore_problems = IsFolder(options.problem);
  const PipelineConfig config = session.Load(request);
  session.StartServices(config.seed);
  const Chosen chosen = ProblemOf(options, config);
  PipelineParts parts = session.MakeParts(config, request.roles);  // a key that is missing is found here
  const Problem problem = parts.evaluator->OpenProblem(chosen.folder);
  const Evaluation baseline = parts.evaluator->Baseline(problem);

  std::string suggestion = options.suggestion;
  if (suggestion.empty()) {
    const std::vector<std::string> known = parts.coder->Suggestions();
    suggestion = known.empty() ? kSuggestion : known.front();
  }
  const EvaluationView current = baseline.ToC();
  kgrpo_coder_request asked{};
  asked.struct_size = sizeof(asked);
  asked.problem = &problem.info();
  asked.code_a = asked.code_b = problem.info().source;
  asked.suggestion = {suggestion.data(), suggestion.size()};
  asked.current = current.c();
  asked.seed = config.seed;
  const std::string sent = parts.coder->DescribeRequest(asked);
  if (!options.json) {
    std::printf("coder     %s\nproblem   %s%s\nsuggests  %s\n", config.coder.plugin.c_str(), problem.name().c_str(),
                chosen.which.c_str(), PrintableText(suggestion).c_str());
    PrintBlock("request", sent);
    std::fflush(stdout);  // before the wait
  }
  const CoderAnswer answer = Ask(globals, *parts.coder, asked);
  if (options.json) {
    const Json json = {{"coder", config.coder.plugin},
                       {"problem", problem.name()},
                       {"suggestion", suggestion},
                       {"request", sent},
                       {"answer", answer.text},
                       {"outcome", CoderOutcomeName(answer.outcome)},
                       {"source", answer.source},
                       {"summary", answer.summary},
                       {"message", answer.message},
                       {"seconds", answer.seconds},
                       {"attempts", answer.attempts},
                       {"prompt_tokens", answer.prompt_tokens},
                       {"completion_tokens", answer.completion_tokens},
                       {"cost", answer.cost},
                       {"reused", answer.reused},
                       {"estimated", answer.estimated}};
    PrintJson(json);
  } else {
    PrintAnswer(answer);
  }
  return CoderAnswered(answer) ? kFine : kFailed;
}

}  // namespace

void AddCoderCheckCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<CoderCheckOptions>();
  CLI::App* command =
      app.add_subcommand("coder-check", "Ask a pipeline's coder once, and show request, answer and cost");
  command->add_option("FILE", options->file, "The pipeline file")->required();
  command
      ->add_option("--problem", options->problem,
                   "What to ask about: a folder, or the name of one of the file's problems (default: its first)")
      ->type_name("DIR|NAME");
  command->add_option("--suggestion", options->suggestion, "What to ask for")->type_name("TEXT");
  command
      ->add_option("--evaluator", options->evaluator,
                   "Another evaluator than the file's, for a machine without its device")
      ->type_name("PLUGIN");
  AddSetOption(command, &options->settings, "Changes one key of the file");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Example:\n"
      "  kgrpo-host coder-check configs/seed.yaml --problem problems/softmax_long --evaluator evaluator_sim");
  command->callback([=, &globals] { *action = [=, &globals] { return CheckCoder(globals, *options); }; });
}

}  // namespace kgrpo::cli
